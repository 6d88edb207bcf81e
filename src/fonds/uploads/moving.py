"""A job on its way through one transaction: moves are noted as they are justified, then written.

Each move is an update of its own, which the database checks and writes an event for. They only
share a call to the driver, which takes longer than SQLite takes for a move.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, Update, bindparam, update

from fonds.errors import LeaseLostError
from fonds.stores.database import Database, run
from fonds.stores.tables import upload_jobs
from fonds.uploads.jobs import AFRESH, KNOWN, Job
from fonds.uploads.states import JobStatus

_job: Final = upload_jobs.c


class Way:
    """A job that is held by a lease, and goes on from where it stands."""

    def __init__(self, connection: Connection, job: Job) -> None:
        self.connection = connection
        assert job.lease_owner is not None
        self._holder = job.lease_owner
        self._at = job.status
        self._moves: list[dict[str, Any]] = []
        self._columns: dict[str, Any] = {}
        self._job = job
        self._changed: dict[str, Any] = {}

    @property
    def job(self) -> Job:
        """As it will stand when all is written."""
        if self._changed:
            self._job, self._changed = replace(self._job, **self._changed), {}
        return self._job

    @property
    def status(self) -> JobStatus:
        """Where it will stand then."""
        status: JobStatus = self._changed.get("status", self._job.status)
        return status

    def move(self, to: JobStatus, *, why: str, now: datetime, **columns: Any) -> None:
        """Note a move that was justified in this transaction, and what goes with it."""
        made = {"status": to.value, "moved_by": self._holder, "moved_why": why, "updated_at": now}
        self._moves.append(made)
        self.keep(now, **AFRESH, **columns)
        self._changed["status"] = to

    def keep(self, now: datetime, **columns: Any) -> None:
        """Note what became of a job that stays where it is."""
        columns["updated_at"] = now
        self._columns |= columns
        self._changed |= {name: value for name, value in columns.items() if name in KNOWN}

    def hold(self) -> None:
        """Write the moves that are noted: nobody else writes to the job from here on.

        LeaseLostError if it stands elsewhere by now, or another worker has it.
        """
        if self._moves:
            stations = [self._at.value, *(move["status"] for move in self._moves)]
            self._write(self._moves, stations[:-1])
            self._at, self._moves = JobStatus(stations[-1]), []

    def arrive(self) -> None:
        """Write all that is noted."""
        last = self._moves.pop() if self._moves else {}
        self.hold()
        if last or self._columns:
            self._write([{**last, **self._columns}], [self._at.value])
        self._at, self._columns = self.status, {}

    def _write(self, rows: Sequence[Mapping[str, Any]], stations: Sequence[str]) -> None:
        """Write each row, if the job then stands at its station and is held by us."""
        ours = {"of": self._job.job_id, "holder": self._holder}
        given = [
            {**row, **ours, "station": station} for row, station in zip(rows, stations, strict=True)
        ]
        done = run(self.connection, _move_update(tuple(rows[0])), given)
        if done.rowcount != len(rows):
            raise LeaseLostError(f"job {self._job.job_id} has moved on; nothing was written")


@cache
def _move_update(names: tuple[str, ...]) -> Update:
    values = {name: bindparam(name, type_=_job[name].type) for name in names}
    return (
        update(upload_jobs)
        .where(_job.job_id == bindparam("of"), _job.status == bindparam("station"))
        .where(_job.lease_owner == bindparam("holder"))
        .values(values)
    )


@contextmanager
def moving(database: Database, job: Job) -> Iterator[Way]:
    """A transaction that ends with all moves written that were noted in it."""
    with database.write() as connection:
        way = Way(connection, job)
        yield way
        way.arrive()
