"""One invocation: as much of a unit as one budget allows.

The first invocation walks the unit and stores the plan. Each of the following continues where the
previous one ended, and looks up existing rows in the database; so any of them can be killed,
repeated, or run by another process. Without a budget there is one invocation for a unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from fonds import ids
from fonds.codes.budget import MIB, Budget, Meter, peak_memory, reset_peak
from fonds.codes.execute import Execution, ExecutionProgress, SectionWriter
from fonds.codes.origin import ArchivingOrigin, EditionOrigin, open_blob, open_location
from fonds.codes.packs import BatchPacks
from fonds.codes.plan import (
    PlanHead,
    head_of,
    pack_prefix,
    plan_key,
    plan_lines,
    read_batches,
    read_head,
    record_plan,
)
from fonds.codes.tree import Walked, walk
from fonds.context import Context
from fonds.errors import BlobExistsError, EditionChangedError
from fonds.runs.concurrency import in_thread
from fonds.seams import charged_to
from fonds.sources.jurisdiction import JurisdictionAdapter, TocNode
from fonds.stores.database import repeatable

REQUESTS_PER_COMPARISON: Final = 16
"""Only some pages of a large unit are compared with its plan: one for so many sub-requests that
are left."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitOrder:
    """A unit to ingest, with the budget of one invocation."""

    source: str
    version: str
    location: str | None
    """The value of `--from`."""
    root: TocNode
    only: tuple[str, ...] = ()
    """Segments below the root, for a part of a unit that is too large to be walked."""
    budget: Budget | None = None
    """The limits of one invocation; None for as much as it takes."""
    first_batch: int = 0
    """The batch after the last one of the previous invocation."""

    @property
    def unit(self) -> str:
        """Its name in every edition."""
        return "/".join([ids.segment(self.root.kind, self.root.number), *self.only])

    @property
    def id(self) -> str:
        """Of its root node."""
        return ids.tree_child(ids.tree_root(self.source, self.version), self.unit)


@dataclass(frozen=True, kw_only=True, slots=True)
class InvocationReport:
    """Results and costs of one invocation."""

    is_done: bool
    """Whether nothing remains."""
    has_planned: bool
    nodes: int
    shards: int
    batches: int
    progress: ExecutionProgress
    http: int
    database: int
    blobs: int
    peak_mib: float
    seconds: float

    @property
    def subrequests(self) -> int:
        """All that counts against the budget."""
        return self.http + self.database + self.blobs


async def invoke(
    order: UnitOrder, adapter: JurisdictionAdapter, context: Context
) -> InvocationReport:
    """Ingest a unit until it is done or the budget is used up."""
    reset_peak()
    clock = context.seams.clock
    started = clock.monotonic()
    meter = Meter(order.budget)
    with charged_to(meter.charge):
        invocation = _Invocation(order, adapter, context, meter)
        head, progress, is_done = await invocation.run()
    return InvocationReport(
        is_done=is_done,
        has_planned=invocation.has_planned,
        nodes=head.nodes,
        shards=head.shards,
        batches=head.batches,
        progress=progress,
        http=meter.usage["http"],
        database=meter.usage["database"],
        blobs=meter.usage["blob"],
        peak_mib=round(peak_memory() / MIB, 1),
        seconds=round(clock.monotonic() - started, 3),
    )


class _Invocation:
    def __init__(
        self, order: UnitOrder, adapter: JurisdictionAdapter, context: Context, meter: Meter
    ) -> None:
        self._order = order
        self._adapter = adapter
        self._context = context
        self._meter = meter
        info = adapter.info
        location = open_location(order.location, info, context)
        self._origin = ArchivingOrigin(location, info, context, version=order.version)
        self._key = plan_key(info.name, order.version, order.unit, info.version)
        self.has_planned = False

    async def run(self) -> tuple[PlanHead, ExecutionProgress, bool]:
        is_planned = await in_thread(self._context.blobs.head, self._key)
        if not is_planned:
            await self._plan()
        lines = self._lines()
        head = read_head(next(lines))
        if is_planned and not self._order.first_batch:
            await self._compare(head)
            await in_thread(self._record, head)
        writer = SectionWriter(self._adapter, head, self._context)
        packs = BatchPacks(
            head,
            self._origin,
            self._context.blobs,
            prefix=pack_prefix(head),
            concurrency=self._adapter.info.fetch_concurrency,
            check=writer.check,
        )
        execution = Execution(head, packs, writer, self._context.database, self._meter)
        first = self._order.first_batch
        is_done = await execution.run(read_batches(head, lines), first=first)
        return head, execution.progress, is_done

    def _lines(self) -> Iterator[bytes]:
        return iter(open_blob(self._context.blobs, self._key))

    async def _plan(self) -> None:
        walked = await walk_order(self._order, self._adapter, self._origin, self._meter)
        head = plan_head(self._order, self._adapter, walked)
        await in_thread(self._store, walked, head)
        self.has_planned = True

    def _store(self, walked: Walked, head: PlanHead) -> None:
        with NamedTemporaryFile() as file:
            file.writelines(plan_lines(walked, head))
            file.flush()
            try:
                self._context.blobs.create(self._key, Path(file.name))
            except BlobExistsError:
                return  # another process was faster; the stored plan is executed
        self._record(head)

    @repeatable
    def _record(self, head: PlanHead) -> None:
        with self._context.database.write() as connection:
            record_plan(connection, head, self._key, self._context.seams.clock.now())

    async def _compare(self, head: PlanHead) -> None:
        """Raise if pages differ from the plan: an edition is immutable."""
        for name, planned in head.pages[: max(1, self._meter.left // REQUESTS_PER_COMPARISON)]:
            if await self._origin.sha256(name) != planned.sha256:
                raise EditionChangedError(
                    f"{name} has changed since edition {head.version} was planned: ingest it "
                    "under another version (--version)"
                )


async def walk_order(
    order: UnitOrder, adapter: JurisdictionAdapter, origin: EditionOrigin, meter: Meter
) -> Walked:
    """Walk the unit of an order under its budget."""
    root_id = ids.tree_root(order.source, order.version)

    def check() -> None:
        meter.require(memory=MIB)

    return await walk(adapter, root_id, order.root, origin, only=order.only, check=check)


def plan_head(order: UnitOrder, adapter: JurisdictionAdapter, walked: Walked) -> PlanHead:
    """The head of the plan of a walked unit."""
    head = head_of(
        walked,
        source=order.source,
        version=order.version,
        adapter=f"{adapter.info.name}@{adapter.info.version}",
        above=ids.tree_root(order.source, order.version),
    )
    return replace(head, id=order.id, unit=order.unit)
