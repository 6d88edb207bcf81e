from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.publishing import NOW, Publisher, discover, discover_until_error, tasks

from fonds.errors import NotFoundError, SuspiciousYieldError, WrongContentError
from fonds.model import Discovery, SourceState, Watermark
from fonds.sources.base import Auditable, Expected, Source
from fonds.sources.formats.congress import list_address
from fonds.sources.roll_call_votes import source

FILES = Path(__file__).parent / "files"
CLERK = "https://clerk.house.gov/evs"
MENUS = "https://www.senate.gov/legislative/LIS/roll_call_lists"

Roll = tuple[int, str]


def page(year: int, rolls: list[Roll], hundreds: tuple[int, ...] = ()) -> bytes:
    congress, session = (year - 1787) // 2, "1st" if year % 2 else "2nd"
    rows = "".join(
        f'<TR><TD><A HREF="http://clerk.house.gov/cgi-bin/vote.asp?year={year}&rollnumber={roll}">'
        f"{roll}</A></TD><TD>{day}</TD><TD>H R 1</TD><TD>On Passage</TD><TD>P</TD><TD>T</TD></TR>"
        for roll, day in rolls
    )
    links = "".join(f'<A HREF="ROLL_{hundred:03}.asp">…</A>' for hundred in hundreds)
    heading = f"<H2>Votes<BR>\r\n {congress}th Congress - {session} Session ({year})</H2>"
    return f"<HTML><BODY>{heading}<TABLE>{rows}</TABLE>{links}</BODY></HTML>".encode()


def menu(year: int, votes: list[Roll]) -> bytes:
    congress, session = (year - 1787) // 2, 1 if year % 2 else 2
    listed = "".join(
        f"<vote><vote_number>{number:05}</vote_number><vote_date>{day}</vote_date></vote>"
        for number, day in votes
    )
    return (
        f"<vote_summary><congress>{congress}</congress><session>{session}</session>"
        f"<congress_year>{year}</congress_year><votes>{listed}</votes></vote_summary>"
    ).encode()


def year_of_votes(year: int) -> dict[str, bytes | Exception]:
    """A small session: three rolls on two pages, two votes of the Senate."""
    number = f"{(year - 1787) // 2}_{1 if year % 2 else 2}"
    return {
        f"{CLERK}/{year}/index.asp": page(year, [(101, "4-Mar"), (99, "3-Mar")], (0, 100)),
        f"{CLERK}/{year}/ROLL_000.asp": page(year, [(99, "3-Mar"), (1, "9-Jan")]),
        f"{CLERK}/{year}/ROLL_100.asp": page(year, [(101, "4-Mar")]),
        f"{MENUS}/vote_menu_{number}.xml": menu(year, [(2, "01-Mar"), (1, "10-Jan")]),
    }


def all_years(*years: int) -> Publisher:
    return Publisher({url: data for year in years for url, data in year_of_votes(year).items()})


def keys(found: list[Discovery]) -> list[str]:
    return [task.key for task in tasks(found)]


def marks(found: list[Discovery]) -> list[tuple[str, Any]]:
    return [(m.last_seen_key, dict(m.custom)) for m in found if isinstance(m, Watermark)]


def backfill(**state: Any) -> SourceState:
    return SourceState(now=NOW, backfill=True, **state)


def test_it_is_a_source_that_can_be_audited() -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)


def test_the_first_run_takes_the_current_session_of_both_chambers_in_order() -> None:
    found = discover(source, all_years(2026), SourceState(now=NOW))
    assert keys(found) == [
        "vote:house/119-2/1",
        "vote:house/119-2/99",
        "vote:house/119-2/101",
        "vote:senate/119-2/1",
        "vote:senate/119-2/2",
    ]
    assert marks(found) == [
        ("2026-03-04", {"house": [2026, 101]}),
        ("2026-03-04", {"senate": [2026, 2]}),
    ]


def test_a_task_has_the_publishers_address_and_a_fingerprint_of_its_entry() -> None:
    publisher = all_years(2026)
    first, *_, last = tasks(discover(source, publisher, SourceState(now=NOW)))
    assert first.parts[0].url == f"{CLERK}/2026/roll001.xml"
    assert first.parts[0].path == "house/2026/roll001.xml"
    assert last.parts[0].url == (
        "https://www.senate.gov/legislative/LIS/roll_call_votes/vote1192/vote_119_2_00002.xml"
    )
    assert last.parts[0].path == "senate/2026/vote_119_2_00002.xml"
    publisher.answers = {
        **publisher.answers,
        f"{CLERK}/2026/ROLL_000.asp": page(2026, [(99, "3-Mar"), (1, "10-Jan")]),
    }
    again = tasks(discover(source, publisher, SourceState(now=NOW)))
    assert again[0].fingerprint != first.fingerprint
    assert again[-1].fingerprint == last.fingerprint


