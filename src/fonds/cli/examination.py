"""What `fonds doctor` looks at."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import uuid4

from sqlalchemy import func, select, text
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import FondsError
from fonds.library import Library
from fonds.settings import Settings
from fonds.sources.registry import all_sources
from fonds.stores.schema import HEAD, current_version
from fonds.stores.tables import ingestion_runs, ingestion_tasks

LEAST_FREE_MIB: Final = 1024
LONG_RUN: Final = timedelta(hours=12)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing looked at."""

    check: str
    ok: bool
    found: str
    advice: str = ""


def examine(settings: Settings) -> list[Finding]:
    """Look at everything; what cannot be looked at is a finding, not a crash."""
    library = Library(settings)
    try:
        return list(_findings(library))
    finally:
        library.close()


def _findings(library: Library) -> Iterator[Finding]:
    checks: dict[str, Callable[[Library], Finding]] = {
        "disk": _disk,
        "blobs": _blobs,
        "sources": _sources,
        "database": _database,
        "schema": _schema,
        "full text": _full_text,
        "runs": _runs,
        "errors": _errors,
    }
    for name, check in checks.items():
        try:
            finding = check(library)
        except (FondsError, SQLAlchemyError, OSError) as error:
            cause = str(getattr(error, "orig", None) or error).splitlines()[0]
            finding = Finding(
                check=name, ok=False, found=cause, advice="see fonds.toml and FONDS_*"
            )
        yield finding
        if name in {"database", "schema"} and not finding.ok:
            return


def _database(library: Library) -> Finding:
    function = "sqlite_version()" if library.database.is_sqlite else "version()"
    with library.database.read() as connection:
        version = connection.scalar(text(f"SELECT {function}"))
    kind = "SQLite " if library.database.is_sqlite else ""
    return Finding(check="database", ok=True, found=f"{kind}{version}")


def _schema(library: Library) -> Finding:
    version = current_version(library.database)
    if version is None:
        return Finding(check="schema", ok=False, found="no tables yet", advice="run `fonds init`")
    return Finding(
        check="schema",
        ok=version == HEAD,
        found=f"version {version}",
        advice="" if version == HEAD else "run `fonds db upgrade`",
    )


def _full_text(library: Library) -> Finding:
    with library.database.read() as connection:
        passages = connection.scalar(text("SELECT count(*) FROM document_chunk_buffer"))
        indexed = connection.scalar(text("SELECT count(*) FROM chunk_index"))
    return Finding(
        check="full text",
        ok=passages == indexed,
        found=f"{indexed:,} of {passages:,} passages indexed",
        advice="" if passages == indexed else "the index is damaged; restore from a back-up",
    )


def _blobs(library: Library) -> Finding:
    key = f"doctor/{uuid4()}"
    library.blobs.create(key, b"fonds")
    same = library.blobs.get(key) == b"fonds"
    library.blobs.delete(key)
    return Finding(check="blobs", ok=same, found="a file was written, read and deleted")


def _disk(library: Library) -> Finding:
    free = shutil.disk_usage(library.settings.home).free >> 20
    return Finding(
        check="disk",
        ok=free >= LEAST_FREE_MIB,
        found=f"{free:,} MiB free",
        advice="" if free >= LEAST_FREE_MIB else f"make room in {library.settings.home}",
    )


def _sources(_library: Library) -> Finding:
    return Finding(check="sources", ok=True, found=", ".join(sorted(all_sources())))


def _runs(library: Library) -> Finding:
    table = ingestion_runs.c
    since = library.seams.clock.now() - LONG_RUN
    stuck = select(func.count()).where(table.status == "running", table.started_at < since)
    with library.database.read() as connection:
        count = connection.scalar(stuck) or 0
    return Finding(
        check="runs",
        ok=not count,
        found=f"{count} running for more than {LONG_RUN.seconds // 3600} hours",
        advice="start the source again: a dead run is closed by the next one" if count else "",
    )


def _errors(library: Library) -> Finding:
    table = ingestion_tasks.c
    standing = select(func.count()).where(table.stage == "errored", table.resolved_at.is_(None))
    with library.database.read() as connection:
        count = connection.scalar(standing) or 0
    return Finding(
        check="errors",
        ok=True,
        found=f"{count} failed tasks stand",
        advice="see `fonds errors SOURCE`; the next run tries them again" if count else "",
    )
