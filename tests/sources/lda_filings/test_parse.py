from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import archived, assert_rows_fit, loose, records_of, together

from fonds.errors import DuplicateKeyError, MalformedError, ParseError, WrongContentError
from fonds.model import FetchTask, ParsedRecord, Raw
from fonds.sources.lda_filings import source
from fonds.sources.lda_filings.formats import filing_type, repair
from fonds.sources.lda_filings.records import cite_lda_filings

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
PAGE = (FILES / "filings.json").read_bytes()
ENTRIES: list[dict[str, Any]] = json.loads(PAGE)["results"]
REPORT = ENTRIES[1]


def parsed(entry: dict[str, Any]) -> list[ParsedRecord]:
    origin = archived("https://lda.gov/api/v1/filings/", PAGE)
    task = FetchTask(
        source="lda_filings", key="x", parts=(), params={"entry": entry}, origin=origin
    )
    return records_of(source, Raw(task=task, parts=()))


def filing(entry: dict[str, Any]) -> ParsedRecord:
    return parsed(entry)[-1]


def below(record: ParsedRecord, table: str) -> list[dict[str, Any]]:
    return [dict(child.payload) for child in record.children if child.table == table]


@pytest.mark.parametrize(
    "name", ["filings.json", "registrant.json", "clients.json", "lobbyists.json"]
)
def test_answers_of_the_api_give_the_reviewed_records(name: str) -> None:
    records = records_of(source, loose((FILES / name).read_bytes(), name))
    assert_rows_fit(source, records)
    assert_golden(json_lines(records), GOLDEN / f"{name}l")


def test_a_quarterly_file_in_utf_16_gives_the_reviewed_records() -> None:
    data = (FILES / "quarterly.xml").read_bytes()
    assert data.startswith(b"\xff\xfe")
    records = records_of(source, loose(data, "quarterly.xml"))
    assert_rows_fit(source, records)
    assert_golden(json_lines(records), GOLDEN / "quarterly.jsonl")


def test_a_filing_comes_after_the_parties_it_refers_to() -> None:
    assert [record.table for record in parsed(REPORT)] == [
        "lda_registrants",
        "lda_clients",
        "lda_lobbyists",
        "lda_lobbyists",
        "lda_filings",
    ]


def test_a_filing_is_described_by_the_archived_list() -> None:
    document = filing(REPORT).document
    assert document is not None
    assert document.raw.url == "https://lda.gov/api/v1/filings/"
    assert document.body is None
    assert document.published_at == "2025-10-20"
    assert document.citation_string == (
        "Lobbying Disclosure Act Filing 22222222-2222-4222-8222-222222222222, "
        "MILLRACE PAPER CO via ALMANAC ADVISERS, INC. (Q3 2025)."
    )


def test_title_and_summary_say_what_people_look_for() -> None:
    document = filing(REPORT).document
    assert document is not None
    assert document.title == (
        "Lobbying for MILLRACE PAPER CO by ALMANAC ADVISERS, INC.: 3rd Quarter - Report, 2025"
    )
    said = ("H.R. 2101", "Breaks at the vat", "Taxation", "$30,000.50", "NELL R NIB", "SENATE")
    also = ("PAPETERIE DU LAC", "GUILD OF VATMEN", "Perjury", "(July 1 - Sep 30) 2025")
    assert [words for words in said + also if words not in (document.summary or "")] == []


def test_somebody_who_lobbies_for_themselves_is_named_once() -> None:
    client = {**REPORT["client"], "name": REPORT["registrant"]["name"]}
    document = filing({**REPORT, "client": client}).document
    assert document is not None
    assert document.title.startswith("Lobbying by ALMANAC ADVISERS, INC.: ")


def test_amounts_are_exact_and_may_be_missing() -> None:
    row = filing(REPORT).payload
    assert row["income"] == Decimal("30000.50")
    assert row["expenses"] is None


