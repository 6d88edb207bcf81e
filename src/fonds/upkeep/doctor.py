"""Looking at everything a library needs, one thing after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import FondsError
from fonds.fetch.redact import Redaction
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.blobs import open_blobs
from fonds.stores.database import open_database
from fonds.upkeep import database_checks, file_checks, surroundings, work_checks
from fonds.upkeep.findings import Check, Finding, Health, Patient, broken

# What stands below the schema can only be looked at if that is the right one.
STORES: Final[tuple[tuple[str, str, Check], ...]] = (
    ("files", "disk", file_checks.check_disk),
    ("files", "blobs", file_checks.check_blobs),
    ("files", "left behind", file_checks.check_leftovers),
    ("files", "server key", file_checks.check_server_key),
    ("database", "database", database_checks.check_database),
    ("database", "schema", database_checks.check_schema),
)
REST: Final[tuple[tuple[str, str, Check], ...]] = (
    ("database", "integrity", database_checks.check_integrity),
    ("database", "extensions", database_checks.check_extensions),
    ("database", "full text", database_checks.check_full_text),
    ("work", "runs", work_checks.check_runs),
    ("work", "errors", work_checks.check_errors),
    ("work", "watermarks", work_checks.check_watermarks),
    ("work", "queues", work_checks.check_queues),
    ("work", "uploads", work_checks.check_uploads),
    ("work", "leases", work_checks.check_leases),
    ("surroundings", "sources", surroundings.check_sources),
    ("surroundings", "model", surroundings.check_model),
    ("surroundings", "programs", surroundings.check_programs),
    ("surroundings", "clock", database_checks.check_clock),
    ("surroundings", "disk use", file_checks.check_use),
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
