"""The addresses of a crawl, visited and waiting, stored in the database.

So a crawl has no more in memory than the pages being fetched, and can be resumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, Select, bindparam, delete, exists, func, select, update

from fonds.errors import ConnectionLostError
from fonds.ids import site_file_id
from fonds.model import Archived
from fonds.seams import Clock
from fonds.sites.models import PdfState
from fonds.sites.strategy import PdfLink
from fonds.sites.tables import site_addresses, site_files
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database, insert_many, repeatable, run
from fonds.stores.sqlite import PARAMETERS, batched

WAITING: Final = "waiting"
VISITED: Final = "visited"
FAILED: Final = "failed"
FORBIDDEN: Final = "forbidden"
BATCH_SIZE: Final = 500
_OVER_LIMITS: Final = "LimitReached: some of its links are over a limit, and were left out"


@dataclass(frozen=True, kw_only=True, slots=True)
class PageVisit:
    """A page to visit."""

    url: str
    depth: int = 0
    trail: tuple[str, ...] = ()
    """Texts of the links that led to it, outermost first."""
    turn: int = 1
    """The number of the page in a list on several pages."""


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
    guesses: tuple[str, ...] = ()
    """Which of `organization` and `period` are guesses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Visited:
    """A page that was visited, and its links."""

    visit: PageVisit
    error: str | None = None
    is_forbidden: bool = False
    """The error is that robots.txt forbids it."""
    pdfs: tuple[PdfLink, ...] = ()
    origin: Archived | None = None
    further: tuple[PageVisit, ...] = ()
    list_pages: tuple[PageVisit, ...] = ()
    """The next pages of its list; only visited if this page has new PDFs."""
    is_pdf: bool = False
    """It is a PDF itself, which only its bytes tell."""
    likely_list_pages: int = 10
    """As many pages of a list are also visited if they have no PDFs, but links to new pages."""


