"""Writes documents: row, versions, aliases, passages and queue entries, in one transaction.

`visible_to` says who may see a document; every query of documents uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Table, bindparam, delete, select, update

from fonds import ids
from fonds.model import (
    Document,
    Heading,
    NormalizedBody,
    OcrPage,
    PageMark,
    ReadingReport,
    UncertainText,
)
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
class DocumentWrite:
    """A document to be written, with hashes and versions of what was derived from it."""

    document: Document
    content_sha256: str
    """Hash of the whole record."""
    body_text_sha256: str | None
    recipe: str
    """The versions of normalizer and chunker that derived text and passages."""
    task_key: str
    bundle: str | None = None
    """Root and key of the bundle that it is loaded from; None if this library fetched it."""

    @property
    def is_queued(self) -> bool:
        """True if its body is not normalized yet."""
        return self.document.body is not None and self.document.body.normalized is None


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteResult:
    """The ids of new and of changed documents."""

    inserted: frozenset[str]
    updated: frozenset[str]


def write_documents(
    connection: Connection,
    fulltext: FullText,
    writes: Sequence[DocumentWrite],
    now: datetime,
    *,
    derive: Callable[[Document], Passages],
) -> WriteResult:
    """Insert new documents and update changed ones, with their passages; skip all others."""
    new, changed = _compare(connection, writes)
    changed = _with_stored_texts(connection, changed)
    insert_many(connection, documents, [_row(write, now) for write in new])
    _update_rows(connection, changed, now)
    _write_versions(connection, new, changed, now)
    _write_aliases(connection, new, changed)
    add_passages(connection, fulltext, [derive(write.document) for write in new], now)
    replaced = [derive(write.document) for write in changed]
    replace_passages(connection, fulltext, replaced, now)
    _queue_texts(connection, [*new, *changed], now)
    _queue_vectors_and_citations(connection, [*new, *changed], now)
    return WriteResult(
        inserted=frozenset(write.document.id for write in new),
        updated=frozenset(write.document.id for write in changed),
    )


def publish_document(connection: Connection, write: DocumentWrite, now: datetime) -> None:
    """Insert a document whose passages are stored already, and queue it for citations."""
    insert_many(connection, documents, [_row(write, now)])
    _write_versions(connection, [write], [], now)
    _write_aliases(connection, [write], [])
    enqueue(connection, ingestion_citation_queue, [_queue_row(write)], now)


def queue_vectors(connection: Connection, write: DocumentWrite, now: datetime) -> None:
    """Queue a document that has passages without a vector."""
    enqueue(connection, ingestion_embedding_queue, [_queue_row(write)], now)


def mark_withdrawn(connection: Connection, document_ids: Iterable[str], now: datetime) -> int:
    """Record that the publisher withdrew documents; nothing is deleted."""
    marked = 0
    for batch in batched(document_ids):
        is_current = documents.c.id.in_(batch) & documents.c.gone_at.is_(None)
        marked += connection.execute(
            update(documents).where(is_current).values(gone_at=now)
        ).rowcount
    return marked


def _compare(
    connection: Connection, writes: Sequence[DocumentWrite]
) -> tuple[list[DocumentWrite], list[DocumentWrite]]:
    table = documents.c
    query = select(table.id, table.content_sha256, table.recipe, table.task_key, table.gone_at)
    document_ids = [write.document.id for write in writes]
    existing = {row.id: row for row in select_in(connection, query, table.id, document_ids)}
    new = [write for write in writes if write.document.id not in existing]
    changed = [
        write
        for write in writes
        if (row := existing.get(write.document.id)) is not None and _differs(row, write)
    ]
    return new, changed


def _differs(row: Row[Any], write: DocumentWrite) -> bool:
    if row.gone_at is not None or row.task_key != write.task_key:
        return True
    if row.content_sha256 != write.content_sha256:
        return True
    # The recipe of a text that is made later is not known yet.
    return not write.is_queued and row.recipe != write.recipe


def _with_stored_texts(
    connection: Connection, changed: Sequence[DocumentWrite]
) -> list[DocumentWrite]:
    """The changed documents; a queued body with unchanged bytes keeps its stored text."""
    table = documents.c
    columns = (table.body_raw_sha256, table.body_text, table.body_map)
    query = select(table.id, table.body_normalizer_version, *columns)
    queued = [write.document.id for write in changed if write.is_queued]
    stored = {row.id: row for row in select_in(connection, query, table.id, queued)}
    return [_with_stored_text(write, stored.get(write.document.id)) for write in changed]


def _with_stored_text(write: DocumentWrite, row: Row[Any] | None) -> DocumentWrite:
    content = write.document.body
    if row is None or row.body_text is None or content is None:
        return write
    if content.archived.sha256 != row.body_raw_sha256:
        return write
    text = stored_text(row.body_text, row.body_map)
    content = replace(content, normalized=text, normalizer=row.body_normalizer_version)
    return replace(
        write,
        document=replace(write.document, body=content),
        body_text_sha256=ids.text_sha256(text.markdown),
    )


_REPORT_FIELDS: Final = tuple(field.name for field in fields(ReadingReport))


def _report(reading: Mapping[str, Any]) -> ReadingReport | None:
    columns = {name: reading[name] for name in _REPORT_FIELDS if name in reading}
    if not columns:
        return None
    ocr_pages = tuple(OcrPage(**page) for page in columns.pop("ocr_pages"))
    pictures = tuple(columns.pop("pictures_not_read"))
    return ReadingReport(**columns, ocr_pages=ocr_pages, pictures_not_read=pictures)


def stored_text(markdown: str, body_map: Mapping[str, Any]) -> NormalizedBody:
    """A stored text, with the labels and pages that its passages need, and how it was read."""
    reading = body_map.get("reading", {})
    return NormalizedBody(
        markdown=markdown,
        above=tuple(body_map.get("above", ())),
        headings=tuple(
            Heading(level=1, text="", offset=offset, section=label)
            for offset, label in body_map["sections"]
        ),
        pages=tuple(_page_mark(*mark) for mark in body_map["pages"]),
        uncertain=tuple(
            UncertainText(start=start, end=end, confidence=confidence)
            for start, end, confidence in body_map.get("uncertain", ())
        ),
        warnings=tuple(reading.get("warnings", ())),
        report=_report(reading),
    )


def _reading(text: NormalizedBody) -> dict[str, Any]:
    """The counts and warnings of a text, as `results.Reading` has them."""
    report = text.report
    if report is None:
        return {"warnings": list(text.warnings)}
    sure = report.mean_confidence
    return {
        **asdict(report),
        "ocr_pages": [asdict(page) for page in report.ocr_pages],
        "pictures_not_read": list(report.pictures_not_read),
        "mean_confidence": None if sure is None else round(sure, 3),
        "warnings": list(text.warnings),
    }


def _page_mark(offset: int, page: str | None, pdf_page: int | None = None) -> PageMark:
    return PageMark(offset=offset, page=page, pdf_page=pdf_page)


def _update_rows(connection: Connection, changed: Sequence[DocumentWrite], now: datetime) -> None:
    if not changed:
        return
    rows = [_row(write, now) for write in changed]
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0] if name != "id"}
    connection.execute(
        update(documents).where(documents.c.id == bindparam("new_id")).values(values),
        [{f"new_{name}": value for name, value in row.items()} for row in rows],
    )


def _row(write: DocumentWrite, now: datetime) -> dict[str, Any]:
    document = write.document
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
        "content_sha256": write.content_sha256,
        "recipe": write.recipe,
        "task_key": write.task_key,
        "updated_at": now,
        "gone_at": None,
        "bundle": write.bundle,
        **_source_columns(write, now),
    }


def _source_columns(write: DocumentWrite, now: datetime) -> dict[str, Any]:
    content = write.document.body
    return {
        "body_raw_path": content and content.archived.key,
        "body_raw_format": content and content.format,
        "body_raw_sha256": content and content.archived.sha256,
        **(_text_columns(content.normalized, content.normalizer, now) if content else _NO_TEXT),
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


def body_map(text: NormalizedBody) -> dict[str, Any]:
    """The data that a chunker needs besides the Markdown: section labels and pages by offset."""
    return {
        "sections": [[h.offset, h.section] for h in text.headings if h.section is not None],
        "pages": [_stored_mark(mark) for mark in text.pages],
        **({"above": list(text.above)} if text.above else {}),
        **(
            {"uncertain": [[u.start, u.end, u.confidence] for u in text.uncertain]}
            if text.uncertain
            else {}
        ),
        **({"reading": _reading(text)} if text.report or text.warnings else {}),
    }


def _stored_mark(mark: PageMark) -> list[Any]:
    number = [] if mark.pdf_page is None else [mark.pdf_page]
    return [mark.offset, mark.page, *number]


def _write_versions(
    connection: Connection,
    new: Sequence[DocumentWrite],
    changed: Sequence[DocumentWrite],
    now: datetime,
) -> None:
    rows = [_version(write, now) for write in (*new, *changed)]
    insert_ignoring(connection, document_versions, rows)
    if not changed:
        return
    # Content that an earlier version had already has a row, whose time is updated.
    connection.execute(
        update(document_versions)
        .where(document_versions.c.document_id == bindparam("of"))
        .where(document_versions.c.content_sha256 == bindparam("content"))
        .values(last_seen_at=now),
        [{"of": write.document.id, "content": write.content_sha256} for write in changed],
    )


def _version(write: DocumentWrite, now: datetime) -> dict[str, Any]:
    document, content = write.document, write.document.body
    return {
        "document_id": document.id,
        "content_sha256": write.content_sha256,
        "raw_sha256": document.raw.sha256,
        "archive_key": document.raw.key,
        "body_raw_sha256": content and content.archived.sha256,
        "body_archive_key": content and content.archived.key,
        "body_text_sha256": write.body_text_sha256,
        "first_seen_at": now,
        "last_seen_at": now,
        "source": document.source,
    }


def _write_aliases(
    connection: Connection, new: Sequence[DocumentWrite], changed: Sequence[DocumentWrite]
) -> None:
    for batch in batched([write.document.id for write in changed]):
        connection.execute(
            delete(document_aliases).where(document_aliases.c.document_id.in_(batch))
        )
    rows = [
        {"alias": alias, "document_id": write.document.id, "edition": edition}
        for write in (*new, *changed)
        for edition in (write.document.edition,)
        for alias in sorted(set(write.document.aliases))
    ]
    insert_ignoring(connection, document_aliases, rows)


def _queue_texts(connection: Connection, writes: Sequence[DocumentWrite], now: datetime) -> None:
    rows = [
        {
            "record_id": write.document.id,
            "raw_path": content.archived.key,
            "raw_format": content.format,
            "input_sha": content.archived.sha256,
        }
        for write in writes
        if write.is_queued and (content := write.document.body) is not None
    ]
    enqueue(connection, ingestion_normalization_queue, rows, now)


def _queue_vectors_and_citations(
    connection: Connection, writes: Sequence[DocumentWrite], now: datetime
) -> None:
    rows = [_queue_row(write) for write in writes]
    enqueue(connection, ingestion_embedding_queue, rows, now)
    # Documents without a text are queued too: others may cite them by a new alias.
    enqueue(connection, ingestion_citation_queue, rows, now)


def _queue_row(write: DocumentWrite) -> dict[str, str]:
    return {"record_id": write.document.id, "input_sha": write.content_sha256}


def enqueue(
    connection: Connection, queue: Table, rows: Sequence[Mapping[str, Any]], now: datetime
) -> None:
    """Queue documents; a row that is queued already gets its new input and is reset."""
    reset_columns = {
        "table_name": "documents",
        "enqueued_at": now,
        "attempts": 0,
        "last_error": None,
        "lease_owner": None,
        "lease_until": None,
    }
    keys = ["table_name", "record_id"]
    upsert(connection, queue, [{**reset_columns, **row} for row in rows], keys=keys)


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
    """Replace the text of a document and its passages; returns True if the text differs."""
    table = documents
    before = connection.scalar(select(table.c.body_text_sha256).where(table.c.id == document_id))
    columns = {**_text_columns(text, normalizer, now), "recipe": recipe, "updated_at": now}
    connection.execute(update(table).where(table.c.id == document_id).values(columns))
    has_new_passages = replace_passages(connection, fulltext, [passages], now)
    differs: bool = columns["body_text_sha256"] != before
    row = {"record_id": document_id, "input_sha": columns["body_text_sha256"]}
    # The same text may be split into other passages, and citations contain offsets.
    if differs or has_new_passages:
        enqueue(connection, ingestion_embedding_queue, [row], now)
    enqueue(connection, ingestion_citation_queue, [row], now)
    return differs


def visible_to(owner: UUID | None) -> ColumnElement[bool]:
    """A condition for public documents, and for a user's own uploads if there is a user."""
    public = documents.c.owner.is_(None)
    return public if owner is None else public | (documents.c.owner == owner)