def test_a_later_run_asks_only_for_the_pages_around_the_last_roll() -> None:
    publisher = all_years(2026)
    state = SourceState(now=NOW, custom={"house": [2026, 160], "senate": [2026, 2]})
    found = discover(source, publisher, state)
    assert f"{CLERK}/2026/ROLL_000.asp" not in publisher.asked
    assert keys(found)[0] == "vote:house/119-2/101"
    close = replace(state, custom={"house": [2026, 120], "senate": [2026, 2]})
    assert keys(discover(source, all_years(2026), close))[0] == "vote:house/119-2/1"


def test_a_run_after_a_long_pause_takes_the_sessions_between() -> None:
    state = SourceState(now=NOW, custom={"house": [2025, 160], "senate": [2026, 2]})
    found = discover(source, all_years(2025, 2026), state)
    assert keys(found) == [
        "vote:house/119-1/101",
        "vote:house/119-2/1",
        "vote:house/119-2/99",
        "vote:house/119-2/101",
        "vote:senate/119-2/1",
        "vote:senate/119-2/2",
    ]


def test_a_backfill_without_a_range_takes_this_congress_and_the_last() -> None:
    publisher = all_years(2023, 2024, 2025, 2026)
    found = discover(source, publisher, backfill())
    assert len(keys(found)) == 20
    assert not [url for url in publisher.asked if "2022" in url or "117" in url]
    assert marks(found)[-1] == ("2026-03-04", {"senate": [2026, 2]})


def test_a_backfill_of_congresses_takes_those_and_moves_no_watermark() -> None:
    found = discover(source, all_years(2009, 2010), backfill(options={"congresses": [111]}))
    assert len(keys(found)) == 10
    assert marks(found) == []


def test_the_first_sessions_are_1989_for_the_senate_and_1990_for_the_house() -> None:
    publisher = all_years(1989, 1990)
    found = discover(source, publisher, backfill(options={"congresses": [100, 101]}))
    assert f"{CLERK}/1989/index.asp" not in publisher.asked
    assert keys(found)[:2] == ["vote:senate/101-1/1", "vote:senate/101-1/2"]


def test_a_backfill_of_days_takes_only_votes_of_those_days() -> None:
    state = backfill(since=date(2025, 3, 1), until=date(2025, 3, 3))
    found = discover(source, all_years(2025), state)
    assert keys(found) == ["vote:house/119-1/99", "vote:senate/119-1/2"]


def test_january_days_at_the_end_of_a_list_belong_to_the_next_year() -> None:
    answers = year_of_votes(2012)
    answers[f"{MENUS}/vote_menu_112_2.xml"] = menu(
        2012, [(251, "01-Jan"), (250, "31-Dec"), (1, "23-Jan")]
    )
    days = {"since": date(2012, 12, 31), "until": date(2013, 1, 2)}
    state = backfill(**days, options={"congresses": [112]})
    found = discover(source, Publisher(answers), state)
    assert keys(found) == ["vote:senate/112-2/250", "vote:senate/112-2/251"]


def test_days_early_in_january_are_looked_for_in_the_session_before() -> None:
    answers = {**year_of_votes(2012), **year_of_votes(2013)}
    answers[f"{MENUS}/vote_menu_112_2.xml"] = menu(2012, [(251, "01-Jan"), (250, "31-Dec")])
    state = backfill(since=date(2013, 1, 1), until=date(2013, 1, 2))
    assert keys(discover(source, Publisher(answers), state)) == ["vote:senate/112-2/251"]


def test_the_second_of_january_is_still_the_old_congress() -> None:
    state = SourceState(now=datetime(2027, 1, 3, 4, 0, tzinfo=UTC))
    publisher = all_years(2026)
    discover(source, publisher, state)
    assert {url.split("/")[4] for url in publisher.asked if "evs" in url} == {"2026"}


def test_matters_voted_on_en_bloc_travel_with_the_task() -> None:
    answers = year_of_votes(2025)
    answers[f"{MENUS}/vote_menu_119_1.xml"] = (FILES / "vote-menu-119-1.xml").read_bytes()
    state = backfill(since=date(2025, 12, 1), until=date(2025, 12, 31))
    [task] = tasks(discover(source, Publisher(answers), state))
    assert task.key == "vote:senate/119-1/655"
    assert [matter["issue"] for matter in task.params["matters"]] == ["PN416-9", "PN141-12"]
    assert task.origin is not None
    assert task.origin.url.endswith("vote_menu_119_1.xml")


def test_the_clerks_page_is_read_with_its_links_and_vacated_votes() -> None:
    index = (FILES / "clerk-index-2025.html").read_bytes()
    answers = {
        **year_of_votes(2025),
        f"{CLERK}/2025/index.asp": index,
        f"{CLERK}/2025/ROLL_300.asp": index,
    }
    found = discover(
        source,
        Publisher(answers),
        backfill(options={"congresses": [119]}, until=date(2025, 12, 31)),
    )
    assert "vote:house/119-1/361" in keys(found)
    assert "vote:house/119-1/362" in keys(found)


