"""Execution of a plan, batch after batch, until the budget is used up.

A batch stores its bodies in a pack, and then its nodes and documents in the database. Existing
ones are left as they are, so any process can repeat any batch at any time.
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
from fonds.codes.packs import BatchPacks, PackedSection
from fonds.codes.plan import NodeBatch, PlanHead, PlannedNode
from fonds.context import Context
from fonds.errors import BudgetSpentError, ParseError
from fonds.model import Archived, Body, Document, NormalizedBody, ParsedRecord
from fonds.normalize.registry import get_normalizer
from fonds.runs.concurrency import in_thread
from fonds.runs.normalization import passages_of, prepare_write
from fonds.sources.jurisdiction import JurisdictionAdapter, Shard
from fonds.stores.database import Database, insert_ignoring, repeatable
from fonds.stores.documents import DocumentWrite, write_documents
from fonds.stores.sqlite import ROWS_PER_STATEMENT, select_in
from fonds.stores.tables import documents, nodes


@dataclass(frozen=True, slots=True)
class PortionResult:
    """The result of writing a portion of a batch."""

    inserted: int
    """Nodes that were new."""
    failures: list[tuple[str, str]]
    """Sections whose bytes are stored but could not be parsed, each with its error."""


class SectionWriter:
    """Turns bytes into documents, and writes them with their nodes in one transaction."""

    def __init__(self, adapter: JurisdictionAdapter, head: PlanHead, context: Context) -> None:
        self._adapter = adapter
        self._head = head
        self._pages = dict(head.pages)
        self._context = context

    @repeatable
    def write(
        self, containers: Sequence[PlannedNode], sections: Sequence[PackedSection]
    ) -> PortionResult:
        """Write missing rows; a section that cannot be parsed has a node and no document."""
        now = self._context.seams.clock.now()
        rows = [self._row(node, now) for node in containers]
        writes: list[DocumentWrite] = []
        failures: list[tuple[str, str]] = []
        for section in sections:
            row = self._row(section.node, now, body_ref=section.pack.ref(section.entry))
            rows.append(row)
            try:
                document = self._document(section)
            except ParseError as error:
                failures.append((section.node.id, f"{type(error).__name__}: {error}"))
                continue
            row["label"] = document.title
            writes.append(self._document_write(document))
        chunker = self._context.chunker
        with self._context.database.write() as connection:
            inserted = _insert_nodes(connection, rows)
            write_documents(
                connection,
                self._context.database.fulltext,
                writes,
                now,
                derive=lambda document: passages_of(document, chunker),
            )
        return PortionResult(inserted, failures)

    def check(self, node: PlannedNode, data: bytes) -> None:
        """Raise the error of bytes that cannot be parsed as a section."""
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
        ancestors = tuple(step.label for step in section.node.lineage)
        return Body(
            archived=archived,
            format=shard.format,
            normalizer=normalizer.label,
            normalized=replace(text, above=ancestors),
        )

    def _document_write(self, document: Document) -> DocumentWrite:
        record = ParsedRecord(
            source=self._head.source,
            table=nodes.name,
            key=document.id,
            payload={"id": document.id},
            document=document,
        )
        write = prepare_write(record, self._head.id, self._context.chunker)
        return replace(write, bundle=self._context.bundle)


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
    node_ids = [row["id"] for row in rows]
    existing = {row.id for row in select_in(connection, select(nodes.c.id), nodes.c.id, node_ids)}
    new = [row for row in rows if row["id"] not in existing]
    insert_ignoring(connection, nodes, new)
    return len(new)


LOOKUP_SIZE: Final = 2000
"""Nodes that one statement looks up."""
_STATEMENTS: Final = 20
"""Sub-requests of a batch of any size: measured, and rounded up."""
_ROWS_PER_SECTION: Final = 14
"""Node, document, version, names and queues of a section."""
_SOURCE_BYTES_PER_ROW: Final = 500
"""A passage and its full-text entry are made of twice as many bytes, or more."""
_FETCHED_BYTES: Final = 1 << 14
"""An estimate of the length of a section that is yet to be fetched."""
_BYTES_PER_BATCH: Final = 8 * MIB
_BYTES_PER_SOURCE_BYTE: Final = 8
"""Memory for each byte of the longest body of a batch: its tree, text and passages."""


@dataclass(kw_only=True, slots=True)
class ExecutionProgress:
    """Counts of an execution, and the batch to continue with."""

    inserted: int = 0
    """Nodes that were new."""
    skipped: int = 0
    """Nodes that existed with their documents."""
    next_batch: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Sections that are missing, each with its error."""


