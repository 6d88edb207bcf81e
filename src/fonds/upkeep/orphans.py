"""Objects in the store that nothing refers to, and those that were only passing through.

The archive, uploads' texts and what was staged are looked at; whatever else is in the store is
somebody else's. A source is claimed while its objects are deleted: a run that fetches the same
bytes again may take an old object for its own, and nobody deletes under its hands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final
from uuid import UUID

from sqlalchemy import select

from fonds.errors import BlobChangedError, SourceBusyError
from fonds.runs.locks import claim_source
from fonds.stores.blobs import BlobInfo, Blobs
from fonds.stores.tables import upload_jobs
from fonds.upkeep.findings import Patient
from fonds.upkeep.leftovers import GRACE
from fonds.upkeep.references import editions, ledger, references
from fonds.uploads.states import JobStatus

ARCHIVE: Final = "corpus/"
PARSED: Final = "parsed/"
INCOMING: Final = "incoming/"
PROBES: Final = "doctor/"
ORPHANS_AT_ONCE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """What may go, or went."""

    info: BlobInfo
    is_busy: bool = False
    """It was left, as its source is being run."""


def unreferenced(patient: Patient, *, apply: bool) -> Iterator[Removal]:
    """Archived files and texts of uploads that no row refers to, older than a day."""
    found = _unreferenced(patient)
    if not apply:
        yield from (Removal(info=info) for info in found)
        return
    # Listings come in order: all of one source follow each other, and are held until it ends.
    for source, infos in groupby(found, key=_source):
        if source is None:
            yield from _removed(patient.blobs, list(infos))
        else:
            yield from _removed_of(patient, source, list(infos))


def _unreferenced(patient: Patient) -> Iterator[BlobInfo]:
    with ledger(patient.settings.home / "tmp") as held:
        with patient.database.read() as connection:
            held.add(references(connection))
            whole = editions(connection)
        for prefix in (ARCHIVE, PARSED, PROBES):
            for some in _old(patient, prefix):
                free = held.missing([one.key for one in some if not one.key.startswith(whole)])
                free -= _in_work(patient, free)
                yield from (info for info in some if info.key in free)


def _removed_of(patient: Patient, source: str, infos: Sequence[BlobInfo]) -> Iterator[Removal]:
    clock, home = patient.seams.clock, patient.settings.home
    try:
        with (
            claim_source(patient.database, home, source, clock) as claim,
            ledger(home / "tmp") as held,
        ):
            with patient.database.read() as connection:
                held.add(references(connection, source))
                whole = editions(connection)
            for some in _pieces(infos):
                claim.renew()
                free = held.missing([one.key for one in some if not one.key.startswith(whole)])
                yield from _removed(patient.blobs, (one for one in some if one.key in free))
    except SourceBusyError:
        yield from (Removal(info=info, is_busy=True) for info in infos)


def _removed(blobs: Blobs, infos: Iterable[BlobInfo]) -> Iterator[Removal]:
    for info in infos:
        if remove(blobs, info):
            yield Removal(info=info)


def remove(blobs: Blobs, info: BlobInfo) -> bool:
    """Delete the version of an object that was looked at; False if there is another by now."""
    if blobs.can_remove_versions():
        with suppress(BlobChangedError):
            blobs.remove(info.key, etag=info.etag)
            return True
        return False
    current = blobs.head(info.key)
    if current is None or current.etag != info.etag:
        return False
    blobs.delete(info.key)
    return True


def staged(patient: Patient, *, apply: bool) -> Iterator[Removal]:
    """Bytes that users sent for jobs that do not wait for them any more."""
    for some in _old(patient, INCOMING):
        jobs = {info.key: _uuid(info.key.rpartition("/")[2]) for info in some}
        waiting = _jobs(patient, [job for job in jobs.values() if job], JobStatus.UPLOADED)
        for info in some:
            if jobs[info.key] not in waiting and (not apply or remove(patient.blobs, info)):
                yield Removal(info=info)


def _jobs(patient: Patient, ids: Sequence[UUID], status: JobStatus) -> set[UUID]:
    table = upload_jobs.c
    query = select(table.job_id).where(table.job_id.in_(ids), table.status == status.value)
    with patient.database.read() as connection:
        return set(connection.scalars(query))


def _in_work(patient: Patient, keys: Iterable[str]) -> set[str]:
    """Texts of uploads whose job may yet find that it has stored this very text."""
    documents = {key: _document(key) for key in keys if key.startswith(PARSED)}
    table = upload_jobs.c
    named = table.document_id.in_([one for one in documents.values() if one])
    query = select(table.document_id).where(named, table.status != JobStatus.COMPLETE.value)
    with patient.database.read() as connection:
        working = set(connection.scalars(query)) if documents else set[UUID]()
    return {key for key, document in documents.items() if document in working}


def _old(patient: Patient, prefix: str) -> Iterator[Sequence[BlobInfo]]:
    before = patient.now - GRACE
    yield from _pieces(info for info in patient.blobs.list(prefix) if info.modified < before)


def _pieces(infos: Iterable[BlobInfo]) -> Iterator[Sequence[BlobInfo]]:
    waiting = iter(infos)
    while some := list(islice(waiting, ORPHANS_AT_ONCE)):
        yield some


def _source(info: BlobInfo) -> str | None:
    return info.key.split("/")[1] if info.key.startswith(ARCHIVE) else None


def _document(key: str) -> UUID | None:
    """`parsed/<user>/<document>.md`, or with a hash behind it."""
    return _uuid(key.rpartition("/")[2].partition(".")[0])


def _uuid(text: str) -> UUID | None:
    with suppress(ValueError):
        return UUID(text)
    return None
