"""Every real file gives as many records as it has items."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.sources.publishing import loose, records_of

from fonds.sources.cbo import source


def test_every_file_gives_a_record_for_each_item(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/cbo")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    for path in files:
        data = path.read_bytes()
        records = records_of(source, loose(data, path.name))
        assert len(records) == len(set(re.findall(rb"/publication/(\d+)", data))) > 0, path.name
        for record in records:
            assert record.document is not None
            assert record.document.published_at
            assert record.payload["congress"] == int(path.name[4:7])


def test_the_bill_of_an_estimate_is_the_one_its_title_begins_with(
    corpus: Callable[[str], Path],
) -> None:
    path = corpus("federal/cbo") / "cost_estimate_feeds" / "cbo-119congress-cost-estimates.xml"
    records = records_of(source, loose(path.read_bytes(), path.name))
    references = [record.payload["bill_ref"] for record in records]
    numbers = re.findall(r"<Title>S\. (\d+),", path.read_text(encoding="utf-8"))
    assert [reference for reference in references if reference] == [
        f"bill:119-s-{number}" for number in numbers
    ]
