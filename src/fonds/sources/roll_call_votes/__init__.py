"""Recorded votes of the House (since 1990) and the Senate (since 1989), and how each member voted.

Quirks of the publishers:
- The House files its votes by year: `index.asp` shows the newest and links to pages of a hundred
  each. The Senate has one menu for each session. Both lists give days without a year, and a
  session that ends in the first days of January keeps those votes in the list of its own year.
- A vote that was vacated keeps its number: no question, no positions, and a note. It is a record
  with the status `vacated`.
- In the election of a Speaker the positions are names of candidates and there are totals by
  candidate, while the type still says YEA-AND-NAY. A call of the House knows only Present.
- The House names members by bioguide id, but not before 2003; the Senate by an id of its own,
  which is an alias of the legislator.
- A vote taken in the Committee of the Whole has `committee` where others have `chamber`.
- Nominations voted on en bloc are listed as `matter`, without issue, question and result of the
  vote itself.
- A vote that does not exist is answered with a page of HTML and status 200.
- Neither chamber withdraws a vote, so nothing here is ever found to be gone.

A backfill without a range takes the current Congress and the one before it; with days or
Congresses it takes those, back to the first there are. A run takes what is new since the last
one, or else the current session; each looks again at the last votes of the House and at the whole
menu of the Senate, where corrections show.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from fonds import ids
from fonds.errors import MalformedError, NotFoundError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Discovery,
    FetchTask,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.formats import congress as congress_gov
from fonds.sources.formats import fields, html, xml
from fonds.sources.formats.congress import vote_id
from fonds.sources.formats.days import is_requested, today
from fonds.sources.formats.xml import required, required_whole, text
from fonds.sources.roll_call_votes.tables import TABLES
from fonds.sources.roll_call_votes.votes import (
    CLERK,
    NAME,
    SENATE,
    Matter,
    Vote,
    VoteSession,
    days_of_session,
    read_house_vote,
    read_matters,
    read_senate_vote,
    record,
    vote_address,
)

# What the chambers list: the Clerk's index pages and the Senate's menus.

PER_PAGE: Final = 100
"""The Clerk's pages hold the votes of one hundred each: ROLL_000.asp those below 100."""

_PAGE_LINK: Final = re.compile(r"ROLL_(\d{3,5})\.asp", re.IGNORECASE)
_VOTE_LINK: Final = re.compile(r"year=(\d{4})&rollnumber=(\d{1,5})", re.IGNORECASE)
_HEADING: Final = re.compile(r"(\d+)\w\w Congress - (\d)\w\w Session")
_CELLS: Final = ("date", "issue", "question", "result", "title")


@dataclass(frozen=True, kw_only=True, slots=True)
class VoteEntry:
    """A vote as a list names it."""

    number: int
    date: str
    """Day and month, `21-Dec`; the year is the session's, or the next."""
    stated: dict[str, Any]
    """All the list says of it."""
    matters: Sequence[Matter] = ()
    """Of a vote en bloc."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VoteList:
    """An index page of the Clerk: votes, newest first, and the hundreds it links to."""

    entries: tuple[VoteEntry, ...]
    hundreds: frozenset[int]


def clerk_address(session: VoteSession, hundred: int | None = None) -> str:
    """A page of the Clerk's list of a year: the newest votes, or those of one hundred."""
    name = "index.asp" if hundred is None else f"ROLL_{hundred:03}.asp"
    return f"{CLERK}/evs/{session.year}/{name}"


def menu_address(session: VoteSession) -> str:
    """The Senate's list of a session."""
    return f"{SENATE}/roll_call_lists/vote_menu_{session.congress}_{session.number}.xml"


def read_clerk_page(data: bytes, session: VoteSession) -> VoteList:
    """The votes that an index page lists; another page in its place is an error."""
    root = html.read_page(data)
    heading = _HEADING.search(" ".join(" ".join(root.itertext()).split()))
    if heading is None:
        raise WrongContentError(f"the Clerk's list of {session.year} is some other page")
    if (int(heading[1]), int(heading[2])) != (session.congress, session.number):
        raise WrongContentError(f"the Clerk's list of {session.year} is headed {heading[0]}")
    links = [str(link) for link in root.xpath("//a/@href")]
    hundreds = (int(match[1]) for link in links if (match := _PAGE_LINK.search(link)))
    entries = tuple(_clerk_entries(root, session))
    _refuse_repeats(entries, f"the Clerk's list of {session.year}")
    return VoteList(entries=entries, hundreds=frozenset(hundreds))


