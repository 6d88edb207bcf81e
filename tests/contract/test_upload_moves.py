"""The states of a job, as the code and both databases know them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import DBAPIError
from tests.support.libraries.uploads import TEXT, announce, make_user, upload_library

from fonds.errors import LeaseLostError
from fonds.library import Library
from fonds.stores.tables import upload_jobs
from fonds.uploads.jobs import Job, events_of, job_of, move
from fonds.uploads.states import FAILURES, MOVES, JobStatus, failure_of


@pytest.fixture(params=["sqlite", "postgres"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Library]:
    on: dict[str, Any] = {}
    if request.param == "postgres":
        on = {"database": request.getfixturevalue("postgres_database")}
    with upload_library(tmp_path, **on) as library:
        yield library


@pytest.fixture
def job(library: Library) -> Job:
    return announce(library, make_user(library), TEXT.encode())


def _ways() -> dict[JobStatus, list[JobStatus]]:
    """The shortest legal way to each status."""
    ways = {JobStatus.UPLOADED: [JobStatus.UPLOADED]}
    waiting = [JobStatus.UPLOADED]
    while waiting:
        here = waiting.pop(0)
        for there in sorted(MOVES[here]):
            if there not in ways:
                ways[there] = [*ways[here], there]
                waiting.append(there)
    return ways


WAYS = _ways()


def _put(library: Library, job: Job, status: JobStatus) -> None:
    with library.database.write() as connection:
        for step in WAYS[status][1:]:
            connection.execute(
                update(upload_jobs)
                .where(upload_jobs.c.job_id == job.job_id)
                .values(status=step.value)
            )


def _raw_move(library: Library, status: JobStatus) -> None:
    """As somebody would who has nothing but a SQL client."""
    with library.database.engine.connect() as connection, connection.begin():
        connection.execute(text(f"UPDATE upload_jobs SET status = '{status.value}'"))


@pytest.mark.parametrize("status", list(JobStatus))
def test_database_allows_exactly_the_moves_of_the_table(
    library: Library, job: Job, status: JobStatus
) -> None:
    _put(library, job, status)
    for target in JobStatus:
        if target in {*MOVES[status], status}:
            continue
        with pytest.raises(DBAPIError):
            _raw_move(library, target)
    for target in sorted(MOVES[status]):
        with library.database.engine.connect() as connection:
            connection.execute(text(f"UPDATE upload_jobs SET status = '{target.value}'"))
            connection.rollback()


def test_job_cannot_begin_in_the_middle(library: Library, job: Job) -> None:
    copy = (
        "INSERT INTO upload_jobs (job_id, user_id, document_id, status, name, format, bytes,"
        " raw_sha256, raw_path, parser, chunks_version, moved_by, moved_why, created_at,"
        " updated_at) SELECT '00000000-0000-4000-8000-000000000000', user_id,"
        " '00000000-0000-4000-8000-000000000001', 'complete', name, format, bytes, raw_sha256,"
        " raw_path, parser, chunks_version, moved_by, moved_why, created_at, updated_at"
        " FROM upload_jobs"
    )
    with (
        pytest.raises(DBAPIError),
        library.database.engine.connect() as connection,
        connection.begin(),
    ):
        connection.execute(text(copy))
    assert job.status is JobStatus.UPLOADED


def test_every_move_leaves_an_event_whoever_made_it(library: Library, job: Job) -> None:
    now = library.seams.clock.now()
    with library.database.write() as connection:
        moved = move(connection, job, JobStatus.PARSE_QUEUED, by="tester", why="it came", now=now)
    _raw_move(library, JobStatus.FAILED_PARSE)
    with library.database.read() as connection:
        events = events_of(connection, job.job_id)
    assert [(event.from_status, event.to_status) for event in events] == [
        (None, "uploaded"),
        ("uploaded", "parse_queued"),
        ("parse_queued", "failed_parse"),
    ]
    assert (events[1].by, events[1].why, events[1].at) == ("tester", "it came", now)
    assert moved.status is JobStatus.PARSE_QUEUED


def test_move_that_is_rolled_back_leaves_no_event(library: Library, job: Job) -> None:
    with library.database.engine.connect() as connection:
        now = library.seams.clock.now()
        move(connection, job, JobStatus.PARSE_QUEUED, by="tester", why="", now=now)
        connection.rollback()
    with library.database.read() as connection:
        held = job_of(connection, job.document_id)
        assert held is not None
        assert held.status is JobStatus.UPLOADED
        assert len(events_of(connection, job.job_id)) == 1


def test_move_from_where_the_job_no_longer_stands_writes_nothing(
    library: Library, job: Job
) -> None:
    now = library.seams.clock.now()
    with library.database.write() as connection:
        move(connection, job, JobStatus.PARSE_QUEUED, by="one", why="", now=now)
    with pytest.raises(LeaseLostError), library.database.write() as connection:
        move(connection, job, JobStatus.PARSE_QUEUED, by="two", why="", now=now)


def test_every_stage_has_its_failure_and_every_failure_a_way_back() -> None:
    for status, after in MOVES.items():
        if status in FAILURES:
            assert after
            assert not after & FAILURES
        elif status is not JobStatus.COMPLETE:
            assert failure_of(status) in after
    assert set(WAYS) == set(JobStatus)
