"""Where a crawl has been and where it goes next, kept in the database.

So it holds no more in memory than the pages being fetched, and goes on where it was stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, delete, func, select, update

from fonds.model import Archived
from fonds.seams import Clock
from fonds.sites.models import PdfState
from fonds.sites.strategy import Found
from fonds.sites.tables import site_addresses, site_files
from fonds.stores.batches import select_in
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database, upsert

WAITING: Final = "waiting"
VISITED: Final = "visited"
FAILED: Final = "failed"
AT_ONCE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
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

    visit: Visit
    error: str | None = None
    found: tuple[Found, ...] = ()
    origin: Archived | None = None
    further: tuple[Visit, ...] = ()
    turns: tuple[Visit, ...] = ()
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
    _place: int = 0
    _handed_out: set[str] = field(default_factory=set)

    def begin(self, start: Iterable[Visit]) -> None:
        """Forget what earlier crawls saw, and begin with some pages."""
        with self.database.write() as connection:
            connection.execute(delete(site_addresses).where(self._mine))
            self._add_pages(connection, start, found_on=None)

    def resume(self) -> bool:
        """Go on where this crawl was stopped; False where it had not begun."""
        table = site_addresses.c
        seen = select(func.count(), func.max(table.place)).where(self._of_this_crawl("page"))
        with self.database.read() as connection:
            self.pages, place = connection.execute(seen).one()
        self._place = (place or 0) + 1
        return self.pages > 0

    def next_pages(self, count: int) -> list[Visit]:
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
        self._handed_out.update(row.url for row in fresh)
        return [
            Visit(url=row.url, depth=row.depth, trail=tuple(row.trail), turn=row.turn)
            for row in fresh
        ]

    def settle(self, visits: Sequence[Visited]) -> list[Listed]:
        """Write down what pages held; the PDFs among it that this crawl had not seen before."""
        new: list[Listed] = []
        with self.database.write() as connection:
            for visited in visits:
                self._end(connection, visited)
                fresh = self._add_files(connection, visited)
                is_going_on = bool(fresh) or visited.visit.turn == 1
                follow = (*visited.further, *(visited.turns if is_going_on else ()))
                self._add_pages(connection, follow, found_on=visited.visit.url)
                new += fresh
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

    def mark(self, states: Mapping[str, tuple[PdfState, str | None]]) -> None:
        """Note how far PDFs have come, and why some failed."""
        if not states:
            return
        table, now = site_addresses, self.clock.now()
        with self.database.write() as connection:
            for url, (state, error) in states.items():
                moved = update(table).where(self._mine, table.c.key == key_of(url))
                connection.execute(moved.values(state=state, error=error, updated_at=now))

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

    def _end(self, connection: Connection, visited: Visited) -> None:
        table = site_addresses
        values = {
            "state": FAILED if visited.error else VISITED,
            "error": visited.error,
            "updated_at": self.clock.now(),
        }
        ended = update(table).where(self._mine, table.c.key == key_of(visited.visit.url))
        connection.execute(ended.values(values))

    def _add_pages(
        self, connection: Connection, pages: Iterable[Visit], *, found_on: str | None
    ) -> None:
        wanted = {key_of(visit.url): visit for visit in pages if visit.depth <= self.max_depth}
        known = self._known(connection, wanted)
        rows = []
        for key, visit in wanted.items():
            if key not in known and self.pages < self.max_pages:
                self.pages += 1
                seen = {"depth": visit.depth, "turn": visit.turn, "trail": list(visit.trail)}
                rows.append(self._row(key, visit.url, "page", WAITING, found_on=found_on, **seen))
        if rows:
            connection.execute(site_addresses.insert(), rows)

    def _add_files(self, connection: Connection, visited: Visited) -> list[Listed]:
        """Of a PDF that several pages list, the first one says whose it is."""
        listed = {
            key_of(found.url): Listed(
                url=found.url,
                text=found.text,
                organization=found.organization,
                period=found.period,
                found_on=visited.visit.url,
                origin=visited.origin,
            )
            for found in reversed(visited.found)
        }
        known = self._known(connection, listed, this_crawl=True)
        new = {key: one for key, one in reversed(listed.items()) if key not in known}
        rows = [self._file_row(key, visited.visit, one) for key, one in new.items()]
        upsert(connection, site_addresses, rows)
        return list(new.values())

    def _file_row(self, key: str, visit: Visit, listed: Listed) -> dict[str, Any]:
        return self._row(
            key,
            listed.url,
            "pdf",
            PdfState.DISCOVERED,
            depth=visit.depth,
            turn=visit.turn,
            trail=list(visit.trail),
            found_on=listed.found_on,
            text=listed.text,
            organization=listed.organization,
            period=listed.period,
            origin=listed.origin and _origin_to_json(listed.origin),
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

    def _known(
        self, connection: Connection, keys: Iterable[str], *, this_crawl: bool = False
    ) -> set[str]:
        table = site_addresses.c
        query = select(table.key).where(self._mine)
        if this_crawl:
            query = query.where(table.crawl_id == self.crawl)
        return {row.key for row in select_in(connection, query, table.key, list(keys))}


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
