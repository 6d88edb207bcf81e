"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.publishing import loose, records_of, together

from fonds.errors import WrongContentError
from fonds.sources.sap import source

# Folder, and what the error must say.
WITHOUT_RECORDS = {
    # Companions of the YAML, which alone says what they are.
    "pdf": "the PDF of a statement",
    # A dump of another program's database, derived from the archive.
    "billmap": "a mapping with the keys model, pk, fields",
}


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/sap")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) > 10
    for path in files:
        raw = loose(path.read_bytes(), path.name)
        if reason := WITHOUT_RECORDS.get(path.parent.name):
            with pytest.raises(WrongContentError, match=reason):
                records_of(source, raw)
        else:
            assert records_of(source, raw), path.name


def test_documents_are_as_many_as_the_yaml_has_lines_for_bills(
    corpus: Callable[[str], Path],
) -> None:
    for path in sorted((corpus("federal/sap") / "yaml").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        records = records_of(source, loose(path.read_bytes(), path.name))
        bills = len(re.findall(r"^  - ", text, re.MULTILINE))
        none = len(re.findall(r"^- bills: \[\]", text, re.MULTILINE))
        assert len(records) == bills + none > 0, path.name
        assert len({record.key for record in records}) == len(records)
        days = re.findall(r"^  date_issued: '([\d-]+)'", text, re.MULTILINE)
        assert {record.payload["date_issued"] for record in records} == set(days)


def test_every_bill_of_the_archive_is_referred_to(corpus: Callable[[str], Path]) -> None:
    for path in sorted((corpus("federal/sap") / "yaml").glob("*.yaml")):
        for record in records_of(source, loose(path.read_bytes(), path.name)):
            assert record.payload["bill_ref"], record.key
            assert record.document is not None
            assert record.document.title == record.document.title.strip()


def test_a_real_pdf_joins_the_statement_that_names_it(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/sap")
    joined = 0
    for pdf in sorted((folder / "pdf").glob("*.pdf")):
        for path in sorted((folder / "yaml").glob("*.yaml")):
            data = path.read_bytes()
            entries = data.count(f"/{pdf.name}\n".encode())
            if entries:
                raw = together(**{path.name: data, pdf.name: pdf.read_bytes()})
                documents = [record.document for record in records_of(source, raw)]
                assert sum(one is not None and one.body is not None for one in documents) == entries
                joined += entries
    assert joined
