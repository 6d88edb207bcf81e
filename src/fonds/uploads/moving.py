"""A job on its way through one transaction: moves are noted as they are justified, then written.

Each move is an update of its own, which the database checks and writes an event for. They only
share a call to the driver: what SQLAlchemy does for a statement takes longer than SQLite takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import Column, Connection, Dialect, bindparam, update

from fonds.errors import LeaseLostError
from fonds.stores.database import Database
from fonds.stores.tables import upload_jobs
from fonds.uploads.jobs import AFRESH, KNOWN, Job
from fonds.uploads.states import Status

_job: Final = upload_jobs.c


class Way:
    """A job that is held by a lease, and goes on from where it stands."""

    def __init__(self, connection: Connection, job: Job) -> None:
        self.connection = connection
        self.job = job
        """As it will stand when all is written."""
        assert job.lease_owner is not None
        self._holder = job.lease_owner
        self._at = job.status
        self._moves: list[dict[str, Any]] = []
        self._columns: dict[str, Any] = {}

    def move(self, to: Status, *, why: str, now: datetime, **columns: Any) -> None:
        """Note a move that was justified in this transaction, and what goes with it."""
        made = {"status": to.value, "moved_by": self._holder, "moved_why": why, "updated_at": now}
        self._moves.append(made)
        self.keep(now, **AFRESH, **columns)
        self.job = replace(self.job, status=to)

    def keep(self, now: datetime, **columns: Any) -> None:
        """Note what became of a job that stays where it is."""
        self._columns |= {"updated_at": now, **columns}
        known = {name: value for name, value in columns.items() if name in KNOWN}
        self.job = replace(self.job, updated_at=now, **known)

    def hold(self) -> None:
        """Write the moves that are noted: nobody else writes to the job from here on.

        LeaseLostError if it stands elsewhere by now, or another worker has it.
        """
        if self._moves:
            stations = [self._at.value, *(move["status"] for move in self._moves)]
            self._write(self._moves, stations[:-1])
            self._at, self._moves = self.job.status, []

    def arrive(self) -> None:
        """Write all that is noted."""
        if len(self._moves) == 1:
            self._write([{**self._moves[0], **self._columns}], [self._at.value])
        else:
            self.hold()
            if self._columns:
                self._write([self._columns], [self._at.value])
        self._at, self._moves, self._columns = self.job.status, [], {}

    def _write(self, rows: Sequence[Mapping[str, Any]], stations: Sequence[str]) -> None:
        """Write each row, if the job then stands at its station and is held by us."""
        ours = {"of": self.job.job_id, "holder": self._holder}
        given = [
            {**row, **ours, "station": station} for row, station in zip(rows, stations, strict=True)
        ]
        dialect = self.connection.dialect
        statement, processors = _update(tuple(rows[0]), dialect)
        bound: list[Any] = [
            {name: process(each[name]) if process else each[name] for name, process in processors}
            for each in given
        ]
        if dialect.positional:
            bound = [tuple(each.values()) for each in bound]
        done = self.connection.exec_driver_sql(statement, bound if len(bound) > 1 else bound[0])
        if done.rowcount != len(rows):
            raise LeaseLostError(f"job {self.job.job_id} has moved on; nothing was written")


@cache
def _update(names: tuple[str, ...], dialect: Dialect) -> tuple[str, list[tuple[str, Any]]]:
    """The statement, and how each value is bound in it, in their order."""
    where = {"of": _job.job_id, "station": _job.status, "holder": _job.lease_owner}
    columns: dict[str, Column[Any]] = {**{name: _job[name] for name in names}, **where}
    binds = {name: bindparam(name, type_=column.type) for name, column in columns.items()}
    same = [column == binds[name] for name, column in where.items()]
    values = {_job[name]: binds[name] for name in names}
    compiled = update(upload_jobs).where(*same).values(values).compile(dialect=dialect)
    order = compiled.positiontup if compiled.positional else list(binds)
    return str(compiled), [
        (name, columns[name].type.dialect_impl(dialect).bind_processor(dialect))
        for name in order or ()
    ]


@contextmanager
def moving(database: Database, job: Job) -> Iterator[Way]:
    """A transaction that ends with all moves written that were noted in it."""
    with database.write() as connection:
        way = Way(connection, job)
        yield way
        way.arrive()