def read_menu(data: bytes, session: VoteSession) -> list[VoteEntry]:
    """The votes that the menu of a session lists, the earliest first."""
    root = xml.read(data, "vote_summary")
    stated = required_whole(root, "congress"), required_whole(root, "session")
    if stated != (session.congress, session.number):
        raise WrongContentError(
            f"the menu of {session.congress}-{session.number} is that of {stated[0]}-{stated[1]}"
        )
    entries = [_menu_entry(vote) for vote in root.iterfind("votes/vote")]
    _refuse_repeats(entries, f"the menu of {session.congress}-{session.number}")
    return sorted(entries, key=lambda entry: entry.number)


def _clerk_entries(root: Any, session: VoteSession) -> Iterator[VoteEntry]:
    for row in root.iter("tr"):
        link = _VOTE_LINK.search(" ".join(row.xpath("td[1]//a/@href")))
        if link is None:
            continue
        if int(link[1]) != session.year:
            raise WrongContentError(f"the list of {session.year} names a vote of {link[1]}")
        cells = [html.text_of(cell) for cell in row.iterfind("td")]
        stated = dict(zip(_CELLS, cells[1:], strict=False))
        if not stated.get("date"):
            raise MalformedError(f"the list of {session.year} gives no day for roll {link[2]}")
        yield VoteEntry(number=int(link[2]), date=stated["date"] or "", stated=stated)


def _menu_entry(vote: Any) -> VoteEntry:
    matters = read_matters(vote)
    stated = {name: text(vote, name) for name in ("vote_date", "issue", "question", "result")}
    stated |= {name: text(vote, name) for name in ("vote_tally/yeas", "vote_tally/nays", "title")}
    return VoteEntry(
        number=required_whole(vote, "vote_number"),
        date=required(vote, "vote_date"),
        stated={**stated, "en_bloc": matters},
        matters=matters,
    )


def _refuse_repeats(entries: Sequence[VoteEntry], where: str) -> None:
    numbers = [entry.number for entry in entries]
    if len(set(numbers)) < len(numbers):
        twice = min(number for number in numbers if numbers.count(number) > 1)
        raise SuspiciousYieldError(f"{where} names vote {twice} twice")


FIRST_YEARS: Final = {"house": 1990, "senate": 1989}
# The Clerk corrects positions in the days after a vote, and the list may show it.
OVERLAP: Final = 50

_Listed = tuple[VoteEntry, Archived]
# A Congress ends, and the next begins, at noon of January 3.
_UNTIL_NOON: Final = timedelta(days=2)
_MAX_OVERHANG: Final = timedelta(days=7)
_PAGES_OF_HTML: Final = (b"<!doctype html", b"<html")