def key_of(url: str) -> str:
    """The key of an address: half of its SHA-256."""
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
    """Pages so far, visited or not."""
    has_more: bool = True
    """True if there may be pages that `next_pages` has not returned."""
    over_max_pages: int = 0
    """Links to pages that are not visited, as there are `max_pages` others."""
    over_max_depth: int = 0
    """Links to pages that are not visited, as they are deeper than `max_depth`."""
    cut_lists: int = 0
    """Lists without PDFs whose last pages still had links to new pages."""
    _position: int = 0
    _in_progress: set[str] = field(default_factory=set)
    _cut: set[str] = field(default_factory=set)
    """Pages that had links over a limit before the crawl was resumed."""

    @repeatable
    def begin(self, start: Iterable[PageVisit]) -> None:
        """Delete the addresses of earlier crawls, and start with some pages."""
        with self._counted(), self.database.write() as connection:
            connection.execute(delete(site_addresses).where(self._of_website))
            first = {key_of(visit.url): visit for visit in start}
            insert_many(connection, site_addresses, self._page_rows(first, set(), found_on=None))

    @repeatable
    def resume(self) -> bool:
        """Continue where this crawl was stopped; False if it had not started.

        What failed is tried again, and pages with links over a limit are read again.
        """
        table = site_addresses.c
        is_page = table.kind == "page"
        counts = select(func.count().filter(is_page), func.max(table.place)).where(
            self._is_of_crawl
        )
        again = {"error": None, "updated_at": self.clock.now()}
        pages = self._of_this_crawl("page") & table.error.is_not(None)
        pages &= table.state.in_([FAILED, VISITED])
        pdfs = self._of_this_crawl("pdf") & (table.state == PdfState.FAILED)
        cut = select(table.url).where(pages, table.state == VISITED)
        with self.database.write() as connection:
            self.pages, position = connection.execute(counts).one()
            self._cut = set(connection.scalars(cut))
            waiting = update(site_addresses).where(pages).values(state=WAITING, **again)
            connection.execute(waiting)
            discovered = update(site_addresses).where(pdfs)
            connection.execute(discovered.values(state=PdfState.DISCOVERED, **again))
        self._position = (position or 0) + 1
        self.has_more = True
        return self.pages > 0

    @repeatable
    def has_pdfs_of_pages(self) -> bool:
        """True if pages list PDFs of this crawl, and its sitemaps were not needed for them."""
        rows, table = site_addresses.alias().c, site_addresses.c
        is_of_crawl = (rows.website_id == self.website) & (rows.crawl_id == self.crawl)
        # Sitemaps have no rows themselves.
        addresses = select(rows.url).where(is_of_crawl).scalar_subquery()
        in_sitemap = self._is_of_crawl & table.found_on.not_in(addresses)
        has_pdfs = exists().where(self._of_this_crawl("pdf"))
        with self.database.read() as connection:
            return bool(connection.scalar(select(has_pdfs & ~exists().where(in_sitemap))))

    @repeatable
    def listed_keys(self) -> frozenset[str]:
        """The keys of the PDFs that the website lists, or may list, if it was crawled to its end.

        A page that robots.txt forbids may list what is found on no page that was visited.
        """
        table, files = site_addresses.c, site_files.c
        forbidden = exists().where(self._of_this_crawl("page") & (table.state == FORBIDDEN))
        visited = select(table.url).where(self._of_this_crawl("page"), table.state == VISITED)
        perhaps = select(files.id).where(
            files.website_id == self.website, forbidden, files.found_on.not_in(visited)
        )
        listed = select(table.url).where(self._of_this_crawl("pdf"))
        with self.database.read() as connection:
            keys = {site_file_id(self.website, url) for url in connection.scalars(listed)}
            return frozenset(keys.union(connection.scalars(perhaps)))

    def discovered(self) -> Iterator[list[str]]:
        """The addresses of PDFs of this crawl that were handed on, in batches."""
        table, after = site_addresses.c, -1
        handed_on = table.state.not_in([PdfState.DISCOVERED, PdfState.FORBIDDEN])
        query = select(table.url, table.place).where(self._of_this_crawl("pdf"), handed_on)
        while rows := self._rows(query.where(table.place > after).order_by(table.place)):
            after = rows[-1].place
            yield [row.url for row in rows]

    @repeatable
    def next_pages(self, count: int) -> list[PageVisit]:
        """Pages to visit, nearest first, none twice."""
        table = site_addresses.c
        query = (
            select(table.url, table.depth, table.trail, table.turn)
            .where(self._of_this_crawl("page"), table.state == WAITING)
            .order_by(table.depth, table.place)
            .limit(count + len(self._in_progress))
        )
        with self.database.read() as connection:
            rows = connection.execute(query).all()
        new = [row for row in rows if row.url not in self._in_progress][:count]
        self.has_more = len(new) == count
        self._in_progress.update(row.url for row in new)
        return [
            PageVisit(url=row.url, depth=row.depth, trail=tuple(row.trail), turn=row.turn)
            for row in new
        ]

    @repeatable
    def record(self, visits: Sequence[Visited]) -> list[Listed]:
        """Store the links of visited pages, and return the PDFs that are new to this crawl."""
        new: list[Listed] = []
        page_rows: list[dict[str, Any]] = []
        file_rows: list[dict[str, Any]] = []
        files = [self._listed(visited) for visited in visits]
        pages = [_pages_of(visited) for visited in visits]
        with self._counted(), self.database.write() as connection:
            self._end(connection, visits)
            self._forget_pages(connection, [v.visit.url for v in visits if v.is_pdf])
            existing = self._existing(connection, chain(*files, *pages))
            for visited, listed, linked in zip(visits, files, pages, strict=True):
                added = {key: file for key, file in listed.items() if key not in existing}
                origin = _origin_columns(visited)
                file_rows += [self._file_row(key, file, origin) for key, file in added.items()]
                existing.update(added)
                before, url = self._over_limits, visited.visit.url
                has_new = bool(added) or url in self._cut
                ends = not has_new and self._is_list_end(visited, existing)
                follow = _pages_of(replace(visited, list_pages=())) if ends else linked
                page_rows += self._page_rows(follow, existing, found_on=url)
                new += added.values()
                if self._over_limits > before:
                    self._move(connection, {url: (VISITED, _OVER_LIMITS)})
            insert_many(connection, site_addresses, file_rows)
            insert_many(connection, site_addresses, page_rows)
        self._in_progress.difference_update(visited.visit.url for visited in visits)
        return new

    def unfinished(self) -> Iterator[list[Listed]]:
        """PDFs of this crawl that are neither indexed nor failed, in batches."""
        table, after = site_addresses.c, -1
        open_states = table.state.not_in([PdfState.INDEXED, PdfState.FAILED, PdfState.FORBIDDEN])
        query = select(site_addresses).where(self._of_this_crawl("pdf"), open_states)
        while True:
            rows = self._rows(query.where(table.place > after).order_by(table.place))
            if not rows:
                return
            after = rows[-1].place
            yield [_listed(row) for row in rows]

    @repeatable
    def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        with self.database.read() as connection:
            return connection.execute(query.limit(BATCH_SIZE)).all()

    @repeatable
    def one_indexed(self) -> list[Listed]:
        """One PDF of this crawl that is a document, if there is any."""
        table = site_addresses.c
        indexed = self._of_this_crawl("pdf") & (table.state == PdfState.INDEXED)
        with self.database.read() as connection:
            rows = connection.execute(select(site_addresses).where(indexed).limit(1))
            return [_listed(row) for row in rows]

    @repeatable
    def mark(self, states: Mapping[str, tuple[PdfState, str | None]]) -> None:
        """Store the states of PDFs, and the errors of failed ones."""
        if states:
            with self.database.write() as connection:
                self._move(connection, states)

    @repeatable
    def mark_indexed(self) -> None:
        """Mark the stored PDFs that are documents."""
        table = site_addresses.c
        documents = select(site_files.c.url).where(site_files.c.website_id == self.website)
        is_stored = table.state == PdfState.STORED
        loaded = self._of_this_crawl("pdf") & is_stored & table.url.in_(documents)
        values = {"state": PdfState.INDEXED, "updated_at": self.clock.now()}
        with self.database.write() as connection:
            connection.execute(update(site_addresses).where(loaded).values(values))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """A transaction that counts pages, and counts them again if it is repeated."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        try:
            yield
        except ConnectionLostError:
            for name, count in counts.items():
                setattr(self, name, count)
            raise

    @property
    def _over_limits(self) -> int:
        return self.over_max_pages + self.over_max_depth + self.cut_lists

    @property
    def _of_website(self) -> Any:
        return site_addresses.c.website_id == self.website

    @property
    def _is_of_crawl(self) -> Any:
        return self._of_website & (site_addresses.c.crawl_id == self.crawl)

    def _of_this_crawl(self, kind: str) -> Any:
        return self._is_of_crawl & (site_addresses.c.kind == kind)

    def _move(self, connection: Connection, states: Mapping[str, tuple[str, str | None]]) -> None:
        """Store states and errors, with one statement for addresses that have the same."""
        keys_by_state: dict[tuple[str, str | None], list[str]] = {}
        for url, state in states.items():
            keys_by_state.setdefault(state, []).append(key_of(url))
        values = {"of_website": self.website, "now": self.clock.now()}
        for (new_state, error), keys in keys_by_state.items():
            values |= {"new_state": new_state, "new_error": error}
            for size, key_values in _in_sizes(keys):
                run(connection, _update(size), {**values, **key_values})

    def _forget_pages(self, connection: Connection, urls: Sequence[str]) -> None:
        """Delete the rows of pages that turned out to be PDFs, which get other ones."""
        for batch in batched(map(key_of, urls)):
            keys = site_addresses.c.key.in_(batch)
            connection.execute(delete(site_addresses).where(self._of_website, keys))

    def _end(self, connection: Connection, visits: Sequence[Visited]) -> None:
        ended = {visited.visit.url: (_state_of(visited), visited.error) for visited in visits}
        self._move(connection, ended)

    def _is_list_end(self, visited: Visited, existing: set[str]) -> bool:
        """True if a page without new PDFs ends its list: it links to no new page either.

        A list of pages that have the PDFs ends where the strategy expects it: calendars have no
        end.
        """
        if visited.visit.turn == 1:
            return False
        if not any(key_of(page.url) not in existing for page in visited.further):
            return True
        if visited.visit.turn < visited.likely_list_pages:
            return False
        self.cut_lists += any(key_of(page.url) not in existing for page in visited.list_pages)
        return True

    def _page_rows(
        self, pages: Mapping[str, PageVisit], existing: set[str], *, found_on: str | None
    ) -> list[dict[str, Any]]:
        """The rows of pages that are new, which are added to `existing`."""
        rows = []
        for key, visit in pages.items():
            if key in existing:
                continue
            if visit.depth > self.max_depth:
                self.over_max_depth += 1
            elif self.pages >= self.max_pages:
                self.over_max_pages += 1
            else:
                existing.add(key)
                self.pages += 1
                self.has_more = True
                columns = {"depth": visit.depth, "turn": visit.turn, "trail": list(visit.trail)}
                rows.append(
                    self._row(key, visit.url, "page", WAITING, found_on=found_on, **columns)
                )
        return rows

    def _listed(self, visited: Visited) -> dict[str, Listed]:
        """PDFs by key; the first of several links to one determines whose it is."""
        listed: dict[str, Listed] = {}
        for link in visited.pdfs:
            listed.setdefault(
                key_of(link.url),
                Listed(
                    url=link.url,
                    text=link.text,
                    organization=link.organization,
                    period=link.period,
                    found_on=visited.visit.url,
                    origin=visited.origin,
                    guesses=link.guesses,
                ),
            )
        return listed

    def _file_row(self, key: str, listed: Listed, origin: Mapping[str, Any]) -> dict[str, Any]:
        return self._row(
            key,
            listed.url,
            "pdf",
            PdfState.DISCOVERED,
            found_on=listed.found_on,
            text=listed.text,
            organization=listed.organization,
            period=listed.period,
            guesses=" ".join(listed.guesses) or None,
            **origin,
        )

    def _row(self, key: str, url: str, kind: str, state: str, **columns: Any) -> dict[str, Any]:
        self._position += 1
        missing = dict.fromkeys(_OPTIONAL)
        return {
            **missing,
            "website_id": self.website,
            "key": key,
            "url": url,
            "kind": kind,
            "state": state,
            "crawl_id": self.crawl,
            "place": self._position,
            "updated_at": self.clock.now(),
            **columns,
        }

    def _existing(self, connection: Connection, keys: Iterable[str]) -> set[str]:
        existing: set[str] = set()
        for size, key_values in _in_sizes(dict.fromkeys(keys)):
            rows = run(connection, _select(size), {"of_website": self.website, **key_values})
            existing.update(row.key for row in rows)
        return existing


_OPTIONAL: Final = ("found_on", "text", "organization", "period", "guesses", "origin", "error")
_COUNTS: Final = (
    "pages",
    "has_more",
    "over_max_pages",
    "over_max_depth",
    "cut_lists",
    "_position",
)
_SIZES: Final = (1, 4, 16, 64, PARAMETERS)
"""Numbers of keys in one statement; each has a statement that is built once."""


def _in_sizes(keys: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Keys by the names of `_are_keys`, as many at a time as a statement has parameters."""
    for batch in batched(keys):
        size = next(size for size in _SIZES if size >= len(batch))
        # A key that is repeated changes nothing.
        padded = batch + batch[-1:] * (size - len(batch))
        yield size, {f"key_{number}": key for number, key in enumerate(padded)}


