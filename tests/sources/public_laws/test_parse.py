from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import assert_rows_fit, fetched, loose, records_of

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import FetchTask, ParsedRecord, Part
from fonds.normalize.uslm import Uslm
from fonds.sources.public_laws import source
from fonds.sources.public_laws.laws import (
    LawNumber,
    cite_compilation,
    cite_public_laws,
    read_file_name,
    read_law_number,
)

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
NAMES = ("old.xml", "new.xml", "private.xml", "compilation.xml")


def read(name: str) -> bytes:
    return (FILES / name).read_bytes()


def changed(name: str, before: str, after: str) -> bytes:
    data = read(name).decode()
    assert before in data
    return data.replace(before, after).encode()


def only(data: bytes) -> ParsedRecord:
    [record] = records_of(source, loose(data))
    return record


def below(record: ParsedRecord, table: str) -> list[ParsedRecord]:
    return [child for child in record.children if child.table == table]


@pytest.mark.parametrize("name", NAMES)
def test_records_are_as_reviewed(name: str) -> None:
    record = only(read(name))
    assert record.document is not None
    # What the normalizer makes of a text is reviewed with the normalizer.
    described = replace(record, document=replace(record.document, body=None))
    assert_golden(json_lines([described]), GOLDEN / f"{name}.jsonl")


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_file_is_the_body(name: str) -> None:
    document = only(read(name)).document
    assert document is not None
    assert document.body is not None
    assert document.body.archived == document.raw
    assert (document.body.format, document.body.normalizer) == ("xml", Uslm().label)
    assert document.body.normalized == Uslm().to_markdown(read(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_row_fits_its_table(name: str) -> None:
    assert_rows_fit(source, [only(read(name))])


# The law ----------------------------------------------------------------------------------


def test_a_law_without_a_stated_day_was_approved_on_the_day_below_its_text() -> None:
    assert only(read("old.xml")).payload["approved_date"] == "2017-03-27"
    silent = only(changed("old.xml", "Approved March 27, 2017.", "[Passed over a veto.]"))
    assert silent.payload["approved_date"] is None
    assert silent.document is not None
    assert silent.document.published_at is None
    assert silent.document.citation_string == "Pub. L. No. 115-901."


def test_a_day_that_is_none_is_an_error() -> None:
    with pytest.raises(MalformedError, match="not an ISO date"):
        only(changed("new.xml", "<approvedDate>2025-02-03<", "<approvedDate>soon<"))


def test_a_title_has_no_marginal_notes_and_no_soft_hyphens() -> None:
    titles = [only(read(name)).payload["official_title"] for name in ("old.xml", "new.xml")]
    assert titles == [
        "To keep the beacons of the Lower Tern River lit, and for other purposes.",
        "Disapproving the rule on the colour of buoys.",
    ]


def test_a_law_is_called_by_its_own_short_title_and_not_by_a_quoted_one() -> None:
    assert only(read("old.xml")).payload["short_title"] == "Beacons Act of 2017"
    unnamed = changed("old.xml", '<shortTitle role="act">“Beacons', '<shortTitle role="title">“B')
    record = only(unnamed)
    assert record.payload["short_title"] is None
    assert record.document is not None
    assert record.document.title.startswith("An Act To keep the beacons")


def test_a_law_without_an_official_title_is_called_as_its_head_says() -> None:
    data = changed("new.xml", "officialTitle", "p")
    assert only(data).payload["official_title"] == "Disapproving the rule on the colour of buoys."


def test_a_law_without_any_title_is_called_by_its_number() -> None:
    bare = (
        b'<pLaw xmlns="http://schemas.gpo.gov/xml/uslm"><preface><docNumber>119-7</docNumber>'
        b"</preface><main><section><content>Words.</content></section></main></pLaw>"
    )
    document = only(bare).document
    assert document is not None
    assert (document.id, document.title) == ("plaw:119-7", "Pub. L. No. 119-7")


@pytest.mark.parametrize(
    ("margin", "bill"),
    [
        ('<ref href="/us/bill/119/hjres/941">H.J. Res. 941</ref>', "bill:119-hjres-941"),
        ("H.J. Res. 941", "bill:119-hjres-941"),
        ("", "bill:119-sjres-5"),
    ],
)
def test_the_bill_stands_in_the_margin_or_at_the_head_of_the_history(
    margin: str, bill: str
) -> None:
    data = read("new.xml").decode()
    linked = '<ref href="/us/bill/119/hjres/941">H.J. Res. 941</ref>'
    first, rest = data.split(linked, 1)
    other = '<ref href="/us/bill/119/sjres/5">S.J. Res. 5</ref>'
    assert only((first + margin + rest.replace(linked, other)).encode()).payload["bill_ref"] == bill


def test_a_law_that_names_no_bill_refers_to_none() -> None:
    record = only(changed("private.xml", "[S. 9285]", ""))
    assert record.payload["bill_ref"] is None


def test_the_first_page_is_that_of_the_preface_where_none_is_cited() -> None:
    record = only(changed("old.xml", "<citableAs>131 Stat. 9075</citableAs>", ""))
    assert record.payload["stat_citation"] == "131 Stat. 9075"
    assert only(read("private.xml")).payload["stat_citation"] is None


# What stands below it ---------------------------------------------------------------------


def test_quoted_sections_are_not_the_laws_own() -> None:
    sections = below(only(read("old.xml")), "public_law_sections")
    assert [(row.payload["num"], row.payload["page"]) for row in sections] == [
        ("1", "9075"),
        ("101", "9075"),
        ("102", "9076"),
    ]
    assert sections[1].payload["heading"] == "LAMPS AND OIL."


def test_only_the_margin_says_where_the_code_holds_a_law() -> None:
    references = below(only(read("old.xml")), "public_law_usc_references")
    assert [(row.payload["section"], row.payload["is_note"]) for row in references] == [
        ("85", True),
        ("1a-7b", False),
    ]


def test_a_broken_line_of_the_history_is_one_entry() -> None:
    entries = [row.payload for row in below(only(read("old.xml")), "public_law_history")]
    assert [(entry["heading"], entry["subheading"], entry["text"]) for entry in entries] == [
        (
            "HOUSE REPORTS",
            None,
            "Nos. 115–900, Pt. 1 (Comm. on Lights) and 115–901 (Comm. of Conference).",
        ),
        (
            "CONGRESSIONAL RECORD",
            "Vol. 162 (2016)",
            "Dec. 6, 7, 11–14, considered and passed Senate, amended.",
        ),
        ("CONGRESSIONAL RECORD", "Vol. 163 (2017)", "Mar. 2, considered and passed House."),
    ]


# Files ------------------------------------------------------------------------------------


def test_a_fetched_file_must_be_the_law_asked_for() -> None:
    part = Part(name="law", url="https://www.govinfo.gov/x.xml", path="x.xml")
    task = FetchTask(source="public_laws", key="plaw:119-99", parts=(part,))
    [record] = records_of(source, fetched(task, law=read("new.xml")))
    assert record.key == "plaw:119-99"
    with pytest.raises(WrongContentError, match="plaw:119-99 holds plaw:115-901"):
        records_of(source, fetched(task, law=read("old.xml")))
    with pytest.raises(WrongContentError, match="statuteCompilation"):
        records_of(source, fetched(task, law=read("compilation.xml")))
    with pytest.raises(WrongContentError, match="HTML"):
        records_of(source, fetched(task, law=b"<!DOCTYPE html><html><p>Sorry</p></html>"))


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", ParseError, "empty"),
        (b'{"files": []}', WrongContentError, "a listing"),
        (b'{"bill": {"laws": []}, "request": {}}', WrongContentError, "congress.gov"),
        (b'{"bills": []}', WrongContentError, "congress.gov"),
        (b"[1]", WrongContentError, "a list of 1 items"),
        (b"<mods/>", WrongContentError, "found <mods>"),
        (b'<pLaw xmlns="http://schemas.gpo.gov/xml/uslm"/>', MalformedError, "no number"),
        (b"<statuteCompilation/>", MalformedError, "no file number"),
        (changed("compilation.xml", "dc:title", "title2"), MalformedError, "no title"),
    ],
)
def test_a_file_without_a_law_says_what_it_is(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        records_of(source, loose(data))


# Compilations -----------------------------------------------------------------------------


def test_a_compilation_is_current_through_the_law_its_note_names() -> None:
    row = only(read("compilation.xml")).payload
    assert row["through_law_ref"] == "plaw:109-979"
    note = "<currentThroughPublicLaw>Public Law 109–979</currentThroughPublicLaw>"
    silent = only(changed("compilation.xml", note, "nothing")).payload
    assert silent["through_law_ref"] == "plaw:89-904"


def test_a_compilation_that_cites_no_law_is_known_by_its_sections() -> None:
    data = changed("compilation.xml", "<citableAs>Public Law 89–904, as amended</citableAs>", "")
    assert only(data).payload["law_ref"] == "plaw:89-904"
    none = data.replace(b"/us/sComp/89/904/s1", b"/s1")
    assert only(none).payload["law_ref"] is None


def test_a_title_in_capitals_is_spelled_as_among_the_short_titles() -> None:
    assert only(read("compilation.xml")).payload["title"] == "Lantern Oil Conservation Act"
    short = "<containsShortTitle>Lantern Oil Conservation Act</containsShortTitle>"
    alone = only(changed("compilation.xml", short, ""))
    assert alone.payload["title"] == "LANTERN OIL CONSERVATION ACT"


# Names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("Public Law 119–1", "plaw:119-1"),
        ("Public Law 104-4, as amended", "plaw:104-4"),
        ("P.L. 116–326", "plaw:116-326"),
        ("Pub. L. No. 117-58", "plaw:117-58"),
        ("116–260", "plaw:116-260"),
        ("Private Law 112–1", "plaw:112-pvt-1"),
        ("Priv. L. No. 112-1", "plaw:112-pvt-1"),
        ("Chapter 531 of the 74th", None),
        ("139 Stat. 3", None),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, law: str | None) -> None:
    number = read_law_number(text)
    assert (number.id if number else None) == law


