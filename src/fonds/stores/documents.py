"""Writing documents: the row, its versions, names, passages and words, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, select, update

from fonds import ids
from fonds.model import Document, NormalizedBody
from fonds.stores.batches import pieces, select_in
from fonds.stores.database import insert_ignoring, insert_many, upsert
from fonds.stores.fulltext import FullText
from fonds.stores.passages import Passages, add_passages, replace_passages
from fonds.stores.tables import (
    document_aliases,
    document_versions,
    documents,
    ingestion_embedding_queue,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Writing:
    """A document about to be written, with all that was derived from it."""

    document: Document
    content_sha256: str
    """Over all that the record says."""
    body_text_sha256: str | None
    recipe: str
    """What derived text and passages."""
    task_key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """Which documents were new, which had changed; the others were left alone."""

    inserted: frozenset[str]
    updated: frozenset[str]


def write_documents(
    connection: Connection,
    fulltext: FullText,
    writings: Sequence[Writing],
    now: datetime,
    *,
    derive: Callable[[Document], Passages],
) -> Written:
    """Insert what is new, update what differs, touch nothing else; passages only where needed."""
    new, changed = _compare(connection, writings)
    insert_many(connection, documents, [_row(writing, now) for writing in new])
    _update_rows(connection, changed, now)
    _write_versions(connection, new, changed, now)
    _write_aliases(connection, new, changed)
    add_passages(connection, fulltext, [derive(writing.document) for writing in new], now)
    replaced = [derive(writing.document) for writing in changed]
    replace_passages(connection, fulltext, replaced, now)
    _enqueue(connection, [*new, *changed], now)
    return Written(
        inserted=frozenset(writing.document.id for writing in new),
        updated=frozenset(writing.document.id for writing in changed),
    )


def mark_gone(connection: Connection, document_ids: Iterable[str], now: datetime) -> int:
    """Record that the publisher withdrew documents; nothing is deleted."""
    marked = 0
    for piece in pieces(document_ids):
        held = documents.c.id.in_(piece) & documents.c.gone_at.is_(None)
        marked += connection.execute(update(documents).where(held).values(gone_at=now)).rowcount
    return marked


def _compare(
    connection: Connection, writings: Sequence[Writing]
) -> tuple[list[Writing], list[Writing]]:
    table = documents.c
    query = select(table.id, table.content_sha256, table.recipe, table.task_key, table.gone_at)
    wanted = [writing.document.id for writing in writings]
    held = {row.id: row for row in select_in(connection, query, table.id, wanted)}
    new = [writing for writing in writings if writing.document.id not in held]
    changed = [
        writing
        for writing in writings
        if (row := held.get(writing.document.id)) is not None
        and (
            (row.content_sha256, row.recipe, row.task_key)
            != (writing.content_sha256, writing.recipe, writing.task_key)
            or row.gone_at is not None
        )
    ]
    return new, changed


def _update_rows(connection: Connection, changed: Sequence[Writing], now: datetime) -> None:
    if not changed:
        return
    rows = [_row(writing, now) for writing in changed]
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0] if name != "id"}
    connection.execute(
        update(documents).where(documents.c.id == bindparam("new_id")).values(values),
        [{f"new_{name}": value for name, value in row.items()} for row in rows],
    )


def _row(writing: Writing, now: datetime) -> dict[str, Any]:
    document = writing.document
    return {
        "id": document.id,
        "uid": ids.document_uid(document.id),
        "source": document.source,
        "kind": document.kind,
        "title": document.title,
        "summary": document.summary,
        "owner": UUID(document.owner) if document.owner else None,
        "source_url": document.source_url,
        "source_org": document.source_org,
        "published_at": document.published_at,
        "retrieved_at": document.raw.retrieved_at,
        "raw_path": document.raw.key,
        "raw_sha256": document.raw.sha256,
        "citation_string": document.citation_string,
        "content_sha256": writing.content_sha256,
        "recipe": writing.recipe,
        "task_key": writing.task_key,
        "updated_at": now,
        "gone_at": None,
        **_body_columns(writing, now),
    }


def _body_columns(writing: Writing, now: datetime) -> dict[str, Any]:
    body = writing.document.body
    return {
        "body_raw_path": body and body.archived.key,
        "body_raw_format": body and body.format,
        "body_raw_sha256": body and body.archived.sha256,
        "body_text": body and body.normalized.markdown,
        "body_text_sha256": writing.body_text_sha256,
        "body_normalized_at": body and now,
        "body_normalizer_version": body and body.normalizer,
        "body_map": body and body_map(body.normalized),
    }


def body_map(body: NormalizedBody) -> dict[str, Any]:
    """What a later chunker needs beside the Markdown: section labels and pages, by offset."""
    return {
        "sections": [[h.offset, h.section] for h in body.headings if h.section is not None],
        "pages": [[mark.offset, mark.page] for mark in body.pages],
    }


def _write_versions(
    connection: Connection, new: Sequence[Writing], changed: Sequence[Writing], now: datetime
) -> None:
    rows = [_version(writing, now) for writing in (*new, *changed)]
    insert_ignoring(connection, document_versions, rows)
    if not changed:
        return
    # Content that comes back after a change has its row already; it is only seen again.
    connection.execute(
        update(document_versions)
        .where(document_versions.c.document_id == bindparam("of"))
        .where(document_versions.c.content_sha256 == bindparam("content"))
        .values(last_seen_at=now),
        [{"of": one.document.id, "content": one.content_sha256} for one in changed],
    )


def _version(writing: Writing, now: datetime) -> dict[str, Any]:
    document, body = writing.document, writing.document.body
    return {
        "document_id": document.id,
        "content_sha256": writing.content_sha256,
        "raw_sha256": document.raw.sha256,
        "archive_key": document.raw.key,
        "body_raw_sha256": body and body.archived.sha256,
        "body_archive_key": body and body.archived.key,
        "body_text_sha256": writing.body_text_sha256,
        "first_seen_at": now,
        "last_seen_at": now,
    }


def _write_aliases(
    connection: Connection, new: Sequence[Writing], changed: Sequence[Writing]
) -> None:
    for piece in pieces([writing.document.id for writing in changed]):
        connection.execute(
            delete(document_aliases).where(document_aliases.c.document_id.in_(piece))
        )
    rows = [
        {"alias": alias, "document_id": writing.document.id, "edition": None}
        for writing in (*new, *changed)
        for alias in sorted(set(writing.document.aliases))
    ]
    insert_ignoring(connection, document_aliases, rows)


def _enqueue(connection: Connection, writings: Sequence[Writing], now: datetime) -> None:
    """Ask for vectors; a row still waiting is told of its new input and starts afresh."""
    rows = [
        {
            "table_name": "documents",
            "record_id": writing.document.id,
            "input_sha": writing.content_sha256,
            "enqueued_at": now,
            "attempts": 0,
            "last_error": None,
            "lease_owner": None,
            "lease_until": None,
        }
        for writing in writings
    ]
    keys = ["table_name", "record_id"]
    upsert(connection, ingestion_embedding_queue, rows, keys=keys)
