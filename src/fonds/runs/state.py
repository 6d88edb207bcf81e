"""The rows of a run and of the state of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from enum import StrEnum
from threading import Lock
from typing import Any, Final, Literal
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Connection, select, update

from fonds.errors import FondsError, MissingKeyError
from fonds.fetch.redact import Redaction
from fonds.model import Counts, SourceState, Watermark
from fonds.runs.log import RunLog, Stages
from fonds.seams import Clock
from fonds.stores.database import Database, repeatable, upsert
from fonds.stores.tables import ingestion_runs, ingestion_source_state


class RunStatus(StrEnum):
    """The status of a run; the database rejects transitions that are not in `MOVES`."""

    RUNNING = "running"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


MOVES: Final = {
    RunStatus.RUNNING: {
        RunStatus.SUCCESS,
        RunStatus.PARTIAL,
        RunStatus.FAILED,
        RunStatus.CANCELLED,
    },
    RunStatus.SUCCESS: set[RunStatus](),
    RunStatus.PARTIAL: set[RunStatus](),
    RunStatus.FAILED: set[RunStatus](),
    RunStatus.CANCELLED: set[RunStatus](),
}

TAKEN_OVER: Final = "another process took over while this run went on"

Mode = Literal["incremental", "backfill", "manual"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRequest:
    """The mode, range and options of a run."""

    mode: Mode = "incremental"
    since: date | None = None
    until: date | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Source-specific ranges."""
    recheck: bool = False
    """Fetch every item, also if its entry in the list has not changed."""
    accept_loss: bool = False
    """Accept a list that shrank sharply."""

    def as_config(self) -> dict[str, Any]:
        """As it is stored in `ingestion_runs.config`, so that the run can be repeated."""
        values = asdict(self) | {
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
        }
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunReport:
    """The result of a run."""

    run_id: UUID | None
    """None if it could not start."""
    source: str
    status: RunStatus
    counts: Counts
    seconds: float
    error_summary: str | None = None
    skipped: bool = False
    """True if a required key is not set, so that it was not tried."""

    @classmethod
    def refused(cls, source: str, error: FondsError) -> RunReport:
        """The report of a run that could not start."""
        counts = Counts(error=1)
        return cls(
            run_id=None,
            source=source,
            status=RunStatus.FAILED,
            counts=counts,
            seconds=0.0,
            error_summary=str(error),
            skipped=isinstance(error, MissingKeyError),
        )


