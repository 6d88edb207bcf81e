"""Cleaning up: runs whose process died, and history past its time."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, select

from fonds.errors import SourceBusyError
from fonds.runs.context import Workplace
from fonds.runs.locks import claim_source
from fonds.runs.state import Status, close_dead_runs
from fonds.stores.tables import ingestion_logs, ingestion_runs, ingestion_tasks


def bury_dead_runs(workplace: Workplace) -> int:
    """Mark every run as failed whose source nobody holds any more."""
    clock, database = workplace.seams.clock, workplace.database
    query = select(ingestion_runs.c.source).where(ingestion_runs.c.status == Status.RUNNING)
    with database.read() as connection:
        suspected = sorted(set(connection.scalars(query)))
    buried = 0
    for source in suspected:
        try:
            with (
                claim_source(database, workplace.settings.home, source, clock),
                database.write() as connection,
            ):
                buried += close_dead_runs(connection, source, clock.now())
        except SourceBusyError:
            continue
    return buried


def drop_old_history(workplace: Workplace) -> int:
    """Delete logs and tasks past retention.

    A failure that still stands is kept: the watermark has passed it only because its row is there.
    """
    before = workplace.seams.clock.now() - timedelta(days=workplace.settings.retention_days)
    standing = (ingestion_tasks.c.stage == "errored") & ingestion_tasks.c.resolved_at.is_(None)
    old_tasks = (ingestion_tasks.c.finished_at < before) & ~standing
    old_logs = ingestion_logs.c.logged_at < before
    with workplace.database.write() as connection:
        tasks = connection.execute(delete(ingestion_tasks).where(old_tasks)).rowcount
        logs = connection.execute(delete(ingestion_logs).where(old_logs)).rowcount
    return tasks + logs
