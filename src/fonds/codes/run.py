"""A run over a code: its units one after the other, each in as many invocations as it takes.

What the plans of a code say should be there, against what is.

What a unit will cost, before anything is written: sub-requests, bytes, invocations.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from sqlalchemy import select

from fonds import ids
from fonds.codes.budget import Budget, Meter
from fonds.codes.execute import STATEMENTS
from fonds.codes.invocation import (
    InvocationReport,
    UnitOrder,
    open_invoker,
    plan_head,
    walk_order,
)
from fonds.codes.origin import PlaceOrigin, open_blob, open_place
from fonds.codes.plan import NodeBatch, PlanHead, plan_lines, read_batches, read_head, settle
from fonds.context import Context
from fonds.errors import LeaseLostError, SuspiciousYieldError, UnitTooLargeError, UsageError
from fonds.fetch.rates import logged_to
from fonds.model import Counts
from fonds.runs.active_run import ActiveRun, start_run
from fonds.runs.audit import Audit, AuditScope, compare, complete_audit
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.runs.tasks import Failure, Stage, record_failures, record_loaded, resolve
from fonds.seams import charged_to
from fonds.sources.base import Expected
from fonds.sources.jurisdiction import JurisdictionAdapter, TocNode
from fonds.stores.tables import code_units

Invoke = Callable[[UnitOrder], Awaitable[InvocationReport]]
"""Runs one invocation: here, in a process of its own, or on a cluster."""
SHOWN_FAILURES: Final = 3
_DISCOVERY: Final = "discover"
_PATIENCE: Final = 2
"""Invocations in a row without a batch done: one that planned, or had no room, and a fresh one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeRequest:
    """What somebody wants of a code."""

    version: str | None = None
    """The edition; None is the newest."""
    given: str | None = None
    """A file, folder or address to read it from; None is the publisher."""
    units: tuple[str, ...] = ()
    """Only these: `title-42`, or a part of one, `title-42/chapter-7`."""
    budget: Budget = field(default_factory=Budget)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CodeRequest:
        """From the options of a run, as `ingestion_runs.config` keeps them."""
        known: dict[str, Any] = {
            name: options[name] for name in ("version", "given") if options.get(name)
        }
        units = tuple(options.get("units", ()))
        return cls(units=units, budget=Budget(**options.get("budget", {})), **known)

    def as_options(self) -> dict[str, Any]:
        """As `of` reads them."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitReport:
    """What came of one unit."""

    id: str
    nodes: int = 0
    shards: int = 0
    inserted: int = 0
    skipped: int = 0
    invocations: tuple[InvocationReport, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    """Sections that are missing, each with the cause."""
    error: str | None = None
    """Why the unit as a whole failed."""


async def find_orders(
    adapter: JurisdictionAdapter, request: CodeRequest, context: Context
) -> list[UnitOrder]:
    """The units asked for, in the edition asked for, as the publisher's index tells them."""
    place = open_place(request.given, adapter.info, context)
    with charged_to(Meter(request.budget).charge):
        origin = PlaceOrigin(place)
        try:
            version = request.version or await adapter.newest_version(origin)
            origin.version = version
            roots = [root async for root in adapter.discover_unit_roots(origin)]
        finally:
            await origin.close()
    if not roots:
        raise SuspiciousYieldError(f"{adapter.info.title} {version} has no {adapter.info.unit}")
    plain = UnitOrder(
        source=adapter.info.name,
        version=version,
        given=request.given,
        root=roots[0],
        budget=request.budget,
    )
    orders = [replace(plain, root=root) for root in _numbered(roots)]
    return _chosen(orders, request.units) if request.units else orders


def _numbered(roots: Sequence[TocNode]) -> Sequence[TocNode]:
    segments = [ids.segment(root.kind, root.number) for root in roots]
    if len(set(segments)) < len(segments):
        twice = next(name for name in segments if segments.count(name) > 1)
        raise SuspiciousYieldError(f"two units are called {twice}")
    return roots


def _chosen(orders: Sequence[UnitOrder], names: Sequence[str]) -> list[UnitOrder]:
    by_name = {order.unit: order for order in orders}
    chosen = []
    for name in names:
        unit, *only = name.strip("/").split("/")
        if unit not in by_name:
            some = ", ".join(list(by_name)[:10])
            raise UsageError(f"there is no unit {unit!r}; there are {len(by_name)}: {some}, …")
        chosen.append(replace(by_name[unit], only=tuple(only)))
    return chosen


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeReport:
    """What came of a run over a code."""

    run: RunReport
    units: tuple[UnitReport, ...] = ()


