"""The job machine under crashes, two workers, strange webhooks and a clock that jumps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import event, update
from tests.support.libraries.uploads import now_of
from tests.support.uploads.files import PAPERS, USERS
from tests.support.uploads.invariants import Calm, calm_run
from tests.support.uploads.machine import UploadMachine
from tests.support.uploads.world import Opener, World, opened

from fonds.errors import ParserError
from fonds.stores.tables import upload_errors, upload_jobs
from fonds.uploads.intake import expire_uploads, retry_upload, staging_key
from fonds.uploads.jobs import Job, claim
from fonds.uploads.resources import ClaimedJob
from fonds.uploads.stages import STEPS
from fonds.uploads.states import JobStatus
from fonds.uploads.worker import LEASE, UploadWorker


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """Every file under every name, with nothing in its way."""
    return calm_run(tmp_path_factory.mktemp("calm"))


@pytest.fixture(params=["sqlite", "postgres"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    on: dict[str, Any] = {}
    if request.param == "postgres":
        on = {"database": request.getfixturevalue("postgres_database")}

    @contextmanager
    def fresh() -> Iterator[World]:
        home = tmp_path / "library"
        with opened(home, **on) as world:
            yield world
        shutil.rmtree(home)

    return fresh


def _run(opener: Opener, calm: Calm, **how: Any) -> None:
    checks = list(HealthCheck)
    given = settings(suppress_health_check=checks, database=None, **how)
    machine: Any = lambda: UploadMachine(opener, calm)  # noqa: E731 — typed as a class there
    run_state_machine_as_test(machine, settings=given)


def test_no_job_gets_stuck_or_lies_whatever_happens(opener: Opener, calm: Calm) -> None:
    _run(opener, calm, max_examples=12, stateful_step_count=25, derandomize=True)


def test_retry_of_a_job_that_has_all_its_vectors_publishes_it(opener: Opener) -> None:
    with opener() as world:
        worker = UploadWorker(world.resources())
        job = _carried(world, worker, JobStatus.EMBEDDINGS_STORED)
        worker._handle_error(job, ParserError("something broke just before the end"))
        assert now_of(world.library, job).status is JobStatus.FAILED_EMBEDDING
        retry_upload(world.context, job, by="tester")
        world.drain([worker])
        assert now_of(world.library, job).status is JobStatus.COMPLETE


def _carried(world: World, worker: UploadWorker, status: JobStatus) -> Job:
    """A job that a worker has taken so far, and holds."""
    job = world.announce(USERS[0], PAPERS[0], PAPERS[0].names[0])
    world.files.put(staging_key(job), PAPERS[0].data)
    world.complete(job)
    with world.library.database.write() as connection:
        held = claim(connection, worker._owner, world.clock.now(), LEASE)
    assert held is not None
    claimed = ClaimedJob(resources=worker._resources, job=held)
    while claimed.job.status is not status:
        STEPS[claimed.job.status](claimed)
    return claimed.job


def test_file_that_is_announced_by_another_name_while_it_is_looked_at_is_not_lost(
    opener: Opener,
) -> None:
    with opener() as world:
        paper, user = PAPERS[0], USERS[0]
        job = world.announce(user, paper, "cover.md")
        world.files.put(staging_key(job), paper.data)

        def renamed() -> None:
            world.pass_time(3601)
            expire_uploads(world.context)
            world.announce(user, paper, "cover.txt")

        world.around.meanwhile = renamed
        world.complete(job)
        held = now_of(world.library, job)
        if held.status is JobStatus.UPLOADED:
            world.files.put(staging_key(held), paper.data)
            world.complete(held)
        world.drain([UploadWorker(world.resources())])
        assert now_of(world.library, job).status is JobStatus.COMPLETE


def test_worker_outlives_a_takeover_while_it_notes_an_error(
    postgres_database: str, tmp_path: Path
) -> None:
    with opened(tmp_path, database=postgres_database) as world:
        worker = UploadWorker(world.resources())
        job = _carried(world, worker, JobStatus.PARSED)
        engine = world.library.database.engine

        def stolen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith("INSERT INTO upload_errors"):
                with engine.connect() as connection, connection.begin():
                    connection.execute(update(upload_jobs).values(lease_owner="another"))

        event.listen(engine, "before_cursor_execute", stolen)
        worker._handle_error(job, ParserError("too late to tell"))
        held = now_of(world.library, job)
        assert (held.status, held.lease_owner) == (JobStatus.PARSED, "another")
        assert world.rows(upload_errors.c.id) == []


@pytest.mark.long
def test_no_job_gets_stuck_or_lies_whatever_happens_for_long(opener: Opener, calm: Calm) -> None:
    _run(opener, calm, max_examples=60, stateful_step_count=60, print_blob=True)
