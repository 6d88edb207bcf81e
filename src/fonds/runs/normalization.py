"""Texts made apart from loading: bodies that wait in the queue, bodies made by an older recipe.

What is computed from a parsed record before it is written: identity of content, passages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import count
from threading import Event
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Connection, Row, Select, select

from fonds import ids
from fonds.chunk.chunker import CHUNKER_NAME, CHUNKER_VERSION, Chunker, whole_document_chunk
from fonds.citations.extract import canonical_form
from fonds.citations.forms import may_be_citation
from fonds.context import Context
from fonds.engine.base import Engine
from fonds.engine.readers import ReadingKey
from fonds.errors import BlobMissingError, FondsError, PluginError, RunError, StoreError
from fonds.model import Chunk, Document, NormalizedBody, PageMark, ParsedRecord
from fonds.normalize.registry import (
    NormalizerInput,
    get_normalizer,
    normalizer_names,
    read_text,
    text_of_json,
)
from fonds.runs.tasks import address_of
from fonds.stores import leases
from fonds.stores.blobs import Blobs, read_reference
from fonds.stores.database import repeatable
from fonds.stores.documents import DocumentWrite, update_text
from fonds.stores.passages import Passages
from fonds.stores.tables import documents, ingestion_normalization_queue


def prepare_write(record: ParsedRecord, task_key: str, chunker: Chunker) -> DocumentWrite:
    """The document of a record, with a hash over all content of the record."""
    assert record.document is not None
    document = _with_citable_names(record.document)
    text = document.body.normalized if document.body else None
    text_sha256 = ids.text_sha256(text.markdown) if text else None
    # Of a body that is still to be normalized, the bytes are hashed.
    body_sha256 = text_sha256 or (document.body.archived.sha256 if document.body else None)
    content = [_record_content(record), _document_content(document), body_sha256]
    return DocumentWrite(
        document=document,
        content_sha256=ids.json_sha256(content),
        body_text_sha256=text_sha256,
        recipe=derivation_versions(document.body.normalizer if document.body else None, chunker),
        task_key=task_key,
    )


def _with_citable_names(document: Document) -> Document:
    """The document with the canonical forms of its citations as aliases: `42 USC 1396a`."""
    names = list(filter(may_be_citation, (*document.aliases, document.citation_string)))
    if not names:
        return document
    forms = filter(None, map(canonical_form, names))
    return replace(document, aliases=tuple(dict.fromkeys((*document.aliases, *forms))))


def passages_of(document: Document, chunker: Chunker) -> Passages:
    """The document's passages; title and summary if it has no text, or none yet."""
    if document.body is not None and document.body.normalized is None:
        stopgap = whole_document_chunk(document.title, document.summary, is_stopgap=True)
        return _passages(document.id, document.title, [stopgap])
    text = document.body.normalized if document.body else None
    return passages_of_text(document.id, document.title, document.summary, text, chunker)


def passages_of_text(
    document_id: str,
    title: str,
    summary: str | None,
    text: NormalizedBody | None,
    chunker: Chunker,
) -> Passages:
    """The passages of a text that belongs to a document."""
    chunks = chunker.chunk(text) if text else []
    return _passages(document_id, title, chunks or [whole_document_chunk(title, summary)])


def _passages(document_id: str, title: str, chunks: list[Chunk]) -> Passages:
    return Passages(
        document_uid=ids.document_uid(document_id),
        title=title,
        chunks=chunks,
        chunker_name=CHUNKER_NAME,
        chunker_version=CHUNKER_VERSION,
    )


def derivation_versions(normalizer: str | None, chunker: Chunker) -> str:
    """The versions of the normalizer and chunker that derived a document's text and passages."""
    return f"{normalizer or '-'} {chunker_label(chunker)}"


def chunker_label(chunker: Chunker) -> str:
    """Name, version and sizes of a chunker: all that decides where passages begin and end."""
    sizes = f"{chunker.max_tokens}/{chunker.overlap_tokens}"
    return f"{CHUNKER_NAME}@{CHUNKER_VERSION}:{sizes}"


def _record_content(record: ParsedRecord) -> list[Any]:
    children = [_record_content(child) for child in record.children]
    return [record.table, record.key, dict(record.payload), children]


