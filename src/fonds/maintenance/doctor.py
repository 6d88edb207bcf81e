"""Looking at everything a library needs, one thing after the other.

Whether the database answers, is whole, and is the one this program works on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, func, select, table, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from fonds.errors import FondsError
from fonds.fetch.redact import Redaction
from fonds.maintenance import checks
from fonds.maintenance.findings import Check, Finding, Health, Patient, broken, doubtful, fine
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.blobs import open_blobs
from fonds.stores.database import open_database
from fonds.stores.revisions import HEAD, advice, current_version
from fonds.stores.tables import document_chunk_buffer, ingestion_logs, ingestion_runs, upload_jobs

PATIENCE: Final = 20.0
"""Seconds that reading the whole database may take."""
DRIFT: Final = timedelta(seconds=5)
"""By how much clocks may differ."""

_STEPS: Final = 1_000_000
"""Of SQLite's machine, between looks at the clock."""


def check_database(patient: Patient) -> Iterator[Finding]:
    """Whether it answers."""
    is_sqlite = patient.database.is_sqlite
    function = "sqlite_version()" if is_sqlite else "version()"
    with patient.database.read() as connection:
        version = str(connection.scalar(text(f"SELECT {function}")))
    yield fine("database", f"SQLite {version}" if is_sqlite else version.partition(" on ")[0])


def check_schema(patient: Patient) -> Iterator[Finding]:
    """Whether its tables are those of this program."""
    version = current_version(patient.database)
    if version is None:
        yield broken("schema", "no tables yet", "run `fonds init`")
    elif version == HEAD:
        yield fine("schema", f"version {version}")
    else:
        yield broken("schema", f"version {version}, not {HEAD}", advice(version))


def check_integrity(patient: Patient) -> Iterator[Finding]:
    """Whether SQLite finds its file whole; a server looks after its own."""
    if not patient.database.is_sqlite:
        yield fine("integrity", "left to the server")
        return
    with patient.database.read() as connection:
        try:
            with _limited(connection, patient):
                said = str(connection.scalar(text("PRAGMA quick_check(1)")))
        except OperationalError as error:
            if "interrupted" not in str(error):
                raise
            yield fine("integrity", f"nothing wrong in the first {PATIENCE:.0f} seconds of reading")
            return
    if said == "ok":
        yield fine("integrity", "the file is whole")
    else:
        yield broken("integrity", said, "stop all processes, and restore the file from a back-up")


def check_extensions(patient: Patient) -> Iterator[Finding]:
    """Whether what search needs is built in or installed."""
    with patient.database.read() as connection:
        if patient.database.is_sqlite:
            query = "SELECT sqlite_compileoption_used('ENABLE_FTS5')"
            if connection.scalar(text(query)):
                yield fine("extensions", "FTS5 is there; vectors need none")
            else:
                yield broken("extensions", "SQLite without FTS5", "reinstall pysqlite3-binary")
            return
        query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        version = connection.scalar(text(query))
        offered = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        if version:
            yield fine("extensions", f"pgvector {version}")
        elif connection.scalar(text(offered)):
            yield fine("extensions", "pgvector is offered, and made when vectors are")
        else:
            advice = "install pgvector on the server; until then search goes by words alone"
            yield doubtful("extensions", "the server has no pgvector", advice)


def check_full_text(patient: Patient) -> Iterator[Finding]:
    """Whether every passage is in the index by which it is found."""
    # SQLite would read the whole index to count what is in it.
    index = table("chunk_index_docsize" if patient.database.is_sqlite else "chunk_index")
    passage, job = document_chunk_buffer.c, upload_jobs.c
    with patient.database.read() as connection:
        passages = connection.scalar(select(func.count(passage.id))) or 0
        indexed = connection.scalar(select(func.count()).select_from(index)) or 0
        # The passages of an upload are stored before they may be found.
        unfinished = connection.scalar(select(job.job_id).where(job.status != "complete").limit(1))
    found = f"{indexed:,} of {passages:,} passages indexed"
    if passages == indexed:
        yield fine("full text", found)
    elif unfinished and indexed < passages:
        yield fine("full text", f"{found}; uploads are under way")
    else:
        yield broken("full text", found, "the index is damaged; restore from a back-up")


