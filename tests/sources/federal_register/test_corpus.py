"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.sources.federal_register.upstream import loose, records_of

from fonds.errors import ParseError
from fonds.normalize.fr import FrXml, read_xml

WORD = re.compile(r"[^\W_]+")

# Folder or name, and what the error must say.
WITHOUT_RECORDS = (
    (r"vcr_cassettes/", "cassette"),
    (r"uslm_issue_xml/", "USLM"),
    (r"govinfo_api_json/.*granules-", "govinfo's list"),
    (r"govinfo_api_json/", "govinfo's description"),
    (r"api_json_from_vcr/documents_[\d_]+json_fields_document_number", "needs a title"),
    (r"api_json_from_vcr/documents_search_details", "search suggestion"),
    (r"api_json_from_vcr/.*document_issues", "table of contents"),
    (r"api_json_from_vcr/.*\.404\..*\.json", "error message"),
    (r"api_json_from_vcr/.*\.404\..*\.txt", "HTML page"),
)


def reason_for(name: str) -> str | None:
    return next((why for where, why in WITHOUT_RECORDS if re.match(where, name)), None)


def outcome(name: str, data: bytes) -> tuple[list[str], str]:
    try:
        return [record.key for record in records_of(loose(data, name))], ""
    except ParseError as error:
        return [], str(error)


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/federal_register")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) > 100
    for path in files:
        name = path.relative_to(folder).as_posix()
        keys, refusal = outcome(name, path.read_bytes())
        reason = reason_for(name)
        if reason is None:
            assert keys, f"{name}: {refusal}"
            assert len(keys) == len(set(keys)), name
        else:
            assert reason in refusal, name


def test_an_issue_gives_each_document_a_place_in_print(corpus: Callable[[str], Path]) -> None:
    issue = corpus("federal/federal_register") / "bulk_issue_xml" / "2016-04-15.xml"
    records = records_of(loose(issue.read_bytes()))
    assert len(records) == 146
    for record in records:
        assert record.document is not None
        assert record.document.citation_string.startswith("81 Fed. Reg. 22")
        assert record.document.published_at == "2016-04-15"


def test_offsets_of_real_texts_are_exact(corpus: Callable[[str], Path]) -> None:
    for path in sorted((corpus("federal/federal_register") / "fulltext_xml").glob("*.xml")):
        body = FrXml().to_markdown(path.read_bytes())
        assert body.headings, path.name
        for heading in body.headings:
            line = body.markdown[heading.offset :].split("\n", 1)[0]
            assert line.startswith("#" * heading.level + " "), path.name
        offsets = [mark.offset for mark in body.pages]
        assert offsets == sorted(offsets), path.name
        assert "\n\n\n" not in body.markdown, path.name


def test_no_word_of_a_real_text_is_lost_or_moved(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/federal_register")
    for path in sorted([*folder.glob("fulltext_xml/*.xml"), *folder.glob("bulk_issue_xml/*.xml")]):
        root, _ = read_xml(path.read_bytes())
        # `in` uses the iterator up to the word: each must come after the one before it.
        written = iter(WORD.findall(FrXml().to_markdown(path.read_bytes()).markdown))
        words = (word for text in root.itertext() for word in WORD.findall(text))
        lost = next((word for word in words if word not in written), None)
        assert lost is None, path.name
