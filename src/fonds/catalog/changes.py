"""Changes since a time: documents added, changed and withdrawn, in the order of detection.

A page of a longer list: how much of it is shown, and where it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import pairwise
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    exists,
    literal,
    or_,
    select,
)

from fonds import ids
from fonds.errors import UsageError
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database, by_bytes, from_row
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import select_in
from fonds.stores.tables import code_units, document_versions, documents

MAX_CHANGES: Final = 500
"""Of one page."""
MAX_ROWS_READ: Final = 3000
"""Looked at for one page; a new edition of a code may leave nearly every section as it was."""

What = Literal["added", "changed", "withdrawn", "reprinted"]
"""`reprinted`: a section of another edition, in the words of the edition before it."""

_BATCH_SIZE: Final = 100
_VERSION, _WITHDRAWAL = 0, 1


def utc_time(since: date | datetime) -> datetime:
    """A time in UTC; a day begins at midnight UTC, and a time without a zone is in UTC."""
    if not isinstance(since, datetime):
        return datetime.combine(since, time(), UTC)
    try:
        return since.astimezone(UTC) if since.tzinfo else since.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(f"{since.isoformat()} is not in the years 1 to 9999 of UTC") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentChange:
    """Something that was seen to happen to a document."""

    at: datetime
    what: What
    id: str
    source: str
    kind: str
    title: str
    """As it is today."""
    citation_string: str
    url: str
    published_at: str | None
    edition: str | None
    """Of a section of a code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """A page of changes."""

    items: tuple[DocumentChange, ...]
    next_cursor: str | None
    """The start of the next page; None after the last one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeFilter:
    """Which changes, and in which order."""

    since: datetime | None = None
    source: str | None = None
    under: str | None = None
    """An id; only that document, or those below it. A path of a code without an edition,
    `usc/title-42`, is that place in all of them."""
    owner: UUID | None = None
    """The user whose uploads are listed besides what is public."""
    newest_first: bool = False
    reprints: bool = False
    """Whether to list sections that are only reprinted in another edition."""


class _ChangePosition(NamedTuple):
    """The position of a change in the order of all changes."""

    at: datetime
    id: str
    rank: int


def changes(
    database: Database, filters: ChangeFilter, *, limit: int = 100, cursor: str | None = None
) -> Changes:
    """A page of changes, from a cursor on."""
    if not 1 <= limit <= MAX_CHANGES:
        raise UsageError(f"limit must be between 1 and {MAX_CHANGES}")
    after = _read(cursor) if cursor else None
    batch_size = max(limit, _BATCH_SIZE)
    listed: list[DocumentChange] = []
    with database.read() as connection:
        asking = _Asking(connection, filters)
        for _ in range(MAX_ROWS_READ // batch_size):
            rows = asking.rows(after, batch_size + 1)
            for row, what in _with_kinds(connection, rows[:batch_size]):
                if len(listed) == limit:
                    return Changes(items=tuple(listed), next_cursor=_cursor_of(after))
                after = _ChangePosition(row.at, row.id, row.rank)
                if what != "reprinted" or filters.reprints:
                    listed.append(_change(row, what))
            if len(rows) <= batch_size:
                return Changes(items=tuple(listed), next_cursor=None)
    return Changes(items=tuple(listed), next_cursor=_cursor_of(after))


class _ChangeKind(NamedTuple):
    """One kind of change: where it is read from, and what orders it."""

    query: Select[Any]
    at: ColumnElement[Any]
    name: ColumnElement[Any]
    source: ColumnElement[Any]
    rank: int


class _Asking:
    """Reads the changes that match the filters, from each table that records them."""

    def __init__(self, connection: Connection, filters: ChangeFilter) -> None:
        self._connection = connection
        self._filters = filters
        self._source = filters.source
        self._tops: list[str] | None = None
        if filters.under:
            code, self._tops = _tops(connection, filters.under)
            self._source = filters.source or code

    def rows(self, after: _ChangePosition | None, limit: int) -> list[Row[Any]]:
        """The next of them, in order: changes of content, and withdrawals."""
        rows = [
            row
            for kind in (_versions(), _withdrawals())
            for row in self._connection.execute(self._in_order(kind, after).limit(limit))
        ]
        ordered = sorted(rows, key=lambda row: tuple(row[:3]), reverse=self._filters.newest_first)
        return ordered[:limit]

    def _in_order(self, kind: _ChangeKind, after: _ChangePosition | None) -> Select[Any]:
        query, at = kind.query.where(visible_to(self._filters.owner)), kind.at
        name = by_bytes(self._connection, kind.name)
        if self._source:
            query = query.where(kind.source == self._source)
        if self._filters.since is not None:
            query = query.where(at >= self._filters.since)
        if self._tops is not None:
            query = query.where(self._below(kind.name))
        if after is not None:
            query = query.where(self._beyond(kind, name, after))
        if self._filters.newest_first:
            return query.order_by(at.desc(), name.desc())
        return query.order_by(at, name)

    def _below(self, name: ColumnElement[Any]) -> ColumnElement[bool]:
        """By range and not by pattern: % and _ are only characters."""
        # Below a code there is so much that it must be read by time, up to the limit; appending
        # nothing keeps the other index out of it.
        own = by_bytes(self._connection, name + "" if self._source else name)
        return or_(
            *(or_(own == top, and_(own >= f"{top}/", own < f"{top}0")) for top in self._tops or ())
        )

    def _beyond(
        self, kind: _ChangeKind, name: ColumnElement[Any], after: _ChangePosition
    ) -> ColumnElement[bool]:
        """The condition for rows after a position; the bound on the time alone is for the index."""
        at = kind.at
        if self._filters.newest_first:
            same = name <= after.id if kind.rank < after.rank else name < after.id
            return and_(at <= after.at, or_(at < after.at, same))
        same = name >= after.id if kind.rank > after.rank else name > after.id
        return and_(at >= after.at, or_(at > after.at, same))


def _versions() -> _ChangeKind:
    table, earlier = document_versions.c, document_versions.alias()
    is_first = ~exists().where(
        earlier.c.document_id == table.document_id,
        earlier.c.first_seen_at < table.first_seen_at,
    )
    # An outer join, though every version has its document: SQLite reads the left side first,
    # in the order of its index, and stops at the limit.
    origin = document_versions.outerjoin(documents, table.document_id == documents.c.id)
    query = _selected(origin, table.first_seen_at, _VERSION, is_first)
    return _ChangeKind(query, table.first_seen_at, table.document_id, table.source, _VERSION)


def _withdrawals() -> _ChangeKind:
    # There are few, and only their own index has them alone.
    table = documents.c
    query = _selected(documents, table.gone_at, _WITHDRAWAL, literal(False))
    source = table.source + ""
    return _ChangeKind(
        query.where(table.gone_at.is_not(None)), table.gone_at, table.id, source, _WITHDRAWAL
    )


def _selected(
    origin: FromClause, at: ColumnElement[Any], rank: int, is_first: ColumnElement[bool]
) -> Select[Any]:
    table = documents.c
    return select(
        at.label("at"),
        table.id,
        literal(rank).label("rank"),
        is_first.label("is_first"),
        table.source,
        table.kind,
        table.title,
        table.citation_string,
        table.source_url,
        table.published_at,
        table.body_text_sha256,
        code_units.c.unit,
        code_units.c.version,
    ).select_from(origin.outerjoin(code_units, code_units.c.id == table.unit))


def _tops(connection: Connection, under: str) -> tuple[str | None, list[str]]:
    """The code that a path is in, if it is in one, and the nodes that it may mean."""
    path = under.strip("/")
    source, _, rest = path.partition("/")
    unit = code_units.c
    versions = connection.scalars(select(unit.version).where(unit.source == source).distinct())
    roots = [ids.tree_root(source, version) for version in sorted(versions)]
    if not roots:
        return None, [path]
    edition = "/".join(path.split("/")[:2])
    if not rest or f"{edition}/root" in roots:
        return source, [path]
    return source, [ids.tree_child(root, rest) for root in roots]


# Editions ---------------------------------------------------------------------------------


def _with_kinds(connection: Connection, rows: Sequence[Row[Any]]) -> list[tuple[Row[Any], What]]:
    """Each row with its kind of change; sections are compared with the previous edition."""
    sections = [row for row in rows if row.unit is not None and row.is_first]
    before = _before(connection, sections)
    table = documents.c
    query = select(table.id, table.body_text_sha256).where(visible_to(None))
    hashes = {
        row.id: row.body_text_sha256
        for row in select_in(connection, query, table.id, sorted({*before.values()}))
    }
    return [(row, _what(row, hashes, before.get(row.id))) for row in rows]


def _before(connection: Connection, sections: Sequence[Row[Any]]) -> dict[str, str]:
    """The id that each section has, or would have, in the edition before its own."""
    unit = code_units.c
    query = select(unit.source, unit.unit, unit.version, unit.published_at)
    units = sorted({row.unit for row in sections})
    sources = {row.source for row in sections}
    rows = [row for row in select_in(connection, query, unit.unit, units) if row.source in sources]
    rows.sort(key=lambda row: (row.published_at or "", ids.edition_order(row.version)))
    editions: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        editions.setdefault((row.source, row.unit), []).append(row.version)
    previous = {
        (*code, later): earlier
        for code, versions in editions.items()
        for earlier, later in pairwise(versions)
    }
    previous_ids = {}
    for row in sections:
        if earlier := previous.get((row.source, row.unit, row.version)):
            path = row.id.partition("/root/")[2]
            previous_ids[row.id] = ids.tree_child(ids.tree_root(row.source, earlier), path)
    return previous_ids


def _what(row: Row[Any], hashes: Mapping[str, str | None], before: str | None) -> What:
    if row.rank == _WITHDRAWAL:
        return "withdrawn"
    if not row.is_first:
        return "changed"
    if before is None or before not in hashes:
        return "added"
    return "reprinted" if hashes[before] == row.body_text_sha256 else "changed"


def _change(row: Row[Any], what: What) -> DocumentChange:
    return from_row(DocumentChange, row, what=what, url=row.source_url, edition=row.version)


# Cursors ----------------------------------------------------------------------------------


def _cursor_of(position: _ChangePosition | None) -> str:
    assert position is not None
    return f"{format_timestamp(position.at)}~{position.rank}~{position.id}"


def _read(cursor: str) -> _ChangePosition:
    timestamp, _, rest = cursor.partition("~")
    rank, _, name = rest.partition("~")
    try:
        at = utc_time(datetime.fromisoformat(timestamp))
    except (ValueError, UsageError):
        at = None
    if at is None or rank not in {"0", "1"} or "\0" in name:
        raise UsageError("invalid cursor: begin without one")
    return _ChangePosition(at, name, int(rank))


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class ListPage(Generic[T]):
    """Some items of a list, in its order."""

    items: tuple[T, ...]
    next_offset: int | None
    """The start of the next page; None at the end."""
    total: int | None = None
    """Items of the whole list; None where counting them would take longer than the page."""


def page_of(
    connection: Connection,
    query: Select[Any],
    make: Callable[[Row[Any]], T],
    *,
    limit: int,
    offset: int,
) -> ListPage[T]:
    """A page of what a statement gives; one row more is read to know whether it goes on."""
    rows = connection.execute(query.limit(limit + 1).offset(offset)).all()
    return cut(rows, make, limit=limit, offset=offset)


def cut(
    rows: Sequence[Any],
    make: Callable[[Any], T],
    *,
    limit: int,
    offset: int,
    total: int | None = None,
) -> ListPage[T]:
    """The page of rows that were read from `offset` on, one more than asked for if it goes on."""
    return ListPage(
        items=tuple(make(row) for row in rows[:limit]),
        next_offset=offset + limit if len(rows) > limit else None,
        total=total,
    )