def check_clock(patient: Patient) -> Iterator[Finding]:
    """Whether time goes on evenly, here and at the server, and nothing is from the future."""
    clock, (wall, steady) = patient.seams.clock, patient.began
    drift = abs((clock.now() - wall) - timedelta(seconds=clock.monotonic() - steady))
    with patient.database.read() as connection:
        if not patient.database.is_sqlite:
            theirs: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
            drift = max(drift, abs(theirs - clock.now()))
        newest = [
            connection.scalar(select(func.max(ingestion_runs.c.started_at))),
            connection.scalar(
                select(ingestion_logs.c.logged_at).order_by(ingestion_logs.c.id.desc()).limit(1)
            ),
        ]
    ahead = [moment for moment in newest if moment is not None and moment > clock.now() + DRIFT]
    advice = "set this machine's clock, and let it be kept by NTP"
    if drift > DRIFT:
        yield doubtful("clock", f"it is {drift.total_seconds():.0f} seconds off", advice)
    elif ahead:
        yield doubtful("clock", f"a row says {max(ahead):%Y-%m-%d %H:%M} UTC", advice)
    else:
        yield fine("clock", f"{clock.now():%Y-%m-%d %H:%M} UTC")


@contextmanager
def _limited(connection: Connection, patient: Patient) -> Iterator[None]:
    driver: Any = connection.connection.driver_connection
    until = patient.seams.clock.monotonic() + PATIENCE
    driver.set_progress_handler(lambda: patient.seams.clock.monotonic() > until, _STEPS)
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)


# What stands below the schema can only be looked at if that is the right one.
STORES: Final[tuple[tuple[str, str, Check], ...]] = (
    ("files", "disk", checks.check_disk),
    ("files", "blobs", checks.check_blobs),
    ("files", "left behind", checks.check_leftovers),
    ("files", "server key", checks.check_server_key),
    ("database", "database", check_database),
    ("database", "schema", check_schema),
)
REST: Final[tuple[tuple[str, str, Check], ...]] = (
    ("database", "integrity", check_integrity),
    ("database", "extensions", check_extensions),
    ("database", "full text", check_full_text),
    ("work", "runs", checks.check_runs),
    ("work", "errors", checks.check_errors),
    ("work", "watermarks", checks.check_watermarks),
    ("work", "queues", checks.check_queues),
    ("work", "uploads", checks.check_uploads),
    ("work", "leases", checks.check_leases),
    ("surroundings", "sources", checks.check_sources),
    ("surroundings", "model", checks.check_model),
    ("surroundings", "programs", checks.check_programs),
    ("surroundings", "clock", check_clock),
    ("surroundings", "disk use", checks.check_use),
)


def examine(settings: Settings, *, seams: Seams | None = None) -> Iterator[Finding]:
    """Look at everything; what cannot be looked at is a finding, not a crash."""
    seams = seams or Seams()
    began = (seams.clock.now(), seams.clock.monotonic())
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        blobs = open_blobs(settings.blobs_url, seams=seams)
        database = open_database(
            settings.database_url, seams=seams, cache_mib=settings.sqlite_cache_mib
        )
    except (FondsError, OSError) as error:
        yield replace(_cannot("stores", error, settings), group="files")
        return
    patient = Patient(settings=settings, seams=seams, database=database, blobs=blobs, began=began)
    try:
        yield from _all(patient)
    finally:
        database.close()


def _all(patient: Patient) -> Iterator[Finding]:
    is_readable = True
    for group, name, check in STORES:
        for finding in _looked(patient, name, check):
            yield replace(finding, group=group)
            is_readable &= group != "database" or finding.status is not Health.FAIL
        if not is_readable:
            return
    for group, name, check in REST:
        for finding in _looked(patient, name, check):
            yield replace(finding, group=group)


def _looked(patient: Patient, name: str, check: Check) -> Iterator[Finding]:
    try:
        yield from check(patient)
    except (FondsError, SQLAlchemyError, OSError) as error:
        yield _cannot(name, error, patient.settings)


def _cannot(name: str, error: Exception, settings: Settings) -> Finding:
    # SQLAlchemy's own text goes on with the statement and its parameters.
    cause = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    found = Redaction(settings)(cause.splitlines()[0])
    return broken(name, found, "see fonds.toml and the variables FONDS_*")
