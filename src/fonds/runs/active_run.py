"""A run in progress: its lock, its heartbeat, the thread that parses and loads.

Also the cleanup after runs: `mark_dead_runs_failed` and `drop_old_history`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final, Generic, ParamSpec, TypeVar

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.exc import SQLAlchemyError
from structlog.contextvars import bound_contextvars

from fonds.context import Context
from fonds.errors import FondsError, LeaseLostError, SourceBusyError, StoreUnavailableError
from fonds.fetch.redact import Redaction
from fonds.model import SourceState
from fonds.runs.concurrency import finish_in_thread
from fonds.runs.hosts import record_hosts
from fonds.runs.locks import SourceLock, is_task_cancelled, keep_lock, lock_source
from fonds.runs.state import Run, RunReport, RunRequest, RunStatus, close_dead_runs
from fonds.runs.tasks import OpenError, read_open_errors
from fonds.sources.base import Collector, Registered
from fonds.stores.tables import ingestion_logs, ingestion_runs, ingestion_tasks

P = ParamSpec("P")
T = TypeVar("T")
SourceT = TypeVar("SourceT", bound=Registered)
SourceT_co = TypeVar("SourceT_co", bound=Registered, covariant=True)

STOPPED: Final = "stopped by request; the next run continues from here"
HEARTBEAT_SECONDS: Final = 2.0
"""Batches store the log and counts with them, but a slow upstream may fill none for minutes."""


@dataclass(kw_only=True)
class ActiveRun(Generic[SourceT_co]):
    """A run that has the lock of its source."""

    source: SourceT_co
    run: Run
    lock: SourceLock
    context: Context
    state: SourceState
    open_errors: dict[str, OpenError]
    """Failures of earlier runs that are not resolved, by task key."""
    thread: Executor
    """The thread that parses and loads. Only one, since the C libraries that do the work keep the
    memory they use for each thread."""
    report: RunReport = field(init=False)
    """Set by `finish`."""

    @cached_property
    def collector(self) -> Collector | None:
        """The source, if it downloads its files itself; cached, as the check is slow."""
        source: object = self.source
        return source if isinstance(source, Collector) else None

    async def in_thread(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Parse or load while fetching continues; log lines name the run there too."""
        call = partial(copy_context().run, partial(act, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(self.thread, call)

    def finish(self, status: RunStatus, error_summary: str | None = None) -> None:
        """Record the end of the run."""
        self.report = self.run.finish(status, error_summary)


@asynccontextmanager
async def start_run(
    source: SourceT, request: RunRequest, context: Context
) -> AsyncIterator[ActiveRun[SourceT]]:
    """Lock a source and record a run of it, which the block must finish.

    The run has failed if the block raises. If a command cancels the run, the block ends early, and
    nothing is raised.
    """
    database, clock, name = context.database, context.seams.clock, source.info.name
    try:
        with (
            ExitStack() as stack,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix=name) as thread,
        ):
            waits = context.seams.outage_seconds > 0
            locked = lock_source(database, context.settings.home, name, clock, waits=waits)
            lock = await finish_in_thread(stack.enter_context, locked)
            redact = Redaction(context.settings)
            run = Run(source=name, request=request, database=database, clock=clock, redact=redact)
            state = await finish_in_thread(run.start, lock.confirm)
            errors = await finish_in_thread(read_open_errors, database, name)
            active = ActiveRun(
                source=source,
                run=run,
                lock=lock,
                context=context,
                state=state,
                open_errors=errors,
                thread=thread,
            )
            try:
                async with keep_lock(lock), heartbeat(run, lock):
                    yield active
            except asyncio.CancelledError:
                thread.shutdown(cancel_futures=True)  # the batch being written still counts
                if is_task_cancelled():
                    with suppress(StoreUnavailableError):  # the next run records its end
                        active.finish(RunStatus.CANCELLED, STOPPED)
                    raise
                active.finish(RunStatus.CANCELLED, STOPPED)
            except BaseException as error:
                active.finish(RunStatus.FAILED, f"{type(error).__name__}: {error}")
                raise
    finally:
        await asyncio.to_thread(record_hosts, source.info, context)
        context.fetcher.counts.hosts.pop(name, None)


@asynccontextmanager
async def heartbeat(run: Run, lock: SourceLock) -> AsyncIterator[None]:
    """Name the run in every log line, and store its log and counts every few seconds."""
    ended = asyncio.Event()

    async def store_news() -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), HEARTBEAT_SECONDS)
            if run.has_news and not ended.is_set():
                # The next batch stores the same, so a failure here does not matter.
                with suppress(FondsError, SQLAlchemyError, OSError):
                    await asyncio.to_thread(run.show, lock.confirm)

    with bound_contextvars(run=str(run.id), source=run.source):
        task = asyncio.create_task(store_news())
        try:
            yield
        finally:
            ended.set()
            await task


def mark_dead_runs_failed(context: Context) -> int:
    """Mark every running run as failed whose source no process has locked."""
    clock, database = context.seams.clock, context.database
    query = select(ingestion_runs.c.source).where(ingestion_runs.c.status == RunStatus.RUNNING)
    with database.read() as connection:
        sources = sorted(set(connection.scalars(query)))
    marked = 0
    for source in sources:
        try:
            with (
                lock_source(database, context.settings.home, source, clock) as lock,
                database.write() as connection,
            ):
                lock.confirm(connection)
                marked += close_dead_runs(connection, source, clock.now())
        except (SourceBusyError, LeaseLostError):
            continue
    return marked


def drop_old_history(context: Context) -> int:
    """Delete logs and tasks past retention."""
    before = context.seams.clock.now() - timedelta(days=context.settings.retention_days)
    with context.database.write() as connection:
        tasks = connection.execute(delete(ingestion_tasks).where(past_tasks(before))).rowcount
        logs = connection.execute(delete(ingestion_logs).where(past_logs(before))).rowcount
    return tasks + logs


def past_tasks(before: datetime) -> ColumnElement[bool]:
    """Tasks that ended before a time, except failures that are not resolved.

    The watermark has passed those only because their rows are there.
    """
    table = ingestion_tasks.c
    is_open_failure = (table.stage == "errored") & table.resolved_at.is_(None)
    return (table.finished_at < before) & ~is_open_failure


def past_logs(before: datetime) -> ColumnElement[bool]:
    """Log lines from before a time."""
    return ingestion_logs.c.logged_at < before
