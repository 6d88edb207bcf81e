"""The other shapes of a document: what it said before, and the same section in other editions.

Two documents, or two versions of one, word by word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, select

from fonds import ids
from fonds.codes.diff.redline import ChangedPassage, excerpt, redline
from fonds.context import Context
from fonds.engine.readers import ReadingKey
from fonds.errors import UnknownDocumentError, UsageError
from fonds.normalize.registry import NormalizerInput, make_text
from fonds.results import DocumentSummary
from fonds.runs.normalization import NORMALIZER_BY_FORMAT, read_archived
from fonds.search.lookup import DocumentLookup, age, describe_document, document_rows
from fonds.stores.database import Database, from_row
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import select_in
from fonds.stores.tables import code_units, document_versions, documents

MAX_VERSIONS: Final = 100
MAX_EDITIONS: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentVersion:
    """A text that a document had for some time."""

    content_sha256: str
    first_seen_at: datetime
    last_seen_at: datetime
    """When it was last written; the current version is so until another is seen."""
    raw_sha256: str
    body_text_sha256: str | None
    is_current: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionEdition:
    """A section of a code in one edition."""

    document: DocumentSummary
    has_same_words: bool
    """As the document that was asked about."""
    is_asked: bool
    """Whether it is that document."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shapes:
    """Everything a document has been, as far as it is held."""

    document: DocumentSummary
    versions: tuple[DocumentVersion, ...]
    """The newest first."""
    editions: tuple[SectionEdition, ...]
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
            document=describe_document(row),
            versions=_versions(connection, row),
            editions=_editions(connection, row, owner) if row.unit else (),
        )


def _versions(connection: Connection, document: Row[Any]) -> tuple[DocumentVersion, ...]:
    table = document_versions.c
    query = select(document_versions).where(table.document_id == document.id)
    rows = connection.execute(query.order_by(table.first_seen_at.desc()).limit(MAX_VERSIONS))
    return tuple(
        from_row(DocumentVersion, row, is_current=row.content_sha256 == document.content_sha256)
        for row in rows
    )


def _editions(
    connection: Connection, document: Row[Any], owner: UUID | None
) -> tuple[SectionEdition, ...]:
    """By its name, which it keeps when it is moved; and by its place, if it has no name."""
    related = DocumentLookup(connection, owner).related([document])
    others = _editions_at_path(connection, document, owner)
    rows = {row.id: row for row in (*related, *others)}
    ordered = sorted(rows.values(), key=age, reverse=True)[:MAX_EDITIONS]
    hashes = _hashes(connection, [row.id for row in ordered])
    return tuple(
        SectionEdition(
            document=describe_document(row),
            has_same_words=hashes.get(row.id) == document.body_text_sha256,
            is_asked=row.id == document.id,
        )
        for row in ordered
    )


def _editions_at_path(
    connection: Connection, document: Row[Any], owner: UUID | None
) -> Sequence[Row[Any]]:
    unit = code_units.c
    name = select(unit.unit).where(unit.id == document.unit).scalar_subquery()
    same = select(unit.version).where(unit.source == document.source, unit.unit == name)
    path = document.id.partition("/root/")[2]
    conditions = [
        ids.tree_child(ids.tree_root(document.source, version), path)
        for version in connection.scalars(same)
    ]
    return list(select_in(connection, document_rows(owner), documents.c.id, conditions))


def _hashes(connection: Connection, names: Sequence[str]) -> dict[str, str | None]:
    query = select(documents.c.id, documents.c.body_text_sha256).where(visible_to(None))
    return {
        row.id: row.body_text_sha256 for row in select_in(connection, query, documents.c.id, names)
    }


