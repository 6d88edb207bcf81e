"""Where a crawl has been and where it goes next, kept in the database.

So it holds no more in memory than the pages being fetched, and goes on where it was stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, bindparam, delete, func, select, update

from fonds.model import Archived
from fonds.seams import Clock
from fonds.sites.models import PdfState
from fonds.sites.strategy import PdfLink
from fonds.sites.tables import site_addresses, site_files
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database, insert_many, run
from fonds.stores.sqlite import PARAMETERS, batched

WAITING: Final = "waiting"
VISITED: Final = "visited"
FAILED: Final = "failed"
AT_ONCE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class PageVisit:
    """A page to look at."""

    url: str
    depth: int = 0
    trail: tuple[str, ...] = ()
    """Texts of the links that lead to it, outermost first."""
    turn: int = 1
    """Which page it is of a list that goes on over several."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A PDF that a page lists."""

    url: str
    text: str
    organization: str | None
    period: str | None
    found_on: str
    origin: Archived | None
    """The archived page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Visited:
    """A page that was looked at, and what stood there."""

    visit: PageVisit
    error: str | None = None
    found: tuple[PdfLink, ...] = ()
    origin: Archived | None = None
    further: tuple[PageVisit, ...] = ()
    turns: tuple[PageVisit, ...] = ()
    """Where its list goes on; only worth a visit if this page brought something new."""


def key_of(url: str) -> str:
    """By which an address is told from others."""
    return hashlib.sha256(url.encode()).hexdigest()[:32]


@dataclass(kw_only=True)
class Frontier:
    """The addresses of one website in one crawl."""

    database: Database
    website: str
    crawl: UUID
    clock: Clock
    max_pages: int
    max_depth: int
    pages: int = 0
    """Seen so far, visited or not."""
    has_more: bool = True
    """Whether there may be pages that `next_pages` has not handed out."""
    _place: int = 0
    _handed_out: set[str] = field(default_factory=set)

    def begin(self, start: Iterable[PageVisit]) -> None:
        """Forget what earlier crawls saw, and begin with some pages."""
        with self.database.write() as connection:
            connection.execute(delete(site_addresses).where(self._mine))
            first = {key_of(visit.url): visit for visit in start}
            insert_many(connection, site_addresses, self._page_rows(first, set(), found_on=None))

    def resume(self) -> bool:
        """Go on where this crawl was stopped; False where it had not begun."""
        table = site_addresses.c
        seen = select(func.count(), func.max(table.place)).where(self._of_this_crawl("page"))
        with self.database.read() as connection:
            self.pages, place = connection.execute(seen).one()
        self._place = (place or 0) + 1
        self.has_more = True
        return self.pages > 0

    def next_pages(self, count: int) -> list[PageVisit]:
        """Pages to visit, nearest first, none twice."""
        table = site_addresses.c
        query = (
            select(table.url, table.depth, table.trail, table.turn)
            .where(self._of_this_crawl("page"), table.state == WAITING)
            .order_by(table.depth, table.place)
            .limit(count + len(self._handed_out))
        )
        with self.database.read() as connection:
            rows = connection.execute(query).all()
        fresh = [row for row in rows if row.url not in self._handed_out][:count]
        self.has_more = len(fresh) == count
        self._handed_out.update(row.url for row in fresh)
        return [
            PageVisit(url=row.url, depth=row.depth, trail=tuple(row.trail), turn=row.turn)
            for row in fresh
        ]

    def settle(self, visits: Sequence[Visited]) -> list[Listed]:
        """Write down what pages held; the PDFs among it that this crawl had not seen before."""
        new: list[Listed] = []
        page_rows: list[dict[str, Any]] = []
        file_rows: list[dict[str, Any]] = []
        files = [self._listed(visited) for visited in visits]
        pages = [self._near(visited) for visited in visits]
        with self.database.write() as connection:
            self._end(connection, visits)
            known = self._known(connection, chain(*files, *pages))
            for visited, found, near in zip(visits, files, pages, strict=True):
                fresh = {key: one for key, one in found.items() if key not in known}
                seen = _seen_on(visited)
                file_rows += [self._file_row(key, one, seen) for key, one in fresh.items()]
                known.update(fresh)
                is_going_on = bool(fresh) or visited.visit.turn == 1
                follow = near if is_going_on else self._near(replace(visited, turns=()))
                page_rows += self._page_rows(follow, known, found_on=visited.visit.url)
                new += fresh.values()
            insert_many(connection, site_addresses, file_rows)
            insert_many(connection, site_addresses, page_rows)
        self._handed_out.difference_update(visited.visit.url for visited in visits)
        return new

    def unfinished(self) -> Iterator[list[Listed]]:
        """PDFs of this crawl that are neither indexed nor failed, some at a time."""
        table, after = site_addresses.c, -1
        open_states = table.state.not_in([PdfState.INDEXED, PdfState.FAILED])
        query = select(site_addresses).where(self._of_this_crawl("pdf"), open_states)
        while True:
            with self.database.read() as connection:
                page = query.where(table.place > after).order_by(table.place).limit(AT_ONCE)
                rows = connection.execute(page).all()
            if not rows:
                return
            after = rows[-1].place
            yield [_listed(row) for row in rows]

    def one_indexed(self) -> list[Listed]:
        """A PDF of this crawl that is a document, if there is any."""
        table = site_addresses.c
        indexed = self._of_this_crawl("pdf") & (table.state == PdfState.INDEXED)
        with self.database.read() as connection:
            found = connection.execute(select(site_addresses).where(indexed).limit(1))
            return [_listed(row) for row in found]

    def mark(self, states: Mapping[str, tuple[PdfState, str | None]]) -> None:
        """Note how far PDFs have come, and why some failed."""
        if states:
            with self.database.write() as connection:
                self._move(connection, states)

    def mark_indexed(self) -> None:
        """Note which PDFs are documents by now."""
        table = site_addresses.c
        held = select(site_files.c.url).where(site_files.c.website_id == self.website)
        loaded = self._of_this_crawl("pdf") & (table.state == PdfState.STORED) & table.url.in_(held)
        values = {"state": PdfState.INDEXED, "updated_at": self.clock.now()}
        with self.database.write() as connection:
            connection.execute(update(site_addresses).where(loaded).values(values))

    @property
    def _mine(self) -> Any:
        return site_addresses.c.website_id == self.website

    def _of_this_crawl(self, kind: str) -> Any:
        table = site_addresses.c
        return self._mine & (table.kind == kind) & (table.crawl_id == self.crawl)

    def _move(self, connection: Connection, states: Mapping[str, tuple[str, str | None]]) -> None:
        """Note states and errors, for all addresses at once that have the same."""
        alike: dict[tuple[str, str | None], list[str]] = {}
        for url, come_to in states.items():
            alike.setdefault(come_to, []).append(key_of(url))
        given = {"of_website": self.website, "now": self.clock.now()}
        for (state, error), keys in alike.items():
            given |= {"state_now": state, "error_now": error}
            for size, some in _in_sizes(keys):
                run(connection, _moved(size), {**given, **some})

    def _end(self, connection: Connection, visits: Sequence[Visited]) -> None:
        ended = {one.visit.url: (FAILED if one.error else VISITED, one.error) for one in visits}
        self._move(connection, ended)

    def _near(self, visited: Visited) -> dict[str, PageVisit]:
        pages = chain(visited.further, visited.turns)
        return {key_of(visit.url): visit for visit in pages if visit.depth <= self.max_depth}

    def _page_rows(
        self, pages: Mapping[str, PageVisit], known: set[str], *, found_on: str | None
    ) -> list[dict[str, Any]]:
        """Those pages that are new, which are known from here on."""
        rows = []
        for key, visit in pages.items():
            if key not in known and self.pages < self.max_pages:
                known.add(key)
                self.pages += 1
                self.has_more = True
                seen = {"depth": visit.depth, "turn": visit.turn, "trail": list(visit.trail)}
                rows.append(self._row(key, visit.url, "page", WAITING, found_on=found_on, **seen))
        return rows

    def _listed(self, visited: Visited) -> dict[str, Listed]:
        """Of a PDF that several links lead to, the first one says whose it is."""
        listed: dict[str, Listed] = {}
        for found in visited.found:
            listed.setdefault(
                key_of(found.url),
                Listed(
                    url=found.url,
                    text=found.text,
                    organization=found.organization,
                    period=found.period,
                    found_on=visited.visit.url,
                    origin=visited.origin,
                ),
            )
        return listed

    def _file_row(self, key: str, listed: Listed, seen: Mapping[str, Any]) -> dict[str, Any]:
        return self._row(
            key,
            listed.url,
            "pdf",
            PdfState.DISCOVERED,
            found_on=listed.found_on,
            text=listed.text,
            organization=listed.organization,
            period=listed.period,
            **seen,
        )

    def _row(self, key: str, url: str, kind: str, state: str, **more: Any) -> dict[str, Any]:
        self._place += 1
        unsaid = dict.fromkeys(("found_on", "text", "organization", "period", "origin", "error"))
        return {
            **unsaid,
            "website_id": self.website,
            "key": key,
            "url": url,
            "kind": kind,
            "state": state,
            "crawl_id": self.crawl,
            "place": self._place,
            "updated_at": self.clock.now(),
            **more,
        }

    def _known(self, connection: Connection, keys: Iterable[str]) -> set[str]:
        known: set[str] = set()
        for size, some in _in_sizes(dict.fromkeys(keys)):
            found = run(connection, _among(size), {"of_website": self.website, **some})
            known.update(row.key for row in found)
        return known


_SIZES: Final = (1, 4, 16, 64, PARAMETERS)
"""Keys that one statement names; for another number it would be built anew."""


def _in_sizes(keys: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Keys as `_are_keys` names them, so many at a time as a statement has places for."""
    for some in batched(keys):
        size = next(size for size in _SIZES if size >= len(some))
        # The same key several times is no other question.
        padded = some + some[-1:] * (size - len(some))
        yield size, {f"key_{place}": key for place, key in enumerate(padded)}