SPOILED: list[tuple[str, bytes | Exception, type[Exception], str]] = [
    (f"{CLERK}/2026/index.asp", NotFoundError("404"), NotFoundError, "404"),
    (f"{CLERK}/2026/index.asp", b"<html><body>Busy</body></html>", WrongContentError, "other page"),
    (f"{CLERK}/2026/index.asp", page(2025, [(1, "3-Jan")]), WrongContentError, "119th .* 1st"),
    (f"{CLERK}/2026/index.asp", page(2026, []), SuspiciousYieldError, "no vote of 2026"),
    (f"{CLERK}/2026/ROLL_100.asp", page(2026, []), SuspiciousYieldError, "holds none"),
    (
        f"{CLERK}/2026/ROLL_100.asp",
        page(2026, [(99, "3-Mar"), (1, "9-Jan")]),
        SuspiciousYieldError,
        "holds vote 99",
    ),
    (f"{CLERK}/2026/ROLL_100.asp", page(2026, [(100, "4-Mar")]), SuspiciousYieldError, "roll 101"),
    (
        f"{CLERK}/2026/ROLL_100.asp",
        page(2026, [(101, "4-Mar"), (101, "4-Mar")]),
        SuspiciousYieldError,
        "101 twice",
    ),
    (f"{MENUS}/vote_menu_119_2.xml", b"<html>Not available</html>", WrongContentError, "HTML"),
    (f"{MENUS}/vote_menu_119_2.xml", menu(2025, [(1, "3-Jan")]), WrongContentError, "119-1"),
    (f"{MENUS}/vote_menu_119_2.xml", menu(2026, []), SuspiciousYieldError, "no vote of 2026"),
    (
        f"{MENUS}/vote_menu_119_2.xml",
        menu(2026, [(1, "9-Jan"), (1, "9-Jan")]),
        SuspiciousYieldError,
        "vote 1 twice",
    ),
]


@pytest.mark.parametrize(("url", "answer", "error", "cause"), SPOILED)
def test_a_list_that_cannot_be_true_stops_the_run(
    url: str, answer: bytes | Exception, error: type[Exception], cause: str
) -> None:
    publisher = Publisher({**year_of_votes(2026), url: answer})
    found, raised = discover_until_error(source, publisher, SourceState(now=NOW))
    with pytest.raises(error, match=cause):
        raise raised or AssertionError("no error")
    if "evs" in url:
        assert marks(found) == []


@pytest.mark.parametrize("answer", [NotFoundError("404"), b"<html>Not available</html>"])
def test_a_session_without_a_list_is_no_error_in_january(answer: bytes | Exception) -> None:
    state = SourceState(now=datetime(2026, 1, 9, 15, 0, tzinfo=UTC))
    answers = {**year_of_votes(2026), f"{MENUS}/vote_menu_119_2.xml": answer}
    found = discover(source, Publisher(answers), state)
    assert {key.split("/")[0] for key in keys(found)} == {"vote:house"}


# The audit --------------------------------------------------------------------------------


def api_vote(congress: int, session: int, number: int, day: str) -> dict[str, Any]:
    return {
        "congress": congress,
        "sessionNumber": session,
        "rollCallNumber": number,
        "startDate": f"{day}T16:23:00-04:00",
    }


def api_answer(votes: list[dict[str, Any]], count: int) -> bytes:
    content = {"houseRollCallVotes": votes, "pagination": {"count": count}}
    return json.dumps(content).encode()


def audit(answers: dict[str, bytes | Exception], *days: date | None) -> list[Expected]:
    async def collect() -> list[Expected]:
        since, until = days or (None, None)
        return [item async for item in source.enumerate(Publisher(answers), since, until)]

    return asyncio.run(collect())


def address(offset: int) -> str:
    return list_address("house-vote", offset)


VOTES = [
    api_vote(119, 2, 7, "2026-02-03"),
    *(api_vote(119, 1, number, "2025-04-09") for number in range(1, 250)),
    api_vote(118, 2, 3, "2024-01-11"),
]
ANSWERS: dict[str, bytes | Exception] = {
    address(0): api_answer(VOTES[:250], 251),
    address(250): api_answer(VOTES[250:], 251),
}


def test_the_audit_counts_the_newest_congress_by_the_api() -> None:
    first, second = audit(ANSWERS)
    assert (first.scope, len(first.document_ids)) == ("House, Congress 119, session 1", 249)
    assert second.document_ids == {"vote:house/119-2/7"}


def test_the_audit_of_days_takes_only_those() -> None:
    [only] = audit(ANSWERS, date(2024, 1, 1), date(2024, 12, 31))
    assert only.document_ids == {"vote:house/118-2/3"}


def test_an_audit_whose_list_is_not_as_long_as_it_says_is_suspicious() -> None:
    for spoiled in (api_answer([], 0), api_answer(VOTES[:10], 11)):
        with pytest.raises(SuspiciousYieldError):
            audit({address(0): spoiled})
