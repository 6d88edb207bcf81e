"""Execution of a plan, batch after batch, until the budget is used up.

The nodes of some batches are inserted first, without bodies. Then each batch stores its bodies in a
pack, and writes its documents together with the references of their nodes. What exists is left as
it is, so any process can repeat any batch at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, select, update

from fonds import ids
from fonds.chunk.tokens import memory_to_load
from fonds.codes.budget import MIB, Meter
from fonds.codes.packs import BatchPacks, PackedSection
from fonds.codes.plan import NodeBatch, PlanHead, PlannedNode
from fonds.context import Context
from fonds.errors import BudgetSpentError, StoreError, StoreUnavailableError
from fonds.model import Archived, Body, Document, NormalizedBody, ParsedRecord
from fonds.normalize.registry import get_normalizer
from fonds.runs.concurrency import in_thread
from fonds.runs.normalization import passages_of, prepare_write
from fonds.sources.jurisdiction import JurisdictionAdapter, Shard
from fonds.stores.database import Database, insert_ignoring, repeatable, upsert
from fonds.stores.documents import DocumentWrite, write_documents
from fonds.stores.sqlite import ROWS_PER_STATEMENT, select_in
from fonds.stores.tables import documents, nodes


@dataclass(frozen=True, slots=True)
class PortionResult:
    """The result of writing a portion of a batch."""

    inserted: int
    """Documents that were new."""
    failures: list[tuple[str, str]]
    """Sections whose bytes are stored but could not be parsed, each with its error."""


_CHECKED_CHARACTERS: Final = 1 << 20
"""Of texts that are kept between the check of their bytes and their writing."""
PENDING: Final = "missing: not loaded yet"
"""The status of a section until its text is loaded."""


def missing_status(error: str) -> str:
    """The status of a section whose text could not be fetched or parsed."""
    return f"missing: {error}"


class SectionWriter:
    """Turns bytes into documents, and writes them with their nodes in one transaction."""

    def __init__(self, adapter: JurisdictionAdapter, head: PlanHead, context: Context) -> None:
        self._adapter = adapter
        self._head = head
        self._pages = dict(head.pages)
        self._context = context
        self._checked: dict[str, tuple[str, NormalizedBody]] = {}
        self._room = _CHECKED_CHARACTERS

    @repeatable
    def add_nodes(self, added: Sequence[PlannedNode]) -> None:
        """Insert nodes without bodies, and the root of the edition with the unit's own."""
        now = self._context.seams.clock.now()
        rows = [self._row(node, now, status=PENDING if node.is_leaf else "") for node in added]
        if any(node.position == 0 for node in added):
            rows.append(self._root_row(now))
        with self._context.database.write() as connection:
            insert_ignoring(connection, nodes, rows)

    @repeatable
    def write(self, sections: Sequence[PackedSection]) -> PortionResult:
        """Write documents, and the references of their nodes; an unreadable one has no document."""
        now = self._context.seams.clock.now()
        rows: list[dict[str, Any]] = []
        writes: list[DocumentWrite] = []
        failures: list[tuple[str, str]] = []
        for section in sections:
            row = self._row(section.node, now, body_ref=section.pack.ref(section.entry))
            rows.append(row)
            try:
                document = self._document(section)
            except (MemoryError, StoreError):
                raise
            except Exception as error:  # noqa: BLE001 — hostile bytes may break a normalizer in any way
                message = f"{type(error).__name__}: {error}"
                failures.append((section.node.id, message))
                row["status"] = missing_status(message)
                continue
            row["label"] = document.title
            writes.append(self._document_write(document))
        # Before the transaction, in which no other process can write.
        chunker = self._context.chunker
        passages = {write.document.id: passages_of(write.document, chunker) for write in writes}
        with self._context.database.write() as connection:
            _write_nodes(connection, rows)
            result = write_documents(
                connection,
                self._context.database.fulltext,
                writes,
                now,
                derive=lambda document: passages[document.id],
            )
        return PortionResult(len(result.inserted), failures)

    @repeatable
    def mark_missing(self, failures: Sequence[tuple[str, str]]) -> None:
        """Record in the nodes of sections why they have no text."""
        statuses = {node_id: missing_status(error) for node_id, error in failures}
        table = nodes.c
        query = select(table.id, table.status).where(table.body_ref.is_(None))
        with self._context.database.write() as connection:
            for row in list(select_in(connection, query, table.id, list(statuses))):
                if row.status != statuses[row.id]:
                    changed = update(nodes).where(table.id == row.id)
                    connection.execute(changed.values(status=statuses[row.id]))

    def check(self, node: PlannedNode, data: bytes, url: str) -> None:
        """Raise the error of bytes that cannot be parsed as a section.

        Its text is kept until the section is written, if there is room.
        """
        shard = self._adapter.shardify(node.leaf(self._head))
        text = get_normalizer(shard.normalizer).to_markdown(data, url)
        if len(text.markdown) <= self._room:
            self._room -= len(text.markdown)
            self._checked[node.id] = (sha256(data).hexdigest(), text)

    def _root_row(self, now: datetime) -> dict[str, Any]:
        root = ids.tree_root(self._head.source, self._head.version)
        return {
            "id": root,
            "source": self._head.source,
            "version": self._head.version,
            "kind": "root",
            "label": self._adapter.info.title,
            "path": "",
            "body_ref": None,
            "unit": root,
            "position": 0,
            "status": None,
            "created_at": int(now.timestamp()),
            "parent": "",
        }

    def _row(
        self, node: PlannedNode, now: datetime, *, body_ref: str | None = None, status: str = ""
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
            "status": status or node.status or None,
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
        text = self._take_checked(section)
        if text is None:
            text = normalizer.to_markdown(section.pack.read(section.entry), section.entry.url)
        ancestors = tuple(step.label for step in section.node.lineage)
        return Body(
            archived=archived,
            format=shard.format,
            normalizer=normalizer.label,
            normalized=replace(text, above=ancestors),
        )

    def _take_checked(self, section: PackedSection) -> NormalizedBody | None:
        """The text of a section that was checked, unless other bytes are in the pack."""
        digest, text = self._checked.pop(section.node.id, ("", None))
        if text is not None:
            self._room += len(text.markdown)
        return text if digest == section.entry.sha256 else None

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


def _write_nodes(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Fill in the references and labels of nodes, where they differ."""
    table = nodes.c
    names = ("label", "status", "body_ref")
    query = select(table.id, *(table[name] for name in names))
    existing: dict[str, tuple[Any, ...]] = {
        row.id: tuple(row[1:])
        for row in select_in(connection, query, table.id, [row["id"] for row in rows])
    }
    changed = [row for row in rows if existing.get(row["id"]) != tuple(row[n] for n in names)]
    upsert(connection, nodes, changed)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """The rows that exist of some batches."""

    existing: frozenset[str]
    """The ids of nodes."""
    references: Mapping[str, str]
    """The `body_ref` of each section that has a document."""

    def missing(self, batch: NodeBatch) -> list[PlannedNode]:
        """The sections of a batch that have no document."""
        return [node for node in batch.leaves if node.id not in self.references]


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
        self._store_error: StoreError | None = None
        self._has_sections = False

    async def run(self, batches: Iterator[NodeBatch], *, first: int = 0) -> bool:
        """Execute batches from `first`; False if the budget is used up before the last one."""
        self.progress.next_batch = first
        waiting = islice(batches, first, None)
        try:
            while group := _group(waiting):
                survey = await in_thread(self._survey, group)
                await self._add_nodes(group, survey)
                for batch in group:
                    await self._try(batch, survey)
                    self.progress.next_batch = batch.number + 1
        except BudgetSpentError:
            return False
        except MemoryError:
            # The next invocation, if there is one, begins without what this one has allocated.
            if self._meter.budget is None:
                raise
            return False
        if self._store_error is not None and not self._has_sections:
            raise self._store_error
        return True

    @repeatable
    def _survey(self, group: Sequence[NodeBatch]) -> Survey:
        """The rows that exist of some batches."""
        table, document_id = nodes.c, documents.c.id
        query = (
            select(table.id, table.body_ref, document_id.label("document_id"))
            .outerjoin(documents, document_id == table.id)
            .where(table.id.in_([node.id for batch in group for node in batch.nodes]))
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return Survey(
            existing=frozenset(row.id for row in rows),
            references={row.id: row.body_ref for row in rows if row.document_id is not None},
        )

    async def _add_nodes(self, group: Sequence[NodeBatch], survey: Survey) -> None:
        every = [node for batch in group for node in batch.nodes]
        added = [node for node in every if node.id not in survey.existing]
        if added:
            self._meter.require(subrequests=_STATEMENTS + len(added) // ROWS_PER_STATEMENT)
            await in_thread(self._writer.add_nodes, added)
            self.progress.inserted += sum(not node.is_leaf for node in added)

    async def _try(self, batch: NodeBatch, survey: Survey) -> None:
        """Execute a batch; one with a damaged pack is noted, and does not stop the others."""
        try:
            await self._execute(batch, survey)
        except StoreUnavailableError:
            raise
        except StoreError as error:
            self._store_error = error
            message = f"{type(error).__name__}: {error}"
            missing = survey.missing(batch) or batch.leaves
            self.progress.failures += [(node.id, message) for node in missing]

    async def _execute(self, batch: NodeBatch, survey: Survey) -> None:
        missing = survey.missing(batch)
        if missing:
            await self._write_missing(batch, missing)
        if len(missing) < len(batch.leaves):
            await self._packs.restore(batch, survey.references)
        # Only now: a batch for which the budget is too small is executed again.
        self._has_sections = True
        old = sum(node.id in survey.existing for node in batch.nodes if not node.is_leaf)
        self.progress.skipped += old + len(batch.leaves) - len(missing)

    async def _write_missing(self, batch: NodeBatch, missing: list[PlannedNode]) -> None:
        self._meter.require(
            subrequests=statements(missing) + self._packs.fetches(batch, missing),
            memory=_memory(missing),
        )
        async for sections in self._packs.sections(batch, missing):
            result = await in_thread(self._writer.write, sections)
            self.progress.inserted += result.inserted
            self.progress.failures += result.failures
        if failures := self._packs.take_failures():
            await in_thread(self._writer.mark_missing, failures)
            self.progress.failures += failures


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
