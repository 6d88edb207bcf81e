"""Cleaning up: runs whose process died, and history past its time."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select

from fonds.errors import LeaseLostError, SourceBusyError
from fonds.runs.context import Workplace
from fonds.runs.locks import claim_source
from fonds.runs.state import RunStatus, close_dead_runs
from fonds.stores.tables import ingestion_logs, ingestion_runs, ingestion_tasks


def bury_dead_runs(workplace: Workplace) -> int:
    """Mark every run as failed whose source nobody holds any more."""
    clock, database = workplace.seams.clock, workplace.database
    query = select(ingestion_runs.c.source).where(ingestion_runs.c.status == RunStatus.RUNNING)
    with database.read() as connection:
        suspected = sorted(set(connection.scalars(query)))
    buried = 0
    for source in suspected:
        try:
            with (
                claim_source(database, workplace.settings.home, source, clock) as claim,
                database.write() as connection,
            ):
                claim.confirm(connection)
                buried += close_dead_runs(connection, source, clock.now())
        except (SourceBusyError, LeaseLostError):
            continue
    return buried


def drop_old_history(workplace: Workplace) -> int:
    """Delete logs and tasks past retention."""
    before = workplace.seams.clock.now() - timedelta(days=workplace.settings.retention_days)
    with workplace.database.write() as connection:
        tasks = connection.execute(delete(ingestion_tasks).where(past_tasks(before))).rowcount
        logs = connection.execute(delete(ingestion_logs).where(past_logs(before))).rowcount
    return tasks + logs


def past_tasks(before: datetime) -> ColumnElement[bool]:
    """Tasks that ended before a moment.

    A failure that still stands is none: the watermark has passed it only because its row is there.
    """
    table = ingestion_tasks.c
    standing = (table.stage == "errored") & table.resolved_at.is_(None)
    return (table.finished_at < before) & ~standing


def past_logs(before: datetime) -> ColumnElement[bool]:
    """Log lines from before a moment."""
    return ingestion_logs.c.logged_at < before
