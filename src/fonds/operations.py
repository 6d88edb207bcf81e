"""What is done when somebody asks for it by a command: runs, audits, queues.

Commands taken up by whatever process has time, and done one after the other.

All that is known of a command stands in its row: a process that is killed leaves a lease behind,
and when that is over another takes the command up again. Every command may be repeated.
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

from fonds.errors import FondsError, SourceBusyError
from fonds.library import Library
from fonds.runs import audit, commands, normalization, queue_status
from fonds.runs.audit import Audit, AuditRange
from fonds.runs.citations import BATCH_SIZE
from fonds.runs.commands import Command, Kind, QueueName
from fonds.runs.locks import lock_source
from fonds.runs.state import RunReport, RunRequest, close_dead_runs
from fonds.runs.tasks import MAX_ATTEMPTS
from fonds.seams import Clock
from fonds.source_runners import runner_of
from fonds.stores import leases
from fonds.stores.database import Database
from fonds.stores.tables import ingestion_tasks

POLL: Final = 1.0
"""Seconds between looks for a command."""
AT_ONCE: Final[frozenset[Kind]] = frozenset({"cancel"})
"""Done beside whatever is being done; of the others, a process does one at a time."""
LONGEST_OUTCOME: Final = 2000

_log: Final = structlog.get_logger("fonds.dispatch")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandResult:
    """What came of a command."""

    outcome: str
    """In plain words; the first, before a colon, says how it ended."""
    run_id: UUID | None = None


Handler = Callable[[Command], Awaitable[CommandResult]]
Handlers = Mapping[Kind, Handler]


class Dispatcher:
    """Does commands by the handlers it is given, until it is cancelled or told to stop."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        handlers: Handlers,
        *,
        may_begin: Callable[[], bool] = lambda: True,
        poll: float = POLL,
    ) -> None:
        """Take up what takes long only while `may_begin`."""
        self._database = database
        self._clock = clock
        self._handlers = handlers
        self._may_begin = may_begin
        self._poll = poll
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._at_once: set[asyncio.Task[None]] = set()
        self._in_turn: set[asyncio.Task[None]] = set()

    async def serve(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Do commands as they come; what is under way in the end is given back."""
        try:
            while not is_over():
                await self._begin()
                await asyncio.sleep(self._poll)
        finally:
            await self._leave()

    async def drain(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Do all commands that nobody else has."""
        try:
            is_busy = True
            while is_busy and not is_over():
                # What ends while others are looked for may have kept them waiting.
                is_busy = bool(self._under_way)
                is_busy |= await self._begin()
                if under_way := self._under_way:
                    await asyncio.wait(under_way, timeout=self._poll)
        finally:
            await self._leave()

    @property
    def _under_way(self) -> set[asyncio.Task[None]]:
        return self._at_once | self._in_turn

    async def _begin(self) -> bool:
        """Take up what there is and may be; False if nothing was."""
        try:
            begun = False
            while command := await asyncio.to_thread(self._claim):
                begun = True
                self._start(command)
        except SQLAlchemyError as error:
            # Leases run out meanwhile, and what they stand for is taken up again.
            _log.warning("database_unavailable", error=type(error).__name__)
            return False
        return begun

    def _claim(self) -> Command | None:
        kinds = [kind for kind in self._handlers if kind in AT_ONCE or self._is_free]
        with self._database.read() as connection:
            # Most often there is nothing, and looking for it keeps no writer waiting.
            if not commands.listing(connection, limit=1, is_open=True):
                return None
        with self._database.write() as connection:
            return commands.claim(connection, self._owner, self._clock.now(), kinds)

    @property
    def _is_free(self) -> bool:
        return not self._in_turn and self._may_begin()

    def _start(self, command: Command) -> None:
        under_way = self._at_once if command.command in AT_ONCE else self._in_turn
        task = asyncio.create_task(self._do(command))
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    async def _do(self, command: Command) -> None:
        heart = asyncio.create_task(self._keep(command))
        try:
            done = await self._outcome(command)
            _log.info("command_done", command=command.command, outcome=done.outcome)
            await self._finish(command, done)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._give_back, command)
            raise
        finally:
            heart.cancel()

    async def _outcome(self, command: Command) -> CommandResult:
        try:
            return await self._handlers[command.command](command)
        except FondsError as error:
            return CommandResult(outcome=f"refused: {error}")
        except Exception as error:  # noqa: BLE001 — whatever breaks one command, the next is done
            _log.exception("command_broke", command=command.command)
            # SQLAlchemy's own text goes on with the statement and its parameters.
            cause = getattr(error, "orig", None) or error
            return CommandResult(outcome=f"failed: {type(error).__name__}: {cause}")

    async def _finish(self, command: Command, done: CommandResult) -> None:
        """Write down what came of it, as soon as the database takes it."""
        while True:
            try:
                await asyncio.to_thread(self._write, command, done)
            except SQLAlchemyError as error:
                _log.warning("database_unavailable", error=type(error).__name__)
                await asyncio.sleep(self._poll)
            else:
                return

    def _write(self, command: Command, done: CommandResult) -> None:
        now = self._clock.now()
        outcome = done.outcome[:LONGEST_OUTCOME]
        with self._database.write() as connection:
            commands.finish(
                connection, command.id, self._owner, outcome, run_id=done.run_id, now=now
            )

    async def _keep(self, command: Command) -> None:
        while True:
            await asyncio.sleep(commands.LEASE.total_seconds() / 4)
            with suppress(SQLAlchemyError):
                await asyncio.to_thread(self._renew, command)

    def _renew(self, command: Command) -> None:
        with self._database.write() as connection:
            commands.keep(connection, command.id, self._owner, self._clock.now())

    def _give_back(self, command: Command) -> None:
        with suppress(SQLAlchemyError), self._database.write() as connection:
            commands.release(connection, command.id, self._owner)

    async def _leave(self) -> None:
        ending = self._under_way
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)


