"""Writing documents: the row, its versions, names, passages and words, in one transaction.

Who may see a document; every path that reads one asks here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Table, bindparam, delete, select, update

from fonds import ids
from fonds.model import Document, Heading, NormalizedBody, PageMark
from fonds.stores.database import insert_ignoring, insert_many, upsert
from fonds.stores.fulltext import FullText
from fonds.stores.passages import Passages, add_passages, replace_passages
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import (
    document_aliases,
    document_versions,
    documents,
    ingestion_citation_queue,
    ingestion_embedding_queue,
    ingestion_normalization_queue,
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

    @property
    def is_queued(self) -> bool:
        """Whether its body waits to be normalized."""
        return self.document.body is not None and self.document.body.normalized is None


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteResult:
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
) -> WriteResult:
    """Insert what is new, update what differs, touch nothing else; passages only where needed."""
    new, changed = _compare(connection, writings)
    changed = _with_stored_texts(connection, changed)
    insert_many(connection, documents, [_row(writing, now) for writing in new])
    _update_rows(connection, changed, now)
    _write_versions(connection, new, changed, now)
    _write_aliases(connection, new, changed)
    add_passages(connection, fulltext, [derive(writing.document) for writing in new], now)
    replaced = [derive(writing.document) for writing in changed]
    replace_passages(connection, fulltext, replaced, now)
    _ask_for_texts(connection, [*new, *changed], now)
    _ask_for_vectors_and_citations(connection, [*new, *changed], now)
    return WriteResult(
        inserted=frozenset(writing.document.id for writing in new),
        updated=frozenset(writing.document.id for writing in changed),
    )


def publish_document(connection: Connection, writing: Writing, now: datetime) -> None:
    """Insert a document whose passages are there already; its citations are still to be found."""
    insert_many(connection, documents, [_row(writing, now)])
    _write_versions(connection, [writing], [], now)
    _write_aliases(connection, [writing], [])
    enqueue(connection, ingestion_citation_queue, [_waiting(writing)], now)


def ask_for_vectors(connection: Connection, writing: Writing, now: datetime) -> None:
    """Queue a document some of whose passages have no vector."""
    enqueue(connection, ingestion_embedding_queue, [_waiting(writing)], now)


def mark_gone(connection: Connection, document_ids: Iterable[str], now: datetime) -> int:
    """Record that the publisher withdrew documents; nothing is deleted."""
    marked = 0
    for batch in batched(document_ids):
        held = documents.c.id.in_(batch) & documents.c.gone_at.is_(None)
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
        if (row := held.get(writing.document.id)) is not None and _differs(row, writing)
    ]
    return new, changed


def _differs(row: Row[Any], writing: Writing) -> bool:
    if row.gone_at is not None or row.task_key != writing.task_key:
        return True
    if row.content_sha256 != writing.content_sha256:
        return True
    # Of a text that is made later, only the one who makes it knows the recipe.
    return not writing.is_queued and row.recipe != writing.recipe


def _with_stored_texts(connection: Connection, changed: Sequence[Writing]) -> list[Writing]:
    """A queued body whose bytes have not changed keeps the text that was made of it."""
    table = documents.c
    columns = (table.body_raw_sha256, table.body_text, table.body_map)
    query = select(table.id, table.body_normalizer_version, *columns)
    queued = [writing.document.id for writing in changed if writing.is_queued]
    held = {row.id: row for row in select_in(connection, query, table.id, queued)}
    return [_with_stored_text(writing, held.get(writing.document.id)) for writing in changed]


def _with_stored_text(writing: Writing, row: Row[Any] | None) -> Writing:
    body = writing.document.body
    if row is None or row.body_text is None or body is None:
        return writing
    if body.archived.sha256 != row.body_raw_sha256:
        return writing
    text = stored_text(row.body_text, row.body_map)
    kept = replace(body, normalized=text, normalizer=row.body_normalizer_version)
    return replace(
        writing,
        document=replace(writing.document, body=kept),
        body_text_sha256=ids.text_sha256(text.markdown),
    )


def stored_text(markdown: str, body_map: Mapping[str, Any]) -> NormalizedBody:
    """A text as it was stored, with the labels and pages that its passages need."""
    return NormalizedBody(
        markdown=markdown,
        above=tuple(body_map.get("above", ())),
        headings=tuple(
            Heading(level=1, text="", offset=offset, section=label)
            for offset, label in body_map["sections"]
        ),
        pages=tuple(PageMark(offset=offset, page=page) for offset, page in body_map["pages"]),
    )


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
        "unit": document.unit,
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
        **(_text_columns(body.normalized, body.normalizer, now) if body else _NO_TEXT),
    }


_NO_TEXT: Final = dict.fromkeys(
    (
        "body_text",
        "body_text_sha256",
        "body_normalized_at",
        "body_normalizer_version",
        "body_map",
    )
)


def _text_columns(
    text: NormalizedBody | None, normalizer: str | None, now: datetime
) -> dict[str, Any]:
    return {
        "body_text": text and text.markdown,
        "body_text_sha256": text and ids.text_sha256(text.markdown),
        "body_normalized_at": text and now,
        "body_normalizer_version": text and normalizer,
        "body_map": text and body_map(text),
    }


def body_map(body: NormalizedBody) -> dict[str, Any]:
    """What a later chunker needs beside the Markdown: labels and pages by offset, what is above."""
    return {
        "sections": [[h.offset, h.section] for h in body.headings if h.section is not None],
        "pages": [[mark.offset, mark.page] for mark in body.pages],
        **({"above": list(body.above)} if body.above else {}),
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
        "source": document.source,
    }


def _write_aliases(
    connection: Connection, new: Sequence[Writing], changed: Sequence[Writing]
) -> None:
    for batch in batched([writing.document.id for writing in changed]):
        connection.execute(
            delete(document_aliases).where(document_aliases.c.document_id.in_(batch))
        )
    rows = [
        {"alias": alias, "document_id": writing.document.id, "edition": edition}
        for writing in (*new, *changed)
        for edition in (writing.document.edition,)
        for alias in sorted(set(writing.document.aliases))
    ]
    insert_ignoring(connection, document_aliases, rows)


def _ask_for_texts(connection: Connection, writings: Sequence[Writing], now: datetime) -> None:
    rows = [
        {
            "record_id": writing.document.id,
            "raw_path": body.archived.key,
            "raw_format": body.format,
            "input_sha": body.archived.sha256,
        }
        for writing in writings
        if writing.is_queued and (body := writing.document.body) is not None
    ]
    enqueue(connection, ingestion_normalization_queue, rows, now)


def _ask_for_vectors_and_citations(
    connection: Connection, writings: Sequence[Writing], now: datetime
) -> None:
    rows = [_waiting(writing) for writing in writings]
    enqueue(connection, ingestion_embedding_queue, rows, now)
    # A document without a text waits here too: others may cite it by a name that is new.
    enqueue(connection, ingestion_citation_queue, rows, now)


def _waiting(writing: Writing) -> dict[str, str]:
    return {"record_id": writing.document.id, "input_sha": writing.content_sha256}


def enqueue(
    connection: Connection, queue: Table, rows: Sequence[Mapping[str, Any]], now: datetime
) -> None:
    """Queue documents; a row still waiting is told of its new input and starts afresh."""
    afresh = {
        "table_name": "documents",
        "enqueued_at": now,
        "attempts": 0,
        "last_error": None,
        "lease_owner": None,
        "lease_until": None,
    }
    keys = ["table_name", "record_id"]
    upsert(connection, queue, [{**afresh, **row} for row in rows], keys=keys)


def update_text(
    connection: Connection,
    fulltext: FullText,
    document_id: str,
    text: NormalizedBody,
    *,
    passages: Passages,
    normalizer: str,
    recipe: str,
    now: datetime,
) -> bool:
    """Give a document another text and its passages; says whether the words differ."""
    table = documents
    before = connection.scalar(select(table.c.body_text_sha256).where(table.c.id == document_id))
    columns = {**_text_columns(text, normalizer, now), "recipe": recipe, "updated_at": now}
    connection.execute(update(table).where(table.c.id == document_id).values(columns))
    is_cut_anew = replace_passages(connection, fulltext, [passages], now)
    differs: bool = columns["body_text_sha256"] != before
    row = {"record_id": document_id, "input_sha": columns["body_text_sha256"]}
    # The same words may be cut into other passages, and citations say where they stand.
    if differs or is_cut_anew:
        enqueue(connection, ingestion_embedding_queue, [row], now)
    enqueue(connection, ingestion_citation_queue, [row], now)
    return differs


def visible_to(owner: UUID | None) -> ColumnElement[bool]:
    """What is public, and a user's own uploads; to nobody in particular, only what is public."""
    public = documents.c.owner.is_(None)
    return public if owner is None else public | (documents.c.owner == owner)
