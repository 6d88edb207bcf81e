"""Every name by which the database refers to an object in the store.

Whoever adds a column that holds a key adds it here: what is not named here may be deleted.

Objects in the store that nothing refers to, and those that were only passing through.

The archive, uploads' texts and what was staged are looked at; whatever else is in the store is
somebody else's. A source is claimed while its objects are deleted: a run that fetches the same
bytes again may take an old object for its own, and nobody deletes under its hands.

Files that ended processes left behind, and pages that can be made again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self
from uuid import UUID

from sqlalchemy import Connection, Select, select

from fonds import ids
from fonds.errors import BlobChangedError, SourceBusyError
from fonds.maintenance.findings import Patient
from fonds.runs.locks import claim_source
from fonds.settings import Settings
from fonds.sites.tables import site_addresses
from fonds.stores.blobs import BlobInfo, Blobs
from fonds.stores.sqlite import batched
from fonds.stores.tables import (
    code_units,
    document_versions,
    documents,
    fetched_files,
    ingestion_normalization_queue,
    ingestion_tasks,
    nodes,
    upload_jobs,
)
from fonds.uploads.states import JobStatus

AT_ONCE: Final = 5000
"""Rows held in memory."""


def references(connection: Connection, source: str | None = None) -> Iterator[str]:
    """All keys that rows refer to, some of them often; only those of one source, if it is named."""
    for query in _queries(source):
        for row in connection.execution_options(yield_per=AT_ONCE).execute(query):
            yield from (_key(ref) for ref in row if ref)
    yield from _origins(connection, source)


def editions(connection: Connection) -> tuple[str, ...]:
    """Beginnings of the keys of codes that are kept whole: plans, packs and pages of an edition.

    A plan names the pages it was made from, and its packs follow from it; no row names them all.
    """
    query = select(code_units.c.source, code_units.c.version).distinct()
    return tuple(
        ids.archive_key(source, f"{version}/x")[:-1]
        for source, version in connection.execute(query)
    )


def _queries(source: str | None) -> list[Select[Any]]:
    version = document_versions.c
    owned: list[tuple[Select[Any], Any]] = [
        (select(documents.c.raw_path, documents.c.body_raw_path), documents.c.source),
        (
            select(version.archive_key, version.body_archive_key).join(
                documents, documents.c.id == version.document_id
            ),
            documents.c.source,
        ),
        (select(fetched_files.c.blob_key), fetched_files.c.source),
        (select(code_units.c.plan_key), code_units.c.source),
        (select(nodes.c.body_ref).where(nodes.c.body_ref.is_not(None)), nodes.c.source),
    ]
    chosen = [query if source is None else query.where(of == source) for query, of in owned]
    waiting = select(ingestion_normalization_queue.c.raw_path)
    uploads = select(upload_jobs.c.raw_path, upload_jobs.c.parsed_path)
    return [*chosen, waiting, uploads]


def _origins(connection: Connection, source: str | None) -> Iterator[str]:
    """Of tasks that failed, and of pages that a crawl has yet to follow: the file they are from."""
    task, address = ingestion_tasks.c, site_addresses.c
    tasks = select(task.task).where(task.stage == "errored", task.resolved_at.is_(None))
    pages = select(address.origin).where(address.origin.is_not(None))
    if source is not None:
        tasks = tasks.where(task.source == source)
        pages = pages.where(address.website_id == ids.website_of_source(source))
    streamed = connection.execution_options(yield_per=AT_ONCE)
    for kept in streamed.execute(tasks).scalars():
        if kept and kept.get("origin"):
            yield kept["origin"]["key"]
    for origin in streamed.execute(pages).scalars():
        yield json.loads(origin)["key"]


def _key(ref: str) -> str:
    """A range of an object refers to the object."""
    return ref.partition("#")[0]


class KeySet:
    """A set of keys of any size, on disk."""

    def __init__(self, file: str) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE held (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, keys: Iterable[str]) -> Self:
        """Take in keys."""
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT OR IGNORE INTO held VALUES (?)", ((_encoded(key),) for key in keys)
        )
        self._database.execute("COMMIT")
        return self

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Those of some keys that are not in the set."""
        found: set[str] = set()
        for piece in batched(keys):
            by_name = {_encoded(key): key for key in piece}
            marks = ",".join("?" * len(by_name))
            query = f"SELECT key FROM held WHERE key IN ({marks})"  # noqa: S608 — marks alone
            held = {row[0] for row in self._database.execute(query, list(by_name))}
            found |= {key for name, key in by_name.items() if name not in held}
        return found

    def close(self) -> None:
        """Give the file back."""
        self._database.close()


def _encoded(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


@contextmanager
def ledger(folder: Path) -> Iterator[KeySet]:
    """An empty set that is gone with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        NamedTemporaryFile(dir=folder, prefix="references-") as file,
        closing(KeySet(file.name)) as made,
    ):
        yield made


GRACE: Final = timedelta(days=1)
"""What is younger may be somebody's who still works on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftFile:
    """A file that may go."""

    path: Path
    size: int


def stale_files(settings: Settings, now: datetime) -> Iterator[LeftFile]:
    """Temporary files whose process has surely ended."""
    folders = [settings.home / "tmp"]
    if "://" not in settings.blobs_url:
        folders.append(Path(settings.blobs_url) / ".tmp")
    for folder in folders:
        yield from _older(folder, now - GRACE)


def cached_pages(settings: Settings, before: datetime) -> Iterator[LeftFile]:
    """Rendered texts that were made before a moment; whoever wants one has it made again."""
    yield from _older(settings.home / "cache" / "pages", before)


def _older(folder: Path, before: datetime) -> Iterator[LeftFile]:
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):
            found = path.lstat()
            changed = datetime.fromtimestamp(found.st_mtime, UTC)
            if not path.is_dir() and changed < before:
                yield LeftFile(path=path, size=found.st_size)


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
            for some in _batched(infos):
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
    yield from _batched(info for info in patient.blobs.list(prefix) if info.modified < before)


def _batched(infos: Iterable[BlobInfo]) -> Iterator[Sequence[BlobInfo]]:
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