async def run_code(
    adapter: JurisdictionAdapter,
    request: RunRequest,
    context: Context,
    *,
    in_subprocess: bool = False,
) -> CodeReport:
    """Bring the edition that the options of the request name up to date, or the newest.

    `in_subprocess` gives each invocation a process of its own.
    """
    with open_invoker(adapter, context, in_subprocess=in_subprocess) as invoker:
        return await run_units(adapter, request, context, invoker, concurrency=invoker.concurrency)


async def run_units(
    adapter: JurisdictionAdapter,
    request: RunRequest,
    context: Context,
    invoke: Invoke,
    *,
    concurrency: int = 1,
) -> CodeReport:
    """As `run_code`, with a function that runs the invocations, several units at a time."""
    async with start_run(adapter, request, context) as active:
        work = _CodeRun(active, invoke, asyncio.Semaphore(concurrency))
        await work.run_units(CodeRequest.of(request.options))
        work.finish()
    return CodeReport(run=active.report, units=tuple(work.reports))


@dataclass(slots=True)
class _CodeRun:
    active: ActiveRun[JurisdictionAdapter]
    invoke: Invoke
    slots: asyncio.Semaphore
    """As many as units may be worked on at a time."""
    reports: list[UnitReport] = field(default_factory=list)

    async def run_units(self, request: CodeRequest) -> None:
        """Bring units up to date, in their order; one that fails does not stop the others."""
        stage = self.active.run.stages.discover
        began = stage.begin()
        try:
            with logged_to(stage):
                orders = await find_orders(self.active.source, request, self.active.context)
        except Exception as error:  # noqa: BLE001 — whatever an adapter raises is its failure
            self._fail(_DISCOVERY, error, "discover")
            return
        finally:
            stage.end(began)
        self._resolve([_DISCOVERY])
        self.active.run.count(discovered=len(orders))
        stage.finish(len(orders))
        units = [asyncio.ensure_future(self._run_unit(order)) for order in orders]
        try:
            self.reports += await asyncio.gather(*units)
        finally:
            for unit in units:
                unit.cancel()

    async def _run_unit(self, order: UnitOrder) -> UnitReport:
        async with self.slots:
            try:
                return await self._execute(order)
            except LeaseLostError:
                raise
            except Exception as error:  # noqa: BLE001 — hostile bytes may break a parser in any way
                self._fail(order.id, error, "parse")
                return UnitReport(id=order.id, error=f"{type(error).__name__}: {error}")

    def finish(self) -> None:
        """Record the end of the run."""
        counts = self.active.run.counts
        if not counts.error:
            self.active.finish(RunStatus.SUCCESS)
        else:
            loaded = counts.inserted + counts.skipped
            self.active.finish(
                RunStatus.PARTIAL if loaded else RunStatus.FAILED, self.active.run.first_error
            )

    async def _execute(self, order: UnitOrder) -> UnitReport:
        done: list[InvocationReport] = []
        async for report in self._invocations(order):
            done.append(report)
            self.active.run.add(
                Counts(inserted=report.progress.inserted, skipped=report.progress.skipped)
            )
            self.active.context.progress(order.source, self.active.run.counts)
        failures = tuple(failure for report in done for failure in report.progress.failures)
        self._settle(order, failures)
        return UnitReport(
            id=order.id,
            nodes=done[-1].nodes,
            shards=done[-1].shards,
            inserted=sum(report.progress.inserted for report in done),
            skipped=sum(report.progress.skipped for report in done),
            invocations=tuple(done),
            failures=failures,
        )

    async def _invocations(self, order: UnitOrder) -> AsyncIterator[InvocationReport]:
        """One after the other until nothing remains; two that get nowhere are the last."""
        stuck = 0
        while True:
            report = await self._invoked(order)
            yield report
            if report.is_done:
                return
            stuck = stuck + 1 if report.progress.next_batch == order.first_batch else 0
            if stuck == _PATIENCE:
                raise UnitTooLargeError(
                    f"{order.unit}: one batch needs more than an invocation of "
                    f"{order.budget.subrequests} sub-requests and {order.budget.memory_mib} MiB; "
                    "allow more (--max-subrequests, --max-memory-mib)"
                )
            order = replace(order, first_batch=report.progress.next_batch)

    async def _invoked(self, order: UnitOrder) -> InvocationReport:
        """One invocation fetches, parses and loads; all of it counts as loading."""
        stage = self.active.run.stages.load
        began = stage.begin()
        try:
            with logged_to(stage):
                return await self.invoke(order)
        finally:
            stage.end(began)

    def _settle(self, order: UnitOrder, failures: Sequence[tuple[str, str]]) -> None:
        """A unit's row in the run: loaded, or errored with the sections that are missing."""
        now = self.active.context.seams.clock.now()
        with self.active.context.database.write() as connection:
            self.active.lock.confirm(connection)
            settle(connection, order.id, "partial" if failures else "complete", now)
        if failures:
            shown = "; ".join(f"{known}: {cause}" for known, cause in failures[:SHOWN_FAILURES])
            more = len(failures) - SHOWN_FAILURES
            shown += f" and {more} more" if more > 0 else ""
            error = SuspiciousYieldError(f"{len(failures)} sections are missing: {shown}")
            self._fail(order.id, error, "fetch")
        else:
            self._resolve([order.id], loaded=True)

    def _resolve(self, keys: list[str], *, loaded: bool = False) -> None:
        now = self.active.context.seams.clock.now()
        with self.active.context.database.write() as connection:
            self.active.lock.confirm(connection)
            if loaded:
                record_loaded(connection, self.active.run.id, self.active.run.source, keys, now)
            resolve(connection, self.active.run.source, keys, now)
            self.active.run.save(connection)

    def _fail(self, key: str, error: Exception, stage: Stage) -> None:
        now = self.active.context.seams.clock.now()
        failure = Failure.of(error, stage, key)
        self.active.run.count(error=1)
        self.active.run.first_error = self.active.run.first_error or f"{key}: {failure.error}"
        self.active.run.log("error", failure.error, unit=key, type=failure.error_type)
        with self.active.context.database.write() as connection:
            self.active.lock.confirm(connection)
            record_failures(
                connection,
                self.active.run.id,
                self.active.run.source,
                [failure],
                earlier=self.active.open_errors,
                now=now,
            )
            self.active.run.save(connection)