def test_a_day_of_1905_is_kept_as_it_is_stated() -> None:
    record = filing(ENTRIES[0])
    assert record.document is not None
    assert record.document.published_at == "1905-06-24"
    assert record.payload["filing_year"] == 1999
    assert record.document.citation_string.endswith(" (Mid-Year 1999).")


def test_entities_repeated_under_every_activity_are_kept_once() -> None:
    found = below(filing(ENTRIES[0]), "lda_activity_entities")
    assert [(row["activity"], row["name"]) for row in found] == [
        (None, "HOUSE OF REPRESENTATIVES"),
        (None, "SENATE"),
    ]


def test_entities_of_later_filings_belong_to_their_activity() -> None:
    same_list = [dict(activity) for activity in REPORT["lobbying_activities"]]
    same_list[1]["government_entities"] = same_list[0]["government_entities"]
    found = below(filing({**REPORT, "lobbying_activities": same_list}), "lda_activity_entities")
    assert [row["activity"] for row in found] == [1, 1, 2, 2]


def test_lobbyists_stand_under_each_of_their_activities() -> None:
    found = below(filing(REPORT), "lda_activity_lobbyists")
    assert [(row["ord"], row["activity"], row["lobbyist_ref"]) for row in found] == [
        (1, 1, "7001"),
        (2, 1, "7002"),
        (3, 2, "7001"),
    ]


def test_of_two_states_of_a_registrant_the_later_filing_has_the_right_one() -> None:
    backwards = {"count": 4, "results": ENTRIES[::-1]}
    records = records_of(source, loose(json.dumps(backwards).encode()))
    [registrant] = [record for record in records if record.table == "lda_registrants"]
    assert registrant.payload["name"] == "ALMANAC ADVISERS, INC."


def test_a_client_is_known_by_its_id_and_not_by_its_number() -> None:
    client = parsed(REPORT)[1].payload
    assert (client["id"], client["client_id"]) == ("88001", 12)
    assert filing(REPORT).payload["client_ref"] == "88001"


def test_a_client_of_a_quarterly_file_is_known_with_its_registrant() -> None:
    records = records_of(source, loose((FILES / "quarterly.xml").read_bytes()))
    with_registrant, alone = [record for record in records if record.document]
    assert with_registrant.payload["client_ref"] == "5501-12"
    assert (alone.payload["client_ref"], alone.payload["client_name"]) == (
        None,
        "QUILL MAKERS GUILD",
    )


def test_files_given_together_name_each_party_once() -> None:
    records = records_of(source, together(a=PAGE, b=(FILES / "clients.json").read_bytes()))
    keys = [record.key for record in records]
    assert len(keys) == len(set(keys)) == 9


def test_one_filing_twice_is_an_error() -> None:
    with pytest.raises(DuplicateKeyError, match="lda:22222222"):
        records_of(source, loose(json.dumps({"count": 2, "results": [REPORT] * 2}).encode()))


def test_a_filing_without_parties_has_a_title() -> None:
    entry = {"filing_uuid": REPORT["filing_uuid"], "lobbying_activities": []}
    [record] = records_of(source, loose(json.dumps(entry).encode()))
    assert record.document is not None
    assert record.document.title == f"Lobbying Disclosure Act filing {REPORT['filing_uuid']}"
    assert record.document.citation_string == (
        f"Lobbying Disclosure Act Filing {REPORT['filing_uuid']}."
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("filing_uuid", "../etc"),
        ("income", "1e9"),
        ("income", "twelve"),
        ("filing_year", "MMXXV"),
        ("registrant_different_address", "yes"),
        ("lobbying_activities", {"a": 1}),
    ],
)
def test_a_field_of_the_wrong_shape_is_named(field: str, value: object) -> None:
    with pytest.raises(MalformedError, match=r"filing's UUID|" + field):
        parsed({**REPORT, field: value})


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"<!DOCTYPE html><html><body>Maintenance</body></html>", "expected PublicFilings|HTML"),
        (b'{"detail": "Request was throttled."}', "a refusal"),
        (b'[{"value": "RR", "name": "Registration"}]', "a list of names for codes"),
        (b'{"count": 0, "results": []}', "without any entry"),
        (b"PK\x03\x04rest", "zip"),
        (b"---\nhttp_interactions:\n- request:\n", "a recording"),
        (b"W3sidmFsdWUi", "neither JSON"),
        (b"", "empty"),
        (b'{"count": ', "not well-formed"),
    ],
)
def test_a_file_without_filings_says_what_it_is(data: bytes, what: str) -> None:
    with pytest.raises(ParseError, match=what):
        records_of(source, loose(data))


