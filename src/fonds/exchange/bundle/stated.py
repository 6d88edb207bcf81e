"""Documents of a bundle as it has them, for which it has no bytes to derive them from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, cast

from sqlalchemy import select

from fonds import ids
from fonds.codes.plan import State, update_unit
from fonds.context import Context
from fonds.exchange.bundle.contents import (
    ALIASES,
    CITATIONS,
    DOCUMENTS,
    ORIGINS,
    PASSAGES,
    Record,
)
from fonds.exchange.bundle.groups import DocumentRows
from fonds.model import Archived, Body, Chunk, Document
from fonds.stores.citations import link, lock_edges, replace_edges
from fonds.stores.database import insert_ignoring, repeatable
from fonds.stores.documents import DocumentWrite, stored_text, write_documents
from fonds.stores.passages import Passages
from fonds.stores.tables import (
    code_units,
    ingestion_citation_queue,
    ingestion_normalization_queue,
    nodes,
)


@repeatable
def write_stated(
    context: Context, groups: Mapping[str, DocumentRows], retrieved_at: datetime
) -> int:
    """Write documents with the passages and citations of a bundle; returns how many changed."""
    now = context.seams.clock.now()
    writes = [_write(rows, context.bundle, retrieved_at) for rows in groups.values()]
    edges = {key: [_edge(row) for row in rows[CITATIONS]] for key, rows in groups.items()}
    with context.database.write() as connection:
        changes = write_documents(
            connection,
            context.database.fulltext,
            writes,
            now,
            derive=lambda document: _passages(groups[document.id]),
        )
        changed = changes.inserted | changes.updated
        lock_edges(connection)
        own = {key: edges[key] for key in sorted(changed)}
        replace_edges(connection, own)
        link(connection, own)
        for queue in (ingestion_citation_queue, ingestion_normalization_queue):
            connection.execute(queue.delete().where(queue.c.record_id.in_(sorted(changed))))
    return len(changed)


def _write(rows: DocumentRows, bundle: str | None, retrieved_at: datetime) -> DocumentWrite:
    (row,), (origin,) = rows[DOCUMENTS], rows[ORIGINS]
    raw = _file(row["source_url"], origin["raw_sha256"], retrieved_at)
    return DocumentWrite(
        document=Document(
            id=row["id"],
            source=row["source"],
            kind=row["kind"],
            title=row["title"],
            summary=row["summary"],
            source_url=row["source_url"],
            source_org=row["source_org"],
            published_at=row["published_at"],
            citation_string=row["citation_string"],
            raw=raw,
            body=_stated_body(row, origin, retrieved_at),
            aliases=tuple(alias["alias"] for alias in rows[ALIASES]),
            unit=row["unit"],
            edition=next((alias["edition"] for alias in rows[ALIASES]), None),
        ),
        content_sha256=row["content_sha256"],
        body_text_sha256=row["body_text_sha256"],
        recipe=row["recipe"],
        task_key=f"bundle:{(bundle or '').partition(' ')[0]}",
        bundle=bundle,
    )


def _stated_body(row: Record, origin: Record, retrieved_at: datetime) -> Body | None:
    if row["body_format"] is None:
        return None
    text = row["body_text"]
    return Body(
        archived=_file(row["source_url"], origin["body_raw_sha256"], retrieved_at),
        format=row["body_format"],
        normalizer=row["body_normalizer"],
        normalized=None if text is None else stored_text(text, row["body_map"]),
    )


def _file(url: str, sha256: str, retrieved_at: datetime) -> Archived:
    # Without a key: the library does not have the bytes.
    return Archived(url=url, key="", sha256=sha256, size=0, retrieved_at=retrieved_at)


def _passages(rows: DocumentRows) -> Passages:
    (document,), passages = rows[DOCUMENTS], rows[PASSAGES]
    name, _, version = passages[0]["chunker"].rpartition("@")
    return Passages(
        document_uid=ids.document_uid(document["id"]),
        title=document["title"],
        chunks=[_chunk(passage) for passage in passages],
        chunker_name=name,
        chunker_version=version,
    )


_LOCATED: Final = frozenset(field.name for field in fields(Chunk)) - {
    "ordinal",
    "tokens",
    "text",
    "start",
    "end",
}


def _chunk(row: Record) -> Chunk:
    located: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in row["locator"].items()
        if name in _LOCATED
    }
    return Chunk(
        **located,
        ordinal=row["ord"],
        tokens=row["tokens"],
        text=row["text"],
        start=row["start"],
        end=row["end"],
    )


def _edge(row: Record) -> dict[str, Any]:
    names = ("start", "end", "locator", "raw", "kind", "target", "pinpoint")
    return {"from_document_id": row["document"], **{name: row[name] for name in names}}


@repeatable
def write_editions(context: Context, editions: Sequence[Record]) -> None:
    """Write units of codes that a library lacks, without their plans."""
    now = context.seams.clock.now()
    units = [
        {**row, "plan_key": "", "is_newest": False, "planned_at": now, "completed_at": now}
        for row in editions
    ]
    with context.database.write() as connection:
        insert_ignoring(connection, code_units, units)
        for row in editions:
            stored = connection.scalar(
                select(code_units.c.state).where(code_units.c.id == row["id"])
            )
            update_unit(connection, row["id"], cast("State", stored), now)


@repeatable
def write_nodes(context: Context, rows: Sequence[Record], leaves: Collection[str]) -> None:
    """Write nodes of codes that a library lacks, without their bytes."""
    now = context.seams.clock.now()
    values = [_node(row, is_leaf=row["id"] in leaves, now=now) for row in rows]
    with context.database.write() as connection:
        insert_ignoring(connection, nodes, values)


def _node(row: Record, *, is_leaf: bool, now: datetime) -> dict[str, Any]:
    # NULL is a container; a leaf without bytes has an empty reference.
    return {**row, "body_ref": "" if is_leaf else None, "created_at": int(now.timestamp())}
