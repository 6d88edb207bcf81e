from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import assert_rows_fit, fetched, loose, records_of

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import FetchTask, ParsedRecord, Part
from fonds.sources.roll_call_votes import source
from fonds.sources.roll_call_votes.votes import bill_reference, cite_roll_call_votes

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
VOTES = sorted(path.name for path in FILES.glob("*.xml") if "menu" not in path.name)


def parsed(name: str) -> ParsedRecord:
    [record] = records_of(source, loose((FILES / name).read_bytes(), name))
    return record


def rows(record: ParsedRecord, table: str) -> list[dict[str, object]]:
    return [dict(child.payload) for child in record.children if child.table == table]


def task(key: str, **params: object) -> FetchTask:
    part = Part(name="vote", url="https://example.gov/vote.xml", path="vote.xml")
    return FetchTask(source="roll_call_votes", key=key, parts=(part,), params=params)


@pytest.mark.parametrize("name", VOTES)
def test_a_vote_gives_the_reviewed_records(name: str) -> None:
    assert_golden(json_lines([parsed(name)]), GOLDEN / f"{name}.jsonl")


def test_every_row_fits_its_table_and_has_what_the_table_needs() -> None:
    records = [parsed(name) for name in VOTES]
    assert_rows_fit(source, records)
    needed = {
        table.name: {column.name for column in table.columns if not column.nullable}
        for table in source.info.tables
    }
    for record in records:
        for row in (record, *record.children):
            assert not [name for name in needed[row.table] if row.payload.get(name) is None]


def test_keys_of_rows_are_their_vote_table_and_place() -> None:
    keys = [child.key for child in parsed("house-passage.xml").children]
    assert keys[0] == "vote:house/119-1/362#totals/1"
    assert keys[-1] == "vote:house/119-1/362#positions/4"
    assert len(keys) == len(set(keys))


def test_a_house_vote_is_cited_and_known_by_its_addresses() -> None:
    document = parsed("house-passage.xml").document
    assert document is not None
    assert (
        document.citation_string
        == "Roll Call Vote No. 362 (House), 119th Cong., 1st Sess. (Mar. 4, 2025)."
    )
    assert document.source_url == "https://clerk.house.gov/Votes/2025362"
    assert "https://clerk.house.gov/evs/2025/roll362.xml" in document.aliases
    assert document.published_at == "2025-03-04"


def test_moments_are_those_of_washington() -> None:
    assert parsed("house-passage.xml").payload["voted_at"] == datetime(
        2025, 3, 4, 21, 28, tzinfo=UTC
    )
    midnight = parsed("house-amendment.xml").payload
    assert midnight["voted_at"] == datetime(2026, 7, 15, 4, 5, tzinfo=UTC)
    late = parsed("senate-amendment.xml").payload
    assert (late["vote_date"], late["voted_at"]) == (
        "2025-01-09",
        datetime(2025, 1, 10, 4, 54, tzinfo=UTC),
    )


def test_a_vacated_vote_is_kept_without_positions() -> None:
    for name in ("house-vacated.xml", "senate-vacated.xml"):
        record = parsed(name)
        assert record.payload["status"] == "vacated"
        assert rows(record, "vote_positions") == []
        assert record.document is not None
        assert record.document.title.endswith("vacated")


def test_counts_without_positions_are_malformed_not_vacated() -> None:
    data = (FILES / "house-vacated.xml").read_bytes()
    data = data.replace(b"<yea-total>0<", b"<yea-total>7<")
    with pytest.raises(MalformedError, match="names no member"):
        records_of(source, loose(data))


def test_in_an_election_positions_and_totals_are_candidates() -> None:
    record = parsed("house-speaker.xml")
    positions = rows(record, "vote_positions")
    assert [row["position"] for row in positions] == ["Ames", "Beck (TX)", "Beck (TX)", "Present"]
    assert [row["counted_as"] for row in positions] == [None, None, None, "present"]
    totals = {row["name"]: row["votes"] for row in rows(record, "vote_totals")}
    assert totals == {"Beck (TX)": 2, "Ames": 1, "Present": 1, "Not Voting": 0}
    assert (record.payload["yea"], record.payload["nay"]) == (None, None)
    assert (record.payload["present"], record.payload["not_voting"]) == (1, 0)


def test_a_quorum_call_concerns_no_bill() -> None:
    record = parsed("house-quorum.xml")
    assert record.payload["bill_ref"] is None
    assert record.payload["present"] == 3


def test_the_committee_of_the_whole_is_told_from_the_house() -> None:
    assert parsed("house-amendment.xml").payload["in_committee"] is True
    assert parsed("house-passage.xml").payload["in_committee"] is False


def test_members_before_2003_have_no_reference() -> None:
    positions = rows(parsed("house-1995.xml"), "vote_positions")
    assert {row["legislator_ref"] for row in positions} == {None}
    assert positions[1]["member"] == "Beck (TX)"


def test_a_senator_is_referred_to_by_an_alias_of_the_legislator() -> None:
    [first, *_] = rows(parsed("senate-amendment.xml"), "vote_positions")
    assert first["lis_member_id"] == "S901"
    assert first["legislator_ref"] == "lis S901"


def test_a_verdict_is_counted_and_a_live_pair_is_present() -> None:
    verdict = rows(parsed("senate-impeachment.xml"), "vote_positions")
    assert [row["counted_as"] for row in verdict] == ["yea", "nay", "yea", "yea"]
    pair = rows(parsed("senate-amendment.xml"), "vote_positions")[2]
    assert (pair["position"], pair["counted_as"]) == ("Present, Giving Live Pair", "present")


