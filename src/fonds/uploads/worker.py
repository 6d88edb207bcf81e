"""The worker: takes any job forward from wherever it stands, until it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from threading import Event, Lock, Thread
from typing import Final
from uuid import UUID, uuid4

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.contextvars import bound_contextvars

from fonds.errors import (
    FondsError,
    ItemFailedError,
    LeaseLostError,
    RetryableEmbedError,
    RetryableParserError,
    StoreError,
    WorkerDiedError,
)
from fonds.uploads.intake import expire_uploads
from fonds.uploads.jobs import Job, claim, fail, job_of, release, renew, retry_later
from fonds.uploads.resources import ClaimedJob, WorkerResources
from fonds.uploads.stages import STEPS
from fonds.uploads.states import ENDED

LEASE: Final = timedelta(seconds=30)
POLL: Final = 0.5
"""Seconds between looks for a job while there is none."""
TAKEOVERS: Final = 10
"""A job that outlives so many workers at one stage is what they die of."""
HOUSEKEEPING: Final = timedelta(minutes=1)

RETRYABLE: Final = (RetryableEmbedError, RetryableParserError, StoreError, WorkerDiedError)

_log: Final = structlog.get_logger(__name__)


class BaseWorker:
    """Claims jobs by lease and works on some of them at once, each in a thread.

    All it knows stands in the database: kill it at any moment, and another goes on from the last
    thing it stored.
    """

    def __init__(
        self,
        resources: WorkerResources,
        *,
        concurrency: int = 1,
        lease: timedelta = LEASE,
        poll: float = POLL,
    ) -> None:
        self._resources = resources
        self._concurrency = concurrency
        self._lease = lease
        self._poll = poll
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._held: set[UUID] = set()
        self._lock = Lock()

    @property
    def stop(self) -> Event:
        """Set it to have the stages under way finished, and then nothing more."""
        return self._resources.stop

    @property
    def is_idle(self) -> bool:
        """Whether it has no job in hand."""
        with self._lock:
            return not self._held

    def run(self) -> None:
        """Work until told to stop."""
        self._work(lambda: self.stop.wait(self._poll))

    def drain(self) -> None:
        """Work until there is nothing that could be worked on now."""
        self._work(lambda: True)

    def _work(self, rest: Callable[[], bool]) -> None:
        with self._heartbeat(), ThreadPoolExecutor(self._concurrency, "fonds-worker") as pool:
            ends = [pool.submit(self._loop, rest) for _ in range(self._concurrency)]
        for end in ends:
            end.result()

    def _loop(self, rest: Callable[[], bool]) -> None:
        while not self.stop.is_set():
            try:
                has_worked = self.work_once()
            except SQLAlchemyError as error:
                # The database is away. Leases run out meanwhile, and are taken up again.
                _log.warning("database_unavailable", error=type(error).__name__)
                self.stop.wait(max(self._poll, 1.0))
                continue
            if not has_worked and rest():
                return

    def work_once(self) -> bool:
        """Take one job as far as it goes; False if there was none."""
        job = self._claim()
        if job is None:
            return False
        with self._holding(job.job_id):
            self._carry(job)
        return True

    def _claim(self) -> Job | None:
        now = self._resources.context.seams.clock.now()
        with self._resources.context.database.write() as connection:
            return claim(connection, self._owner, now, self._lease)

    def _carry(self, job: Job) -> None:
        """Step by step, until the job has ended, waits for somebody, or another has taken it."""
        if job.takeovers > TAKEOVERS:
            died = f"{job.takeovers} workers ended while they had this job"
            self._settle(job, ItemFailedError(died))
            return
        claimed = ClaimedJob(resources=self._resources, job=job)
        try:
            while claimed.job.lease_owner is not None and claimed.job.status not in ENDED:
                if self.stop.is_set():
                    self._give_back(claimed.job)
                    return
                STEPS[claimed.job.status](claimed)
        except LeaseLostError:
            _log.info("lease_lost", job=str(job.job_id))
        except SQLAlchemyError:
            raise
        except FondsError as error:
            self._settle(claimed.job, error)
        except Exception as error:  # noqa: BLE001 — a job that breaks our code must end too
            _log.exception("step_broke", job=str(job.job_id))
            failed = f"{type(error).__name__} in {claimed.job.status}"
            self._settle(claimed.job, ItemFailedError(failed))

    def _settle(self, job: Job, error: FondsError) -> None:
        """Try again later, or fail; what the step stored before it broke off stays."""
        now = self._resources.context.seams.clock.now()
        with suppress(LeaseLostError), self._resources.context.database.write() as connection:
            held = job_of(connection, job.document_id)
            if held is None or held.lease_owner != self._owner:
                return
            if isinstance(error, RETRYABLE):
                if self.stop.is_set():
                    release(connection, held)
                else:
                    retry_later(connection, held, error, now)
            else:
                fail(connection, held, error, now)
        _log.warning("step_failed", job=str(job.job_id), error=type(error).__name__)

    def _give_back(self, job: Job) -> None:
        with self._resources.context.database.write() as connection:
            release(connection, job)

    @contextmanager
    def _holding(self, job_id: UUID) -> Iterator[None]:
        with self._lock:
            self._held.add(job_id)
        try:
            with bound_contextvars(job=str(job_id)):
                yield
        finally:
            with self._lock:
                self._held.discard(job_id)

    @contextmanager
    def _heartbeat(self) -> Iterator[None]:
        done = Event()
        beating = Thread(target=self._beat, args=(done,), name="fonds-heartbeat", daemon=True)
        beating.start()
        try:
            yield
        finally:
            done.set()
            beating.join()

    def _beat(self, done: Event) -> None:
        """Keep the leases; now and then look after what no job does."""
        kept_house: datetime | None = None
        while True:
            now = self._resources.context.seams.clock.now()
            try:
                self._renew(now)
                if kept_house is None or abs(now - kept_house) >= HOUSEKEEPING:
                    expire_uploads(self._resources.context)
                    kept_house = now
            except SQLAlchemyError as error:
                _log.warning("database_unavailable", error=type(error).__name__)
            if done.wait(self._lease.total_seconds() / 3):
                return

    def _renew(self, now: datetime) -> None:
        with self._lock:
            held = list(self._held)
        if held:
            with self._resources.context.database.write() as connection:
                renew(connection, self._owner, held, now, self._lease)
