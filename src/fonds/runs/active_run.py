"""A run while it goes on: its lock, the thread that parses and loads, its heartbeat.

Also what puts dead runs and old history right: `mark_dead_runs_failed`, `drop_old_history`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final, ParamSpec, TypeVar

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.exc import SQLAlchemyError
from structlog.contextvars import bound_contextvars

from fonds.context import Context
from fonds.errors import FondsError, LeaseLostError, SourceBusyError
from fonds.runs.locks import FileLock, LeaseClaim, SourceLock, claim_source
from fonds.runs.state import Run, RunStatus, close_dead_runs
from fonds.sources.base import Collector, Source
from fonds.stores.tables import ingestion_logs, ingestion_runs, ingestion_tasks

P = ParamSpec("P")
T = TypeVar("T")

HEARTBEAT_SECONDS: Final = 2.0
"""Batches store the log and counts with them, but a slow upstream may fill none for minutes."""


@dataclass(frozen=True, kw_only=True)
class ActiveRun:
    """A run, its source and its lock."""

    source: Source
    run: Run
    claim: FileLock | LeaseClaim
    context: Context
    thread: Executor
    """The one thread that parses and loads. One, because the C libraries below us keep the memory
    they use for that for each thread."""

    @cached_property
    def collector(self) -> Collector | None:
        """The source, if it downloads its files itself; checked once, as the check is slow."""
        return self.source if isinstance(self.source, Collector) else None

    async def in_thread(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Parse or load while fetching goes on; log lines name the run there too."""
        call = partial(copy_context().run, partial(act, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(self.thread, call)


@asynccontextmanager
async def heartbeat(run: Run, claim: SourceLock) -> AsyncIterator[None]:
    """Name the run in every log line, and store its log and counts every few seconds."""
    ended = asyncio.Event()

    async def store_news() -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), HEARTBEAT_SECONDS)
            if run.has_news and not ended.is_set():
                # A run does not fail because others cannot see it: the next batch stores the same.
                with suppress(FondsError, SQLAlchemyError, OSError):
                    await asyncio.to_thread(run.show, claim.confirm)

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
                claim_source(database, context.settings.home, source, clock) as claim,
                database.write() as connection,
            ):
                claim.confirm(connection)
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