def _are_keys(size: int) -> Any:
    table = site_addresses.c
    keys = [bindparam(f"key_{number}", type_=table.key.type) for number in range(size)]
    return (table.website_id == bindparam("of_website")) & table.key.in_(keys)


@cache
def _select(size: int) -> Any:
    return select(site_addresses.c.key).where(_are_keys(size))


@cache
def _update(size: int) -> Any:
    table = site_addresses.c
    values = {
        "state": bindparam("new_state", type_=table.state.type),
        "error": bindparam("new_error", type_=table.error.type),
        "updated_at": bindparam("now", type_=table.updated_at.type),
    }
    return update(site_addresses).where(_are_keys(size)).values(values)


def _state_of(visited: Visited) -> str:
    if visited.is_forbidden:
        return FORBIDDEN
    return FAILED if visited.error else VISITED


def _pages_of(visited: Visited) -> dict[str, PageVisit]:
    """The pages that a page links to, by their keys."""
    return {key_of(visit.url): visit for visit in chain(visited.further, visited.list_pages)}


def _origin_columns(visited: Visited) -> dict[str, Any]:
    """The columns that the rows of all PDFs of a page have in common."""
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
        guesses=tuple((row.guesses or "").split()),
    )


def _origin_to_json(archived: Archived) -> str:
    fields = {**asdict(archived), "retrieved_at": format_timestamp(archived.retrieved_at)}
    return json.dumps(fields)


def _origin_from_json(text: str) -> Archived:
    fields = json.loads(text)
    return Archived(**{**fields, "retrieved_at": datetime.fromisoformat(fields["retrieved_at"])})
