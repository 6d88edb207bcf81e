"""One invocation: as much of a unit as one budget allows.

The first one walks and stores the plan. Each goes on where the one before it ended, and asks the
database what exists; so any of them can be killed, repeated, or run by somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from fonds import ids
from fonds.codes.bodies import Bodies
from fonds.codes.budget import MIB, Budget, Meter, peak, reset_peak
from fonds.codes.execution import Execution, Progress
from fonds.codes.origin import KeptOrigin, PlaceOrigin, open_place
from fonds.codes.pages import open_blob
from fonds.codes.plan import PlanHead, head_of, plan_lines, read_batches, read_head
from fonds.codes.sections import SectionWriter
from fonds.codes.thread import in_thread
from fonds.codes.units import pack_prefix, plan_key, record_plan
from fonds.codes.walk import Walked, walk
from fonds.errors import BlobExistsError, EditionChangedError
from fonds.runs.context import Workplace
from fonds.seams import charged_to
from fonds.sources.jurisdiction import JurisdictionAdapter, TocNode

COMPARING: Final = 16
"""Of a unit with many pages only some are compared with what was planned: one for so many
sub-requests that may be made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitOrder:
    """A unit to be worked on."""

    source: str
    version: str
    given: str | None
    """What `--from` said."""
    root: TocNode
    only: tuple[str, ...] = ()
    """Segments below the root, of a unit that is a part of one too large to be walked."""
    budget: Budget = field(default_factory=Budget)
    first_batch: int = 0
    """Where the invocation before this one ended."""

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
    """What one invocation did and cost."""

    is_done: bool
    """Whether nothing remains."""
    has_planned: bool
    nodes: int
    shards: int
    batches: int
    progress: Progress
    http: int
    database: int
    blobs: int
    peak_mib: float
    seconds: float

    @property
    def subrequests(self) -> int:
        """All that counts against the budget."""
        return self.http + self.database + self.blobs

    def to_json(self) -> dict[str, Any]:
        """As a child process tells it."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> InvocationReport:
        """As its parent reads it."""
        progress = Progress(**told.pop("progress"))
        progress.failures = [(known, cause) for known, cause in progress.failures]
        return cls(progress=progress, **told)


async def invoke(
    order: UnitOrder, adapter: JurisdictionAdapter, workplace: Workplace
) -> InvocationReport:
    """Work on a unit until it is done or the budget is spent."""
    reset_peak()
    clock = workplace.seams.clock
    began = clock.monotonic()
    meter = Meter(order.budget)
    with charged_to(meter.charge):
        invocation = _Invocation(order, adapter, workplace, meter)
        head, progress, is_done = await invocation.run()
    return InvocationReport(
        is_done=is_done,
        has_planned=invocation.has_planned,
        nodes=head.nodes,
        shards=head.shards,
        batches=head.batches,
        progress=progress,
        http=meter.spent["http"],
        database=meter.spent["database"],
        blobs=meter.spent["blob"],
        peak_mib=round(peak() / MIB, 1),
        seconds=round(clock.monotonic() - began, 3),
    )


class _Invocation:
    def __init__(
        self, order: UnitOrder, adapter: JurisdictionAdapter, workplace: Workplace, meter: Meter
    ) -> None:
        self._order = order
        self._adapter = adapter
        self._workplace = workplace
        self._meter = meter
        info = adapter.info
        place = open_place(order.given, info, workplace)
        self._origin = KeptOrigin(place, info, workplace, version=order.version)
        self._key = plan_key(info.name, order.version, order.unit, info.version)
        self.has_planned = False

    async def run(self) -> tuple[PlanHead, Progress, bool]:
        is_planned = await in_thread(self._workplace.blobs.head, self._key)
        if not is_planned:
            await self._plan()
        lines = self._lines()
        head = read_head(next(lines))
        if is_planned and not self._order.first_batch:
            await self._compare(head)
            await in_thread(self._record, head)
        writer = SectionWriter(self._adapter, head, self._workplace)
        bodies = Bodies(
            head,
            self._origin,
            self._workplace.blobs,
            prefix=pack_prefix(head),
            at_once=self._adapter.info.fetch_concurrency,
            check=writer.check,
        )
        execution = Execution(head, bodies, writer, self._workplace.database, self._meter)
        first = self._order.first_batch
        is_done = await execution.run(read_batches(head, lines), first=first)
        return head, execution.progress, is_done

    def _lines(self) -> Iterator[bytes]:
        return iter(open_blob(self._workplace.blobs, self._key))

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
                self._workplace.blobs.create(self._key, Path(file.name))
            except BlobExistsError:
                return  # by one who was faster; what is executed is what is stored
        self._record(head)

    def _record(self, head: PlanHead) -> None:
        with self._workplace.database.write() as connection:
            record_plan(connection, head, self._key, self._workplace.seams.clock.now())

    async def _compare(self, head: PlanHead) -> None:
        """An edition is immutable: other bytes under its stamp are an error, not an update."""
        for name, planned in head.pages[: max(1, self._meter.left // COMPARING)]:
            if await self._origin.sha256(name) != planned.sha256:
                raise EditionChangedError(
                    f"{name} is not the file that edition {head.version} was made from: ingest it "
                    "under another version"
                )


async def walk_order(
    order: UnitOrder, adapter: JurisdictionAdapter, origin: PlaceOrigin, meter: Meter
) -> Walked:
    """The tree of what an order asks for, walked under its budget."""
    above = ids.tree_root(order.source, order.version)

    def check() -> None:
        meter.require(memory=MIB)

    return await walk(adapter, above, order.root, origin, only=order.only, check=check)


def plan_head(order: UnitOrder, adapter: JurisdictionAdapter, walked: Walked) -> PlanHead:
    """What is known of a unit once it is walked."""
    head = head_of(
        walked,
        source=order.source,
        version=order.version,
        adapter=f"{adapter.info.name}@{adapter.info.version}",
        above=ids.tree_root(order.source, order.version),
    )
    return replace(head, id=order.id, unit=order.unit)
