"""What may go: history past its time, leftovers, and files that nothing refers to.

Whatever is deleted can go at any moment and in any order, so whoever is stopped in the middle has
lost nothing, and goes on the next time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, delete, func, select, text

from fonds.maintenance.findings import Patient, sized
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

ROWS_AT_ONCE: Final = 5000
"""Deleted in one transaction, so that others need not wait long for theirs."""
WORTHWHILE: Final = 64 << 20
"""Bytes that SQLite holds for nothing before anybody should care."""
EXAMPLES: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Heap:
    """Things of one kind that may go, or went."""

    name: str
    about: str
    count: int
    bytes: int | None
    """None for rows, whose room is used again."""
    examples: tuple[str, ...] = ()
    left: int = 0
    """How many stayed, as somebody is at work there."""


def prune(patient: Patient, *, older_than: timedelta, apply: bool) -> Iterator[Heap]:
    """Say what may go, kind by kind, and delete it if that is wanted."""
    before = patient.now - older_than
    yield from _history(patient, before, apply=apply)
    yield _files(
        "temporary files", "left by processes that ended", stale_files, patient, apply=apply
    )
    yield _files(
        "rendered pages",
        "made again when somebody looks",
        lambda settings, _now: cached_pages(settings, before),
        patient,
        apply=apply,
    )
    yield _objects(
        "staged uploads",
        "sent for jobs that do not wait for them any more",
        staged(patient, apply=apply),
    )
    yield _objects(
        "unreferenced files",
        "of the archive, and texts of uploads; no document and no version needs them",
        unreferenced(patient, apply=apply),
    )


def hints(patient: Patient) -> Iterator[str]:
    """What somebody may do besides, by hand."""
    if not patient.database.is_sqlite:
        return
    with patient.database.read() as connection:
        free = int(connection.scalar(text("PRAGMA freelist_count")) or 0)
        page = int(connection.scalar(text("PRAGMA page_size")) or 0)
    file = patient.settings.home / "fonds.db"
    if free * page > WORTHWHILE:
        yield (
            f"{sized(free * page)} in the database are free and used again; with all processes "
            f"stopped, `sqlite3 {file} VACUUM` gives them back to the disk"
        )
    log = file.with_name("fonds.db-wal")
    if log.is_file() and log.stat().st_size > WORTHWHILE:
        yield (
            f"{log.name} takes {sized(log.stat().st_size)}, and shrinks when the last process that "
            "has the library open ends; somebody may be reading for very long"
        )


def _history(patient: Patient, before: datetime, *, apply: bool) -> Iterator[Heap]:
    finished = ingestion_commands.c.finished_at < before
    kinds: list[tuple[str, str, Table, ColumnElement[bool]]] = [
        ("log lines", "of runs", ingestion_logs, past_logs(before)),
        ("tasks", "of runs, but for failures that stand", ingestion_tasks, past_tasks(before)),
        ("commands", "that were done", ingestion_commands, finished),
    ]
    for name, about, table, past in kinds:
        count = _deleted(patient, table, past) if apply else _counted(patient, table, past)
        yield Heap(name=name, about=about, count=count, bytes=None)


def _counted(patient: Patient, table: Table, past: ColumnElement[bool]) -> int:
    with patient.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(table).where(past)) or 0


def _deleted(patient: Patient, table: Table, past: ColumnElement[bool]) -> int:
    some = select(table.c.id).where(past).order_by(table.c.id).limit(ROWS_AT_ONCE)
    total = 0
    while True:
        with patient.database.write() as connection:
            gone = connection.execute(delete(table).where(table.c.id.in_(some))).rowcount
        total += gone
        if gone < ROWS_AT_ONCE:
            return total


def _files(name: str, about: str, find: Any, patient: Patient, *, apply: bool) -> Heap:
    found: Iterable[LeftFile] = find(patient.settings, patient.now)
    count = size = 0
    examples: list[str] = []
    for file in found:
        if apply:
            with suppress(FileNotFoundError):
                file.path.unlink()
        count, size = count + 1, size + file.size
        if len(examples) < EXAMPLES:
            examples.append(file.path.name)
    return Heap(name=name, about=about, count=count, bytes=size, examples=tuple(examples))


def _objects(name: str, about: str, removals: Iterable[Removal]) -> Heap:
    count = size = left = 0
    examples: list[str] = []
    for one in removals:
        if one.is_busy:
            left += 1
            continue
        count, size = count + 1, size + one.info.size
        if len(examples) < EXAMPLES:
            examples.append(one.info.key)
    return Heap(
        name=name, about=about, count=count, bytes=size, examples=tuple(examples), left=left
    )