def _document_content(document: Document) -> list[Any]:
    """The publisher's statements; not when and from where the document was fetched."""
    return [
        document.kind,
        document.title,
        document.summary,
        document.source_url,
        document.source_org,
        document.published_at,
        document.citation_string,
        sorted(document.aliases),
    ]


NORMALIZER_BY_FORMAT: Final = {"pdf": "pdf_v1", "html": "html_v1", "text": "text_v1"}


def normalize_archived(
    context: Context, document_id: str, normalizer: str, key: str, body_map: Mapping[str, Any]
) -> NormalizedBody:
    """Normalize a body of a document again, from the archive.

    `body_map` has what comes from metadata: the headings above the body, and its first page.
    """
    work = read_archived(context, document_id, normalizer, key)
    reading = ReadingKey.of(work.data, "text", work.label, work.address or "")
    text = context.readers.read_now(read_text, work, key=reading)
    return with_metadata(text_of_json(text), body_map)


def read_archived(context: Context, document_id: str, normalizer: str, key: str) -> NormalizerInput:
    """The bytes of a body of a document, from the archive, for a normalizer."""
    address = source_address(context, document_id, key)
    data = read_reference(context.blobs, key)
    return NormalizerInput(normalizer=normalizer, data=data, address=address)


def source_address(context: Context, document_id: str, key: str) -> str | None:
    """The address of the bytes of a body, to which its links are relative; None if unknown."""
    with context.database.read() as connection:
        address = address_of(connection, key)
    pack, is_packed, _ = key.partition("#")
    return _address_in_pack(context.blobs, pack, document_id) if is_packed else address


def _address_in_pack(blobs: Blobs, key: str, section: str) -> str | None:
    """The address of a section, from the first line of its pack."""
    line = b""
    try:
        for chunk in blobs.stream(key):
            head, ended, _ = chunk.partition(b"\n")
            line += head
            if ended:
                break
        sections = json.loads(line)["sections"]
        return next((str(url) for name, _, _, _, url, _ in sections if name == section), None)
    except (StoreError, ValueError, KeyError, TypeError):
        return None


def with_metadata(text: NormalizedBody, body_map: Mapping[str, Any]) -> NormalizedBody:
    """The text with what comes from metadata: the headings above it, and its first page."""
    text = replace(text, above=tuple(body_map.get("above", ())))
    first = next((page for offset, page, *_ in body_map["pages"] if offset == 0), None)
    if first is None or any(mark.offset == 0 for mark in text.pages):
        return text
    return replace(text, pages=(PageMark(offset=0, page=first), *text.pages))


CLAIM_SIZE: Final = 16
PAGE_SIZE: Final = 200
MAX_ERRORS: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Drained:
    """The result of draining the queue."""

    done: int
    failed: int
    waiting: int
    given_up: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Renormalized:
    """The result of renormalizing texts."""

    checked: int
    changed: int
    failed: int
    errors: tuple[str, ...] = ()


def drain(context: Context, engine: Engine, *, stop: Event | None = None) -> Drained:
    """Normalize queued bodies, each once, until none is left to be tried now."""
    queue = _Queue(context)
    done = failed = 0
    with queue.renewing():
        for outcome in engine.run(read_text, queue.inputs()):
            row = queue.rows.pop(outcome.index)
            try:
                text = text_of_json(outcome.unwrap())
            except FondsError as error:
                failed += 1
                _record_failure(context, row, error)
            else:
                done += _store_queued(context, row, text)
            if stop is not None and stop.is_set():
                raise RunError("stopped; the rest of the queue remains for the next run")
    with context.database.read() as connection:
        left = leases.depth(connection, ingestion_normalization_queue)
    return Drained(done=done, failed=failed + queue.missing, **left)


