"""Executing a plan: batch after batch, each checked for what exists, as far as the budget reaches.

A batch puts its bodies into a pack, and then its nodes and documents into the database. Whatever
is there already is left alone, so any batch can be repeated at any time, by anybody.

Writing sections: nodes and documents of a portion of a batch, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, select

from fonds import ids
from fonds.chunk.tokens import memory_to_load
from fonds.codes.budget import MIB, Meter
from fonds.codes.packs import Bodies, PackedSection
from fonds.codes.plan import NodeBatch, PlanHead, PlannedNode
from fonds.context import Context
from fonds.errors import BudgetSpentError, ParseError
from fonds.model import Archived, Body, Document, NormalizedBody, ParsedRecord
from fonds.normalize.registry import get_normalizer
from fonds.runs.concurrency import in_thread
from fonds.runs.normalization import passages_of, prepare_write
from fonds.sources.jurisdiction import JurisdictionAdapter, Shard
from fonds.stores.database import Database, insert_ignoring
from fonds.stores.documents import DocumentWrite, write_documents
from fonds.stores.sqlite import select_in
from fonds.stores.tables import documents, nodes


@dataclass(frozen=True, slots=True)
class PortionResult:
    """What became of a portion."""

    inserted: int
    """Nodes that were new."""
    failures: list[tuple[str, str]]
    """Sections whose bytes are kept but could not be read, each with the cause."""


class SectionWriter:
    """Turns bytes into documents, and writes them with their nodes."""

    def __init__(self, adapter: JurisdictionAdapter, head: PlanHead, context: Context) -> None:
        self._adapter = adapter
        self._head = head
        self._pages = dict(head.pages)
        self._context = context

    def write(
        self, containers: Sequence[PlannedNode], found: Sequence[PackedSection]
    ) -> PortionResult:
        """Write what is not there yet; what cannot be read has a node and no document."""
        now = self._context.seams.clock.now()
        rows = [self._row(node, now) for node in containers]
        writings: list[DocumentWrite] = []
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
        chunker = self._context.chunker
        with self._context.database.write() as connection:
            inserted = _insert_nodes(connection, rows)
            write_documents(
                connection,
                self._context.database.fulltext,
                writings,
                now,
                derive=lambda document: passages_of(document, chunker),
            )
        return PortionResult(inserted, failures)

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

    def _document(self, section: PackedSection) -> Document:
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

    def _body(self, section: PackedSection, shard: Shard, archived: Archived) -> Body:
        normalizer = get_normalizer(shard.normalizer)
        text = normalizer.to_markdown(section.pack.read(section.entry), section.entry.url)
        above = tuple(step.label for step in section.node.lineage)
        return Body(
            archived=archived,
            format=shard.format,
            normalizer=normalizer.label,
            normalized=replace(text, above=above),
        )

    def _writing(self, document: Document) -> DocumentWrite:
        record = ParsedRecord(
            source=self._head.source,
            table=nodes.name,
            key=document.id,
            payload={"id": document.id},
            document=document,
        )
        return prepare_write(record, self._head.id, self._context.chunker)


def _archived(section: PackedSection) -> Archived:
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


SURVEYED_AT_ONCE: Final = 2000
"""Nodes looked up by one statement."""
STATEMENTS: Final = 20
"""Sub-requests that a batch needs beside its fetches: counted, and rounded up."""
_AT_REST: Final = 8 * MIB
_PER_BYTE: Final = 8
"""Memory for a batch, and for each byte of its longest body: its tree, text and passages."""


@dataclass(kw_only=True, slots=True)
class ExecutionProgress:
    """What execution did, and how far it came."""

    inserted: int = 0
    """Nodes that were new."""
    skipped: int = 0
    """Nodes that were there, with their documents."""
    next_batch: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Sections that could not be had, each with the cause."""


class Execution:
    """One invocation's work on one plan."""

    def __init__(
        self,
        head: PlanHead,
        bodies: Bodies,
        writer: SectionWriter,
        database: Database,
        meter: Meter,
    ) -> None:
        self._head = head
        self._bodies = bodies
        self._writer = writer
        self._database = database
        self._meter = meter
        self.progress = ExecutionProgress()

    async def run(self, batches: Iterator[NodeBatch], *, first: int = 0) -> bool:
        """Work on until the plan is done, or else until the budget is spent."""
        self.progress.next_batch = first
        waiting = islice(batches, first, None)
        try:
            while group := _group(waiting):
                complete = await in_thread(self._survey, group)
                for batch in group:
                    await self._take(batch, complete)
                    self.progress.next_batch = batch.number + 1
        except BudgetSpentError:
            return False
        return True

    def _survey(self, group: Sequence[NodeBatch]) -> set[str]:
        """The nodes that are there, leaves with their documents."""
        table, text = nodes.c, documents.c.id
        query = (
            select(table.id, table.body_ref, text)
            .outerjoin(documents, text == table.id)
            .where(table.id.in_([node.id for batch in group for node in batch.nodes]))
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return {known for known, ref, document in rows if ref is None or document is not None}

    async def _take(self, batch: NodeBatch, complete: set[str]) -> None:
        missing = [node for node in batch.nodes if node.id not in complete]
        if missing:
            await self._make(batch, missing)
        # Not before: a batch for which the budget was too small is taken again.
        self.progress.skipped += len(batch.nodes) - len(missing)

    async def _make(self, batch: NodeBatch, missing: list[PlannedNode]) -> None:
        wanted = [node for node in missing if node.is_leaf]
        self._meter.require(
            subrequests=STATEMENTS + self._bodies.fetches(batch, wanted),
            memory=_memory(wanted),
        )
        containers = [node for node in missing if not node.is_leaf]
        async for found in self._bodies.packed(batch, wanted):
            await self._write(containers, found)
            containers = []
        await self._write(containers, [])
        self.progress.failures += self._bodies.take_failures()

    async def _write(self, containers: list[PlannedNode], found: list[PackedSection]) -> None:
        if containers or found:
            written = await in_thread(self._writer.write, containers, found)
            self.progress.inserted += written.inserted
            self.progress.failures += written.failures


def _memory(wanted: Sequence[PlannedNode]) -> int:
    """About how much a batch takes, and what it takes to begin."""
    lengths = (node.span.length for node in wanted if node.span)
    return memory_to_load() + _AT_REST + _PER_BYTE * max(lengths, default=0)


def _group(batches: Iterator[NodeBatch]) -> list[NodeBatch]:
    """As many batches as are surveyed together."""
    group: list[NodeBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += len(batch.nodes)
        if size >= SURVEYED_AT_ONCE:
            break
    return group
