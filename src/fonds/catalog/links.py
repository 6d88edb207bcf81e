"""Citations of a document, and citations that point to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, ScalarSelect, Select, func, select

from fonds.catalog.changes import ListPage, cut, page_of
from fonds.stores.database import Database
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import select_in
from fonds.stores.tables import citation_edges, documents

MAX_LINKS: Final = 200
"""Of one page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cited:
    """Something that a document cites, held or not."""

    target: str
    """As citations are compared: `42 USC 1396a`."""
    kind: str
    """`usc`, `cfr`, `public_law`, …"""
    count: int
    """How often."""
    raw: str
    """As the document writes it first."""
    start: int
    """Its position in the text."""
    locator: Mapping[str, Any]
    """The position of the passage that contains it."""
    document_id: str | None
    """The cited document; None if it is not in the library, or not visible to the user."""
    title: str | None
    citation_string: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Citing:
    """A document that cites another."""

    document_id: str
    title: str
    citation_string: str
    published_at: str | None
    count: int
    raw: str
    """As it writes the citation first."""
    start: int
    locator: Mapping[str, Any]


def cites(
    database: Database,
    document_id: str,
    *,
    owner: UUID | None = None,
    limit: int = MAX_LINKS,
    offset: int = 0,
) -> ListPage[Cited]:
    """The documents that a document cites, without itself, each once, in the order of the text."""
    with database.read() as connection:
        edges = citation_edges.c
        grouped = (
            select(edges.target, func.count().label("times"), func.min(edges.start).label("first"))
            .where(edges.from_document_id == _if_visible(document_id, owner))
            .where(edges.to_document_id.is_distinct_from(document_id))
            .group_by(edges.target)
            .order_by(func.min(edges.start))
        )
        rows = connection.execute(grouped.limit(limit + 1).offset(offset)).all()
        firsts = {row.start: row for row in _first(connection, document_id, rows, owner)}
        return cut(rows, lambda row: _cited(row, firsts[row.first]), limit=limit, offset=offset)


def cited_by(
    database: Database,
    document_id: str,
    *,
    owner: UUID | None = None,
    limit: int = MAX_LINKS,
    offset: int = 0,
) -> ListPage[Citing]:
    """The documents that cite one, which a user may see: the newest first."""
    with database.read() as connection:
        page = page_of(
            connection,
            _citing(document_id, owner),
            lambda row: row,
            limit=limit,
            offset=offset,
        )
        edges = citation_edges.c
        of = select(edges.from_document_id, edges.start, edges.raw, edges.locator).where(
            edges.to_document_id == document_id
        )
        names = [row.id for row in page.items]
        citing = select_in(connection, of, edges.from_document_id, names)
        firsts = {(row.from_document_id, row.start): row for row in citing}
    return ListPage(
        items=tuple(_citing_document(row, firsts[row.id, row.first]) for row in page.items),
        next_offset=page.next_offset,
    )


def _if_visible(document_id: str, owner: UUID | None) -> ScalarSelect[Any]:
    """The id of a document; empty for users who may not see it."""
    own = select(documents.c.id).where(documents.c.id == document_id, visible_to(owner))
    return own.scalar_subquery()


def _citing(document_id: str, owner: UUID | None) -> Select[Any]:
    edges, table = citation_edges.c, documents.c
    by_document = (
        select(
            edges.from_document_id,
            func.count().label("times"),
            func.min(edges.start).label("first"),
        )
        .where(edges.to_document_id == document_id, edges.from_document_id != document_id)
        .group_by(edges.from_document_id)
        .subquery()
    )
    return (
        select(
            table.id,
            table.title,
            table.citation_string,
            table.published_at,
            by_document.c.times,
            by_document.c.first,
        )
        .join(by_document, by_document.c.from_document_id == table.id)
        .where(visible_to(owner))
        .order_by(func.coalesce(table.published_at, "").desc(), table.id)
    )


def _first(
    connection: Connection, document_id: str, rows: Any, owner: UUID | None
) -> list[Row[Any]]:
    """The first citation of each target, with what it leads to."""
    edges, table = citation_edges.c, documents.c
    query = (
        select(
            edges.start,
            edges.kind,
            edges.raw,
            edges.locator,
            table.id,
            table.title,
            table.citation_string,
        )
        .outerjoin(documents, (table.id == edges.to_document_id) & visible_to(owner))
        .where(edges.from_document_id == document_id)
    )
    return list(select_in(connection, query, edges.start, [row.first for row in rows]))


def _cited(row: Row[Any], first: Row[Any]) -> Cited:
    return Cited(
        target=row.target,
        kind=first.kind,
        count=row.times,
        raw=first.raw,
        start=first.start,
        locator=first.locator,
        document_id=first.id,
        title=first.title,
        citation_string=first.citation_string,
    )


def _citing_document(row: Row[Any], first: Row[Any]) -> Citing:
    return Citing(
        document_id=row.id,
        title=row.title,
        citation_string=row.citation_string,
        published_at=row.published_at,
        count=row.times,
        raw=first.raw,
        start=first.start,
        locator=first.locator,
    )
