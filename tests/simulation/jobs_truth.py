"""What must always hold of uploads, and what must have become of them in the end."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

from fonds.seams import Seams
from fonds.stores.database import Database
from fonds.stores.fulltext import SqliteFullText
from fonds.stores.vectors import Generation
from fonds.uploads.jobs import Job, page_of_jobs
from fonds.uploads.states import ACTIVE, FAILURES, MOVES, JobStatus
from tests.simulation.database import SeededDatabase
from tests.simulation.scheduler import ViolationError
from tests.simulation.store import SeededBlobs
from tests.support.libraries.passages import problems
from tests.support.uploads.files import BY_SHA
from tests.support.uploads.invariants import Calm, require_truth
from tests.support.uploads.world import World

_OFTEN: Final = 0.05
"""Of all commits so many are followed by a look at everything."""


class JobsTruth:
    """Looks at the file after each commit, past everybody who works with it."""

    def __init__(
        self, database: SeededDatabase, blobs: SeededBlobs, calm: Calm, chance: Random
    ) -> None:
        self._database = database
        self._quiet = Database(database.engine, SqliteFullText(), Seams())
        self._calm = calm
        self._chance = Random(chance.random())
        self.owners: set[str] = set()
        """Names of all workers there ever were."""
        self._holders: dict[str, str | None] = {}
        self._events = 0
        files = SimpleNamespace(get=lambda key: blobs.objects[key].data)
        library = SimpleNamespace(database=self._quiet)
        self._seen = cast("World", SimpleNamespace(library=library, files=files))

    def jobs(self) -> list[Job]:
        """All jobs, as they stand now."""
        with self._quiet.read() as connection:
            return page_of_jobs(connection, limit=1000)

    def failed(self) -> list[Job]:
        """Those that failed though their file is here."""
        told = "SELECT EXISTS (SELECT 1 FROM upload_jobs WHERE status LIKE 'failed%')"
        if self._database.rows(told) == [(0,)]:
            return []  # most often; and all rows are much to read
        failed = [job for job in self.jobs() if job.status in FAILURES]
        return [job for job in failed if job.arrived_at is not None]

    # At any moment ------------------------------------------------------------------------

    def check(self) -> None:
        """Nothing lies."""
        self._check_events()
        rows = self._database.rows("SELECT job_id, lease_owner FROM upload_jobs")
        self._holders = dict(rows)
        if self._chance.random() < _OFTEN:
            require_truth(self._seen, self._calm)

    def _check_events(self) -> None:
        """Every move is legal, and a worker's only where it held the job before."""
        rows = self._database.rows(
            "SELECT id, job_id, from_status, to_status, by FROM upload_events"
            f" WHERE id > {self._events} ORDER BY id"
        )
        for number, job, before, after, by in rows:
            self._events = number
            if before is not None and JobStatus(after) not in MOVES[JobStatus(before)]:
                raise ViolationError(f"an illegal move of {job}: {before} to {after}")
            if by in self.owners and self._holders.get(job) != by:
                raise ViolationError(
                    f"{by} moved {job} to {after}, which {self._holders.get(job)} held"
                )
        twice = self._database.rows(
            "SELECT job_id FROM upload_events WHERE to_status = 'complete'"
            " GROUP BY job_id HAVING count(*) > 1"
        )
        if twice:
            raise ViolationError(f"completed twice: {twice}")

    # In the end ---------------------------------------------------------------------------

    def has_ended(self) -> bool:
        """Whether there is nothing that could be worked on, or retried with success."""
        return all(job.status is self._expected(job) for job in self.jobs())

    def check_rest(self, generation: Generation) -> None:
        """Every job has ended as its file deserves."""
        require_truth(self._seen, self._calm)
        for job in self.jobs():
            if job.status in ACTIVE or job.status is not self._expected(job):
                raise ViolationError(f"{job.name} is {job.status}, though nothing goes wrong")
        if wrong := problems(self._quiet, generation):
            raise ViolationError(f"vectors: {wrong}")

    def _expected(self, job: Job) -> JobStatus:
        is_lacking = job.arrived_at is None or BY_SHA[job.raw_sha256].wordless
        return JobStatus.FAILED_PARSE if is_lacking else JobStatus.COMPLETE

    def everything(self) -> dict[str, list[Any]]:
        """All rows."""
        names = self._database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: self._database.rows(f'SELECT * FROM "{name}"')
            for (name,) in names
            if not name.startswith(("chunk_index", "sqlite_"))
        }
