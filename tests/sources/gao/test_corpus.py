"""Every real file gives its records."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.sources.publishing import loose, records_of

from fonds.sources.gao import source


def test_every_file_gives_a_record_for_each_product(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/gao")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    for path in files:
        records = records_of(source, loose(path.read_bytes(), path.name))
        if path.suffix == ".pdf":
            assert [record.payload["product"] for record in records] == [path.stem.upper()]
        else:
            listed = re.findall(rb"<item[ >]", path.read_bytes())
            assert len(records) == len(listed) > 0, path.name
