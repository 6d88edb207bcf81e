"""One invocation: as much of a unit as one budget allows.

The first one walks and stores the plan. Each goes on where the one before it ended, and asks the
database what exists; so any of them can be killed, repeated, or run by somebody else.

Invocations in processes of their own, the kernel holding each to its memory.

The child reads its order from the pipe it is given, and answers with one line of JSON. The pipe
stays open as long as its parent lives: a child whose parent was killed ends at once.
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

from fonds import ids
from fonds.codes.budget import MIB, Budget, Meter, memory_in_use, peak_memory, reset_peak
from fonds.codes.execute import Execution, ExecutionProgress, SectionWriter
from fonds.codes.origin import KeptOrigin, PlaceOrigin, open_blob, open_place
from fonds.codes.packs import Bodies
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
        """As a child process tells it."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> InvocationReport:
        """As its parent reads it."""
        progress = ExecutionProgress(**told.pop("progress"))
        progress.failures = [(known, cause) for known, cause in progress.failures]
        return cls(progress=progress, **told)


async def invoke(
    order: UnitOrder, adapter: JurisdictionAdapter, context: Context
) -> InvocationReport:
    """Work on a unit until it is done or the budget is spent."""
    reset_peak()
    clock = context.seams.clock
    began = clock.monotonic()
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
        http=meter.spent["http"],
        database=meter.spent["database"],
        blobs=meter.spent["blob"],
        peak_mib=round(peak_memory() / MIB, 1),
        seconds=round(clock.monotonic() - began, 3),
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
        place = open_place(order.given, info, context)
        self._origin = KeptOrigin(place, info, context, version=order.version)
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
        bodies = Bodies(
            head,
            self._origin,
            self._context.blobs,
            prefix=pack_prefix(head),
            at_once=self._adapter.info.fetch_concurrency,
            check=writer.check,
        )
        execution = Execution(head, bodies, writer, self._context.database, self._meter)
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
                return  # by one who was faster; what is executed is what is stored
        self._record(head)

    def _record(self, head: PlanHead) -> None:
        with self._context.database.write() as connection:
            record_plan(connection, head, self._key, self._context.seams.clock.now())

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


CHILD: Final = "fonds.cli.code_worker"
MEMORY_MIB: Final = 4096
"""What an engine allows an invocation; its own budget is what holds it."""
SECONDS: Final = 6 * 3600.0
"""Likewise: a thousand requests may be slow ones."""
_ROOM: Final = 16 * MIB
"""What walking, or looking what exists, adds to this process."""
_LISTS: Final = ("pages", "optional_pages", "leaf_pages")
# One arena, since freed memory of one is no use to another; and what is freed is given back.
_LEAN: Final = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "MALLOC_MMAP_THRESHOLD_": "131072",
}


@contextmanager
def open_invoker(
    adapter: JurisdictionAdapter, context: Context, *, in_subprocess: bool = False
) -> Iterator[Invoker]:
    """What runs the invocations of a code: this process, unless there is a cluster."""
    address = context.settings.engine
    if address == LOCAL:
        yield Invoker(adapter, context, in_subprocess=in_subprocess)
        return
    with open_engine(address, memory_mib=MEMORY_MIB, seconds=SECONDS) as engine:
        yield Invoker(adapter, context, engine=engine)


class Invoker:
    """Runs invocations in this process while it is small enough, and else in one of their own.

    With an engine, each runs there, and several units may be worked on side by side.
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
        """How many units are worked on at a time."""
        self._outgrown = ""
        """The unit that this process has no room for any more."""

    async def __call__(self, order: UnitOrder) -> InvocationReport:
        """One invocation."""
        if self._engine is not None:
            return await asyncio.to_thread(self._elsewhere, self._engine, order)
        has_room = memory_in_use() + _ROOM <= order.budget.memory_mib * MIB
        if self._in_subprocess or order.id == self._outgrown or not has_room:
            return await invoke_in_subprocess(order, self._context.settings)
        try:
            report = await invoke(order, self._adapter, self._context)
        except UnitTooLargeError:
            # Beside all else that this process holds; a fresh one may have room for it.
            self._outgrown = order.id
            return await invoke_in_subprocess(order, self._context.settings)
        if report.progress.next_batch == order.first_batch:
            self._outgrown = order.id
        return _within(report, order.budget)

    def _elsewhere(self, engine: Engine, order: UnitOrder) -> InvocationReport:
        settings = portable_settings(self._context.settings)
        # Each invocation keeps to the rate by itself; together they are one visitor.
        shared = replace(settings, rate_factor=settings.rate_factor / self.concurrency)
        (outcome,) = engine.run(invoke_order, [(order, shared)])
        report: InvocationReport = outcome.unwrap()
        return report


def invoke_order(item: tuple[UnitOrder, Settings]) -> InvocationReport:
    """One invocation on a machine of a cluster."""
    order, settings = item
    require_local_files(settings)
    return asyncio.run(invoke_in_subprocess(order, settings))


async def invoke_in_subprocess(order: UnitOrder, settings: Settings) -> InvocationReport:
    """One invocation in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        CHILD,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **_LEAN, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps(_order_to_json(order, settings)).encode() + b"\n")
        await child.stdin.drain()
        answer = await child.stdout.read()
        code = await child.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            child.kill()
        raise
    return _read_answer(answer, code, order.budget)


def _read_answer(answer: bytes, code: int, budget: Budget) -> InvocationReport:
    if not answer:
        raise WorkerDiedError(
            f"the invocation's process ended without an answer (exit code {code})"
        )
    told = json.loads(answer)
    if "error" in told:
        raise _revived(told)
    return _within(InvocationReport.from_json(told), budget)


def _within(report: InvocationReport, budget: Budget) -> InvocationReport:
    """The report, unless memory passed the limit without anybody noticing before."""
    if report.peak_mib > budget.memory_mib:
        raise ItemMemoryError(
            f"an invocation took {report.peak_mib} MiB, more than the {budget.memory_mib} allowed"
        )
    return report


def _revived(told: dict[str, Any]) -> FondsError:
    import fonds.errors  # noqa: PLC0415 — by name, as the child told it

    kind = getattr(fonds.errors, told["error"], None)
    if isinstance(kind, type) and issubclass(kind, FondsError):
        return kind(told["message"])
    return FondsError(f"{told['error']}: {told['message']}")


def _order_to_json(order: UnitOrder, settings: Settings) -> dict[str, Any]:
    chosen = {entry.name: getattr(settings, entry.name) for entry in fields(Settings)}
    plain = {name: str(v) if isinstance(v, Path) else v for name, v in chosen.items()}
    return {"order": asdict(order), "settings": {**plain, "hosts": dict(settings.hosts)}}


def read_order(line: bytes) -> tuple[UnitOrder, dict[str, Any]]:
    """The order that a child was given, and its settings."""
    told = json.loads(line)
    order = told["order"]
    span = order["root"]["span"]
    lists = {name: tuple(order["root"][name]) for name in _LISTS}
    root = TocNode(**{**order["root"], **lists, "span": Span(**span) if span else None})
    budget = Budget(**order["budget"])
    known = UnitOrder(**{**order, "root": root, "budget": budget, "only": tuple(order["only"])})
    return known, told["settings"]