def _are_keys(size: int) -> Any:
    table = site_addresses.c
    keys = [bindparam(f"key_{place}", type_=table.key.type) for place in range(size)]
    return (table.website_id == bindparam("of_website")) & table.key.in_(keys)


@cache
def _among(size: int) -> Any:
    return select(site_addresses.c.key).where(_are_keys(size))


@cache
def _moved(size: int) -> Any:
    table = site_addresses.c
    values = {
        "state": bindparam("state_now", type_=table.state.type),
        "error": bindparam("error_now", type_=table.error.type),
        "updated_at": bindparam("now", type_=table.updated_at.type),
    }
    return update(site_addresses).where(_are_keys(size)).values(values)


def _seen_on(visited: Visited) -> dict[str, Any]:
    """What the rows of all PDFs of a page have in common."""
    visit = visited.visit
    return {
        "depth": visit.depth,
        "turn": visit.turn,
        "trail": list(visit.trail),
        "origin": visited.origin and _origin_to_json(visited.origin),
    }


def _listed(row: Row[Any]) -> Listed:
    return Listed(
        url=row.url,
        text=row.text or "",
        organization=row.organization,
        period=row.period,
        found_on=row.found_on,
        origin=_origin_from_json(row.origin) if row.origin else None,
    )


def _origin_to_json(archived: Archived) -> str:
    told = {**asdict(archived), "retrieved_at": format_timestamp(archived.retrieved_at)}
    return json.dumps(told)


def _origin_from_json(text: str) -> Archived:
    told = json.loads(text)
    return Archived(**{**told, "retrieved_at": datetime.fromisoformat(told["retrieved_at"])})
