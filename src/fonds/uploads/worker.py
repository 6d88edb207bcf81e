"""The worker on uploads: takes each job from its status to its end."""

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
    BreakerOpenError,
    DatabaseUnavailableError,
    FondsError,
    ItemFailedError,
    LeaseLostError,
    RetryableEmbedError,
    RetryableParserError,
    StoreError,
    StoreUnavailableError,
    WorkerDiedError,
)
from fonds.stores.database import repeatable
from fonds.uploads.deletion import finish_deletions
from fonds.uploads.intake import check_arrivals, expire_uploads
from fonds.uploads.jobs import Job, claim, fail, job_of, postpone, release, renew, retry_later
from fonds.uploads.live_workers import forget_worker, record_worker
from fonds.uploads.resources import ClaimedJob, WorkerResources
from fonds.uploads.stages import STEPS
from fonds.uploads.states import ENDED

LEASE: Final = timedelta(seconds=30)
POLL_SECONDS: Final = 0.5
"""Seconds between polls while there is no job."""
MAX_TAKEOVERS: Final = 10
"""A job fails after this number of expired leases at one stage: it may be why workers die."""
EXPIRY_INTERVAL: Final = timedelta(minutes=1)

STORE_PAUSE: Final = timedelta(seconds=10)
"""Before another attempt at a job after the object store did not respond."""

RETRYABLE: Final = (RetryableEmbedError, RetryableParserError, StoreError, WorkerDiedError)

_log: Final = structlog.get_logger(__name__)