def audit_code(adapter: JurisdictionAdapter, context: Context) -> Audit:
    """Count every planned section of every edition; a unit that could not be planned has failed."""
    table = code_units.c
    query = select(table.id, table.plan_key).where(table.source == adapter.info.name)
    with context.database.read() as connection:
        planned = connection.execute(query.order_by(table.id)).all()
    scopes = [_unit(context, row.id, row.plan_key) for row in planned]
    return complete_audit(adapter, context, scopes)


def _unit(context: Context, unit_id: str, plan_key: str) -> AuditScope:
    expected = 0
    missing: list[str] = []
    for sections in _sections(context, plan_key):
        found = compare(context.database, Expected(scope=unit_id, document_ids=sections))
        expected += found.expected
        missing += found.missing
    return AuditScope(name=unit_id, expected=expected, missing=tuple(missing))


def _sections(context: Context, plan_key: str) -> Iterator[frozenset[str]]:
    lines = iter(open_blob(context.blobs, plan_key))
    for batch in read_batches(read_head(next(lines)), lines):
        yield frozenset(node.id for node in batch.leaves)


_PLANNING: Final = 12
"""Sub-requests for storing and reading a plan, and for noting what came of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitPlan:
    """A unit that was walked and not executed."""

    id: str
    nodes: int
    shards: int
    bytes: int
    """Of bodies cut out of files; those that are pages of their own are not known before."""
    walked: int
    """Sub-requests that the walk made."""
    fetches: int
    """Bodies that are pages of their own."""
    subrequests: int
    """That executing it will make, at most about."""
    invocations: int


async def plan_unit(order: UnitOrder, adapter: JurisdictionAdapter, context: Context) -> UnitPlan:
    """Walk a unit, writing nothing, and say what executing it will cost."""
    meter = Meter(order.budget)
    origin = PlaceOrigin(open_place(order.given, adapter.info, context), version=order.version)
    try:
        with charged_to(meter.charge):
            walked = await walk_order(order, adapter, origin, meter)
    finally:
        await origin.close()
    head = plan_head(order, adapter, walked)
    _, *lines = plan_lines(walked, head)
    costs = [_cost(head, batch) for batch in read_batches(head, lines)]
    walking = meter.subrequests + len(head.pages) + _PLANNING
    if max(costs) + _PLANNING > order.budget.subrequests:
        raise UnitTooLargeError(
            f"one batch of {order.unit} takes about {max(costs)} sub-requests, and its plan "
            f"{_PLANNING}: allow more than {order.budget.subrequests} (--max-subrequests)"
        )
    return UnitPlan(
        id=head.id,
        nodes=head.nodes,
        shards=head.shards,
        bytes=head.bytes,
        walked=meter.subrequests,
        fetches=head.fetches,
        subrequests=walking + sum(costs),
        invocations=_invocations(walking, costs, order.budget.subrequests),
    )


def _cost(head: PlanHead, batch: NodeBatch) -> int:
    walked = {name for name, _ in head.pages}
    return STATEMENTS + sum(node.page not in walked for node in batch.leaves)


def _invocations(walking: int, costs: list[int], limit: int) -> int:
    """How many budgets it takes if no batch is divided."""
    count, left = 1, limit - walking
    for cost in costs:
        if cost > left:
            count, left = count + 1, limit - _PLANNING
        left -= cost
    return count
