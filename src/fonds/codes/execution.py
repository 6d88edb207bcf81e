"""Executing a plan: batch after batch, each checked for what exists, as far as the budget reaches.

A batch puts its bodies into a pack, and then its nodes and documents into the database. Whatever
is there already is left alone, so any batch can be repeated at any time, by anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from sqlalchemy import select

from fonds.chunk.tokens import memory_to_load
from fonds.codes.bodies import Bodies, Found
from fonds.codes.budget import MIB, Meter
from fonds.codes.plan import Batch, PlanHead, PlannedNode
from fonds.codes.sections import SectionWriter
from fonds.codes.thread import in_thread
from fonds.errors import BudgetSpentError
from fonds.stores.database import Database
from fonds.stores.tables import documents, nodes

SURVEYED_AT_ONCE: Final = 2000
"""Nodes looked up by one statement."""
STATEMENTS: Final = 20
"""Sub-requests that a batch needs beside its fetches: counted, and rounded up."""
_AT_REST: Final = 8 * MIB
_PER_BYTE: Final = 8
"""Memory for a batch, and for each byte of its longest body: its tree, text and passages."""


@dataclass(kw_only=True, slots=True)
class Progress:
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
        self.progress = Progress()

    async def run(self, batches: Iterator[Batch], *, first: int = 0) -> bool:
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

    def _survey(self, group: Sequence[Batch]) -> set[str]:
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

    async def _take(self, batch: Batch, complete: set[str]) -> None:
        missing = [node for node in batch.nodes if node.id not in complete]
        if missing:
            await self._make(batch, missing)
        # Not before: a batch for which the budget was too small is taken again.
        self.progress.skipped += len(batch.nodes) - len(missing)

    async def _make(self, batch: Batch, missing: list[PlannedNode]) -> None:
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

    async def _write(self, containers: list[PlannedNode], found: list[Found]) -> None:
        if containers or found:
            written = await in_thread(self._writer.write, containers, found)
            self.progress.inserted += written.inserted
            self.progress.failures += written.failures


def _memory(wanted: Sequence[PlannedNode]) -> int:
    """About how much a batch takes, and what it takes to begin."""
    lengths = (node.span.length for node in wanted if node.span)
    return memory_to_load() + _AT_REST + _PER_BYTE * max(lengths, default=0)


def _group(batches: Iterator[Batch]) -> list[Batch]:
    """As many batches as are surveyed together."""
    group: list[Batch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += len(batch.nodes)
        if size >= SURVEYED_AT_ONCE:
            break
    return group