class Execution:
    """One invocation's work on one plan."""

    def __init__(
        self,
        head: PlanHead,
        packs: BatchPacks,
        writer: SectionWriter,
        database: Database,
        meter: Meter,
    ) -> None:
        self._head = head
        self._packs = packs
        self._writer = writer
        self._database = database
        self._meter = meter
        self.progress = ExecutionProgress()

    async def run(self, batches: Iterator[NodeBatch], *, first: int = 0) -> bool:
        """Execute batches from `first`; False if the budget is used up before the last one."""
        self.progress.next_batch = first
        waiting = islice(batches, first, None)
        try:
            while group := _group(waiting):
                complete = await in_thread(self._complete_nodes, group)
                for batch in group:
                    await self._execute(batch, complete)
                    self.progress.next_batch = batch.number + 1
        except BudgetSpentError:
            return False
        return True

    @repeatable
    def _complete_nodes(self, group: Sequence[NodeBatch]) -> set[str]:
        """The ids of existing nodes; of leaves only those with a document."""
        table, document_id = nodes.c, documents.c.id
        query = (
            select(table.id, table.body_ref, document_id.label("document_id"))
            .outerjoin(documents, document_id == table.id)
            .where(table.id.in_([node.id for batch in group for node in batch.nodes]))
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return {row.id for row in rows if row.body_ref is None or row.document_id is not None}

    async def _execute(self, batch: NodeBatch, complete: set[str]) -> None:
        missing = [node for node in batch.nodes if node.id not in complete]
        if missing:
            await self._write_missing(batch, missing)
        # Only now: a batch for which the budget is too small is executed again.
        self.progress.skipped += len(batch.nodes) - len(missing)

    async def _write_missing(self, batch: NodeBatch, missing: list[PlannedNode]) -> None:
        leaves = [node for node in missing if node.is_leaf]
        self._meter.require(
            subrequests=statements(leaves) + self._packs.fetches(batch, leaves),
            memory=_memory(leaves),
        )
        containers = [node for node in missing if not node.is_leaf]
        async for sections in self._packs.sections(batch, leaves):
            await self._write(containers, sections)
            containers = []
        await self._write(containers, [])
        self.progress.failures += self._packs.take_failures()

    async def _write(self, containers: list[PlannedNode], sections: list[PackedSection]) -> None:
        if containers or sections:
            result = await in_thread(self._writer.write, containers, sections)
            self.progress.inserted += result.inserted
            self.progress.failures += result.failures


def statements(leaves: Sequence[PlannedNode]) -> int:
    """An estimate of the sub-requests that a batch needs besides its fetches."""
    size = sum(node.span.length if node.span else _FETCHED_BYTES for node in leaves)
    rows = len(leaves) * _ROWS_PER_SECTION + size // _SOURCE_BYTES_PER_ROW
    return _STATEMENTS + rows // ROWS_PER_STATEMENT


def _memory(leaves: Sequence[PlannedNode]) -> int:
    """An estimate of the memory that a batch needs, tokenizer included."""
    lengths = (node.span.length for node in leaves if node.span)
    return memory_to_load() + _BYTES_PER_BATCH + _BYTES_PER_SOURCE_BYTE * max(lengths, default=0)


def _group(batches: Iterator[NodeBatch]) -> list[NodeBatch]:
    """The batches whose nodes are looked up together."""
    group: list[NodeBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += len(batch.nodes)
        if size >= LOOKUP_SIZE:
            break
    return group
