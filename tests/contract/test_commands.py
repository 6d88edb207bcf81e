"""What is asked for is done once, by somebody, and what came of it is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import OperationalError
from tests.support.kills import commands as commands_to_kill
from tests.support.libraries.notes import NoteOffice, ingest, note_library, renewed, rows
from tests.support.polling import wait_until
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.errors import SourceBusyError, UsageError
from fonds.library import Library
from fonds.operations import CommandResult, Dispatcher, Handlers, dispatcher, handlers_of
from fonds.runs import audit as audits
from fonds.runs import commands
from fonds.runs.commands import KINDS, LEASE, Command, Kind
from fonds.runs.locks import lock_source
from fonds.runs.state import Run, RunRequest, RunStatus
from fonds.seams import Seams, SystemClock
from fonds.selftest.child import ForkServer
from fonds.sources.registry import SourceRegistry
from fonds.stores.database import Database
from fonds.stores.tables import ingestion_runs
from fonds.testing import FakeSource, ManualClock, note

NOW: Final = datetime(2026, 3, 10, 12, tzinfo=UTC)
PATIENCE: Final = 30.0


REGISTRY = SourceRegistry()
REGISTRY.register(FakeSource())


def ask(
    database: Database,
    command: Kind = "run",
    source: str | None = "fake",
    *,
    now: datetime = NOW,
    **args: Any,
) -> int:
    with database.write() as connection:
        return commands.submit(
            connection, command, source, args, registry=REGISTRY, requested_by="maria", now=now
        )


def claim(database: Database, owner: str = "a", now: datetime = NOW) -> Command | None:
    with database.write() as connection:
        return commands.claim(connection, owner, now, KINDS)


def finish(database: Database, command_id: int, owner: str, outcome: str = "done: so") -> bool:
    with database.write() as connection:
        return commands.finish(connection, command_id, owner, outcome, run_id=None, now=NOW)


def get(database: Database, command_id: int) -> Command:
    with database.read() as connection:
        return commands.get(connection, command_id) or pytest.fail("no such command")


# Asking -----------------------------------------------------------------------------------


def test_what_is_asked_for_stands_there_with_who_asked(database: Database) -> None:
    asked = get(database, ask(database, "backfill", since="2026-01-02", recheck=True))
    assert (asked.command, asked.source, asked.state) == ("backfill", "fake", "waiting")
    assert asked.args == {"since": "2026-01-02", "recheck": True}
    assert (asked.requested_by, asked.requested_at) == ("maria", NOW)


def test_equal_open_command_is_asked_once_and_another_or_a_finished_one_anew(
    database: Database,
) -> None:
    first = ask(database, "backfill", since="2026-01-02")
    assert ask(database, "backfill", since="2026-01-02", until=None) == first
    assert ask(database, "backfill", since="2026-01-03") != first
    assert ask(database, "run") != first
    claimed = claim(database)
    assert claimed is not None
    assert claimed.id == first
    assert ask(database, "backfill", since="2026-01-02") == first
    finish(database, first, "a")
    assert ask(database, "backfill", since="2026-01-02") != first


def test_who_ask_for_the_same_at_once_are_given_one_command(database: Database) -> None:
    with ThreadPoolExecutor(6) as pool:
        asked = set(pool.map(lambda _: ask(database), range(24)))
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("command", "source", "args", "complaint"),
    [
        ("sing", "fake", {}, "no command 'sing'"),
        ("run", None, {}, "needs a source"),
        ("run", "nosuch", {}, "no source 'nosuch'"),
        ("run", "fake", {"since": "2026-01-01"}, "run has no argument 'since'"),
        ("run", "fake", {"recheck": "yes"}, "either true or false"),
        ("backfill", "fake", {"since": "yesterday"}, "since is a day"),
        ("backfill", "fake", {"until": 7}, "until is a day"),
        ("backfill", "fake", {"since": "2026-02-01", "until": "2026-01-01"}, "is after"),
        ("backfill", "fake", {"congresses": [119]}, "of fake has no argument"),
        ("backfill", "bills", {"congresses": ["119"]}, "list of numbers"),
        ("cancel", "fake", {"run_id": "x"}, "id of a run"),
        ("drain", "fake", {"queue": "embedding"}, "no source"),
        ("drain", None, {}, "needs a queue"),
        ("drain", None, {"queue": "nosuch"}, "no such queue"),
        ("retry", "fake", {"x": 1}, "has no argument"),
    ],
)
def test_nonsense_is_refused_when_it_is_asked_for(
    command: str, source: str | None, args: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        commands.checked(command, source, args, REGISTRY)


def test_source_that_counts_by_congress_can_be_filled_by_congress() -> None:
    wanted = commands.checked("backfill", "bills", {"congresses": [119, 118, 119]}, REGISTRY)
    assert wanted == {"congresses": [118, 119]}


def test_commands_are_listed_newest_first_page_by_page(database: Database) -> None:
    asked = [ask(database, "backfill", since=f"2026-01-0{day}") for day in range(1, 6)]
    asked.append(ask(database, "drain", None, queue="citations"))
    assert claim(database) is not None
    finish(database, asked[0], "a")

    def listed(**how: Any) -> list[int]:
        with database.read() as connection:
            return [each.id for each in commands.listing(connection, **{"limit": 10, **how})]

    assert listed() == asked[::-1]
    assert listed(limit=2, before=asked[3]) == [asked[2], asked[1]]
    assert listed(is_open=False) == asked[:1]
    assert listed(source="fake", is_open=True) == asked[4:0:-1]


# Claiming ---------------------------------------------------------------------------------


def test_oldest_command_is_claimed_first_and_by_one_alone(database: Database) -> None:
    asked = [ask(database, "run"), ask(database, "retry")]
    taken = [claim(database, owner) for owner in "abc"]
    assert [each and each.id for each in taken] == [*asked, None]
    assert get(database, asked[0]).state == "working"


def test_many_who_claim_at_once_each_get_another_command(database: Database) -> None:
    asked = [ask(database, "backfill", since=f"2026-01-{day:02}") for day in range(1, 21)]
    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(lambda number: claim(database, str(number)), range(30)))
    assert sorted(each.id for each in taken if each) == asked


def test_only_kinds_that_are_wanted_are_claimed(database: Database) -> None:
    ask(database, "run")
    with database.write() as connection:
        assert commands.claim(connection, "a", NOW, ["cancel"]) is None


def test_command_whose_lease_is_over_is_taken_again_and_the_first_holder_says_no_more(
    database: Database,
) -> None:
    asked = ask(database)
    assert claim(database, "a") is not None
    later = NOW + LEASE
    assert claim(database, "b", later) is None
    with database.write() as connection:
        assert commands.keep(connection, asked, "a", NOW + timedelta(seconds=60))
    assert claim(database, "b", later + timedelta(seconds=1)) is None
    retaken = claim(database, "b", later + timedelta(seconds=61))
    assert retaken is not None
    assert retaken.id == asked
    with database.write() as connection:
        assert not commands.keep(connection, asked, "a", later)
        commands.release(connection, asked, "a")
    assert not finish(database, asked, "a", "done: by a")
    assert finish(database, asked, "b", "done: by b")
    assert get(database, asked).outcome == "done: by b"
    assert not finish(database, asked, "b", "done: twice")


def test_released_command_is_free_at_once(database: Database) -> None:
    asked = ask(database)
    assert claim(database, "a") is not None
    with database.write() as connection:
        commands.release(connection, asked, "a")
    assert get(database, asked).state == "waiting"
    assert claim(database, "b") is not None


def test_command_of_which_every_process_dies_is_given_up_after_a_day(database: Database) -> None:
    deadly, other = ask(database, "run"), ask(database, "retry")
    assert claim(database, "a") is not None
    taken = claim(database, "b", NOW + commands.MAX_AGE + timedelta(hours=1))
    assert taken is not None
    assert taken.id == other
    assert "all ended" in (get(database, deadly).outcome or "")


def test_command_that_waited_for_days_is_still_done(database: Database) -> None:
    ask(database)
    assert claim(database, "a", NOW + timedelta(days=5)) is not None


# Cancelling -------------------------------------------------------------------------------


def begin_run(database: Database) -> Run:
    run = Run(source="fake", request=RunRequest(), database=database, clock=SystemClock())
    run.start()
    return run


def is_cancelled(database: Database) -> bool:
    with database.read() as connection:
        return commands.is_cancelled(connection, "fake")


def test_cancel_names_the_run_that_is_going_on_and_no_later_one(database: Database) -> None:
    run = begin_run(database)
    assert not is_cancelled(database)
    asked = ask(database, "cancel")
    assert get(database, asked).args == {"run_id": str(run.id)}
    assert is_cancelled(database)
    run.finish(RunStatus.SUCCESS)
    begin_run(database)
    assert not is_cancelled(database)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (RunStatus.CANCELLED, "done: the run was cancelled"),
        (RunStatus.SUCCESS, "refused: the run had ended before: success"),
    ],
)
def test_cancel_is_told_what_became_of_its_run(
    database: Database, status: RunStatus, outcome: str
) -> None:
    run = begin_run(database)
    asked = ask(database, "cancel")
    with database.write() as connection:
        commands.finish_cancels(connection, "fake", NOW)
    assert get(database, asked).state == "waiting"
    run.finish(status)
    with database.write() as connection:
        commands.finish_cancels(connection, "fake", NOW)
    settled = get(database, asked)
    assert (settled.outcome, settled.run_id) == (outcome, run.id)


def test_cancel_without_a_run_says_so_and_withdraws_what_waits(library: Library) -> None:
    database = library.database
    lone = ask(database, "cancel")
    do_all(library)
    assert get(database, lone).outcome == "refused: no run of fake is in progress"
    waiting, cancelling = ask(database, "run"), ask(database, "cancel")

    async def cancel() -> CommandResult:
        return await handlers_of(library)["cancel"](get(database, cancelling))

    assert asyncio.run(cancel()).outcome == "done: 1 waiting commands of fake were withdrawn"
    assert get(database, waiting).outcome == "cancelled: withdrawn by maria before it began"
    assert claim(database) is not None  # the cancel itself


# Doing ------------------------------------------------------------------------------------


Act = Callable[[Command], Awaitable[CommandResult]]


def all_by(act: Act) -> Handlers:
    return dict.fromkeys(KINDS, act)


def drain(database: Database, act: Act) -> None:
    work = Dispatcher(database, SystemClock(), all_by(act), poll=0.01).drain()
    asyncio.run(asyncio.wait_for(work, PATIENCE))


def test_what_came_of_a_command_is_written_down_with_its_run(database: Database) -> None:
    run_id = uuid4()

    async def act(command: Command) -> CommandResult:
        return CommandResult(outcome=f"success: {command.source}", run_id=run_id)

    asked = ask(database)
    drain(database, act)
    done = get(database, asked)
    assert (done.outcome, done.run_id, done.state) == ("success: fake", run_id, "done")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (SourceBusyError("fake is being run"), "refused: fake is being run"),
        (ZeroDivisionError("by\0zero"), "failed: ZeroDivisionError: by\ufffdzero"),
        (
            OperationalError("SELECT secret", {}, Exception("gone away")),
            "failed: OperationalError: gone away",
        ),
    ],
)
def test_command_that_breaks_says_why_and_the_next_is_done(
    database: Database, error: Exception, outcome: str
) -> None:
    async def act(command: Command) -> CommandResult:
        if command.command == "run":
            raise error
        return CommandResult(outcome="success: yes")

    broken, fine = ask(database, "run"), ask(database, "retry")
    drain(database, act)
    assert get(database, broken).outcome == outcome
    assert get(database, fine).outcome == "success: yes"


def test_one_command_is_done_at_a_time_and_a_cancel_at_once(database: Database) -> None:
    going_on: list[Kind] = []
    most: list[list[Kind]] = []
    cancelling = asyncio.Event()

    async def act(command: Command) -> CommandResult:
        going_on.append(command.command)
        most.append(sorted(going_on))
        if command.command == "cancel":
            cancelling.set()
        await cancelling.wait()  # the run lasts until the cancel has begun beside it
        going_on.remove(command.command)
        return CommandResult(outcome="success: done")

    kinds: tuple[Kind, ...] = ("run", "retry", "audit", "cancel")
    for kind in kinds:
        ask(database, kind)
    drain(database, act)
    assert ["cancel", "run"] in most
    assert all(len([kind for kind in each if kind != "cancel"]) <= 1 for each in most)
    assert [each for each in most if "retry" in each or "audit" in each] == [["retry"], ["audit"]]


def test_what_takes_long_waits_until_it_may_begin(database: Database) -> None:
    seen: list[Kind] = []

    async def act(command: Command) -> CommandResult:
        seen.append(command.command)
        return CommandResult(outcome="success: done")

    run, _ = ask(database, "run"), ask(database, "cancel")
    clock, handlers = SystemClock(), all_by(act)
    busy = Dispatcher(database, clock, handlers, may_begin=lambda: False, poll=0.01)
    asyncio.run(busy.drain())
    assert seen == ["cancel"]
    assert get(database, run).state == "waiting"


@pytest.mark.parametrize("how", ["told", "cancelled"])
def test_stopped_dispatcher_ends_its_work_and_gives_the_command_back(
    database: Database, how: str
) -> None:
    ends: list[str] = []

    async def main() -> None:
        begun, stop = asyncio.Event(), asyncio.Event()

        async def act(_command: Command) -> CommandResult:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ends.append("stopped")
                raise
            raise AssertionError

        work = Dispatcher(database, SystemClock(), all_by(act), poll=0.01)
        serving = asyncio.create_task(work.serve(stop.is_set))
        await begun.wait()
        stop.set() if how == "told" else serving.cancel()
        await asyncio.wait({serving})

    asked = ask(database)
    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert ends == ["stopped"]
    assert get(database, asked).state == "waiting"


def test_dispatcher_outlives_a_database_that_is_away(database: Database) -> None:
    """It fails when commands are looked for, and when the outcome is written."""

    async def main() -> None:
        work = Dispatcher(database, SystemClock(), all_by(act), poll=0.01)
        serving = asyncio.create_task(work.serve())
        await asyncio.to_thread(wait_until, lambda: len(met) == 4)
        await asyncio.to_thread(wait_until, lambda: get(database, asked).state == "done")
        serving.cancel()
        await asyncio.wait({serving})

    def fail(*_: Any) -> None:
        if failures:
            met.append(failures.pop())
            raise OperationalError("SELECT", {}, Exception("no connection"))

    async def act(_command: Command) -> CommandResult:
        failures.extend(["away", "away"])
        return CommandResult(outcome="success: in spite of all")

    asked = ask(database)
    failures, met = ["away", "away"], list[str]()
    event.listen(database.engine, "before_cursor_execute", fail)
    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert get(database, asked).outcome == "success: in spite of all"


# Processes --------------------------------------------------------------------------------


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    with ForkServer("tests.support.kills.commands") as fork_server:
        yield fork_server


def address_of(database: Database) -> str:
    return database.engine.url.render_as_string(hide_password=False)


def noted_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_two_dispatchers_do_each_command_once(database: Database, tmp_path: Path) -> None:
    asked = [ask(database, "backfill", since=f"2026-01-{day:02}") for day in range(1, 21)]
    noted = tmp_path / "noted"
    given = {"address": address_of(database), "noted": str(noted), "seconds": 0.01}
    with fork_server() as children:
        pids = [children.start(commands_to_kill.dispatch, **given) for _ in range(2)]
        assert [children.wait(pid) for pid in pids] == [0, 0]
    assert sorted(noted_in(noted)) == asked
    assert {get(database, each).outcome for each in asked} == {"success: noted"}
    owners = {get(database, each).claimed_by for each in asked}
    assert len(owners) == 2


def test_command_of_a_killed_process_is_done_by_another_after_its_lease(
    database: Database, tmp_path: Path
) -> None:
    asked, noted = ask(database, now=SystemClock().now()), tmp_path / "noted"
    given: dict[str, Any] = {"address": address_of(database), "noted": str(noted)}
    with fork_server() as children:
        killed = children.start(commands_to_kill.dispatch, seconds=60, **given)
        wait_until(lambda: noted_in(noted) == [asked])
        children.kill(killed)
        assert children.run(commands_to_kill.dispatch, seconds=0, **given) == 0
        assert get(database, asked).state == "working"
        assert children.run(commands_to_kill.dispatch, seconds=0, hours=1, **given) == 0
    assert noted_in(noted) == [asked, asked]
    assert get(database, asked).outcome == "success: noted"


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 6)


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    given: dict[str, Any] = {"embedder": "hashing", "timeout": 60.0, "database": address}
    with note_library(tmp_path, office.server, **given) as library:
        library.sources.register(FakeSource())
        yield library


def do_all(library: Library) -> None:
    asyncio.run(asyncio.wait_for(dispatcher(library, poll=0.01).drain(), PATIENCE))


def going_on(library: Library) -> UUID | None:
    with library.database.read() as connection:
        return commands.running(connection, "fake")


@pytest.mark.parametrize("with_dispatcher", [True, False])
def test_run_in_another_process_is_cancelled(
    library: Library, office: NoteOffice, tmp_path: Path, *, with_dispatcher: bool
) -> None:
    """Also where nobody does commands: the run itself says what came of it."""
    office.redirect_note(4, "/hangs")
    address = "" if library.database.is_sqlite else address_of(library.database)
    upstream = office.server.url("").rstrip("/")
    with fork_server() as children:
        pid = children.start(
            commands_to_kill.run_notes, home=str(tmp_path), address=address, upstream=upstream
        )
        wait_until(lambda: any(seen.target == "/hangs" for seen in office.server.requests))
        run_id = going_on(library)
        asked = ask(library.database, "cancel")
        if with_dispatcher:
            do_all(library)
        assert children.wait(pid) == 0
    done = get(library.database, asked)
    assert (done.outcome, done.run_id) == ("done: the run was cancelled", run_id)
    (run,) = rows(library, "SELECT status, error_summary FROM ingestion_runs")
    assert run["status"] == "cancelled"
    assert "stopped by request" in run["error_summary"]


def test_cancelled_run_of_several_leaves_the_others_alone(
    library: Library, office: NoteOffice
) -> None:
    office.redirect_note(4, "/hangs")

    def is_hanging() -> bool:
        return any(seen.target == "/hangs" for seen in office.server.requests)

    async def main() -> tuple[Any, Any]:
        run = asyncio.create_task(library.ingest_all(["fake"], RunRequest()))
        await asyncio.to_thread(wait_until, is_hanging)
        ask(library.database, "cancel")
        return await run, asyncio.current_task()

    (report,), task = asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert report.status is RunStatus.CANCELLED
    assert not task.cancelling()
    office.publish()
    assert ingest(library).status is RunStatus.SUCCESS


def test_cancel_of_a_run_whose_process_is_gone_buries_it(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fonds.operations.DEAD_RUN_SECONDS", 0.1)
    monkeypatch.setattr("fonds.operations.CANCEL_POLL_SECONDS", 0.1)
    begin_run(library.database)  # and never hold its claim
    asked = ask(library.database, "cancel")
    do_all(library)
    assert get(library.database, asked).outcome == "refused: the run had ended before: failed"


# With a library ---------------------------------------------------------------------------


def test_run_backfill_and_audit_are_done_and_told_in_words(library: Library) -> None:
    database = library.database
    run, filled = ask(database, "run"), ask(database, "backfill", since="2026-01-01")
    checked = ask(database, "audit")
    do_all(library)
    assert get(database, run).outcome == "success: 6 found, 6 fetched, 6 new"
    assert get(database, filled).outcome == "success: 6 found, 6 unchanged"
    assert get(database, checked).outcome == "success: 6 expected, 0 missing, 0 open errors"
    with database.read() as connection:
        modes = dict(connection.execute(select(ingestion_runs.c.id, ingestion_runs.c.mode)).all())
        (audit,) = audits.latest(connection)
    assert modes[get(database, run).run_id] == "incremental"
    assert modes[get(database, filled).run_id] == "backfill"
    assert (audit.source, audit.expected, audit.missing) == ("fake", 6, 0)
    assert audit.requested_by == "maria"


def test_retry_tries_again_what_was_given_up(library: Library, office: NoteOffice) -> None:
    office.break_note(5, b"{not json")
    for _ in range(6):
        ingest(library)
    office.withdraw(5)  # so that the list does not name it either
    office._serve("/notes/5.json", note(5))
    assert ingest(library).counts.inserted == 0
    asked = ask(library.database, "retry")
    do_all(library)
    assert "1 new" in (get(library.database, asked).outcome or "")
    assert library.document("fake:5")


def test_run_of_a_source_that_is_being_run_is_refused(library: Library) -> None:
    asked = ask(library.database)
    clock, home = library.seams.clock, library.settings.home
    with lock_source(library.database, home, "fake", clock) as lock, renewed(lock):
        do_all(library)
    assert get(library.database, asked).outcome == "refused: fake is being run by another process"


def test_queues_are_drained(library: Library) -> None:
    ingest(library, FakeSource(queued=True))
    asked = [
        ask(library.database, "drain", None, queue=queue, given_up=True)
        for queue in ("normalization", "citations", "embedding")
    ]
    do_all(library)
    outcomes = [get(library.database, each).outcome or "" for each in asked]
    assert [each.partition(",")[0] for each in outcomes] == ["success: 6 done"] * 3


def test_what_was_given_up_is_drained_only_if_that_is_asked_for(library: Library) -> None:
    ingest(library)
    with library.database.write() as connection:
        connection.exec_driver_sql("UPDATE ingestion_citation_queue SET attempts = 5")
    spared = ask(library.database, "drain", None, queue="citations")
    do_all(library)
    assert get(library.database, spared).outcome == (
        "partial: 0 done, 0 failed, 0 wait, 6 given up"
    )
    again = ask(library.database, "drain", None, queue="citations", given_up=True)
    do_all(library)
    assert get(library.database, again).outcome == "success: 6 done, 0 failed, 0 wait, 0 given up"


def test_clock_of_seams_is_the_one_that_leases_go_by(tmp_path: Path, office: NoteOffice) -> None:
    clock = ManualClock()
    with note_library(tmp_path, office.server, seams=Seams(clock=clock)) as library:
        library.sources.register(FakeSource())
        asked = ask(library.database)
        assert claim(library.database, "killed", clock.now()) is not None
        do_all(library)
        assert get(library.database, asked).state == "working"
        clock.move(seconds=LEASE.total_seconds() + 1)
        do_all(library)
        assert get(library.database, asked).state == "done"
