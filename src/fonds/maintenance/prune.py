"""Deletes old history, leftover files, and blobs that nothing refers to.

Deletions are independent of each other, so that pruning can be interrupted and repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, delete, func, select, text

from fonds.maintenance.findings import MaintenanceTarget, sized
from fonds.maintenance.references import (
    LeftFile,
    Removal,
    cached_pages,
    staged,
    stale_files,
    unreferenced,
)
from fonds.runs.active_run import past_logs, past_tasks
from fonds.stores.tables import ingestion_commands, ingestion_logs, ingestion_tasks

BATCH_ROWS: Final = 5000
"""Rows deleted in one transaction, so that other transactions do not wait long."""
WORTHWHILE: Final = 64 << 20
"""Unused bytes of SQLite that are worth a hint."""
EXAMPLES: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Prunable:
    """Rows or files of one kind that can be deleted, or were."""

    name: str
    about: str
    count: int
    bytes: int | None
    """None for rows, whose space is reused."""
    examples: tuple[str, ...] = ()
    left: int = 0
    """The number that was skipped, as their source is running."""


def prune(target: MaintenanceTarget, *, older_than: timedelta, apply: bool) -> Iterator[Prunable]:
    """List what can be deleted, by kind, and delete it if `apply` is true."""
    before = target.now - older_than
    yield from _history(target, before, apply=apply)
    yield _files("temporary files", "of dead processes", stale_files, target, apply=apply)
    yield _files(
        "rendered pages",
        "rendered again when requested",
        lambda settings, _now: cached_pages(settings, before),
        target,
        apply=apply,
    )
    yield _objects(
        "staged uploads",
        "of jobs that do not need them any more",
        staged(target, apply=apply),
    )
    yield _objects(
        "unreferenced files",
        "of the archive, and texts of uploads, that no document or version needs",
        unreferenced(target, apply=apply),
    )


def hints(target: MaintenanceTarget) -> Iterator[str]:
    """Suggestions for what only the operator can do."""
    if not target.database.is_sqlite:
        return
    with target.database.read() as connection:
        free = int(connection.scalar(text("PRAGMA freelist_count")) or 0)
        page = int(connection.scalar(text("PRAGMA page_size")) or 0)
    file = target.settings.home / "fonds.db"
    if free * page > WORTHWHILE:
        yield (
            f"{sized(free * page)} in the database are free and will be reused; to return them to "
            f"the disk, stop all processes and run `sqlite3 {file} VACUUM`"
        )
    log = file.with_name("fonds.db-wal")
    if log.is_file() and log.stat().st_size > WORTHWHILE:
        yield (
            f"{log.name} takes {sized(log.stat().st_size)} and shrinks when the last process that "
            "has the library open ends; a process may be reading for very long"
        )


def _history(target: MaintenanceTarget, before: datetime, *, apply: bool) -> Iterator[Prunable]:
    finished = ingestion_commands.c.finished_at < before
    kinds: list[tuple[str, str, Table, ColumnElement[bool]]] = [
        ("log lines", "of runs", ingestion_logs, past_logs(before)),
        ("tasks", "of runs, except open errors", ingestion_tasks, past_tasks(before)),
        ("commands", "that are finished", ingestion_commands, finished),
    ]
    for name, about, table, past in kinds:
        count = _deleted(target, table, past) if apply else _counted(target, table, past)
        yield Prunable(name=name, about=about, count=count, bytes=None)


def _counted(target: MaintenanceTarget, table: Table, past: ColumnElement[bool]) -> int:
    with target.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(table).where(past)) or 0


def _deleted(target: MaintenanceTarget, table: Table, past: ColumnElement[bool]) -> int:
    some = select(table.c.id).where(past).order_by(table.c.id).limit(BATCH_ROWS)
    total = 0
    while True:
        with target.database.write() as connection:
            deleted = connection.execute(delete(table).where(table.c.id.in_(some))).rowcount
        total += deleted
        if deleted < BATCH_ROWS:
            return total


def _files(name: str, about: str, find: Any, target: MaintenanceTarget, *, apply: bool) -> Prunable:
    files: Iterable[LeftFile] = find(target.settings, target.now)
    count = size = 0
    examples: list[str] = []
    for file in files:
        if apply:
            with suppress(FileNotFoundError):
                file.path.unlink()
        count, size = count + 1, size + file.size
        if len(examples) < EXAMPLES:
            examples.append(file.path.name)
    return Prunable(name=name, about=about, count=count, bytes=size, examples=tuple(examples))


def _objects(name: str, about: str, removals: Iterable[Removal]) -> Prunable:
    count = size = left = 0
    examples: list[str] = []
    for removal in removals:
        if removal.is_busy:
            left += 1
            continue
        count, size = count + 1, size + removal.info.size
        if len(examples) < EXAMPLES:
            examples.append(removal.info.key)
    return Prunable(
        name=name, about=about, count=count, bytes=size, examples=tuple(examples), left=left
    )
