"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.packages import loose, outcome, parsed

from fonds.sources.congressional_record import source

# Folder or name, and what the error must say.
WITHOUT_RECORDS = (
    (r"CREC-2005-07-20/dip\.xml", "a companion"),
    (r"CREC-2005-07-20/premis\.xml", "a companion"),
    (r"congress_gov_api/", "a listing"),
    (r"parsed_json_derived/", "a derived sample"),
)
GRANULE = re.compile(
    r'<relatedItem type="constituent".*?(?=<relatedItem type="constituent"|\Z)', re.DOTALL
)
LAST_MARKER = re.compile(r"(?:\[\[Page \w+\]\])?[\s_]*</pre>.*", re.DOTALL)
VOTES = re.compile(r"<congVote\b.*?</congVote>", re.DOTALL)


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/congressional_record")
    texts = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        reason = next((why for where, why in WITHOUT_RECORDS if re.match(where, name)), None)
        records, refusal = outcome(source, path)
        if reason is not None:
            assert reason in refusal, name
            continue
        assert records, f"{name}: {refusal}"
        if path.suffix == ".htm":
            texts += 1
            assert [record.key for record in records] == [f"crec:{path.stem}"], name
            assert records[0].document is not None
            assert records[0].document.body is not None, name
    assert texts == 183


@pytest.mark.parametrize("folder", ["CREC-2005-07-20", "CREC-2017-01-20_mods"])
def test_granules_speakers_and_bills_are_all_there(
    corpus: Callable[[str], Path], folder: str
) -> None:
    path = corpus("federal/congressional_record") / folder / "mods.xml"
    listed = GRANULE.findall(path.read_text("utf-8"))
    records, _ = parsed(source, loose(path))
    assert len(records) == len(listed) > 70
    for record, xml in zip(records, listed, strict=True):
        plain = VOTES.sub("", xml)
        below = Counter(child.table for child in record.children)
        assert record.key == "crec:" + re.findall(r"<accessId>(.*?)</accessId>", plain)[0]
        assert below["crec_speakers"] == len(re.findall(r"<congMember\b", plain)), record.key
        assert below["crec_bills"] == len(re.findall(r"<bill\b", plain)), record.key
        speaking = set(re.findall(r'bioGuideId="(\w+)"[^>]*role="SPEAKING"', plain))
        assert record.document is not None
        stated = "(statement of " in record.document.citation_string
        assert stated == (len(speaking) == 1), record.key


def test_mods_and_texts_agree_about_the_first_page(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/congressional_record") / "CREC-2005-07-20"
    described = {record.key: record for record in parsed(source, loose(folder / "mods.xml"))[0]}
    for path in sorted((folder / "html").glob("*.htm")):
        [record], _ = parsed(source, loose(path))
        assert record.payload["page_start"] == described[record.key].payload["page_start"], (
            path.name
        )
        assert record.payload["congress"] == described[record.key].payload["congress"], path.name


def test_every_page_marker_of_a_text_is_in_its_map(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/congressional_record") / "CREC-2005-07-20" / "html"
    for path in sorted(folder.glob("*.htm")):
        [record], _ = parsed(source, loose(path))
        assert record.document is not None
        body = record.document.body
        assert body is not None
        assert body.normalized is not None
        # A marker that nothing follows begins a page of the next granule.
        text = LAST_MARKER.sub("", path.read_text("latin-1"))
        marked = re.findall(r"\[\[Page (\w+)\]\]", text)
        pages = [mark.page for mark in body.normalized.pages]
        assert set(marked) <= set(pages), path.name
        offsets = [mark.offset for mark in body.normalized.pages]
        assert offsets == sorted(offsets), path.name
