"""What the chambers list: the Clerk's index pages and the Senate's menus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.sources.families import html_pages, xml_files
from fonds.sources.families.xml_files import required, required_whole, text
from fonds.sources.roll_call_votes.records import CLERK, SENATE, Session
from fonds.sources.roll_call_votes.senate import Matter, read_matters

PER_PAGE: Final = 100
"""The Clerk's pages hold the votes of one hundred each: ROLL_000.asp those below 100."""

_PAGE_LINK: Final = re.compile(r"ROLL_(\d{3,5})\.asp", re.IGNORECASE)
_VOTE_LINK: Final = re.compile(r"year=(\d{4})&rollnumber=(\d{1,5})", re.IGNORECASE)
_HEADING: Final = re.compile(r"(\d+)\w\w Congress - (\d)\w\w Session")
_CELLS: Final = ("date", "issue", "question", "result", "title")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A vote as a list names it."""

    number: int
    date: str
    """Day and month, `21-Dec`; the year is the session's, or the next."""
    said: dict[str, Any]
    """All the list says of it."""
    matters: Sequence[Matter] = ()
    """Of a vote en bloc."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """An index page of the Clerk: votes, newest first, and the hundreds it links to."""

    entries: tuple[Entry, ...]
    hundreds: frozenset[int]


def clerk_address(session: Session, hundred: int | None = None) -> str:
    """A page of the Clerk's list of a year: the newest votes, or those of one hundred."""
    name = "index.asp" if hundred is None else f"ROLL_{hundred:03}.asp"
    return f"{CLERK}/evs/{session.year}/{name}"


def menu_address(session: Session) -> str:
    """The Senate's list of a session."""
    return f"{SENATE}/roll_call_lists/vote_menu_{session.congress}_{session.number}.xml"


def read_clerk_page(data: bytes, session: Session) -> Page:
    """The votes that an index page lists; another page in its place is an error."""
    root = html_pages.read_page(data)
    heading = _HEADING.search(" ".join(" ".join(root.itertext()).split()))
    if heading is None:
        raise WrongContentError(f"the Clerk's list of {session.year} is some other page")
    if (int(heading[1]), int(heading[2])) != (session.congress, session.number):
        raise WrongContentError(f"the Clerk's list of {session.year} is headed {heading[0]}")
    links = [str(link) for link in root.xpath("//a/@href")]
    hundreds = (int(match[1]) for link in links if (match := _PAGE_LINK.search(link)))
    entries = tuple(_clerk_entries(root, session))
    _refuse_repeats(entries, f"the Clerk's list of {session.year}")
    return Page(entries=entries, hundreds=frozenset(hundreds))


def read_menu(data: bytes, session: Session) -> list[Entry]:
    """The votes that the menu of a session lists, the earliest first."""
    root = xml_files.read(data, "vote_summary")
    stated = required_whole(root, "congress"), required_whole(root, "session")
    if stated != (session.congress, session.number):
        raise WrongContentError(
            f"the menu of {session.congress}-{session.number} is that of {stated[0]}-{stated[1]}"
        )
    entries = [_menu_entry(vote) for vote in root.iterfind("votes/vote")]
    _refuse_repeats(entries, f"the menu of {session.congress}-{session.number}")
    return sorted(entries, key=lambda entry: entry.number)


def _clerk_entries(root: Any, session: Session) -> Iterator[Entry]:
    for row in root.iter("tr"):
        link = _VOTE_LINK.search(" ".join(row.xpath("td[1]//a/@href")))
        if link is None:
            continue
        if int(link[1]) != session.year:
            raise WrongContentError(f"the list of {session.year} names a vote of {link[1]}")
        cells = [html_pages.text_of(cell) for cell in row.iterfind("td")]
        said = dict(zip(_CELLS, cells[1:], strict=False))
        if not said.get("date"):
            raise MalformedError(f"the list of {session.year} gives no day for roll {link[2]}")
        yield Entry(number=int(link[2]), date=said["date"] or "", said=said)


def _menu_entry(vote: Any) -> Entry:
    matters = read_matters(vote)
    said = {name: text(vote, name) for name in ("vote_date", "issue", "question", "result")}
    said |= {name: text(vote, name) for name in ("vote_tally/yeas", "vote_tally/nays", "title")}
    return Entry(
        number=required_whole(vote, "vote_number"),
        date=required(vote, "vote_date"),
        said={**said, "en_bloc": matters},
        matters=matters,
    )


def _refuse_repeats(entries: Sequence[Entry], where: str) -> None:
    numbers = [entry.number for entry in entries]
    if len(set(numbers)) < len(numbers):
        twice = min(number for number in numbers if numbers.count(number) > 1)
        raise SuspiciousYieldError(f"{where} names vote {twice} twice")
