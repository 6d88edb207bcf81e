"""What stages count, and what a run's log keeps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from structlog.contextvars import get_contextvars
from tests.support import servers
from tests.support.libraries.notes import NoteOffice, ingest, note_library, rows
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.fetch.rates import Pace, Rates, logged_to
from fonds.fetch.redact import Redaction
from fonds.library import Library
from fonds.runs.log import MAX_MESSAGE_LENGTH, MAX_SIMILAR_LINES, RunLog, StageTime
from fonds.runs.state import Run, RunRequest, RunStatus
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database, open_database
from fonds.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(servers.sqlite_database(tmp_path / "fonds.db"), seams=Seams())
    yield database
    database.close()


def a_run(database: Database, clock: ManualClock) -> Run:
    run = Run(source="fake", request=RunRequest(), database=database, clock=clock)
    run.start()
    return run


def lines(database: Database) -> list[dict[str, Any]]:
    with database.read() as connection:
        found = connection.exec_driver_sql("SELECT * FROM ingestion_logs ORDER BY id")
        return [row._asdict() for row in found]


def stage(clock: ManualClock, told: list[str] | None = None) -> StageTime:
    said: list[str] = [] if told is None else told
    return StageTime(
        stage="fetch", clock=clock, log=lambda _level, message, **_: said.append(message)
    )


def test_time_is_added_up_over_items_that_overlap(clock: ManualClock) -> None:
    fetch = stage(clock)
    first = fetch.begin()
    clock.move(seconds=2)
    second = fetch.begin()
    clock.move(seconds=3)
    fetch.end(first)
    fetch.end(second, less=1)
    assert fetch.seconds == 5 + 2


def test_stage_tells_its_beginning_and_its_end_once(clock: ManualClock) -> None:
    told: list[str] = []
    fetch = stage(clock, told)
    fetch.finish(0)
    for _ in range(3):
        fetch.end(fetch.begin())
    fetch.finish(3)
    fetch.finish(3)
    assert told == ["fetching began", "fetching ended"]


def test_stage_ended_when_it_last_did_something(clock: ManualClock) -> None:
    fetch = stage(clock)
    fetch.end(fetch.begin())
    ended = clock.now()
    clock.move(minutes=5)
    row = fetch.row(uuid4(), 1, clock.now())
    assert (row["began_at"], row["ended_at"]) == (ended, ended)


def test_waits_for_a_host_are_counted_where_the_request_is_made(clock: ManualClock) -> None:
    async def sleep(seconds: float) -> None:
        clock.move(seconds=seconds)

    async def ask() -> None:
        with logged_to(fetch):
            for _ in range(3):
                await rates.take("fake", "https://slow.example/", pace)
        await rates.take("fake", "https://slow.example/", pace)

    rates = Rates(Settings(), clock, sleep)
    fetch, pace = stage(clock), Pace(per_second=0.5)
    asyncio.run(ask())
    assert fetch.waited_seconds == 4


def test_lines_of_one_cause_are_bounded_and_the_rest_is_counted(
    database: Database, clock: ManualClock
) -> None:
    run = a_run(database, clock)
    for number in range(MAX_SIMILAR_LINES + 50):
        run.log("error", f"note {number} is torn", stage="parse", type="MalformedError")
    run.log("error", "another cause", stage="fetch", type="NotFoundError")
    run.finish(RunStatus.FAILED, "torn")
    torn = [line for line in lines(database) if "torn" in line["message"]]
    assert len(torn) == MAX_SIMILAR_LINES + 1
    assert torn[-1]["message"] == "and 50 more like these; the last: note 149 is torn"
    messages = [line["message"] for line in lines(database)]
    assert "another cause" in messages
    assert (messages[0], messages[-1]) == ("run began", "run ended: failed")


def test_line_of_a_transaction_that_fails_goes_with_the_next(
    database: Database, clock: ManualClock
) -> None:
    run = a_run(database, clock)
    run.log("info", "first")
    with suppress(ConnectionError), database.write() as connection:
        run.save(connection)
        raise ConnectionError
    run.log("info", "second")
    with database.write() as connection:
        run.save(connection)
    assert [line["message"] for line in lines(database)] == ["run began", "first", "second"]


def test_run_shows_its_news_before_any_batch_is_written(
    database: Database, clock: ManualClock
) -> None:
    run = a_run(database, clock)
    assert run.has_news is False
    run.stages.fetch.end(run.stages.fetch.begin())
    run.count(fetched=3, inserted=2)
    before = run.has_news
    run.show(lambda _: None)
    assert (before, run.has_news) == (True, False)
    with database.read() as connection:
        counts = connection.exec_driver_sql(
            "SELECT fetched_count, inserted_count FROM ingestion_runs"
        ).one()
        stages = connection.exec_driver_sql("SELECT stage, items FROM ingestion_stages").all()
    assert tuple(counts) == (3, 0), "what a batch counts is written by it alone"
    assert [tuple(row) for row in stages] == [("fetch", 3)]


def test_line_holds_nothing_that_a_database_refuses(database: Database, clock: ManualClock) -> None:
    run = a_run(database, clock)
    run.log("warn", "zero \0 and half \ud800" + "x" * MAX_MESSAGE_LENGTH, task="a\0b")
    with database.write() as connection:
        run.save(connection)
    line = lines(database)[-1]
    assert line["message"].startswith("zero \ufffd and half ?")
    assert len(line["message"]) == MAX_MESSAGE_LENGTH
    assert "\\u0000" not in line["context"]


def test_line_holds_no_secret(clock: ManualClock, database: Database) -> None:
    secret = "sesame-open-now"
    run_id = a_run(database, clock).id
    journal = RunLog(run_id, clock, Redaction(Settings(data_gov_key=secret)))
    journal.add("error", f"https://x.example/a?api_key=1234567&b=2 {secret}", {"token": "abc"})
    with database.write() as connection:
        journal.save(connection)
    line = lines(database)[-1]
    assert line["message"] == "https://x.example/a?api_key=[hidden]&b=2 [hidden]"
    assert line["context"] == '{"token": "[hidden]"}'


# A whole run ------------------------------------------------------------------------------


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 6)


@pytest.fixture
def library(tmp_path: Path, office: NoteOffice) -> Iterator[Library]:
    with note_library(tmp_path, office.server) as library:
        yield library


def logged(library: Library) -> list[str]:
    return [row["message"] for row in rows(library, "SELECT message FROM ingestion_logs")]


def test_run_writes_what_each_stage_did(library: Library) -> None:
    ingest(library)
    found = rows(library, "SELECT stage, items, seconds FROM ingestion_stages ORDER BY stage")
    assert [(row["stage"], row["items"]) for row in found] == [
        ("discover", 6),
        ("fetch", 6),
        ("load", 6),
        ("parse", 6),
    ]
    assert all(row["seconds"] > 0 for row in found)


def test_run_that_fails_a_task_tells_when_and_why(library: Library, office: NoteOffice) -> None:
    office.break_note(5, b"{not json")
    ingest(library)
    told = logged(library)
    assert told[0] == "run began"
    assert told[-1] == "run ended: partial"
    assert sum(line.startswith("not JSON") for line in told) == 1
    assert sum(line.startswith("watermark: ") for line in told) == 1
    names = ("discovering", "fetching", "parsing", "loading")
    assert {f"{name} {what}" for name in names for what in ("began", "ended")} <= set(told)


def test_requests_that_are_repeated_are_counted(library: Library, office: NoteOffice) -> None:
    office.redirect_note(3, "/500-storm")
    ingest(library)
    (row,) = rows(library, "SELECT retries FROM ingestion_stages WHERE stage = 'fetch'")
    assert row["retries"] == 1


def test_task_that_fails_in_every_run_is_said_to_be_given_up_once(
    library: Library, office: NoteOffice
) -> None:
    office.break_note(5, b"{not json")
    for _ in range(6):
        ingest(library)
    assert sum(line.startswith("failed in 5 runs") for line in logged(library)) == 1


class Listener(logging.Handler):
    """Keeps what is bound where a line is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: dict[str, dict[str, Any]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.bound[record.getMessage()] = get_contextvars()


def test_lines_of_a_run_name_it_in_all_its_threads(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, logger = Listener(), logging.getLogger("fonds.runs")
    monkeypatch.setattr(logger, "handlers", [listener])
    monkeypatch.setattr(logger, "propagate", False)
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        report = ingest(library)
    finally:
        logger.setLevel(before)
    for message in ("discovering began", "fetching began", "parsing began", "loading began"):
        bound = listener.bound[message]
        assert (bound["run"], bound["source"]) == (str(report.run_id), "fake")
