"""The other shapes of a document: what it said before, and the same section in other editions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, select

from fonds import ids
from fonds.errors import UnknownDocumentError
from fonds.results import HeldDocument
from fonds.search.holdings import Holdings, age, document_rows, held_document
from fonds.stores.batches import select_in
from fonds.stores.database import Database
from fonds.stores.tables import code_units, document_versions, documents
from fonds.stores.visibility import visible_to

MOST_VERSIONS: Final = 100
MOST_EDITIONS: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """What a document said for some time."""

    content_sha256: str
    first_seen_at: datetime
    last_seen_at: datetime
    """When it was last written; the current version is so until another is seen."""
    raw_sha256: str
    body_text_sha256: str | None
    is_current: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Edition:
    """A section of a code in one edition."""

    document: HeldDocument
    has_same_words: bool
    """As the document that was asked about."""
    is_asked: bool
    """Whether it is that document."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shapes:
    """Everything a document has been, as far as it is held."""

    document: HeldDocument
    versions: tuple[Version, ...]
    """The newest first."""
    editions: tuple[Edition, ...]
    """The newest first, the document itself among them; empty for what has none."""


def shapes(database: Database, document_id: str, *, owner: UUID | None = None) -> Shapes:
    """Versions and editions of a document."""
    with database.read() as connection:
        more = (documents.c.unit, documents.c.content_sha256, documents.c.body_text_sha256)
        query = document_rows(owner, *more).where(documents.c.id == document_id)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise UnknownDocumentError(f"the library has no document {document_id!r}")
        return Shapes(
            document=held_document(row),
            versions=_versions(connection, row),
            editions=_editions(connection, row, owner) if row.unit else (),
        )


def _versions(connection: Connection, document: Row[Any]) -> tuple[Version, ...]:
    table = document_versions.c
    query = select(document_versions).where(table.document_id == document.id)
    rows = connection.execute(query.order_by(table.first_seen_at.desc()).limit(MOST_VERSIONS))
    return tuple(
        Version(
            content_sha256=row.content_sha256,
            first_seen_at=row.first_seen_at,
            last_seen_at=row.last_seen_at,
            raw_sha256=row.raw_sha256,
            body_text_sha256=row.body_text_sha256,
            is_current=row.content_sha256 == document.content_sha256,
        )
        for row in rows
    )


def _editions(
    connection: Connection, document: Row[Any], owner: UUID | None
) -> tuple[Edition, ...]:
    """By its name, which it keeps when it is moved; and by its place, if it has no name."""
    related = Holdings(connection, owner).related([document])
    beside = _in_place(connection, document, owner)
    rows = {row.id: row for row in (*related, *beside)}
    ordered = sorted(rows.values(), key=age, reverse=True)[:MOST_EDITIONS]
    hashes = _hashes(connection, [row.id for row in ordered])
    return tuple(
        Edition(
            document=held_document(row),
            has_same_words=hashes.get(row.id) == document.body_text_sha256,
            is_asked=row.id == document.id,
        )
        for row in ordered
    )


def _in_place(connection: Connection, document: Row[Any], owner: UUID | None) -> Sequence[Row[Any]]:
    unit = code_units.c
    name = select(unit.unit).where(unit.id == document.unit).scalar_subquery()
    same = select(unit.version).where(unit.source == document.source, unit.unit == name)
    path = document.id.partition("/root/")[2]
    wanted = [
        ids.tree_child(ids.tree_root(document.source, version), path)
        for version in connection.scalars(same)
    ]
    return list(select_in(connection, document_rows(owner), documents.c.id, wanted))


def _hashes(connection: Connection, names: Sequence[str]) -> dict[str, str | None]:
    query = select(documents.c.id, documents.c.body_text_sha256).where(visible_to(None))
    return {
        row.id: row.body_text_sha256 for row in select_in(connection, query, documents.c.id, names)
    }