MAX_LENGTH: Final = 2_000_000
"""Characters of a text that is compared; a redline of longer ones would say little."""
MIN_HASH_LENGTH: Final = 8
"""Digits of its hash that name a version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionName:
    """A document, and which version of it."""

    id: str
    version: str | None = None
    """The beginning of its `content_sha256`; None is the one of today."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedText:
    """One of two texts."""

    document: DocumentSummary
    version: str | None
    """The whole hash of an earlier version; None is the one of today."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """Two texts and what became of the one in the other."""

    before: ComparedText
    after: ComparedText
    is_changed: bool
    """Some word differs."""
    passages: tuple[ChangedPassage, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonInput:
    """Two texts, each as it is or as the bytes that it is made of."""

    before: str | NormalizerInput
    after: str | NormalizerInput
    is_whole: bool

    @property
    def key(self) -> ReadingKey:
        """The key of the result."""
        one, other = (
            (text, "") if isinstance(text, str) else (text.data, f"{text.label} {text.address}")
            for text in (self.before, self.after)
        )
        content = one[0].encode() if isinstance(one[0], str) else one[0]
        return ReadingKey.of(content, "compare", one[1], *other, str(self.is_whole))


def compare(
    context: Context,
    before: VersionName,
    after: VersionName,
    *,
    owner: UUID | None = None,
    is_whole: bool = True,
) -> Compared:
    """The words that were deleted and inserted between two texts, found in a reader process.

    Unless `is_whole`, unchanged words are left out except around changes.
    """
    one, old = _read(context, before, owner)
    other, new = _read(context, after, owner)
    work = ComparisonInput(before=old, after=new, is_whole=is_whole)
    result = context.readers.read_now(compare_texts, work, key=work.key)
    is_changed, passages = _result_adapter().validate_python(result)
    return Compared(before=one, after=other, is_changed=is_changed, passages=passages)


@cache
def _result_adapter() -> TypeAdapter[tuple[bool, tuple[ChangedPassage, ...]]]:
    return TypeAdapter(tuple[bool, tuple[ChangedPassage, ...]])


def compare_texts(work: ComparisonInput) -> list[Any]:
    """Compare two texts: if any word differs, and the passages."""
    changes = redline(*map(_text_to_compare, (work.before, work.after)))
    passages = changes.visible_ops() if work.is_whole else excerpt(changes)
    return [changes.is_change, list(map(list, passages))]


def _text_to_compare(text: str | NormalizerInput) -> str:
    markdown = text if isinstance(text, str) else make_text(text).markdown
    if len(markdown) > MAX_LENGTH:
        raise UsageError(f"a text is longer than the {MAX_LENGTH:,} characters compared")
    return markdown


def _read(
    context: Context, name: VersionName, owner: UUID | None
) -> tuple[ComparedText, str | NormalizerInput]:
    columns = documents.c
    more = (
        columns.body_text,
        columns.body_text_sha256,
        columns.summary,
        columns.body_normalizer_version,
        columns.body_raw_format,
        columns.content_sha256,
    )
    with context.database.read() as connection:
        query = document_rows(owner, *more).where(columns.id == name.id)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise UnknownDocumentError(f"the library has no document {name.id!r}")
        version = _version(connection, row, name.version) if name.version else None
    is_today = version is None or version.content_sha256 == row.content_sha256
    text = (
        row.body_text or row.summary or row.title if is_today else _earlier(context, row, version)
    )
    if isinstance(text, str) and len(text) > MAX_LENGTH:
        raise UsageError(
            f"the text of {row.id} is longer than the {MAX_LENGTH:,} characters compared"
        )
    content_sha256 = None if version is None or is_today else version.content_sha256
    return ComparedText(document=describe_document(row), version=content_sha256), text


def _version(connection: Connection, document: Row[Any], name: str) -> Row[Any]:
    table = document_versions
    digits = name.lower()
    if len(digits) < MIN_HASH_LENGTH:
        raise UsageError(f"name a version by at least {MIN_HASH_LENGTH} digits of its hash")
    rows = connection.execute(select(table).where(table.c.document_id == document.id)).all()
    matches = [row for row in rows if row.content_sha256.startswith(digits)]
    if len(matches) != 1:
        raise UnknownDocumentError(f"{document.id} has no version {name!r}")
    return matches[0]


def _earlier(context: Context, document: Row[Any], version: Any) -> str | NormalizerInput:
    """An earlier text, or the bytes in the archive that it is made of."""
    if version.body_text_sha256 and version.body_text_sha256 == document.body_text_sha256:
        return str(document.body_text)
    if version.body_archive_key is None:
        raise UsageError(f"that version of {document.id} has no text of its own")
    made_by = (document.body_normalizer_version or "").partition("@")[0]
    normalizer = made_by or NORMALIZER_BY_FORMAT.get(document.body_raw_format or "", "")
    return read_archived(context, document.id, normalizer, version.body_archive_key)
