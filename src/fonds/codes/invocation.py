"""One invocation: as much of a unit as one budget allows.

The first invocation walks the unit and stores the plan. Each of the following continues where the
previous one ended, and looks up existing rows in the database; so any of them can be killed,
repeated, or run by another process.

An invocation may run in a child process, whose memory the kernel limits. The child reads its order
from a pipe and writes one line of JSON. The pipe stays open while the parent is running: a child
whose parent was killed exits immediately.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from fonds import errors, ids
from fonds.codes.budget import MIB, Budget, Meter, memory_in_use, peak_memory, reset_peak
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
from fonds.engine.base import Engine, portable_settings, require_local_files
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import (
    BlobExistsError,
    EditionChangedError,
    FondsError,
    ItemMemoryError,
    UnitTooLargeError,
    WorkerDiedError,
)
from fonds.runs.concurrency import in_thread
from fonds.seams import charged_to
from fonds.settings import Settings
from fonds.sources.jurisdiction import JurisdictionAdapter, Span, TocNode
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
    budget: Budget = field(default_factory=Budget)
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

    def to_json(self) -> dict[str, Any]:
        """The line that a child process writes."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> InvocationReport:
        """Read the line of a child process."""
        progress = ExecutionProgress(**values.pop("progress"))
        progress.failures = [(section_id, error) for section_id, error in progress.failures]
        return cls(progress=progress, **values)


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


CHILD: Final = "fonds.cli.code_worker"
MEMORY_MIB: Final = 4096
"""The limit of an engine for an invocation, far above the budget of the invocation."""
SECONDS: Final = 6 * 3600.0
"""The time limit of an engine; a thousand requests may be slow."""
_MEMORY_RESERVE: Final = 16 * MIB
"""Memory that a walk or a lookup of existing rows needs."""
_TUPLE_FIELDS: Final = ("pages", "optional_pages", "leaf_pages")
# One arena, since arenas do not reuse each other's memory; freed memory is returned to the system.
_MALLOC_OPTIONS: Final = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "MALLOC_MMAP_THRESHOLD_": "131072",
}


@contextmanager
def open_invoker(
    adapter: JurisdictionAdapter, context: Context, *, in_subprocess: bool = False
) -> Iterator[Invoker]:
    """Open the runner of invocations: this process, or a cluster if the settings name one."""
    address = context.settings.engine
    if address == LOCAL:
        yield Invoker(adapter, context, in_subprocess=in_subprocess)
        return
    with open_engine(address, memory_mib=MEMORY_MIB, seconds=SECONDS) as engine:
        yield Invoker(adapter, context, engine=engine)


class Invoker:
    """Runs invocations in this process while it is small enough, else in a child process.

    With an engine, each runs there, and several units run concurrently.
    """

    def __init__(
        self,
        adapter: JurisdictionAdapter,
        context: Context,
        *,
        in_subprocess: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self._adapter = adapter
        self._context = context
        self._in_subprocess = in_subprocess
        self._engine = engine
        self.concurrency = engine.workers if engine else 1
        """The number of units that run concurrently."""
        self._too_large = ""
        """The id of the unit for which this process has too little memory left."""

    async def __call__(self, order: UnitOrder) -> InvocationReport:
        """Run one invocation."""
        if self._engine is not None:
            return await asyncio.to_thread(self._run_on_engine, self._engine, order)
        has_memory = memory_in_use() + _MEMORY_RESERVE <= order.budget.memory_mib * MIB
        if self._in_subprocess or order.id == self._too_large or not has_memory:
            return await invoke_in_subprocess(order, self._context.settings)
        try:
            report = await invoke(order, self._adapter, self._context)
        except UnitTooLargeError:
            # This process uses memory for other things; a new process may have enough.
            self._too_large = order.id
            return await invoke_in_subprocess(order, self._context.settings)
        if report.progress.next_batch == order.first_batch:
            self._too_large = order.id
        return _checked(report, order.budget)

    def _run_on_engine(self, engine: Engine, order: UnitOrder) -> InvocationReport:
        settings = portable_settings(self._context.settings)
        # Each invocation limits its own rate; together they must not exceed it.
        shared = replace(settings, rate_factor=settings.rate_factor / self.concurrency)
        (outcome,) = engine.run(invoke_order, [(order, shared)])
        report: InvocationReport = outcome.unwrap()
        return report


def invoke_order(item: tuple[UnitOrder, Settings]) -> InvocationReport:
    """Run one invocation on a machine of a cluster."""
    order, settings = item
    require_local_files(settings)
    return asyncio.run(invoke_in_subprocess(order, settings))


async def invoke_in_subprocess(order: UnitOrder, settings: Settings) -> InvocationReport:
    """Run one invocation in a child process."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        CHILD,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            **_MALLOC_OPTIONS,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps(_order_to_json(order, settings)).encode() + b"\n")
        await child.stdin.drain()
        output = await child.stdout.read()
        code = await child.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            child.kill()
        raise
    return _read_report(output, code, order.budget)


def _read_report(output: bytes, code: int, budget: Budget) -> InvocationReport:
    if not output:
        raise WorkerDiedError(f"the invocation's process ended without a report (exit code {code})")
    values = json.loads(output)
    if "error" in values:
        raise _error_from_json(values)
    return _checked(InvocationReport.from_json(values), budget)


def _checked(report: InvocationReport, budget: Budget) -> InvocationReport:
    """The report; raises if the peak of memory exceeded the limit."""
    if report.peak_mib > budget.memory_mib:
        raise ItemMemoryError(
            f"an invocation took {report.peak_mib} MiB, more than the {budget.memory_mib} allowed"
        )
    return report


def _error_from_json(values: dict[str, Any]) -> FondsError:
    kind = getattr(errors, values["error"], None)
    if isinstance(kind, type) and issubclass(kind, FondsError):
        return kind(values["message"])
    return FondsError(f"{values['error']}: {values['message']}")


def _order_to_json(order: UnitOrder, settings: Settings) -> dict[str, Any]:
    values = {entry.name: getattr(settings, entry.name) for entry in fields(Settings)}
    encoded = {name: str(v) if isinstance(v, Path) else v for name, v in values.items()}
    return {"order": asdict(order), "settings": {**encoded, "hosts": dict(settings.hosts)}}


def read_order(line: bytes) -> tuple[UnitOrder, dict[str, Any]]:
    """Read the order of a child process, and its settings."""
    values = json.loads(line)
    fields_of_order = values["order"]
    span = fields_of_order["root"]["span"]
    tuples = {name: tuple(fields_of_order["root"][name]) for name in _TUPLE_FIELDS}
    root = TocNode(**{**fields_of_order["root"], **tuples, "span": Span(**span) if span else None})
    budget, only = Budget(**fields_of_order["budget"]), tuple(fields_of_order["only"])
    order = UnitOrder(**{**fields_of_order, "root": root, "budget": budget, "only": only})
    return order, values["settings"]