def test_a_tie_says_who_broke_it() -> None:
    record = parsed("senate-amendment.xml")
    assert record.payload["tie_breaker"] == "Vice President"
    assert record.document is not None
    assert "Vice President voted Yea." in (record.document.summary or "")


def test_an_amendment_leads_to_the_bill_it_amends() -> None:
    record = parsed("senate-amendment.xml")
    assert record.payload["bill_ref"] == "bill:119-hr-1"
    assert rows(record, "vote_documents") == []
    [amendment] = rows(record, "vote_amendments")
    assert amendment["amendment_to_amendment_number"] == "S.Amdt. 18"


def test_repeated_documents_keep_their_own_congress() -> None:
    record = parsed("senate-two-documents.xml")
    assert record.payload["nomination"] == "PN17"
    references = [row["bill_ref"] for row in rows(record, "vote_documents")]
    assert references == [None, "bill:118-sjres-54"]


def test_matters_of_a_vote_en_bloc_come_from_the_menu_where_the_vote_has_none() -> None:
    matters = [
        {"issue": "PN416-9", "question": "On the Nomination", "result": "Confirmed"},
        {"issue": "S. 5", "question": "On the Bill", "result": "Confirmed"},
    ]
    data = (FILES / "senate-en-bloc.xml").read_bytes()
    [record] = records_of(
        source, fetched(task("vote:senate/119-1/655", matters=matters), vote=data)
    )
    documents = rows(record, "vote_documents")
    assert [row["document_name"] for row in documents] == ["PN416-9", "S. 5"]
    assert record.payload["vote_question"] == "On the Nomination; On the Bill"
    assert record.payload["vote_result"] == "Confirmed"
    assert record.payload["bill_ref"] == "bill:119-s-5"
    assert record.payload["nomination"] == "PN416-9"


def test_matters_that_the_vote_itself_names_win() -> None:
    own = b"<en_bloc><matter><issue>PN1</issue><question>Q</question></matter></en_bloc>"
    data = (FILES / "senate-en-bloc.xml").read_bytes().replace(b"<document>", own + b"<document>")
    listed = [{"issue": "PN2", "question": "Other", "result": None}]
    [record] = records_of(source, fetched(task("vote:senate/119-1/655", matters=listed), vote=data))
    assert [row["document_name"] for row in rows(record, "vote_documents")] == ["PN1"]


def test_another_vote_than_the_one_asked_for_is_refused() -> None:
    data = (FILES / "house-passage.xml").read_bytes()
    with pytest.raises(WrongContentError, match="asked for vote:house/119-1/363"):
        records_of(source, fetched(task("vote:house/119-1/363"), vote=data))


def test_a_missing_roll_is_a_named_error() -> None:
    data = (FILES / "missing-roll.html").read_bytes()
    with pytest.raises(WrongContentError, match="a vote that is not there"):
        records_of(source, fetched(task("vote:house/119-1/999"), vote=data))


PASSAGE = (FILES / "house-passage.xml").read_bytes()
NOMINATION = (FILES / "senate-two-documents.xml").read_bytes()


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b'{"houseRollCallVotes": []}', WrongContentError, "congress.gov"),
        (b"<rollcall-vote>", MalformedError, "well-formed"),
        (b"<rollcall-vote/>", MalformedError, "vote-metadata"),
        (b"<bill/>", WrongContentError, "found <bill>"),
        ((FILES / "vote-menu-119-1.xml").read_bytes(), WrongContentError, "menu"),
        ((FILES / "clerk-index-2025.html").read_bytes(), WrongContentError, "list of votes"),
        (PASSAGE.replace(b"4-Mar-2025", b"31-Feb-2025"), MalformedError, "31-Feb-2025"),
        (PASSAGE.replace(b"4-Mar-2025", b"someday"), MalformedError, "someday"),
        (PASSAGE.replace(b'"16:28"', b'"26:28"'), MalformedError, "26:28"),
        (PASSAGE.replace(b"<session>1st", b"<session>first"), MalformedError, "first"),
        (PASSAGE.replace(b">362<", b">x<"), MalformedError, "rollcall-num"),
        (PASSAGE.replace(b"<vote>Nay</vote>", b"<vote/>"), MalformedError, "no vote"),
        (NOMINATION.replace(b"January 21, 2026,", b"Soon"), MalformedError, "Soon"),
        (NOMINATION.replace(b"<yeas>3<", b"<yeas>three<"), MalformedError, "three"),
    ],
)
def test_a_file_that_holds_no_vote_says_what_it_is(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        records_of(source, loose(data))


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("H R 22", "bill:119-hr-22"),
        ("H.R. 22", "bill:119-hr-22"),
        ("H CON RES 13", "bill:119-hconres-13"),
        ("S.J.Res. 54", "bill:119-sjres-54"),
        ("S 2038", "bill:119-s-2038"),
        ("QUORUM", None),
        ("JOURNAL", None),
        ("PN17", None),
        ("S.Amdt. 52", None),
        (None, None),
    ],
)
def test_names_of_bills_and_of_other_things(name: str | None, reference: str | None) -> None:
    assert bill_reference(119, name) == reference


@pytest.mark.parametrize(
    ("congress", "session", "cited"),
    [(101, 2, "101st Cong., 2d Sess."), (103, 1, "103d Cong., 1st Sess."), (112, 1, "112th Cong.")],
)
def test_ordinals_are_those_of_citations(congress: int, session: int, cited: str) -> None:
    for day in (None, date(2012, 9, 1)):
        citation = cite_roll_call_votes(
            chamber="senate", congress=congress, session=session, number=4, day=day
        )
        assert cited in citation
        assert citation.endswith("Sess." if day is None else "Sess. (Sept. 1, 2012).")
