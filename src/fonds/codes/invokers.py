"""The processes of invocations: this process, or worker processes of this machine or of a cluster.

Without a budget, each processor has a process that runs one unit after the other. With one, every
invocation is a copy of a process that has only imported modules; the kernel limits its memory.
"""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from fonds.codes.budget import MIB, Budget, data_size, memory_in_use
from fonds.codes.invocation import InvocationReport, UnitOrder, invoke
from fonds.codes.origin import is_address
from fonds.context import Context
from fonds.engine.base import Engine, portable_settings, require_local_files
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import ItemMemoryError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sources.registry import SourceRegistry
from fonds.stores.blobs import open_blobs
from fonds.stores.database import open_database

MEMORY_MIB: Final = 8192
"""The limit of an engine for an invocation, which needs far less."""
SECONDS: Final = 7 * 24 * 3600.0
"""The time limit of an engine: without a budget, an invocation may fetch many pages."""
SQLITE_WRITERS: Final = 4
"""Processes that SQLite, which has one writer at a time, can keep busy: a quarter of the time of a
unit is writing."""
SQLITE_CACHE_MIB: Final = 2
"""With a budget; the cache counts against it."""
THREADS: Final = 4
STACK_BYTES: Final = 2 * MIB
"""The kernel counts the whole stack of a thread as used."""
# One arena, since arenas do not reuse each other's memory; freed memory is returned to the system.
_MALLOC_OPTIONS: Final = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "MALLOC_MMAP_THRESHOLD_": "131072",
}


@dataclass(frozen=True, kw_only=True)
class Invoker:
    """Runs invocations."""

    context: Context
    engine: Engine | None
    """None is this process."""
    concurrency: int = 1
    """The number of units that run at a time."""

    async def __call__(self, order: UnitOrder) -> InvocationReport:
        """Run one invocation."""
        if self.engine is None:
            return await invoke(order, self.context.sources.code(order.source), self.context)
        report = await asyncio.to_thread(self._run_on_engine, self.engine, order)
        return _checked(report, order.budget)

    def _run_on_engine(self, engine: Engine, order: UnitOrder) -> InvocationReport:
        settings = portable_settings(self.context.settings)
        # Each process limits its own rate; together they must not exceed it.
        shared = replace(settings, rate_factor=settings.rate_factor / self.concurrency)
        (outcome,) = engine.run(invoke_order, [(order, shared)])
        report: InvocationReport = outcome.unwrap()
        return report


@contextmanager
def open_invoker(orders: Sequence[UnitOrder], context: Context) -> Iterator[Invoker]:
    """The invoker that suits some units, of which there is at least one."""
    workers = worker_count(orders, context)
    is_local = context.settings.engine == LOCAL
    is_budgeted = orders[0].budget is not None
    if is_local and workers == 1 and not is_budgeted:
        yield Invoker(context=context, engine=None)
        return
    options: dict[str, Any] = {"preload": (__name__,)} if is_budgeted else {}
    with open_engine(
        context.settings.engine,
        workers=workers,
        memory_mib=MEMORY_MIB,
        seconds=SECONDS,
        variables=_MALLOC_OPTIONS if is_budgeted else {},
        **options,
    ) as engine:
        yield Invoker(context=context, engine=engine, concurrency=engine.workers)


def worker_count(orders: Sequence[UnitOrder], context: Context) -> int:
    """The processes of this machine that share some units."""
    if is_address(orders[0].location):
        # A publisher is asked at one rate, however many ask.
        return 1
    processors = os.cpu_count() or 1
    if context.database.is_sqlite:
        processors = min(processors, SQLITE_WRITERS)
    return min(processors, len(orders))


def _checked(report: InvocationReport, budget: Budget | None) -> InvocationReport:
    """The report; raises if the peak of memory exceeded the limit."""
    if budget and report.peak_mib > budget.memory_mib:
        raise ItemMemoryError(
            f"an invocation took {report.peak_mib} MiB, more than the {budget.memory_mib} allowed"
        )
    return report


# In a worker process ----------------------------------------------------------------------


def invoke_order(item: tuple[UnitOrder, Settings]) -> InvocationReport:
    """Run one invocation in this process, which is a copy made for it if there is a budget."""
    order, settings = item
    require_local_files(settings)
    if order.budget is None:
        return asyncio.run(_invoke(order, _opened(settings)))
    threading.stack_size(STACK_BYTES)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (_limit(order.budget), resource.RLIM_INFINITY))
    context = _open(replace(settings, sqlite_cache_mib=SQLITE_CACHE_MIB))
    try:
        with closing(context.database):
            return asyncio.run(_invoke(order, context))
    except MemoryError as error:
        limit = f"more than the {order.budget.memory_mib} MiB allowed"
        raise ItemMemoryError(f"the invocation needs {limit}") from error


async def _invoke(order: UnitOrder, context: Context) -> InvocationReport:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))
    # Each event loop needs a client of its own.
    async with replace(context) as own:
        try:
            return await invoke(order, own.sources.code(order.source), own)
        except MemoryError:
            # Closing the client and the database needs a little more memory.
            resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)
            raise


_OPENED: Final[list[Context]] = []


def _opened(settings: Settings) -> Context:
    """The library of a long-lived process, which may serve several after each other."""
    if not _OPENED or _OPENED[0].settings != settings:
        _OPENED[:] = [_open(settings)]
    return _OPENED[0]


def _open(settings: Settings) -> Context:
    seams = Seams(outage_seconds=settings.outage_seconds)
    database = open_database(
        settings.database_url, seams=seams, cache_mib=settings.sqlite_cache_mib
    )
    blobs = open_blobs(
        settings.blobs_url, seams=seams, public_endpoint=settings.blobs_public_endpoint
    )
    return Context(
        settings=settings, seams=seams, database=database, blobs=blobs, sources=SourceRegistry()
    )


def _limit(budget: Budget) -> int:
    """The RLIMIT_DATA that keeps anonymous memory within the budget.

    The kernel counts reserved pages that were never touched, and not those mapped from files.
    """
    return data_size() - memory_in_use() + budget.memory_mib * MIB + THREADS * STACK_BYTES