class _Queue:
    """Queued bodies, claimed a few at a time and read while others are being normalized."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._started_at = context.seams.clock.now()
        self.rows: dict[int, Row[Any]] = {}
        """By their index among the bodies."""
        self.missing = 0
        """The number of rows whose bytes are missing; they are released with that error."""

    def inputs(self) -> Iterator[NormalizerInput]:
        indexes = count()
        while rows := self._claim():
            for row in rows:
                if self._context.blobs.head(row.raw_path) is None:
                    self.missing += 1
                    error = BlobMissingError(f"{row.raw_path} is not in the blob store")
                    _record_failure(self._context, row, error)
                else:
                    self.rows[next(indexes)] = row
                    yield _read_queued(self._context, row)

    def renewing(self) -> AbstractContextManager[None]:
        """Renew the leases of claimed rows: one file may take minutes."""
        database, clock = self._context.database, self._context.seams.clock
        return leases.renewing(database, ingestion_normalization_queue, self._owner, clock)

    @repeatable
    def _claim(self) -> Sequence[Row[Any]]:
        with self._context.database.write() as connection:
            return leases.claim(
                connection,
                ingestion_normalization_queue,
                self._owner,
                self._context.seams.clock.now(),
                CLAIM_SIZE,
                untried_since=self._started_at,
            )


def renormalize(
    context: Context, *, source: str | None = None, normalizer: str | None = None
) -> Renormalized:
    """Normalize texts again that another version of their normalizer made, from the archive."""
    checked = changed = 0
    errors: list[str] = []
    for document_id in list(_stale(context, source, normalizer)):
        checked += 1
        try:
            changed += _renormalize_one(context, document_id)
        except FondsError as error:
            errors.append(f"{document_id}: {error}")
    return Renormalized(
        checked=checked, changed=changed, failed=len(errors), errors=tuple(errors[:MAX_ERRORS])
    )


@repeatable
def _read_queued(context: Context, row: Row[Any]) -> NormalizerInput:
    with context.database.read() as connection:
        address = address_of(connection, row.raw_path)
    data = read_reference(context.blobs, row.raw_path)
    return NormalizerInput(
        normalizer=NORMALIZER_BY_FORMAT[row.raw_format], data=data, address=address
    )


@repeatable
def _store_queued(context: Context, row: Row[Any], text: NormalizedBody) -> bool:
    """Store the text, unless the document has other bytes by now."""
    with context.database.write() as connection:
        if not leases.finish(connection, ingestion_normalization_queue, row):
            return False
        _write(connection, context, row.record_id, text, NORMALIZER_BY_FORMAT[row.raw_format])
    return True


@repeatable
def _record_failure(context: Context, row: Row[Any], error: FondsError) -> None:
    reason = f"{type(error).__name__}: {error}".replace("\0", "\ufffd")
    with context.database.write() as connection:
        leases.fail(connection, ingestion_normalization_queue, row, reason)


def _stale(context: Context, source: str | None, normalizer: str | None) -> Iterator[str]:
    """The ids of documents whose text another version made, read in pages."""
    names = [normalizer] if normalizer else normalizer_names()
    for name in names:
        try:
            current = get_normalizer(name).label
        except PluginError:
            if normalizer:
                raise
            continue  # it is reported, and the texts of others are made
        version = documents.c.body_normalizer_version
        query = (
            select(documents.c.id)
            .where(version.startswith(f"{name}@"), version != current)
            .order_by(documents.c.id)
            .limit(PAGE_SIZE)
        )
        query = query.where(documents.c.source == source) if source else query
        last = ""
        while page := _page(context, query.where(documents.c.id > last)):
            yield from page
            last = page[-1]


@repeatable
def _page(context: Context, query: Select[Any]) -> list[str]:
    with context.database.read() as connection:
        return list(connection.scalars(query))


@repeatable
def _renormalize_one(context: Context, document_id: str) -> bool:
    table = documents.c
    query = select(table.body_raw_path, table.body_normalizer_version, table.body_map)
    with context.database.read() as connection:
        row = connection.execute(query.where(table.id == document_id)).one()
    name = row.body_normalizer_version.partition("@")[0]
    text = normalize_archived(context, document_id, name, row.body_raw_path, row.body_map)
    with context.database.write() as connection:
        return _write(connection, context, document_id, text, name)


def _write(
    connection: Connection, context: Context, document_id: str, text: NormalizedBody, name: str
) -> bool:
    table = documents.c
    query = select(table.title, table.summary).where(table.id == document_id)
    title, summary = connection.execute(query).one()
    label = get_normalizer(name).label
    return update_text(
        connection,
        context.database.fulltext,
        document_id,
        text,
        passages=passages_of_text(document_id, title, summary, text, context.chunker),
        normalizer=label,
        recipe=derivation_versions(label, context.chunker),
        now=context.seams.clock.now(),
    )