def test_a_page_of_html_is_no_quarterly_file() -> None:
    with pytest.raises(WrongContentError):
        records_of(source, loose(b"<html><body>x</body></html>"))


@pytest.mark.parametrize(
    ("mangled", "meant"),
    [
        ("&#226;\u20ac\u2039", "\u200b"),
        ("&#226;&#128;&#153;", "\u2019"),
        ("\u00e2\u20ac\u009d", "\u201d"),
        ("S\u00c3\u00a3o \u00c2\u00a7 5", "São § 5"),
        ("\u00c3\u00a2\u00e2\u201a\u00ac\u00e2\u201e\u00a2", "\u2019"),
        ("AT&amp;amp;T", "AT&T"),
        ("\u00f0\u0178\u0161\u00a2", "\U0001f6a2"),
        ("CAFÉ® and R&D, R&parity, São Tomé", "CAFÉ® and R&D, R&parity, São Tomé"),
        ("10 € ‹ 20", "10 € ‹ 20"),
        ("\u00e2\u20ac alone", "\u00e2\u20ac alone"),
    ],
)
def test_only_provable_mojibake_is_undone(mangled: str, meant: str) -> None:
    assert repair(mangled) == meant


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("REGISTRATION", "RR"),
        ("REGISTRATION AMENDMENT", "RA"),
        ("FIRST QUARTER REPORT", "Q1"),
        ("SECOND QUARTER TERMINATION", "2T"),
        ("MID-YEAR (NO ACTIVITY)", "MMY"),
        ("MID-YEAR TERMINATION AMENDMENT", "M@"),
        ("YEAR-END AM ENDMENT", "YA"),
        ("YEAR-END TERMINATION (NO ACTIVITY)", "YTY"),
        ("YEAR-END SURPRISE", None),
        (None, None),
    ],
)
def test_types_of_quarterly_files_have_the_codes_of_the_api(
    words: str | None, code: str | None
) -> None:
    assert filing_type(words) == code


@pytest.mark.parametrize(
    ("code", "period", "when"),
    [
        ("Q3", "third_quarter", " (Q3 2025)."),
        ("4@Y", "fourth_quarter", " (Q4 2025)."),
        ("RR", "first_quarter", " (2025)."),
        ("RA", "first_quarter", " (2025)."),
        ("MM", "mid_year", " (Mid-Year 2025)."),
        ("YAY", "year_end", " (Year-End 2025)."),
        (None, "mid_year", " (Mid-Year 2025)."),
        (None, None, " (2025)."),
    ],
)
def test_a_filing_is_cited_by_its_period(code: str | None, period: str | None, when: str) -> None:
    cited = cite_lda_filings(
        filing_uuid="u",
        client="C",
        registrant="R",
        filing_type=code,
        filing_period=period,
        year=2025,
    )
    assert cited == f"Lobbying Disclosure Act Filing u, C via R{when}"


def test_what_is_unknown_is_left_out_of_a_citation() -> None:
    cited = cite_lda_filings(
        filing_uuid="u",
        client=None,
        registrant="R, INC.",
        filing_type=None,
        filing_period=None,
        year=None,
    )
    assert cited == "Lobbying Disclosure Act Filing u, R, INC."
