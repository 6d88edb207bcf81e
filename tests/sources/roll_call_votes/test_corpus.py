"""Every file of votes that the two chambers published and we hold, counted by other means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.sources.publishing import assert_rows_fit, loose, records_of

from fonds.errors import ParseError
from fonds.model import ParsedRecord
from fonds.sources.roll_call_votes import read_menu, source
from fonds.sources.roll_call_votes.votes import VoteSession

WITHOUT_RECORDS = {
    "congress_gov_api": "congress.gov API",  # the audit's list, and two views of a vote in it
    "senate_vote_menu_xml": "a menu",  # a listing
}
RECORDED = re.compile(r"<recorded-vote>.*?<vote>([^<]*)</vote>", re.DOTALL)
CAST = re.compile(r"<vote_cast>([^<]*)</vote_cast>")
YEAS = {"Yea", "Aye", "Guilty"}
NAYS = {"Nay", "No", "Not Guilty"}
PRESENT = {"Present", "Present, Giving Live Pair"}


def record_of(path: Path) -> ParsedRecord:
    [record] = records_of(source, loose(path.read_bytes(), path.name))
    return record


def positions(record: ParsedRecord) -> list[ParsedRecord]:
    return [child for child in record.children if child.table == "vote_positions"]


def counted(record: ParsedRecord) -> tuple[int, int, int, int]:
    cast = Counter(child.payload["counted_as"] for child in positions(record))
    assert None not in cast
    return cast["yea"], cast["nay"], cast["present"], cast["not_voting"]


def counts(record: ParsedRecord) -> tuple[int, int, int, int]:
    row = record.payload
    return row["yea"], row["nay"], row["present"], row["not_voting"]


def tallied(cast: list[str]) -> tuple[int, int, int, int]:
    count = Counter(
        "yea" if word in YEAS else "nay" if word in NAYS else "here" if word in PRESENT else word
        for word in cast
    )
    assert set(count) <= {"yea", "nay", "here", "Not Voting"}
    return count["yea"], count["nay"], count["here"], count["Not Voting"]


def printed(data: str, *names: str) -> list[int]:
    """The last number under each name: the Clerk's overall total follows those by party."""
    found = [re.findall(rf"<{name}>(\d+)</{name}>", data) for name in names]
    return [int(numbers[-1]) if numbers else 0 for numbers in found]


def refusal(path: Path) -> str:
    try:
        assert_rows_fit(source, [record_of(path)])
    except ParseError as error:
        return str(error)
    return ""


def test_every_file_gives_a_vote_or_its_reason(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/roll_call_votes")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) == 139
    for path in files:
        reason = WITHOUT_RECORDS.get(path.parent.name)
        if reason is None:
            assert refusal(path) == "", path.name
        else:
            assert reason in refusal(path), path.name


def test_positions_of_the_house_add_up_to_the_published_totals(
    corpus: Callable[[str], Path],
) -> None:
    elections = vacated = 0
    for path in sorted((corpus("federal/roll_call_votes") / "house_clerk_xml").glob("*.xml")):
        data, record = path.read_text(encoding="utf-8"), record_of(path)
        cast = RECORDED.findall(data)
        assert [child.payload["position"] for child in positions(record)] == cast, path.name
        if "<totals-by-candidate>" in data:
            elections += 1
            assert_election_adds_up(data, record)
            continue
        names = ("yea-total", "nay-total", "present-total", "not-voting-total")
        totals = tuple(printed(data, *names))
        assert counts(record) == counted(record) == tallied(cast) == totals, path.name
        vacated += record.payload["status"] == "vacated"
        assert_parties_add_up(record)
    assert (elections, vacated) == (4, 1)


def assert_election_adds_up(data: str, record: ParsedRecord) -> None:
    pairs = re.findall(r"<candidate>([^<]*)</candidate><candidate-total>(\d+)<", data)
    named = Counter(child.payload["position"] for child in positions(record))
    assert {name: int(total) for name, total in pairs if int(total)} == named
    totals = [child.payload for child in record.children if child.table == "vote_totals"]
    assert [(row["name"], str(row["votes"])) for row in totals] == pairs


def assert_parties_add_up(record: ParsedRecord) -> None:
    rows = [child.payload for child in record.children if child.table == "vote_totals"]
    names = ("yea", "nay", "present", "not_voting")
    assert tuple(sum(row[name] for row in rows) for name in names) == counts(record)
    for row in rows:
        party = row["name"][0]
        members = [c.payload for c in positions(record) if c.payload["party"] == party]
        cast = Counter(member["counted_as"] for member in members)
        assert [cast[name] for name in names] == [row[name] for name in names], record.key


def test_positions_of_the_senate_add_up_to_the_published_counts(
    corpus: Callable[[str], Path],
) -> None:
    files = sorted((corpus("federal/roll_call_votes") / "senate_lis_xml").glob("*.xml"))
    assert len(files) == 70
    for path in files:
        data, record = path.read_text(encoding="utf-8"), record_of(path)
        cast = CAST.findall(data)
        totals = tuple(printed(data, "yeas", "nays", "present", "absent"))
        assert counts(record) == counted(record) == tallied(cast) == totals, path.name
        lis = re.findall(r"<lis_member_id>([^<]*)<", data)
        assert [child.payload["legislator_ref"] for child in positions(record)] == [
            f"lis {one}" for one in lis
        ]
        congress, session, number = path.stem.split("_")
        assert record.key == f"vote:senate/{congress}-{session}/{number}"


def test_bills_and_nominations_are_those_the_files_name(corpus: Callable[[str], Path]) -> None:
    for path in sorted((corpus("federal/roll_call_votes") / "senate_lis_xml").glob("*.xml")):
        data, record = path.read_text(encoding="utf-8"), record_of(path)
        named = re.findall(r"<document_name>([^<]+)<", data)
        documents = [c.payload for c in record.children if c.table == "vote_documents"]
        assert [row["document_name"] for row in documents] == named, path.name
        amended = re.findall(r"<amendment_number>([^<]+)<", data)
        amendments = [c.payload for c in record.children if c.table == "vote_amendments"]
        assert [row["amendment_number"] for row in amendments] == amended, path.name
        nominations = [name for name in named if name.startswith("PN")]
        assert record.payload["nomination"] == (nominations[0] if nominations else None)
        bills = [name for name in named if not name.startswith("PN")]
        assert (record.payload["bill_ref"] is not None) == bool(bills or amended), path.name


def test_every_menu_lists_all_its_votes(corpus: Callable[[str], Path]) -> None:
    for path in sorted((corpus("federal/roll_call_votes") / "senate_vote_menu_xml").glob("*.xml")):
        data = path.read_bytes()
        congress, session = map(int, path.stem.split("_"))
        year = 1786 + 2 * congress + session
        assert f"<congress_year>{year}<".encode() in data
        entries = read_menu(data, VoteSession(year=year))
        assert len(entries) == data.count(b"<vote_number>")
        assert sum(len(entry.matters) for entry in entries) == data.count(b"<matter>")
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1)), path.name
