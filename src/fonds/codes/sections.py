"""Writing sections: nodes and documents of a portion of a batch, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from fonds import ids
from fonds.codes.bodies import Found
from fonds.codes.plan import PlanHead, PlannedNode
from fonds.errors import ParseError
from fonds.model import Archived, Body, Document, NormalizedBody, ParsedRecord
from fonds.normalize.registry import get_normalizer
from fonds.runs.context import Workplace
from fonds.runs.derive import passages_of, writing_of
from fonds.sources.jurisdiction import JurisdictionAdapter, Shard
from fonds.stores.batches import select_in
from fonds.stores.database import insert_ignoring
from fonds.stores.documents import Writing, write_documents
from fonds.stores.tables import nodes


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a portion."""

    inserted: int
    """Nodes that were new."""
    failures: list[tuple[str, str]]
    """Sections whose bytes are kept but could not be read, each with the cause."""


class SectionWriter:
    """Turns bytes into documents, and writes them with their nodes."""

    def __init__(self, adapter: JurisdictionAdapter, head: PlanHead, workplace: Workplace) -> None:
        self._adapter = adapter
        self._head = head
        self._pages = dict(head.pages)
        self._workplace = workplace

    def write(self, containers: Sequence[PlannedNode], found: Sequence[Found]) -> Written:
        """Write what is not there yet; what cannot be read has a node and no document."""
        now = self._workplace.seams.clock.now()
        rows = [self._row(node, now) for node in containers]
        writings: list[Writing] = []
        failures: list[tuple[str, str]] = []
        for section in found:
            row = self._row(section.node, now, body_ref=section.pack.ref(section.entry))
            rows.append(row)
            try:
                document = self._document(section)
            except ParseError as error:
                failures.append((section.node.id, f"{type(error).__name__}: {error}"))
                continue
            row["label"] = document.title
            writings.append(self._writing(document))
        chunker = self._workplace.chunker
        with self._workplace.database.write() as connection:
            inserted = _insert_nodes(connection, rows)
            write_documents(
                connection,
                self._workplace.database.fulltext,
                writings,
                now,
                derive=lambda document: passages_of(document, chunker),
            )
        return Written(inserted, failures)

    def check(self, node: PlannedNode, data: bytes) -> None:
        """Raise the cause why bytes that claim to be a section cannot be read as one."""
        shard = self._adapter.shardify(node.leaf(self._head))
        get_normalizer(shard.normalizer).to_markdown(data)

    def _row(
        self, node: PlannedNode, now: datetime, *, body_ref: str | None = None
    ) -> dict[str, Any]:
        return {
            "id": node.id,
            "source": self._head.source,
            "version": self._head.version,
            "kind": node.kind,
            "label": node.label,
            "path": node.path,
            "body_ref": body_ref,
            "unit": self._head.id,
            "position": node.position,
            "status": node.status or None,
            "created_at": int(now.timestamp()),
            "parent": ids.tree_parent(node.id),
        }

    def _document(self, section: Found) -> Document:
        leaf = section.node.leaf(self._head)
        shard = self._adapter.shardify(leaf)
        archived = _archived(section)
        body = self._body(section, shard, archived)
        return Document(
            id=leaf.id,
            source=self._head.source,
            kind=leaf.kind,
            title=shard.title or _first_heading(body) or leaf.label,
            source_url=shard.source_url,
            source_org=self._adapter.info.organisation,
            citation_string=shard.citation_string,
            raw=self._pages.get(leaf.page, archived),
            published_at=shard.published_at or self._head.published_at,
            body=body,
            aliases=shard.aliases,
            unit=self._head.id,
            edition=self._head.version,
        )

    def _body(self, section: Found, shard: Shard, archived: Archived) -> Body:
        normalizer = get_normalizer(shard.normalizer)
        text = normalizer.to_markdown(section.pack.read(section.entry), section.entry.url)
        above = tuple(step.label for step in section.node.lineage)
        return Body(
            archived=archived,
            format=shard.format,
            normalizer=normalizer.label,
            normalized=replace(text, above=above),
        )

    def _writing(self, document: Document) -> Writing:
        record = ParsedRecord(
            source=self._head.source,
            table=nodes.name,
            key=document.id,
            payload={"id": document.id},
            document=document,
        )
        return writing_of(record, self._head.id, self._workplace.chunker)


def _archived(section: Found) -> Archived:
    entry = section.entry
    return Archived(
        url=entry.url,
        key=section.pack.ref(entry),
        sha256=entry.sha256,
        size=entry.length,
        retrieved_at=entry.retrieved_at,
    )


def _first_heading(body: Body) -> str | None:
    text: NormalizedBody | None = body.normalized
    return next((heading.text for heading in text.headings), None) if text else None


def _insert_nodes(connection: Connection, rows: list[dict[str, Any]]) -> int:
    wanted = [row["id"] for row in rows]
    held = {row.id for row in select_in(connection, select(nodes.c.id), nodes.c.id, wanted)}
    fresh = [row for row in rows if row["id"] not in held]
    insert_ignoring(connection, nodes, fresh)
    return len(fresh)