class Run:
    """One run of one source: its row, counts, stages and log."""

    def __init__(
        self,
        *,
        source: str,
        request: RunRequest,
        database: Database,
        clock: Clock,
        redact: Redaction | None = None,
    ) -> None:
        self.id = uuid4()
        self.source = source
        self.request = request
        self.counts = Counts()
        self.first_error: str | None = None
        # Discovery, parsing and writing count from three threads.
        self._counting = Lock()
        self._database = database
        self._clock = clock
        self._log = RunLog(self.id, clock, redact or Redaction())
        self.stages = Stages(clock=clock, log=self.log)
        self._stored_counts = self.counts.by_stage()
        self._started = clock.monotonic()

    def start(self, confirm: Callable[[Connection], None] = lambda _: None) -> SourceState:
        """Insert the run's row, close those of processes that died, and read the source's state.

        `confirm` checks the lock first: without it, the run of another process would be closed.
        """
        self.log("info", "run began", **self.request.as_config())
        return self._insert(confirm)

    @repeatable
    def _insert(self, confirm: Callable[[Connection], None]) -> SourceState:
        now = self._clock.now()
        with self._database.write() as connection:
            confirm(connection)
            close_dead_runs(connection, self.source, now)
            connection.execute(
                ingestion_runs.insert().values(
                    id=self.id,
                    source=self.source,
                    mode=self.request.mode,
                    status=RunStatus.RUNNING,
                    started_at=now,
                    config=self.request.as_config(),
                )
            )
            self._log.save(connection)
            return read_state(connection, self.source, self.request, now)

    def count(self, **more: int) -> None:
        """Add to the counts, by name."""
        with self._counting:
            for name, number in more.items():
                setattr(self.counts, name, getattr(self.counts, name) + number)

    def add(self, more: Counts) -> None:
        """Add to the counts."""
        with self._counting:
            self.counts = self.counts.plus(more)

    def log(self, level: str, message: str, **context: Any) -> None:
        """Add a line to the run's log; it is stored with the next transaction."""
        self._log.add(level, message, context)

    def save(self, connection: Connection, more: Counts | None = None) -> None:
        """Store counts, stages and log lines in the transaction that justifies them."""
        own_row = ingestion_runs.c.id == self.id
        counts = self.counts.plus(more or Counts())
        connection.execute(update(ingestion_runs).where(own_row).values(counts.columns()))
        self._show(connection, counts)

    @property
    def has_news(self) -> bool:
        """Whether there are counts or log lines that are not stored."""
        return not self._log.is_empty or self._stored_counts != self.counts.by_stage()

    @repeatable
    def show(self, confirm: Callable[[Connection], None]) -> None:
        """Store log lines and stages in a transaction of their own, after the lock is confirmed.

        Of the counts only those that no batch adds to, since a batch may be about to store its own.
        A run that has ended meanwhile is left as it is.
        """
        early = {"discovered_count", "fetched_count", "parsed_count"}
        with self._database.write() as connection:
            confirm(connection)
            counts = {name: value for name, value in self.counts.columns().items() if name in early}
            updated = connection.execute(
                update(ingestion_runs).where(self._is_running).values(counts)
            )
            if updated.rowcount:
                self._show(connection, self.counts)

    @property
    def _is_running(self) -> ColumnElement[bool]:
        return (ingestion_runs.c.id == self.id) & (ingestion_runs.c.status == RunStatus.RUNNING)

    def _show(self, connection: Connection, counts: Counts) -> None:
        self._stored_counts = counts.by_stage()
        self.stages.save(connection, self.id, self._stored_counts)
        self._log.save(connection)

    def finish(self, status: RunStatus, error_summary: str | None = None) -> RunReport:
        """End the run; a finished run never changes again.

        A run that another process took over has failed.
        """
        self._log_end(status, error_summary)
        status, error_summary = self._end(status, error_summary)
        return RunReport(
            run_id=self.id,
            source=self.source,
            status=status,
            counts=self.counts,
            seconds=self._clock.monotonic() - self._started,
            error_summary=error_summary,
        )

    @repeatable
    def _end(self, status: RunStatus, error_summary: str | None) -> tuple[RunStatus, str | None]:
        now = self._clock.now()
        ended = {"status": status, "finished_at": now, "error_summary": error_summary}
        ending = update(ingestion_runs).where(self._is_running).values(ended)
        with self._database.write() as connection:
            if connection.execute(ending).rowcount:
                self.save(connection)
                update_last_run(connection, self.source, now, succeeded=status is RunStatus.SUCCESS)
            else:
                self._log.save(connection)
                return RunStatus.FAILED, error_summary or TAKEN_OVER
        return status, error_summary

    def _log_end(self, status: RunStatus, error_summary: str | None) -> None:
        self.stages.finish(self.counts.by_stage())
        self._log.add_omitted()
        counts = {name: number for name, number in asdict(self.counts).items() if number}
        error = {"cause": error_summary} if error_summary else {}
        level = "info" if status is RunStatus.SUCCESS else "warn"
        self.log(level, f"run ended: {status}", **counts, **error)


def close_dead_runs(connection: Connection, source: str, now: datetime) -> int:
    """Mark runs of a source as failed whose process has died; the caller has the lock."""
    table = ingestion_runs.c
    dead = (table.source == source) & (table.status == RunStatus.RUNNING)
    ended = {
        "status": RunStatus.FAILED,
        "finished_at": now,
        "error_summary": "the process ended without finishing this run",
    }
    return connection.execute(update(ingestion_runs).where(dead).values(ended)).rowcount


def read_state(
    connection: Connection, source: str, request: RunRequest, now: datetime
) -> SourceState:
    """The state of the source for a run with this request."""
    table = ingestion_source_state
    row = connection.execute(select(table).where(table.c.source == source)).one_or_none()
    return SourceState(
        last_run_at=row.last_run_at if row else None,
        last_seen_key=row.last_seen_key if row else None,
        custom=row.custom if row else {},
        backfill=request.mode == "backfill",
        since=request.since,
        until=request.until,
        options=request.options,
        now=now,
    )


def advance_watermark(
    connection: Connection, source: str, mark: Watermark, request: RunRequest
) -> bool:
    """Move the source's watermark past what is durable; returns whether it moved.

    A backfill with an end never moves it, as it lists nothing after its end; one without an end
    only moves it forward.
    """
    table = ingestion_source_state
    stored = connection.execute(select(table).where(table.c.source == source)).one_or_none()
    if request.mode == "backfill":
        ahead = stored is not None and (stored.last_seen_key or "") >= mark.last_seen_key
        if request.until is not None or ahead:
            return False
    custom = {**(stored.custom if stored else {}), **mark.custom}
    if stored is not None and (stored.last_seen_key, stored.custom) == (mark.last_seen_key, custom):
        return False
    row = {"source": source, "last_seen_key": mark.last_seen_key, "custom": custom}
    upsert(connection, table, [row])
    return True


def update_last_run(connection: Connection, source: str, now: datetime, *, succeeded: bool) -> None:
    """Store when the source was last run, and last run successfully."""
    table = ingestion_source_state
    row = {"source": source, "last_run_at": now}
    row |= {"last_success_at": now} if succeeded else {}
    existing = connection.scalar(select(table.c.source).where(table.c.source == source))
    if existing is None:
        connection.execute(table.insert().values(custom={}, **row))
    else:
        connection.execute(update(table).where(table.c.source == source).values(row))
