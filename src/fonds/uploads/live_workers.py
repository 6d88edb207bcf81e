"""Workers that are running, and the notice for users while there is none.

A running worker has a lease in its own name, which it renews with those of its jobs. The caller
owns the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, select

from fonds.stores.database import upsert
from fonds.stores.leases import release_name
from fonds.stores.tables import ingestion_leases, upload_jobs
from fonds.uploads.jobs import Job
from fonds.uploads.states import ACTIVE

NO_WORKER: Final = "no worker is running: start `fonds worker`"
"""The notice for users of jobs that wait for a worker."""
OVERDUE_AFTER: Final = timedelta(seconds=10)
"""A worker that has just been started takes a job sooner."""

_PREFIX: Final = "worker-"
_lease: Final = ingestion_leases.c
_ACTIVE: Final = [status.value for status in ACTIVE]


def record_worker(connection: Connection, owner: str, now: datetime, lease: timedelta) -> None:
    """Record that a worker is running, and forget those that were killed."""
    killed = _lease.name.startswith(_PREFIX) & (_lease.lease_until < now)
    connection.execute(delete(ingestion_leases).where(killed))
    row = {"name": f"{_PREFIX}{owner}", "owner": owner, "lease_until": now + lease}
    upsert(connection, ingestion_leases, [row])


def forget_worker(connection: Connection, owner: str) -> None:
    """Record that a worker has ended."""
    release_name(connection, f"{_PREFIX}{owner}", owner)


def is_worker_running(connection: Connection, now: datetime) -> bool:
    """True if any process works on uploads: a worker, or one that has just claimed a job."""
    workers = select(_lease.name).where(_lease.name.startswith(_PREFIX), _lease.lease_until > now)
    if connection.scalar(workers.limit(1)) is not None:
        return True
    row = upload_jobs.c
    claimed = select(row.job_id).where(row.status.in_(_ACTIVE), row.lease_until > now)
    return connection.scalar(claimed.limit(1)) is not None


def is_stuck(connection: Connection, jobs: Iterable[Job | Row[Any]], now: datetime) -> bool:
    """True if one of the jobs is due while no worker is running."""
    return any(_is_overdue(job, now) for job in jobs) and not is_worker_running(connection, now)


def _is_overdue(job: Job | Row[Any], now: datetime) -> bool:
    since = max(job.updated_at, job.next_attempt_at or job.updated_at)
    return job.status in _ACTIVE and now - since > OVERDUE_AFTER
