"""Commands of operators, claimed one at a time and carried out: runs, audits, queues.

All state of a command is in its row: when a process is killed, its lease expires, and another
process claims the command again. So every command may be repeated.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from threading import Event
from typing import Final
from uuid import UUID, uuid4

import structlog
from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import FondsError, SourceBusyError, StoreUnavailableError
from fonds.library import Library
from fonds.runs import audit, commands, normalization, queue_status
from fonds.runs.audit import Audit, AuditRange
from fonds.runs.citations import BATCH_SIZE
from fonds.runs.commands import Command, Kind, QueueName
from fonds.runs.locks import lock_source
from fonds.runs.schedule import log_failed_run
from fonds.runs.state import RunReport, RunRequest, close_dead_runs
from fonds.runs.tasks import MAX_ATTEMPTS
from fonds.seams import Clock
from fonds.source_runners import runner_of
from fonds.stores import leases
from fonds.stores.database import Database, repeatable
from fonds.stores.tables import ingestion_tasks

POLL_SECONDS: Final = 1.0
"""Between looks for a command."""
IMMEDIATE: Final[frozenset[Kind]] = frozenset({"cancel"})
"""Carried out while others are; of the others, a process does one at a time."""
MAX_OUTCOME_LENGTH: Final = 2000

_log: Final = structlog.get_logger("fonds.dispatch")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandResult:
    """The outcome of a command."""

    outcome: str
    """In words; the part before the colon is the status."""
    run_id: UUID | None = None


Handler = Callable[[Command], Awaitable[CommandResult]]
Handlers = Mapping[Kind, Handler]


class Dispatcher:
    """Claims commands and calls their handlers, until it is cancelled or `is_over`."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        handlers: Handlers,
        *,
        may_begin: Callable[[], bool] = lambda: True,
        poll: float = POLL_SECONDS,
    ) -> None:
        """`may_begin` tells if a command that takes long may be claimed."""
        self._database = database
        self._clock = clock
        self._handlers = handlers
        self._may_begin = may_begin
        self._poll = poll
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._immediate: set[asyncio.Task[None]] = set()
        self._queued: set[asyncio.Task[None]] = set()

    async def serve(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Carry out commands as they come; those that are running at the end are released."""
        try:
            while not is_over():
                await self._begin()
                await asyncio.sleep(self._poll)
        finally:
            await self._cancel_running()

    async def drain(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Carry out all commands that no other process has."""
        try:
            is_busy = True
            while is_busy and not is_over():
                # A command that has ended meanwhile may have blocked others.
                is_busy = bool(self._running_tasks)
                is_busy |= await self._begin()
                if running := self._running_tasks:
                    await asyncio.wait(running, timeout=self._poll)
        finally:
            await self._cancel_running()

    @property
    def _running_tasks(self) -> set[asyncio.Task[None]]:
        return self._immediate | self._queued

    async def _begin(self) -> bool:
        """Claim and start commands; False if there was none."""
        try:
            started = False
            while command := await asyncio.to_thread(self._claim):
                started = True
                self._start(command)
        except (SQLAlchemyError, StoreUnavailableError) as error:
            # Leases expire meanwhile, and other processes claim their commands.
            _log.warning("database_unavailable", error=type(error).__name__)
            return False
        return started

    @repeatable
    def _claim(self) -> Command | None:
        kinds = [kind for kind in self._handlers if kind in IMMEDIATE or self._is_free]
        with self._database.read() as connection:
            # Mostly there is none, and reading does not block writers.
            if not commands.listing(connection, limit=1, is_open=True):
                return None
        with self._database.write() as connection:
            return commands.claim(connection, self._owner, self._clock.now(), kinds)

    @property
    def _is_free(self) -> bool:
        return not self._queued and self._may_begin()

    def _start(self, command: Command) -> None:
        tasks = self._immediate if command.command in IMMEDIATE else self._queued
        task = asyncio.create_task(self._do(command))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _do(self, command: Command) -> None:
        renewal = asyncio.create_task(self._renew_forever(command))
        try:
            result = await self._outcome(command)
            _log.info("command_done", command=command.command, outcome=result.outcome)
            await self._finish(command, result)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._release, command)
            raise
        finally:
            renewal.cancel()

    async def _outcome(self, command: Command) -> CommandResult:
        try:
            return await self._handlers[command.command](command)
        except FondsError as error:
            return CommandResult(outcome=f"refused: {error}")
        except Exception as error:  # noqa: BLE001 — any error fails the command only
            _log.exception("command_broke", command=command.command)
            # The text of SQLAlchemy's errors repeats the statement and its parameters.
            original = getattr(error, "orig", None) or error
            return CommandResult(outcome=f"failed: {type(error).__name__}: {original}")

    async def _finish(self, command: Command, result: CommandResult) -> None:
        """Store the outcome, as soon as the database is available."""
        while True:
            try:
                await asyncio.to_thread(self._write, command, result)
            except (SQLAlchemyError, StoreUnavailableError) as error:
                _log.warning("database_unavailable", error=type(error).__name__)
                await asyncio.sleep(self._poll)
            else:
                return

    @repeatable
    def _write(self, command: Command, result: CommandResult) -> None:
        now = self._clock.now()
        outcome = result.outcome[:MAX_OUTCOME_LENGTH]
        with self._database.write() as connection:
            commands.finish(
                connection, command.id, self._owner, outcome, run_id=result.run_id, now=now
            )

    async def _renew_forever(self, command: Command) -> None:
        while True:
            await asyncio.sleep(commands.LEASE.total_seconds() / 4)
            with suppress(SQLAlchemyError, StoreUnavailableError):
                await asyncio.to_thread(self._renew, command)

    @repeatable
    def _renew(self, command: Command) -> None:
        with self._database.write() as connection:
            commands.keep(connection, command.id, self._owner, self._clock.now())

    def _release(self, command: Command) -> None:
        with suppress(SQLAlchemyError, StoreUnavailableError), self._database.write() as connection:
            commands.release(connection, command.id, self._owner)

    async def _cancel_running(self) -> None:
        tasks = self._running_tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


