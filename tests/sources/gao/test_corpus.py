"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.publishing import loose, records_of

from fonds.errors import WrongContentError
from fonds.sources.gao import source

# Folder, and what the error must say.
WITHOUT_RECORDS = {"pdf": r"the PDF of a product \(GAO-06-\d+\); what it is, is said by the feed"}


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/gao")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    for path in files:
        raw = loose(path.read_bytes(), path.name)
        reason = WITHOUT_RECORDS.get(path.parent.name)
        if reason is None:
            listed = re.findall(rb"<item[ >]", path.read_bytes())
            assert len(records_of(source, raw)) == len(listed) > 0, path.name
        else:
            with pytest.raises(WrongContentError, match=reason):
                records_of(source, raw)
