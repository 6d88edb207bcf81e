"""A run over a code: its units one after the other, each in as many invocations as it takes.

What the plans of a code say should be there, against what is.

What a unit will cost, before anything is written: sub-requests, bytes, invocations.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from sqlalchemy import select

from fonds import ids
from fonds.codes.budget import Budget, Meter
from fonds.codes.execute import statements
from fonds.codes.invocation import (
    InvocationReport,
    UnitOrder,
    plan_head,
    walk_order,
)
from fonds.codes.invokers import open_invoker
from fonds.codes.origin import (
    EditionOrigin,
    is_address,
    local_size,
    open_blob,
    open_location,
)
from fonds.codes.plan import NodeBatch, PlanHead, plan_lines, read_batches, read_head, update_unit
from fonds.codes.tree import Walked, list_parts
from fonds.context import Context
from fonds.errors import (
    FondsError,
    LeaseLostError,
    StoreUnavailableError,
    SuspiciousYieldError,
    UnitTooLargeError,
    UsageError,
)
from fonds.fetch.rates import logged_to
from fonds.model import Counts
from fonds.runs.active_run import ActiveRun, start_run
from fonds.runs.audit import Audit, AuditScope, compare, complete_audit
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.runs.tasks import Failure, Stage, record_failures, record_loaded, resolve
from fonds.seams import charged_to
from fonds.sources.base import Expected
from fonds.sources.jurisdiction import JurisdictionAdapter, TocNode
from fonds.stores.database import repeatable
from fonds.stores.tables import code_units, nodes

Invoke = Callable[[UnitOrder], Awaitable[InvocationReport]]
"""Runs one invocation: in this process, in another one, or on a cluster."""
LISTED_FAILURES: Final = 3
LISTED_FILES: Final = 100
_DISCOVERY: Final = "discover"
_MAX_STUCK: Final = 2
"""Invocations in a row that wrote nothing: one may have planned, or had too little memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeRequest:
    """The edition and units of a code to ingest or plan."""

    version: str | None = None
    """The edition; None is the newest."""
    given: str | None = None
    """The value of `--from`: a file, folder or address; None is the publisher."""
    units: tuple[str, ...] = ()
    """Names of units (`title-42`) or of parts (`title-42/chapter-7`); empty for all units."""
    budget: Budget | None = None
    """The limits of each invocation; None for one invocation a unit, as large as it must be."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CodeRequest:
        """Read the options of a run, as they are stored in `ingestion_runs.config`."""
        values: dict[str, Any] = {
            name: options[name] for name in ("version", "given") if options.get(name)
        }
        units = tuple(options.get("units", ()))
        if options.get("budget"):
            values["budget"] = Budget(**options["budget"])
        return cls(units=units, **values)

    def as_options(self) -> dict[str, Any]:
        """The options of a run, which `of` reads."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitReport:
    """The result of one unit."""

    id: str
    nodes: int = 0
    shards: int = 0
    inserted: int = 0
    skipped: int = 0
    invocations: tuple[InvocationReport, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    """Sections that are missing, each with its error."""
    error: str | None = None
    """The error if the unit as a whole failed."""
    parts: tuple[str, ...] = ()
    """The parts that were ingested one by one, if it was too large for its budget."""


async def find_orders(
    adapter: JurisdictionAdapter, request: CodeRequest, context: Context
) -> list[UnitOrder]:
    """The requested units of the requested edition, from the publisher's index."""
    location = open_location(request.given, adapter.info, context)
    with charged_to(Meter(request.budget).charge):
        origin = EditionOrigin(location)
        try:
            version = request.version or await adapter.newest_version(origin)
            origin.version = version
            roots = [root async for root in adapter.discover_unit_roots(origin)]
        finally:
            await origin.close()
    if not roots:
        raise SuspiciousYieldError(f"{adapter.info.title} {version} has no {adapter.info.unit}")
    template = UnitOrder(
        source=adapter.info.name,
        version=version,
        location=request.given,
        root=roots[0],
        budget=request.budget,
    )
    _require_unique(roots)
    orders = [replace(template, root=root) for root in roots]
    return _select(orders, request.units) if request.units else orders


def left_aside(
    orders: Sequence[UnitOrder], adapter: JurisdictionAdapter, context: Context
) -> list[str]:
    """The files of a folder that no unit has: other editions, other content."""
    location = orders[0].location
    if location is None or is_address(location):
        return []
    files = set(open_location(location, adapter.info, context).files or ())
    files -= {file for file in files if file.endswith(adapter.info.index_pages)}
    for order in orders:
        files -= _files_of([*order.root.pages, *order.root.optional_pages, *order.root.leaf_pages])
    if not files:
        return []
    table = code_units.c
    edition = (table.source == orders[0].source) & (table.version == orders[0].version)
    with context.database.read() as connection:
        keys = list(connection.scalars(select(table.plan_key).where(edition)))
    if len(keys) < len(orders):
        return []  # the files of a unit that could not be planned are unknown
    for key in keys:
        lines = iter(open_blob(context.blobs, key))
        head = read_head(next(lines))
        files -= _files_of([name for name, _ in head.pages])
        for batch in read_batches(head, lines):
            files -= _files_of([node.page for node in batch.leaves if node.page])
    return sorted(files)


def _files_of(pages: Iterable[str]) -> set[str]:
    """The files that pages are in: a page may be a member of an archive."""
    return {page.partition("!")[0] for page in pages}


def _size(order: UnitOrder) -> int:
    return local_size(order.location, (*order.root.pages, *order.root.leaf_pages))


def _require_unique(roots: Sequence[TocNode]) -> None:
    segments = [ids.segment(root.kind, root.number) for root in roots]
    if len(set(segments)) < len(segments):
        repeated = next(name for name in segments if segments.count(name) > 1)
        raise SuspiciousYieldError(f"two units have the name {repeated}")


def _select(orders: Sequence[UnitOrder], names: Sequence[str]) -> list[UnitOrder]:
    by_name = {order.unit: order for order in orders}
    selected = []
    for name in names:
        unit, *only = name.strip("/").split("/")
        if unit not in by_name:
            names_of_units = ", ".join(list(by_name)[:10])
            raise UsageError(
                f"there is no unit {unit!r}; there are {len(by_name)}: {names_of_units}, …"
            )
        selected.append(replace(by_name[unit], only=tuple(only)))
    return selected


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeReport:
    """The result of a run over a code."""

    run: RunReport
    units: tuple[UnitReport, ...] = ()
    left_aside: tuple[str, ...] = ()
    """The files of a given folder that belong to no unit of the edition."""


async def run_code(
    adapter: JurisdictionAdapter,
    request: RunRequest,
    context: Context,
    invoke: Invoke | None = None,
) -> CodeReport:
    """Ingest the edition named by the options of the request, or the newest.

    `invoke` runs an invocation; by default it runs where the budget and the engine have it run.
    """
    async with start_run(adapter, request, context) as active:
        work = _CodeRun(active)
        if orders := await work.find_orders(CodeRequest.of(request.options)):
            if invoke is not None:
                await work.run_units(orders, invoke)
            else:
                with open_invoker(orders, context) as invoker:
                    await work.run_units(orders, invoker, concurrency=invoker.concurrency)
            if not request.options.get("units"):
                work.left_aside = left_aside(orders, adapter, context)
        work.finish()
    return CodeReport(
        run=active.report, units=tuple(work.reports), left_aside=tuple(work.left_aside)
    )


@dataclass(slots=True)
class _CodeRun:
    active: ActiveRun[JurisdictionAdapter]
    reports: list[UnitReport] = field(default_factory=list)
    left_aside: list[str] = field(default_factory=list)

    async def find_orders(self, request: CodeRequest) -> list[UnitOrder]:
        """The requested units; none if that fails, which is recorded."""
        stage = self.active.run.stages.discover
        started = stage.begin()
        try:
            with logged_to(stage):
                orders = await find_orders(self.active.source, request, self.active.context)
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 — whatever an adapter raises is its failure
            self._fail(_DISCOVERY, error, "discover")
            return []
        finally:
            stage.end(started)
        self._resolve([_DISCOVERY])
        self.active.run.count(discovered=len(orders))
        stage.finish(len(orders))
        return orders

    async def run_units(
        self, orders: Sequence[UnitOrder], invoke: Invoke, *, concurrency: int = 1
    ) -> None:
        """Ingest units; one that fails does not stop the others."""
        slots = asyncio.Semaphore(concurrency)
        # The largest first, so that no process is left with one while the others have nothing.
        order_of_start = sorted(orders, key=_size, reverse=True) if concurrency > 1 else orders
        units = {
            order.id: asyncio.ensure_future(self._run_unit(order, invoke, slots))
            for order in order_of_start
        }
        try:
            self.reports += await asyncio.gather(*(units[order.id] for order in orders))
        finally:
            for unit in units.values():
                unit.cancel()

    async def _run_unit(
        self, order: UnitOrder, invoke: Invoke, slots: asyncio.Semaphore
    ) -> UnitReport:
        async with slots:
            return await self._run_part(order, invoke)

    def finish(self) -> None:
        """Record the end of the run."""
        counts = self.active.run.counts
        if self.left_aside:
            self.active.run.log(
                "warn", "files were left aside", files=self.left_aside[:LISTED_FILES]
            )
        if not counts.error:
            self.active.finish(RunStatus.SUCCESS)
        else:
            loaded = counts.inserted + counts.skipped
            self.active.finish(
                RunStatus.PARTIAL if loaded else RunStatus.FAILED, self.active.run.first_error
            )

    async def _execute(self, order: UnitOrder, invoke: Invoke) -> UnitReport:
        done: list[InvocationReport] = []
        try:
            async for report in self._invocations(order, invoke):
                done.append(report)
                self.active.run.add(Counts(inserted=report.progress.inserted))
                self.active.context.progress(order.source, self.active.run.counts)
        except UnitTooLargeError as error:
            if done:
                raise
            return await self._divide(order, invoke, error)
        failures = tuple(failure for report in done for failure in report.progress.failures)
        inserted = sum(report.progress.inserted for report in done)
        # Not the sum over invocations: one may find nodes that the one before it has inserted.
        skipped = max(0, done[-1].nodes - inserted - len(failures))
        self.active.run.add(Counts(skipped=skipped))
        self._finish_unit(order, failures)
        return UnitReport(
            id=order.id,
            nodes=done[-1].nodes,
            shards=done[-1].shards,
            inserted=inserted,
            skipped=skipped,
            invocations=tuple(done),
            failures=failures,
        )

    async def _divide(
        self, order: UnitOrder, invoke: Invoke, error: UnitTooLargeError
    ) -> UnitReport:
        """Ingest the parts of a unit that is too large to be walked under its budget."""
        parts = await _parts(order, self.active.source, self.active.context)
        if not parts:
            raise error
        self.active.run.log("info", "a unit was divided", unit=order.id, parts=len(parts))
        reports = [
            await self._run_part(replace(order, only=(*order.only, part)), invoke) for part in parts
        ]
        errors = [report.error for report in reports if report.error]
        if len(errors) == len(reports):
            raise error
        failures = tuple(failure for report in reports for failure in report.failures)
        if not errors and not failures:
            self._resolve([order.id], loaded=True)
        return UnitReport(
            id=order.id,
            nodes=sum(report.nodes for report in reports),
            shards=sum(report.shards for report in reports),
            inserted=sum(report.inserted for report in reports),
            skipped=sum(report.skipped for report in reports),
            invocations=tuple(one for report in reports for one in report.invocations),
            failures=failures,
            error=errors[0] if errors else None,
            parts=tuple(f"{order.unit}/{part}" for part in parts),
        )

    async def _run_part(self, order: UnitOrder, invoke: Invoke) -> UnitReport:
        try:
            return await self._execute(order, invoke)
        except (LeaseLostError, StoreUnavailableError):
            raise
        except Exception as error:  # noqa: BLE001 — hostile bytes may break a parser in any way
            self._fail(order.id, error, "parse")
            return UnitReport(id=order.id, error=f"{type(error).__name__}: {error}")

    async def _invocations(
        self, order: UnitOrder, invoke: Invoke
    ) -> AsyncIterator[InvocationReport]:
        """Run invocations until the unit is done; raises after two without progress."""
        stuck = 0
        while True:
            report = await self._run_invocation(order, invoke)
            yield report
            if report.is_done:
                return
            progress = report.progress
            has_progressed = progress.next_batch > order.first_batch or progress.inserted
            stuck = 0 if has_progressed else stuck + 1
            if stuck == _MAX_STUCK:
                assert order.budget is not None, "without a budget, an invocation is always done"
                raise UnitTooLargeError(
                    f"{order.unit}: one batch needs more than an invocation of "
                    f"{order.budget.subrequests} sub-requests and {order.budget.memory_mib} MiB; "
                    "allow more (--budget)"
                )
            order = replace(order, first_batch=progress.next_batch)

    async def _run_invocation(self, order: UnitOrder, invoke: Invoke) -> InvocationReport:
        """Run one invocation, which fetches, parses and loads; its time counts as loading."""
        stage = self.active.run.stages.load
        started = stage.begin()
        try:
            with logged_to(stage):
                return await invoke(order)
        finally:
            stage.end(started)

    def _finish_unit(self, order: UnitOrder, failures: Sequence[tuple[str, str]]) -> None:
        """Record a unit as loaded, or as failed if sections are missing."""
        self._store_status(order, "partial" if failures else "complete")
        if failures:
            listed = "; ".join(f"{key}: {error}" for key, error in failures[:LISTED_FAILURES])
            more = len(failures) - LISTED_FAILURES
            listed += f" and {more} more" if more > 0 else ""
            missing = SuspiciousYieldError(f"{len(failures)} sections are missing: {listed}")
            self._fail(order.id, missing, "fetch")
        else:
            self._resolve([order.id], loaded=True)

    @repeatable
    def _store_status(self, order: UnitOrder, status: Literal["partial", "complete"]) -> None:
        now = self.active.context.seams.clock.now()
        with self.active.context.database.write() as connection:
            self.active.lock.confirm(connection)
            update_unit(connection, order.id, status, now)

    @repeatable
    def _resolve(self, keys: list[str], *, loaded: bool = False) -> None:
        now = self.active.context.seams.clock.now()
        with self.active.context.database.write() as connection:
            self.active.lock.confirm(connection)
            if loaded:
                record_loaded(connection, self.active.run.id, self.active.run.source, keys, now)
            resolve(connection, self.active.run.source, keys, now)
            self.active.run.save(connection)

    def _fail(self, key: str, error: Exception, stage: Stage) -> None:
        failure = Failure.of(error, stage, key)
        self.active.run.count(error=1)
        self.active.run.first_error = self.active.run.first_error or f"{key}: {failure.error}"
        self.active.run.log("error", failure.error, unit=key, type=failure.error_type)
        self._record_failure(failure)

    @repeatable
    def _record_failure(self, failure: Failure) -> None:
        now = self.active.context.seams.clock.now()
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
    """Compare the planned sections of every edition with the library."""
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
        comparison = compare(context.database, Expected(scope=unit_id, document_ids=sections))
        expected += comparison.expected
        missing += comparison.missing
    missing += sorted(set(_without_pack(context, unit_id)) - set(missing))
    return AuditScope(name=unit_id, expected=expected, missing=tuple(missing))


def _without_pack(context: Context, unit_id: str) -> Iterator[str]:
    """The sections of a unit whose pack is not in the blob store."""
    table = nodes.c
    stored = select(table.id, table.body_ref).where(table.unit == unit_id)
    with context.database.read() as connection:
        rows = connection.execute(stored.where(table.body_ref.is_not(None))).all()
    packs = {row.body_ref.partition("#")[0] for row in rows}
    lost = {key for key in packs if context.blobs.head(key) is None}
    return (row.id for row in rows if row.body_ref.partition("#")[0] in lost)


def _sections(context: Context, plan_key: str) -> Iterator[frozenset[str]]:
    lines = iter(open_blob(context.blobs, plan_key))
    for batch in read_batches(read_head(next(lines)), lines):
        yield frozenset(node.id for node in batch.leaves)


_PLANNING_REQUESTS: Final = 12
"""Sub-requests for storing and reading a plan, and for recording the result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitPlan:
    """A walked unit, with the estimated cost of executing it."""

    id: str
    nodes: int
    shards: int
    bytes: int
    """Size of the bodies cut out of files; that of separate pages is unknown."""
    walked: int
    """Sub-requests of the walk."""
    fetches: int
    """Number of bodies that are separate pages."""
    subrequests: int
    """An estimated maximum of the sub-requests, walk included."""
    invocations: int
    """With the budget; without one, a unit takes one invocation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodePlan:
    """The costs of units; those too large for the budget by their parts."""

    plans: list[UnitPlan] = field(default_factory=list)
    parts: dict[str, int] = field(default_factory=dict)
    """The units that a run will divide, each with the number of its parts."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Units and parts that cannot be planned, each with its error."""

    def include(self, other: CodePlan) -> None:
        """Add the units of another plan."""
        self.plans.extend(other.plans)
        self.parts.update(other.parts)
        self.failures.extend(other.failures)


async def plan_code(
    orders: Iterable[UnitOrder], adapter: JurisdictionAdapter, context: Context, budget: Budget
) -> CodePlan:
    """Walk units and estimate the cost of executing them with a budget; nothing is written."""
    result = CodePlan()
    for order in orders:
        limited = replace(order, budget=budget)
        try:
            result.include(await _plan_order(limited, adapter, context, budget))
        except FondsError as error:
            result.failures.append((order.id, f"{type(error).__name__}: {error}"))
    return result


async def _plan_order(
    order: UnitOrder, adapter: JurisdictionAdapter, context: Context, budget: Budget
) -> CodePlan:
    """The plan of a unit, or of the parts that a run would divide it into."""
    try:
        walked, requests = await _walk_metered(order, adapter, context)
    except UnitTooLargeError as error:
        parts = await _parts(order, adapter, context)
        if not parts:
            raise
        first, *others = (replace(order, only=(*order.only, part)) for part in parts)
        try:
            divided = await _plan_order(first, adapter, context, budget)
        except UnitTooLargeError:
            # Each part of one file reads all of it, so the others are not tried in vain.
            raise error from None
        divided.include(await plan_code(others, adapter, context, budget))
        return replace(divided, parts={order.id: len(parts), **divided.parts})
    head = plan_head(order, adapter, walked)
    return CodePlan(plans=[_estimate(head, walked, requests, budget)])


async def _walk_metered(
    order: UnitOrder, adapter: JurisdictionAdapter, context: Context
) -> tuple[Walked, int]:
    """Walk a unit under its budget, and count the sub-requests."""
    meter = Meter(order.budget)
    location = open_location(order.location, adapter.info, context)
    origin = EditionOrigin(location, version=order.version)
    try:
        with charged_to(meter.charge):
            walked = await walk_order(order, adapter, origin, meter)
    finally:
        await origin.close()
    # A run archives each page, too.
    requests, pages = meter.subrequests, len(walked.pages)
    if order.budget and requests + pages > order.budget.subrequests:
        raise UnitTooLargeError(
            f"{order.unit} cannot be walked in one invocation: to read and archive its {pages} "
            f"pages takes {requests + pages} sub-requests; allow more (--budget)"
        )
    return walked, requests


async def _parts(order: UnitOrder, adapter: JurisdictionAdapter, context: Context) -> list[str]:
    """The parts that a unit is divided into if it is too large to be walked."""
    location = open_location(order.location, adapter.info, context)
    origin = EditionOrigin(location, version=order.version)
    root_id = ids.tree_root(order.source, order.version)
    try:
        return await list_parts(adapter, root_id, order.root, origin, only=order.only)
    finally:
        await origin.close()


def _estimate(head: PlanHead, walked: Walked, requests: int, budget: Budget) -> UnitPlan:
    """The cost of executing a walked unit."""
    _, *lines = plan_lines(walked, head)
    costs = [_cost(head, batch) for batch in read_batches(head, lines)]
    walking = requests + len(head.pages) + _PLANNING_REQUESTS
    if max(costs) + _PLANNING_REQUESTS > budget.subrequests:
        raise UnitTooLargeError(
            f"one batch of {head.unit} takes about {max(costs)} sub-requests, and its plan "
            f"{_PLANNING_REQUESTS}: allow more than {budget.subrequests} (--budget)"
        )
    return UnitPlan(
        id=head.id,
        nodes=head.nodes,
        shards=head.shards,
        bytes=head.bytes,
        walked=requests,
        fetches=head.fetches,
        subrequests=walking + sum(costs),
        invocations=_invocations(walking, costs, budget.subrequests),
    )


def _cost(head: PlanHead, batch: NodeBatch) -> int:
    walked = {name for name, _ in head.pages}
    return statements(batch.leaves) + sum(node.page not in walked for node in batch.leaves)


def _invocations(walking: int, costs: list[int], limit: int) -> int:
    """The number of invocations if no batch is divided."""
    count, left = 1, limit - walking
    for cost in costs:
        if cost > left:
            count, left = count + 1, limit - _PLANNING_REQUESTS
        left -= cost
    return count