DEAD_RUN_SECONDS: Final = 20.0
"""After which the process of a cancelled run that does not end may have died."""
CANCEL_POLL_SECONDS: Final = 0.5


def dispatcher(
    library: Library, *, may_begin: Callable[[], bool] = lambda: True, poll: float = 1.0
) -> Dispatcher:
    """The dispatcher for the commands of a library."""
    clock, handlers = library.seams.clock, handlers_of(library)
    return Dispatcher(library.database, clock, handlers, may_begin=may_begin, poll=poll)


def handlers_of(library: Library) -> Handlers:
    """The handlers of a library by kind of command."""
    return {
        "run": partial(_run, library),
        "backfill": partial(_backfill, library),
        "retry": partial(_retry, library),
        "audit": partial(_audit, library),
        "drain": partial(_drain, library),
        "cancel": partial(_cancel, library),
    }


# Runs -------------------------------------------------------------------------------------


async def _run(library: Library, command: Command) -> CommandResult:
    recheck, accept_loss = _flags(command)
    request = RunRequest(mode="incremental", recheck=recheck, accept_loss=accept_loss)
    return _result_of(await library.ingest(command.source or "", request))


async def _backfill(library: Library, command: Command) -> CommandResult:
    congresses = command.args.get("congresses")
    recheck, accept_loss = _flags(command)
    request = RunRequest(
        mode="backfill",
        since=_day(command, "since"),
        until=_day(command, "until"),
        options={"congresses": congresses} if congresses else {},
        recheck=recheck,
        accept_loss=accept_loss,
    )
    return _result_of(await library.ingest(command.source or "", request))


async def _retry(library: Library, command: Command) -> CommandResult:
    """Run the source; it also tries the tasks again that had been given up."""
    table = ingestion_tasks.c
    given_up = (table.source == command.source) & (table.attempts >= MAX_ATTEMPTS)
    is_open = (table.stage == "errored") & table.resolved_at.is_(None)
    reset = update(ingestion_tasks).where(given_up, is_open).values(attempts=MAX_ATTEMPTS - 1)
    with library.database.write() as connection:
        connection.execute(reset)
    return await _run(library, command)


async def _cancel(library: Library, command: Command) -> CommandResult:
    """Wait until the run has ended; it checks every second if it is cancelled."""
    source, run_id = command.source or "", command.args.get("run_id")
    if run_id is None:
        return await asyncio.to_thread(_withdraw, library, command, source)
    waited = 0.0
    while (ended := await asyncio.to_thread(_ending, library, UUID(run_id))) is None:
        await asyncio.sleep(CANCEL_POLL_SECONDS)
        waited += CANCEL_POLL_SECONDS
        if waited > DEAD_RUN_SECONDS:
            await asyncio.to_thread(_close_if_dead, library, source)
    return CommandResult(outcome=ended, run_id=UUID(run_id))