class UploadWorker:
    """Claims jobs by lease, and works on several of them at once, each in a thread.

    Its state is in the database: if it is killed, another worker continues from there.
    """

    def __init__(
        self,
        resources: WorkerResources,
        *,
        concurrency: int = 1,
        lease: timedelta = LEASE,
        poll: float = POLL_SECONDS,
    ) -> None:
        self._resources = resources
        self._concurrency = concurrency
        self._lease = lease
        self._poll = poll
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._claimed: set[UUID] = set()
        self._is_recorded = False
        self._swept_at: datetime | None = None
        self._lock = Lock()

    @property
    def stop(self) -> Event:
        """Set it to stop the worker when the steps under way are finished."""
        return self._resources.stop

    @property
    def is_idle(self) -> bool:
        """Whether it works on no job."""
        with self._lock:
            return not self._claimed

    def run(self) -> None:
        """Work until `stop` is set; until then others can see that a worker is running."""
        self._is_recorded = True
        self._work(lambda: self.stop.wait(self._poll))

    def drain(self) -> None:
        """Work until no job is due."""
        self._work(lambda: True)

    def _work(self, rest: Callable[[], bool]) -> None:
        with self._heartbeat(), ThreadPoolExecutor(self._concurrency, "fonds-worker") as pool:
            loops = [pool.submit(self._loop, rest) for _ in range(self._concurrency)]
        for loop in loops:
            loop.result()

    def _loop(self, rest: Callable[[], bool]) -> None:
        while not self.stop.is_set():
            try:
                self._sweep()
                has_worked = self.work_once()
            except (SQLAlchemyError, StoreUnavailableError) as error:
                # Leases expire meanwhile, and their jobs are claimed again.
                _log.warning("store_unavailable", error=type(error).__name__)
                self.stop.wait(max(self._poll, 1.0))
                continue
            if not has_worked and rest():
                return

    def _sweep(self) -> None:
        """Remove files that are deleted or not awaited, once a minute in one of the threads."""
        now = self._resources.context.seams.clock.now()
        with self._lock:
            is_due = self._swept_at is None or abs(now - self._swept_at) >= EXPIRY_INTERVAL
            self._swept_at = now if is_due else self._swept_at
        if is_due:
            finish_deletions(self._resources.context)
            with suppress(StoreError):  # the next sweep will do
                check_arrivals(self._resources.context)

    def work_once(self) -> bool:
        """Work on one job until it ends or waits; False if none is due."""
        job = self._claim()
        if job is None:
            return False
        with self._renewing(job.job_id):
            self._work_on(job)
        return True

    @repeatable
    def _claim(self) -> Job | None:
        with self._resources.context.database.write() as connection:
            return claim(connection, self._owner, self._now(), self._lease)

    def _now(self) -> datetime:
        # To be called in a transaction: it may have waited for the database.
        return self._resources.context.seams.clock.now()

    def _work_on(self, job: Job) -> None:
        """Do the steps of a job until it ends, waits, or has been claimed by another worker."""
        if job.takeovers > MAX_TAKEOVERS:
            message = f"{job.takeovers} workers ended while they had this job"
            self._handle_error(job, ItemFailedError(message))
            return
        claimed = ClaimedJob(resources=self._resources, job=job)
        try:
            while claimed.job.lease_owner is not None and claimed.job.status not in ENDED:
                if self.stop.is_set():
                    self._release(claimed.job)
                    return
                STEPS[claimed.job.status](claimed)
        except LeaseLostError:
            _log.info("lease_lost", job=str(job.job_id))
        except SQLAlchemyError:
            raise
        except DatabaseUnavailableError:
            self._release_lost(job)
        except FondsError as error:
            self._handle_error(claimed.job, error)
        except Exception as error:  # noqa: BLE001 — a job that breaks our code must end too
            _log.exception("step_broke", job=str(job.job_id))
            message = f"{type(error).__name__} in {claimed.job.status}"
            self._handle_error(claimed.job, ItemFailedError(message))

    @repeatable
    def _handle_error(self, job: Job, error: FondsError) -> None:
        """Postpone the job, or fail it; what the step had stored stays."""
        with suppress(LeaseLostError), self._resources.context.database.write() as connection:
            now = self._now()
            current = job_of(connection, job.document_id)
            if current is None or current.lease_owner != self._owner:
                return
            if isinstance(error, RETRYABLE):
                if self.stop.is_set():
                    release(connection, current)
                elif isinstance(error, StoreUnavailableError):  # no fault of this job
                    postpone(connection, current, now + STORE_PAUSE, now)
                elif isinstance(error, BreakerOpenError):  # nothing was tried
                    postpone(connection, current, now + _until_probe(error), now)
                else:
                    retry_later(connection, current, error, now)
            else:
                fail(connection, current, error, now)
        _log.warning("step_failed", job=str(job.job_id), error=type(error).__name__)

    @repeatable
    def _release_lost(self, job: Job) -> None:
        """Release a job whose step lost the database, as soon as that responds."""
        with self._resources.context.database.write() as connection:
            current = job_of(connection, job.document_id)
            if current is not None and current.lease_owner == self._owner:
                release(connection, current)

    @repeatable
    def _release(self, job: Job) -> None:
        with self._resources.context.database.write() as connection:
            release(connection, job)

    @contextmanager
    def _renewing(self, job_id: UUID) -> Iterator[None]:
        with self._lock:
            self._claimed.add(job_id)
        try:
            with bound_contextvars(job=str(job_id)):
                yield
        finally:
            with self._lock:
                self._claimed.discard(job_id)

    @contextmanager
    def _heartbeat(self) -> Iterator[None]:
        done = Event()
        args = (done,)
        thread = Thread(target=self._renew_leases, args=args, name="fonds-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            if self._is_recorded:
                with (
                    suppress(SQLAlchemyError, StoreUnavailableError),
                    self._resources.context.database.write() as connection,
                ):
                    forget_worker(connection, self._owner)

    def _renew_leases(self, done: Event) -> None:
        """Renew the leases until the work is done; expire overdue uploads now and then."""
        last_expiry: datetime | None = None
        while True:
            now = self._now()
            try:
                self._renew()
                if last_expiry is None or abs(now - last_expiry) >= EXPIRY_INTERVAL:
                    expire_uploads(self._resources.context)
                    last_expiry = now
            except (SQLAlchemyError, StoreUnavailableError) as error:
                _log.warning("database_unavailable", error=type(error).__name__)
            if done.wait(self._lease.total_seconds() / 3):
                return

    @repeatable
    def _renew(self) -> None:
        with self._lock:
            job_ids = list(self._claimed)
        if not job_ids and not self._is_recorded:
            return
        with self._resources.context.database.write() as connection:
            now = self._now()
            renew(connection, self._owner, job_ids, now, self._lease)
            if self._is_recorded:
                record_worker(connection, self._owner, now, self._lease)


def _until_probe(error: BreakerOpenError) -> timedelta:
    """The time until a breaker lets a request pass; another job may be making it already."""
    return timedelta(seconds=max(error.retry_after or 0.0, POLL_SECONDS))