@pytest.mark.parametrize("name", ["PLAW-119publ21", "PLAW-119pvtl3"])
def test_a_file_name_is_the_package_it_holds(name: str) -> None:
    number = read_file_name(f"{name}.xml")
    assert number is not None
    assert number.package == name
    assert read_file_name("PLAW-119-public.zip") is None


def test_laws_are_cited_with_the_year_they_were_approved_in() -> None:
    day = date(2026, 1, 15)
    assert cite_public_laws(congress=119, number=21, approved=day) == "Pub. L. No. 119-21 (2026)."
    private = cite_public_laws(congress=119, number=3, approved=day, is_private=True)
    assert private == "Priv. L. No. 119-3 (2026)."
    assert cite_public_laws(congress=119, number=21, approved=None) == "Pub. L. No. 119-21."


def test_compilations_are_cited_as_far_as_they_are_amended() -> None:
    law, later = (LawNumber(congress=c, number=4).cited for c in (89, 109))
    day = date(2007, 1, 12)
    cited = [
        cite_compilation(title="Oil Act", law=law, through=later, amended=day),
        cite_compilation(title="Oil Act", law=law, through=later, amended=None),
        cite_compilation(title="Oil Act", law=law, through=law, amended=day),
        cite_compilation(title="Oil Act", law=None, through=None, amended=None),
    ]
    assert cited == [
        "Oil Act, Pub. L. No. 89-4 (as amended through Pub. L. No. 109-4, Jan. 12, 2007).",
        "Oil Act, Pub. L. No. 89-4 (as amended through Pub. L. No. 109-4).",
        "Oil Act, Pub. L. No. 89-4.",
        "Oil Act.",
    ]