class RollCallVotes:
    """The source `roll_call_votes`."""

    info = SourceInfo(
        name=NAME,
        title="Roll call votes",
        summary="recorded votes of House and Senate since 1989, and how each member voted",
        organisation="U.S. House of Representatives and U.S. Senate",
        addresses=(f"{CLERK}/evs/", f"{SENATE}/roll_call_lists/"),
        jurisdiction="United States",
        version="1.0.0",
        # Both chambers publish a vote within the hour, and may sit until late.
        schedule="40 7,19 * * *",
        rate=Rate(per_second=2, burst=4),
        tables=TABLES,
        depends_on=("legislators", "bills"),
        published_at="action-date (House), vote_date (Senate)",
        options=("congresses",),
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The votes of each session, the earliest first, the House before the Senate."""
        previous_key = state.last_seen_key or ""
        sessions = list(_sessions(state))
        # A backfill that ends in the past says nothing of where the next run should begin.
        reaches_now = any(session == _current(state) for _, session in sessions)
        for chamber, session in sessions:
            listed = await _listed(chamber, session, state, ask)
            days = days_of_session([entry.date for entry, _ in listed], session.year)
            for (entry, origin), day in zip(listed, days, strict=True):
                if is_requested(day, state):
                    yield _task(chamber, session, entry, origin)
            if listed and reaches_now:
                # A backfill of older years must not turn the watermark back.
                previous_key = max(previous_key, days[-1].isoformat())
                reached = [session.year, listed[-1][0].number]
                yield Watermark(last_seen_key=previous_key, custom={chamber: reached})

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The record of each vote; a list or an answer of an API says what it is instead."""
        for part in raw.parts:
            vote = _read(part, raw.task)
            if part.name and vote.id != raw.task.key:
                raise WrongContentError(f"asked for {raw.task.key}, and the file is {vote.id}")
            yield record(vote, part.archived)

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """Count the House's votes by the list of api.congress.gov, which wants `data_gov_key`.

        Without days: those of the newest Congress listed. The API has no votes of the Senate,
        and of the House only those of recent Congresses; of the others there is no second list.
        """
        votes = await _api_votes(ask)
        newest = max(congress for congress, _, _ in votes)
        by_session: dict[tuple[int, int], set[str]] = {}
        for (congress, session, number), day in votes.items():
            recent = congress == newest if since is None and until is None else True
            if recent and (since or date.min) <= day <= (until or date.max):
                document_id = vote_id("house", congress, session, number)
                by_session.setdefault((congress, session), set()).add(document_id)
        for (congress, session), vote_ids in sorted(by_session.items()):
            scope = f"House, Congress {congress}, session {session}"
            yield Expected(scope=scope, document_ids=frozenset(vote_ids))


source = RollCallVotes()


# Sessions ---------------------------------------------------------------------------------


def _current(state: SourceState) -> VoteSession:
    return VoteSession(year=(today(state) - _UNTIL_NOON).year)


def _sessions(state: SourceState) -> Iterator[tuple[str, VoteSession]]:
    """Chamber and session, year by year."""
    last = _current(state).year
    for year in range(min(FIRST_YEARS.values()), last + 1):
        session = VoteSession(year=year)
        for chamber, first_year in FIRST_YEARS.items():
            if year >= first_year and _is_requested_session(chamber, session, state):
                yield chamber, session


def _is_requested_session(chamber: str, session: VoteSession, state: SourceState) -> bool:
    current = _current(state)
    if not state.backfill:
        reached = state.custom.get(chamber)
        return session.year >= (reached[0] if reached else current.year)
    if congresses := state.options.get("congresses"):
        if session.congress not in congresses:
            return False
    elif state.since is None and state.until is None:
        return session.congress >= current.congress - 1
    first = (state.since - _MAX_OVERHANG).year if state.since else session.year
    return first <= session.year <= (state.until.year if state.until else session.year)


# Lists ------------------------------------------------------------------------------------


async def _listed(
    chamber: str, session: VoteSession, state: SourceState, ask: Ask
) -> list[_Listed]:
    read = _clerk_list if chamber == "house" else _menu
    try:
        listed = await read(session, state, ask)
    except (NotFoundError, WrongContentError):
        if not _may_be_without_votes(session, state):
            raise
        return []
    if not listed and not _may_be_without_votes(session, state):
        raise SuspiciousYieldError(
            f"the {chamber} lists no vote of {session.year}; no such session is known"
        )
    return listed


def _may_be_without_votes(session: VoteSession, state: SourceState) -> bool:
    """A list appears with its first vote, in the second half of January at times."""
    day = today(state)
    return session == _current(state) and day < date(session.year, 2, 1)


async def _clerk_list(session: VoteSession, state: SourceState, ask: Ask) -> list[_Listed]:
    listing = await ask(clerk_address(session), path=f"lists/house/{session.year}/index.html")
    index = read_clerk_page(listing.data, session)
    newest = {entry.number for entry in index.entries}
    hundreds = index.hundreds | {number // PER_PAGE * PER_PAGE for number in newest}
    first = _first_roll(session, state)
    listed: list[_Listed] = []
    for hundred in sorted(hundred for hundred in hundreds if hundred + PER_PAGE > first):
        listed += await _clerk_hundred(session, hundred, ask)
    missing = {number for number in newest if number >= first} - {item.number for item, _ in listed}
    if missing:
        raise SuspiciousYieldError(
            f"the Clerk's pages of {session.year} leave out roll {min(missing)}, which the index "
            "shows; the list is being renewed or cut off"
        )
    return listed


def _first_roll(session: VoteSession, state: SourceState) -> int:
    year, reached = state.custom.get("house") or (0, 0)
    return reached - OVERLAP if year == session.year and not state.backfill else 0


async def _clerk_hundred(session: VoteSession, hundred: int, ask: Ask) -> list[_Listed]:
    path = f"lists/house/{session.year}/ROLL_{hundred:03}.html"
    listing = await ask(clerk_address(session, hundred), path=path)
    entries = read_clerk_page(listing.data, session).entries
    strangers = [item.number for item in entries if item.number // PER_PAGE * PER_PAGE != hundred]
    if strangers or not entries:
        raise SuspiciousYieldError(
            f"the Clerk's page of the votes from {hundred} on in {session.year} "
            + (f"holds vote {strangers[0]}" if strangers else "holds none")
        )
    return [(item, listing.archived) for item in sorted(entries, key=lambda item: item.number)]


async def _menu(session: VoteSession, state: SourceState, ask: Ask) -> list[_Listed]:
    del state  # A menu is one file: it is asked for whole, and conditionally.
    name = f"{session.congress}_{session.number}"
    listing = await ask(menu_address(session), path=f"lists/senate/vote_menu_{name}.xml")
    return [(entry, listing.archived) for entry in read_menu(listing.data, session)]


def _task(chamber: str, session: VoteSession, entry: VoteEntry, origin: Archived) -> FetchTask:
    url = vote_address(chamber, session, entry.number)
    path = f"{chamber}/{session.year}/{url.rpartition('/')[2]}"
    return FetchTask(
        source=NAME,
        key=vote_id(chamber, session.congress, session.number, entry.number),
        parts=(Part(name="vote", url=url, path=path),),
        params={"matters": [dict(matter) for matter in entry.matters]} if entry.matters else {},
        fingerprint=ids.json_sha256(entry.stated),
        origin=origin if entry.matters else None,
    )


# Files ------------------------------------------------------------------------------------


def _read(part: RawPart, task: FetchTask) -> Vote:
    start = part.data[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"{", b"[")):
        raise WrongContentError(
            "JSON, perhaps an answer of the congress.gov API, which the audit counts by; the "
            "votes are read from the XML of the two chambers"
        )
    if start.startswith(_PAGES_OF_HTML):
        raise WrongContentError(
            "an HTML page: a list of votes, or what is served for a vote that is not there"
        )
    root = xml.read(part.data, "rollcall-vote", "roll_call_vote", "vote_summary")
    match xml.local_name(root):
        case "rollcall-vote":
            return read_house_vote(root)
        case "roll_call_vote":
            return read_senate_vote(root, task.params.get("matters", ()))
    raise WrongContentError("a menu of the Senate, which lists votes and holds none")


# The audit --------------------------------------------------------------------------------


async def _api_votes(ask: Ask) -> dict[tuple[int, int, int], date]:
    """Day by Congress, session and number."""
    votes = await congress_gov.read_list(
        ask, "house-vote", "houseRollCallVotes", path="audit/house-vote", identify=_api_number
    )
    return {_api_number(vote): _api_day(vote) for vote in votes}


def _api_number(vote: Mapping[str, Any]) -> tuple[int, int, int]:
    names = ("congress", "sessionNumber", "rollCallNumber")
    congress, session, number = (fields.whole(vote, name) or 0 for name in names)
    return congress, session, number


def _api_day(vote: Mapping[str, Any]) -> date:
    began = fields.required(vote, "startDate")
    try:
        return datetime.fromisoformat(began).date()
    except ValueError as error:
        raise MalformedError(f"startDate should be a moment and is {began[:40]!r}") from error