@repeatable
def _withdraw(library: Library, command: Command, source: str) -> CommandResult:
    with library.database.write() as connection:
        now = library.seams.clock.now()
        withdrawn = commands.withdraw(connection, source, command.requested_by, now)
    if withdrawn:
        return CommandResult(
            outcome=f"done: {withdrawn} waiting commands of {source} were withdrawn"
        )
    return CommandResult(outcome=f"refused: no run of {source} is in progress")


@repeatable
def _ending(library: Library, run_id: UUID) -> str | None:
    with library.database.read() as connection:
        return commands.ending(connection, run_id)


def _close_if_dead(library: Library, source: str) -> None:
    clock, database = library.seams.clock, library.database
    with (
        suppress(SourceBusyError),
        lock_source(database, library.settings.home, source, clock),
        database.write() as connection,
    ):
        close_dead_runs(connection, source, clock.now())


def _flags(command: Command) -> tuple[bool, bool]:
    return bool(command.args.get("recheck")), bool(command.args.get("accept_loss"))


def _day(command: Command, name: str) -> date | None:
    value = command.args.get(name)
    return None if value is None else date.fromisoformat(value)


def _result_of(report: RunReport) -> CommandResult:
    log_failed_run(report)
    why = f"; {report.error_summary}" if report.error_summary else ""
    return CommandResult(
        outcome=f"{report.status}: {report.counts.summary()}{why}", run_id=report.run_id
    )


# Audits -----------------------------------------------------------------------------------


async def audited(
    library: Library, source: str, since: date | None, until: date | None, *, requested_by: str
) -> Audit:
    """Compare what the publisher of a source lists with the library, and store the result."""
    async with library.open_context() as context:
        runner = runner_of(library.require_source(source), library.sources)
        result = await runner.audit(AuditRange(since=since, until=until), context)
    with library.database.write() as connection:
        now = library.seams.clock.now()
        audit.store(connection, result, requested_by=requested_by, now=now)
    return result


async def _audit(library: Library, command: Command) -> CommandResult:
    since, until = _day(command, "since"), _day(command, "until")
    by = command.requested_by
    result = await audited(library, command.source or "", since, until, requested_by=by)
    short = "short" if result.missing or result.open_errors else "success"
    counted = f"{result.expected:,} expected, {result.missing:,} missing"
    if not result.scopes:
        counted = "its publisher has no second list to count"
    return CommandResult(outcome=f"{short}: {counted}, {result.open_errors:,} open errors")


# Queues -----------------------------------------------------------------------------------


async def _drain(library: Library, command: Command) -> CommandResult:
    queue: QueueName = command.args["queue"]
    if command.args.get("given_up"):
        table = queue_status.TABLES[queue]
        given_up = update(table).where(table.c.attempts >= leases.MAX_ATTEMPTS)
        with library.database.write() as connection:
            connection.execute(given_up.values(attempts=leases.MAX_ATTEMPTS - 1))
    return await _DRAINS[queue](library)


async def _drain_citations(library: Library) -> CommandResult:
    done = failed = 0
    while True:
        result = await asyncio.to_thread(library.extract_citations, limit=BATCH_SIZE)
        done, failed = done + result.done, failed + result.failed
        if result.done + result.failed < BATCH_SIZE:
            return _drained(done, failed, result.waiting, result.given_up)


async def _drain_embedding(library: Library) -> CommandResult:
    with _stopping() as stop:
        report = await asyncio.to_thread(library.embed, stop=stop)
    done = _drained(report.done, report.failed, report.waiting, report.given_up)
    return CommandResult(outcome=f"failed: {report.ended}") if report.ended else done


async def drain_normalization(library: Library) -> CommandResult:
    """Make the texts of queued documents, mostly PDFs."""
    with _stopping() as stop:
        result = await asyncio.to_thread(_normalize, library, stop)
    return _drained(result.done, result.failed, result.waiting, result.given_up)


def _normalize(library: Library, stop: Event) -> normalization.Drained:
    with library.readers(2) as engine:
        return normalization.drain(library.context, engine, stop=stop)


@contextmanager
def _stopping() -> Iterator[Event]:
    """An event that is set when the block ends, so that a thread stops that is waited for in it."""
    stop = Event()
    try:
        yield stop
    finally:
        stop.set()


def _drained(done: int, failed: int, waiting: int, given_up: int) -> CommandResult:
    counts = f"{done:,} done, {failed:,} failed, {waiting:,} wait, {given_up:,} given up"
    return CommandResult(outcome=f"{'partial' if failed or given_up else 'success'}: {counts}")


_DRAINS: Final[dict[QueueName, Callable[[Library], Awaitable[CommandResult]]]] = {
    "normalization": drain_normalization,
    "embedding": _drain_embedding,
    "citations": _drain_citations,
}
