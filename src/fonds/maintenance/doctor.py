"""Runs all checks of a library, and has those of its database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Connection, func, select, table, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from fonds.errors import FondsError
from fonds.fetch.redact import Redaction
from fonds.maintenance import checks
from fonds.maintenance.findings import (
    Check,
    Finding,
    Health,
    MaintenanceTarget,
    failure,
    ok,
    warning,
)
from fonds.schema import HEAD, advice, current_version
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.blobs import open_blobs
from fonds.stores.database import open_database, sqlite_file
from fonds.stores.permissions import make_private_folder
from fonds.stores.tables import document_chunk_buffer, ingestion_logs, ingestion_runs, upload_jobs
from fonds.stores.vector_buffer import is_damaged, vectors_after

MAX_READ_SECONDS: Final = 20.0
"""Limit for reading the whole database."""
SAMPLED_VECTORS: Final = 500
DRIFT: Final = timedelta(seconds=5)
"""The tolerated difference between clocks."""

_STEPS: Final = 1_000_000
"""Instructions of SQLite's virtual machine between readings of the clock."""


def check_database(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that the database responds."""
    is_sqlite = target.database.is_sqlite
    function = "sqlite_version()" if is_sqlite else "version()"
    with target.database.read() as connection:
        version = str(connection.scalar(text(f"SELECT {function}")))
    yield ok("database", f"SQLite {version}" if is_sqlite else version.partition(" on ")[0])


def check_schema(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that the schema is the one of this program."""
    version = current_version(target.database)
    if version is None:
        yield failure("schema", "no tables yet", "run `fonds init`")
    elif version == HEAD:
        yield ok("schema", f"version {version}")
    else:
        yield failure("schema", f"version {version}, not {HEAD}", advice(version))


def check_integrity(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check SQLite's file for damage; a server does that itself."""
    if not target.database.is_sqlite:
        yield ok("integrity", "left to the server")
        return
    with target.database.read() as connection:
        try:
            with _limited(connection, target):
                result = str(connection.scalar(text("PRAGMA quick_check(1)")))
        except OperationalError as error:
            if "interrupted" not in str(error):
                raise
            limit = f"{MAX_READ_SECONDS:.0f} seconds"
            yield ok("integrity", f"nothing wrong in the first {limit} of reading")
            return
    if result == "ok":
        yield ok("integrity", "the file is whole")
    else:
        yield failure(
            "integrity", result, "stop all processes, and restore the file from a back-up"
        )


def check_extensions(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that the extensions for search are built in or installed."""
    with target.database.read() as connection:
        if target.database.is_sqlite:
            query = "SELECT sqlite_compileoption_used('ENABLE_FTS5')"
            if connection.scalar(text(query)):
                yield ok("extensions", "FTS5 is available; vectors need none")
            else:
                yield failure("extensions", "SQLite without FTS5", "reinstall pysqlite3-binary")
            return
        query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        version = connection.scalar(text(query))
        offered = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        if version:
            yield ok("extensions", f"pgvector {version}")
        elif connection.scalar(text(offered)):
            yield ok("extensions", "pgvector is available, and is created with the first vectors")
        else:
            advice = "install pgvector on the server; until then search uses full text only"
            yield warning("extensions", "the server has no pgvector", advice)


def check_full_text(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that every passage is in the full-text index."""
    # SQLite would read the whole index to count its rows.
    index = table("chunk_index_docsize" if target.database.is_sqlite else "chunk_index")
    passage, job = document_chunk_buffer.c, upload_jobs.c
    with target.database.read() as connection:
        passages = connection.scalar(select(func.count(passage.id))) or 0
        indexed = connection.scalar(select(func.count()).select_from(index)) or 0
        # The passages of an upload are stored before they are indexed.
        unfinished = connection.scalar(select(job.job_id).where(job.status != "complete").limit(1))
    summary = f"{indexed:,} of {passages:,} passages indexed"
    if passages == indexed:
        yield ok("full text", summary)
    elif unfinished and indexed < passages:
        yield ok("full text", f"{summary}; uploads are in progress")
    else:
        yield failure(
            "full text", summary, "the index is damaged; restore the database from a back-up"
        )


def check_vectors(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that a sample of the vectors, other ones each time, agrees with its hashes."""
    with target.database.read() as connection:
        rows = vectors_after(connection, uuid4(), SAMPLED_VECTORS)
        rows = rows or vectors_after(connection, None, SAMPLED_VECTORS)
    damaged = sum(map(is_damaged, rows))
    summary = f"{damaged:,} of {len(rows):,} sampled vectors differ from their hash"
    if damaged:
        yield failure("vectors", summary, "`fonds embed --check` makes damaged ones again")
    else:
        yield ok("vectors", f"{len(rows):,} sampled vectors agree with their hash")


def check_clock(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that the clocks here and at the server agree, and that no row is from the future."""
    clock, (wall, monotonic) = target.seams.clock, target.began
    drift = abs((clock.now() - wall) - timedelta(seconds=clock.monotonic() - monotonic))
    with target.database.read() as connection:
        if not target.database.is_sqlite:
            server_time: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
            drift = max(drift, abs(server_time - clock.now()))
        newest = [
            connection.scalar(select(func.max(ingestion_runs.c.started_at))),
            connection.scalar(
                select(ingestion_logs.c.logged_at).order_by(ingestion_logs.c.id.desc()).limit(1)
            ),
        ]
    ahead = [time for time in newest if time is not None and time > clock.now() + DRIFT]
    advice = "set this machine's clock, and synchronize it by NTP"
    if drift > DRIFT:
        yield warning("clock", f"it is {drift.total_seconds():.0f} seconds off", advice)
    elif ahead:
        yield warning("clock", f"a row is dated {max(ahead):%Y-%m-%d %H:%M} UTC", advice)
    else:
        yield ok("clock", f"{clock.now():%Y-%m-%d %H:%M} UTC")


@contextmanager
def _limited(connection: Connection, target: MaintenanceTarget) -> Iterator[None]:
    driver: Any = connection.connection.driver_connection
    until = target.seams.clock.monotonic() + MAX_READ_SECONDS
    driver.set_progress_handler(lambda: target.seams.clock.monotonic() > until, _STEPS)
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)


# The checks after the schema need the right one.
STORES: Final[tuple[tuple[str, str, Check], ...]] = (
    ("files", "disk", checks.check_disk),
    ("files", "blobs", checks.check_blobs),
    ("files", "left behind", checks.check_leftovers),
    ("files", "permissions", checks.check_permissions),
    ("database", "database", check_database),
    ("database", "schema", check_schema),
)
REST: Final[tuple[tuple[str, str, Check], ...]] = (
    ("database", "integrity", check_integrity),
    ("database", "extensions", check_extensions),
    ("database", "full text", check_full_text),
    ("database", "vectors", check_vectors),
    ("work", "runs", checks.check_runs),
    ("work", "errors", checks.check_errors),
    ("work", "watermarks", checks.check_watermarks),
    ("work", "queues", checks.check_queues),
    ("work", "uploads", checks.check_uploads),
    ("work", "leases", checks.check_leases),
    ("surroundings", "clients", checks.check_clients),
    ("surroundings", "engine", checks.check_engine),
    ("surroundings", "sources", checks.check_sources),
    ("surroundings", "plugins", checks.check_plugins),
    ("surroundings", "model", checks.check_model),
    ("surroundings", "programs", checks.check_programs),
    ("surroundings", "clock", check_clock),
    ("surroundings", "disk use", checks.check_use),
)


def examine(settings: Settings, *, seams: Seams | None = None) -> Iterator[Finding]:
    """Run all checks; one that raises an error becomes a finding."""
    seams = seams or Seams()
    began = (seams.clock.now(), seams.clock.monotonic())
    try:
        file = sqlite_file(settings.database_url)
        if file is not None and not file.is_file():
            advice = "name another folder with --home, or create a library with `fonds init`"
            missing = failure("library", f"there is no library at {file}", advice)
            yield replace(missing, group="files")
            return
        make_private_folder(settings.home)
        blobs = open_blobs(settings.blobs_url, seams=seams)
        database = open_database(
            settings.database_url, seams=seams, cache_mib=settings.sqlite_cache_mib
        )
    except (FondsError, OSError) as error:
        yield replace(_cannot("stores", error, settings), group="files")
        return
    target = MaintenanceTarget(
        settings=settings, seams=seams, database=database, blobs=blobs, began=began
    )
    try:
        yield from _run_checks(target)
    finally:
        database.close()


def _run_checks(target: MaintenanceTarget) -> Iterator[Finding]:
    is_readable = has_blobs = True
    for group, name, check in STORES:
        for finding in _run_check(target, name, check):
            yield replace(finding, group=group)
            is_readable &= group != "database" or finding.status is not Health.FAIL
            has_blobs &= name != "blobs" or finding.status is not Health.FAIL
        if not is_readable:
            return
    for group, name, check in REST:
        if check is checks.check_use and not has_blobs:
            continue  # it lists the store, which may hang
        for finding in _run_check(target, name, check):
            yield replace(finding, group=group)


def _run_check(target: MaintenanceTarget, name: str, check: Check) -> Iterator[Finding]:
    try:
        yield from check(target)
    except (FondsError, SQLAlchemyError, OSError) as error:
        yield _cannot(name, error, target.settings)


def _cannot(name: str, error: Exception, settings: Settings) -> Finding:
    # SQLAlchemy's message continues with the statement and its parameters.
    reason = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    summary = Redaction(settings)(reason.splitlines()[0])
    return failure(name, summary, "see fonds.toml and the variables FONDS_*")
