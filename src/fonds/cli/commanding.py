"""What is done when somebody asks for it by a command: runs, audits, queues."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from threading import Event
from typing import Final
from uuid import UUID

from sqlalchemy import update

from fonds.cli.citing import STEP
from fonds.cli.reports import summary
from fonds.codes.audit import audit_code
from fonds.errors import SourceBusyError
from fonds.library import WEBSITE, Library
from fonds.runs import audits, backlog, commands, normalization
from fonds.runs.audit import Audit, audit_source
from fonds.runs.commands import Command, QueueName
from fonds.runs.context import Workplace
from fonds.runs.dispatch import Dispatcher, Done, Handlers
from fonds.runs.locks import claim_source
from fonds.runs.state import RunReport, RunRequest, close_dead_runs
from fonds.runs.tasks import MAX_ATTEMPTS
from fonds.sources.base import Registered
from fonds.sources.jurisdiction import JurisdictionAdapter
from fonds.sources.registry import get_source
from fonds.stores import queues
from fonds.stores.tables import ingestion_tasks

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


async def _run(library: Library, command: Command) -> Done:
    recheck, accept_loss = _flags(command)
    request = RunRequest(mode="incremental", recheck=recheck, accept_loss=accept_loss)
    return _ended(await library.ingest(command.source or "", request))


async def _backfill(library: Library, command: Command) -> Done:
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


async def _retry(library: Library, command: Command) -> Done:
    """Every run tries again what failed before; this one also what was given up."""
    table = ingestion_tasks.c
    given_up = (table.source == command.source) & (table.attempts >= MAX_ATTEMPTS)
    stands = (table.stage == "errored") & table.resolved_at.is_(None)
    again = update(ingestion_tasks).where(given_up, stands).values(attempts=MAX_ATTEMPTS - 1)
    with library.database.write() as connection:
        connection.execute(again)
    return await _run(library, command)


async def _cancel(library: Library, command: Command) -> Done:
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
    return Done(outcome=ended, run_id=UUID(run_id))


def _withdraw(library: Library, command: Command, source: str) -> Done:
    with library.database.write() as connection:
        now = library.seams.clock.now()
        withdrawn = commands.withdraw(connection, source, command.requested_by, now)
    if withdrawn:
        return Done(outcome=f"done: {withdrawn} waiting commands of {source} were withdrawn")
    return Done(outcome=f"refused: no run of {source} is going on")


def _ending(library: Library, run_id: UUID) -> str | None:
    with library.database.read() as connection:
        return commands.ending(connection, run_id)


def _bury(library: Library, source: str) -> None:
    clock, database = library.seams.clock, library.database
    with (
        suppress(SourceBusyError),
        claim_source(database, library.settings.home, source, clock),
        database.write() as connection,
    ):
        close_dead_runs(connection, source, clock.now())


def _flags(command: Command) -> tuple[bool, bool]:
    return bool(command.args.get("recheck")), bool(command.args.get("accept_loss"))


def _day(command: Command, name: str) -> date | None:
    given = command.args.get(name)
    return None if given is None else date.fromisoformat(given)


def _ended(report: RunReport) -> Done:
    why = f"; {report.error_summary}" if report.error_summary else ""
    return Done(outcome=f"{report.status}: {summary(report.counts)}{why}", run_id=report.run_id)


# Audits -----------------------------------------------------------------------------------


async def audited(
    library: Library, source: str, since: date | None, until: date | None, *, requested_by: str
) -> Audit:
    """Compare what the upstream of a source lists with what is held, and keep the result."""
    async with library.workplace() as workplace:
        found = await _compared(get_source(source), workplace, since, until)
    with library.database.write() as connection:
        now = library.seams.clock.now()
        audits.store(connection, found, requested_by=requested_by, now=now)
    return found


async def _compared(
    named: Registered, workplace: Workplace, since: date | None, until: date | None
) -> Audit:
    if isinstance(named, JurisdictionAdapter):
        return await asyncio.to_thread(audit_code, named, workplace)
    if named.info.name.startswith(WEBSITE):
        return await _audit_website(named, workplace)
    return await audit_source(named, workplace, since, until)


async def _audit_website(named: Registered, workplace: Workplace) -> Audit:
    from fonds.sites.advice.structure import StructureAdvisor  # noqa: PLC0415 — as above
    from fonds.sites.probing import looking  # noqa: PLC0415 — only websites need it
    from fonds.sites.source import Website  # noqa: PLC0415 — as above

    assert isinstance(named, Website)
    async with looking(workplace, (StructureAdvisor(),)) as crawl:
        return await audit_source(Website(named.configuration, crawl), workplace, None, None)


async def _audit(library: Library, command: Command) -> Done:
    since, until = _day(command, "since"), _day(command, "until")
    by = command.requested_by
    found = await audited(library, command.source or "", since, until, requested_by=by)
    short = "short" if found.missing or found.open_errors else "success"
    counted = f"{found.expected:,} expected, {found.missing:,} missing"
    if not found.scopes:
        counted = "its upstream offers no second list to count by"
    return Done(outcome=f"{short}: {counted}, {found.open_errors:,} errors stand")


# Queues -----------------------------------------------------------------------------------


async def _drain(library: Library, command: Command) -> Done:
    queue: QueueName = command.args["queue"]
    if command.args.get("given_up"):
        table = backlog.TABLES[queue]
        given_up = update(table).where(table.c.attempts >= queues.MAX_ATTEMPTS)
        with library.database.write() as connection:
            connection.execute(given_up.values(attempts=queues.MAX_ATTEMPTS - 1))
    return await _DRAINS[queue](library)


async def _drain_citations(library: Library) -> Done:
    done = failed = 0
    while True:
        result = await asyncio.to_thread(library.extract_citations, limit=STEP)
        done, failed = done + result.done, failed + result.failed
        if result.done + result.failed < STEP:
            return _drained(done, failed, result.waiting, result.given_up)


async def _drain_embedding(library: Library) -> Done:
    with _stopping() as stop:
        report = await asyncio.to_thread(library.embed, stop=stop)
    done = _drained(report.done, report.failed, report.waiting, report.given_up)
    return Done(outcome=f"failed: {report.ended}") if report.ended else done


async def drain_normalization(library: Library) -> Done:
    """Make the texts that wait, above all those of PDFs."""
    with _stopping() as stop:
        result = await asyncio.to_thread(_normalize, library, stop)
    return _drained(result.done, result.failed, result.waiting, result.given_up)


def _normalize(library: Library, stop: Event) -> normalization.Drained:
    with library.readers(2) as engine:
        return normalization.drain(library.shelf(), engine, stop=stop)


@contextmanager
def _stopping() -> Iterator[Event]:
    """An event that is set when whoever waits for a thread waits no longer."""
    stop = Event()
    try:
        yield stop
    finally:
        stop.set()


def _drained(done: int, failed: int, waiting: int, given_up: int) -> Done:
    told = f"{done:,} done, {failed:,} failed, {waiting:,} wait, {given_up:,} given up"
    return Done(outcome=f"{'partial' if failed or given_up else 'success'}: {told}")


_DRAINS: Final[dict[QueueName, Callable[[Library], Awaitable[Done]]]] = {
    "normalization": drain_normalization,
    "embedding": _drain_embedding,
    "citations": _drain_citations,
}
