"""Two documents, or two versions of one, word by word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, select

from fonds.codes.diff.redline import Redline, redline
from fonds.errors import UnknownDocumentError, UsageError
from fonds.results import HeldDocument
from fonds.runs.shelf import BY_FORMAT, Shelf, text_again
from fonds.search.holdings import document_rows, held_document
from fonds.stores.tables import document_versions, documents

LONGEST: Final = 2_000_000
"""Characters of a text that is compared; a redline of longer ones would say little."""
SHORTEST_VERSION: Final = 8
"""Digits of its hash that name a version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Name:
    """A document, and which version of it."""

    id: str
    version: str | None = None
    """The beginning of its `content_sha256`; None is the one of today."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of two texts."""

    document: HeldDocument
    version: str | None
    """The whole hash of an earlier version; None is the one of today."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """Two texts and what became of the one in the other."""

    before: Side
    after: Side
    redline: Redline


def compare(shelf: Shelf, before: Name, after: Name, *, owner: UUID | None = None) -> Compared:
    """The words that were deleted and inserted between two texts."""
    one, old = _read(shelf, before, owner)
    other, new = _read(shelf, after, owner)
    return Compared(before=one, after=other, redline=redline(old, new))


def _read(shelf: Shelf, name: Name, owner: UUID | None) -> tuple[Side, str]:
    columns = documents.c
    more = (
        columns.body_text,
        columns.body_text_sha256,
        columns.summary,
        columns.body_normalizer_version,
        columns.body_raw_format,
        columns.content_sha256,
    )
    with shelf.database.read() as connection:
        query = document_rows(owner, *more).where(columns.id == name.id)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise UnknownDocumentError(f"the library has no document {name.id!r}")
        version = _version(connection, row, name.version) if name.version else None
    is_today = version is None or version.content_sha256 == row.content_sha256
    text = row.body_text or row.summary or row.title if is_today else _earlier(shelf, row, version)
    if len(text) > LONGEST:
        raise UsageError(f"the text of {row.id} is longer than the {LONGEST:,} characters compared")
    known = None if version is None or is_today else version.content_sha256
    return Side(document=held_document(row), version=known), text


def _version(connection: Connection, document: Row[Any], given: str) -> Row[Any]:
    table = document_versions
    digits = given.lower()
    if len(digits) < SHORTEST_VERSION:
        raise UsageError(f"name a version by at least {SHORTEST_VERSION} digits of its hash")
    rows = connection.execute(select(table).where(table.c.document_id == document.id)).all()
    found = [row for row in rows if row.content_sha256.startswith(digits)]
    if len(found) != 1:
        raise UnknownDocumentError(f"{document.id} has no version {given!r}")
    return found[0]


def _earlier(shelf: Shelf, document: Row[Any], version: Any) -> str:
    """What was said before, made again from the archive."""
    if version.body_text_sha256 and version.body_text_sha256 == document.body_text_sha256:
        return str(document.body_text)
    if version.body_archive_key is None:
        raise UsageError(f"that version of {document.id} has no text of its own")
    made_by = (document.body_normalizer_version or "").partition("@")[0]
    normalizer = made_by or BY_FORMAT.get(document.body_raw_format or "", "")
    plain: dict[str, Any] = {"sections": [], "pages": []}
    return text_again(shelf, document.id, normalizer, version.body_archive_key, plain).markdown