PATIENCE: Final = 20.0
"""Seconds after which a run that does not end may be one whose process is gone."""
GLANCE: Final = 0.5


def dispatcher(
    library: Library, *, may_begin: Callable[[], bool] = lambda: True, poll: float = 1.0
) -> Dispatcher:
    """Does the commands of a library."""
    clock, handlers = library.seams.clock, handlers_of(library)
    return Dispatcher(library.database, clock, handlers, may_begin=may_begin, poll=poll)


def handlers_of(library: Library) -> Handlers:
    """How each kind of command is done."""
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
    return _ended(await library.ingest(command.source or "", request))


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
    return _ended(await library.ingest(command.source or "", request))


async def _retry(library: Library, command: Command) -> CommandResult:
    """Every run tries again what failed before; this one also what was given up."""
    table = ingestion_tasks.c
    given_up = (table.source == command.source) & (table.attempts >= MAX_ATTEMPTS)
    stands = (table.stage == "errored") & table.resolved_at.is_(None)
    again = update(ingestion_tasks).where(given_up, stands).values(attempts=MAX_ATTEMPTS - 1)
    with library.database.write() as connection:
        connection.execute(again)
    return await _run(library, command)


async def _cancel(library: Library, command: Command) -> CommandResult:
    """Wait until the run has seen that it is to end; it looks every second."""
    source, run_id = command.source or "", command.args.get("run_id")
    if run_id is None:
        return await asyncio.to_thread(_withdraw, library, command, source)
    waited = 0.0
    while (ended := await asyncio.to_thread(_ending, library, UUID(run_id))) is None:
        await asyncio.sleep(GLANCE)
        waited += GLANCE
        if waited > PATIENCE:
            await asyncio.to_thread(_bury, library, source)
    return CommandResult(outcome=ended, run_id=UUID(run_id))


def _withdraw(library: Library, command: Command, source: str) -> CommandResult:
    with library.database.write() as connection:
        now = library.seams.clock.now()
        withdrawn = commands.withdraw(connection, source, command.requested_by, now)
    if withdrawn:
        return CommandResult(
            outcome=f"done: {withdrawn} waiting commands of {source} were withdrawn"
        )
    return CommandResult(outcome=f"refused: no run of {source} is going on")


def _ending(library: Library, run_id: UUID) -> str | None:
    with library.database.read() as connection:
        return commands.ending(connection, run_id)


def _bury(library: Library, source: str) -> None:
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
    given = command.args.get(name)
    return None if given is None else date.fromisoformat(given)


def _ended(report: RunReport) -> CommandResult:
    why = f"; {report.error_summary}" if report.error_summary else ""
    return CommandResult(
        outcome=f"{report.status}: {report.counts.summary()}{why}", run_id=report.run_id
    )


# Audits -----------------------------------------------------------------------------------


async def audited(
    library: Library, source: str, since: date | None, until: date | None, *, requested_by: str
) -> Audit:
    """Compare what the upstream of a source lists with what is held, and keep the result."""
    async with library.open_context() as context:
        runner = runner_of(library.sources.require(source), library.sources)
        found = await runner.audit(AuditRange(since=since, until=until), context)
    with library.database.write() as connection:
        now = library.seams.clock.now()
        audit.store(connection, found, requested_by=requested_by, now=now)
    return found


async def _audit(library: Library, command: Command) -> CommandResult:
    since, until = _day(command, "since"), _day(command, "until")
    by = command.requested_by
    found = await audited(library, command.source or "", since, until, requested_by=by)
    short = "short" if found.missing or found.open_errors else "success"
    counted = f"{found.expected:,} expected, {found.missing:,} missing"
    if not found.scopes:
        counted = "its upstream offers no second list to count by"
    return CommandResult(outcome=f"{short}: {counted}, {found.open_errors:,} errors stand")


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
    """Make the texts that wait, above all those of PDFs."""
    with _stopping() as stop:
        result = await asyncio.to_thread(_normalize, library, stop)
    return _drained(result.done, result.failed, result.waiting, result.given_up)


def _normalize(library: Library, stop: Event) -> normalization.Drained:
    with library.readers(2) as engine:
        return normalization.drain(library.context, engine, stop=stop)


@contextmanager
def _stopping() -> Iterator[Event]:
    """An event that is set when whoever waits for a thread waits no longer."""
    stop = Event()
    try:
        yield stop
    finally:
        stop.set()


def _drained(done: int, failed: int, waiting: int, given_up: int) -> CommandResult:
    told = f"{done:,} done, {failed:,} failed, {waiting:,} wait, {given_up:,} given up"
    return CommandResult(outcome=f"{'partial' if failed or given_up else 'success'}: {told}")


_DRAINS: Final[dict[QueueName, Callable[[Library], Awaitable[CommandResult]]]] = {
    "normalization": drain_normalization,
    "embedding": _drain_embedding,
    "citations": _drain_citations,
}
