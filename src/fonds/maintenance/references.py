"""Keys that the database refers to, blobs without references, and leftover files.

A new column with blob keys must be added to `references`, or its blobs may be deleted. Only blobs
of the archive, texts of uploads and staged files are deleted; all others belong to other programs.
The lock of a source is taken while its blobs are deleted, as a run that fetches the same bytes
reuses an existing blob.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self
from uuid import UUID

from sqlalchemy import Connection, Select, select

from fonds import ids
from fonds.errors import BlobChangedError, SourceBusyError
from fonds.maintenance.findings import MaintenanceTarget
from fonds.runs.locks import lock_source
from fonds.settings import Settings
from fonds.sites.tables import site_addresses
from fonds.stores.blobs import BlobInfo, Blobs
from fonds.stores.permissions import make_private_folder
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

BATCH_ROWS: Final = 5000
"""Rows read at a time."""


def references(connection: Connection, source: str | None = None) -> Iterator[str]:
    """All keys that rows refer to, with repetitions; only those of one source, if given."""
    for query in _queries(source):
        for row in connection.execution_options(yield_per=BATCH_ROWS).execute(query):
            yield from (_key(ref) for ref in row if ref)
    yield from _origins(connection, source)


def editions(connection: Connection) -> tuple[str, ...]:
    """Key prefixes of editions of codes, whose plans, packs and pages are all kept.

    No row refers to all of them: a plan names its pages, and its packs follow from it.
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
    """The keys of the files from which failed tasks and unvisited pages of crawls come."""
    task, address = ingestion_tasks.c, site_addresses.c
    tasks = select(task.task).where(task.stage == "errored", task.resolved_at.is_(None))
    pages = select(address.origin).where(address.origin.is_not(None))
    if source is not None:
        tasks = tasks.where(task.source == source)
        pages = pages.where(address.website_id == ids.website_of_source(source))
    streamed = connection.execution_options(yield_per=BATCH_ROWS)
    for origin_of_task in streamed.execute(tasks).scalars():
        if origin_of_task and origin_of_task.get("origin"):
            yield origin_of_task["origin"]["key"]
    for origin in streamed.execute(pages).scalars():
        yield json.loads(origin)["key"]


def _key(ref: str) -> str:
    """The key of a reference to a blob or to a range of it."""
    return ref.partition("#")[0]


class KeySet:
    """A set of keys of any size, on disk."""

    def __init__(self, file: str) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE keys (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, keys: Iterable[str]) -> Self:
        """Add keys."""
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT OR IGNORE INTO keys VALUES (?)", ((_encoded(key),) for key in keys)
        )
        self._database.execute("COMMIT")
        return self

    def missing(self, keys: Sequence[str]) -> set[str]:
        """The keys that are not in the set."""
        missing_keys: set[str] = set()
        for batch in batched(keys):
            by_name = {_encoded(key): key for key in batch}
            marks = ",".join("?" * len(by_name))
            query = f"SELECT key FROM keys WHERE key IN ({marks})"  # noqa: S608 — marks alone
            existing = {row[0] for row in self._database.execute(query, list(by_name))}
            missing_keys |= {key for name, key in by_name.items() if name not in existing}
        return missing_keys

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _encoded(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


@contextmanager
def key_set(folder: Path) -> Iterator[KeySet]:
    """An empty set that is deleted at the end of the block."""
    make_private_folder(folder)
    with (
        NamedTemporaryFile(dir=folder, prefix="references-") as file,
        closing(KeySet(file.name)) as made,
    ):
        yield made


GRACE: Final = timedelta(days=1)
"""The age up to which a process may still be using a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftFile:
    """A file that can be deleted."""

    path: Path
    size: int


def stale_files(settings: Settings, now: datetime) -> Iterator[LeftFile]:
    """Temporary files old enough that their process has ended."""
    folders = [settings.home / "tmp"]
    if "://" not in settings.blobs_url:
        folders.append(Path(settings.blobs_url) / ".tmp")
    for folder in folders:
        yield from _older(folder, now - GRACE)


def cached_pages(settings: Settings, before: datetime) -> Iterator[LeftFile]:
    """Rendered pages that are older than a time; they are rendered again when requested."""
    yield from _older(settings.home / "cache" / "pages", before)


def _older(folder: Path, before: datetime) -> Iterator[LeftFile]:
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):
            status = path.lstat()
            changed = datetime.fromtimestamp(status.st_mtime, UTC)
            if not path.is_dir() and changed < before:
                yield LeftFile(path=path, size=status.st_size)


ARCHIVE: Final = "corpus/"
PARSED: Final = "parsed/"
INCOMING: Final = "incoming/"
PROBES: Final = "doctor/"
BATCH_SIZE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """A blob that can be deleted, or was."""

    info: BlobInfo
    is_busy: bool = False
    """It was skipped, as its source is running."""


def unreferenced(target: MaintenanceTarget, *, apply: bool) -> Iterator[Removal]:
    """Archived files and texts of uploads that no row refers to, older than a day."""
    infos = _unreferenced(target)
    if not apply:
        yield from (Removal(info=info) for info in infos)
        return
    # Listings are sorted, so that the blobs of one source follow each other.
    for source, group in groupby(infos, key=_source_of):
        if source is None:
            yield from _removed(target.blobs, list(group))
        else:
            yield from _removed_of(target, source, list(group))


def _unreferenced(target: MaintenanceTarget) -> Iterator[BlobInfo]:
    with key_set(target.settings.home / "tmp") as referenced:
        with target.database.read() as connection:
            referenced.add(references(connection))
            whole = editions(connection)
        for prefix in (ARCHIVE, PARSED, PROBES):
            for batch in _old(target, prefix):
                free = referenced.missing(
                    [info.key for info in batch if not info.key.startswith(whole)]
                )
                free -= _in_work(target, free)
                yield from (info for info in batch if info.key in free)


def _removed_of(
    target: MaintenanceTarget, source: str, infos: Sequence[BlobInfo]
) -> Iterator[Removal]:
    clock, home = target.seams.clock, target.settings.home
    try:
        with (
            lock_source(target.database, home, source, clock) as claim,
            key_set(home / "tmp") as referenced,
        ):
            with target.database.read() as connection:
                referenced.add(references(connection, source))
                whole = editions(connection)
            for batch in batched(infos, BATCH_SIZE):
                claim.renew()
                free = referenced.missing(
                    [info.key for info in batch if not info.key.startswith(whole)]
                )
                yield from _removed(target.blobs, (info for info in batch if info.key in free))
    except SourceBusyError:
        yield from (Removal(info=info, is_busy=True) for info in infos)


def _removed(blobs: Blobs, infos: Iterable[BlobInfo]) -> Iterator[Removal]:
    for info in infos:
        if remove(blobs, info):
            yield Removal(info=info)


def remove(blobs: Blobs, info: BlobInfo) -> bool:
    """Delete the version of a blob that was listed; False if it has changed since."""
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


def staged(target: MaintenanceTarget, *, apply: bool) -> Iterator[Removal]:
    """Uploaded files of jobs that do not need them any more."""
    for batch in _old(target, INCOMING):
        jobs = {info.key: _uuid(info.key.rpartition("/")[2]) for info in batch}
        waiting = _jobs(target, [job for job in jobs.values() if job], JobStatus.UPLOADED)
        for info in batch:
            if jobs[info.key] not in waiting and (not apply or remove(target.blobs, info)):
                yield Removal(info=info)


def _jobs(target: MaintenanceTarget, ids: Sequence[UUID], status: JobStatus) -> set[UUID]:
    table = upload_jobs.c
    query = select(table.job_id).where(table.job_id.in_(ids), table.status == status.value)
    with target.database.read() as connection:
        return set(connection.scalars(query))


def _in_work(target: MaintenanceTarget, keys: Iterable[str]) -> set[str]:
    """Keys of texts whose upload job is not complete, and may still refer to them."""
    documents = {key: _document(key) for key in keys if key.startswith(PARSED)}
    table = upload_jobs.c
    is_of_document = table.document_id.in_([info for info in documents.values() if info])
    query = select(table.document_id).where(
        is_of_document, table.status != JobStatus.COMPLETE.value
    )
    with target.database.read() as connection:
        working = set(connection.scalars(query)) if documents else set[UUID]()
    return {key for key, document in documents.items() if document in working}


def _old(target: MaintenanceTarget, prefix: str) -> Iterator[Sequence[BlobInfo]]:
    before = target.now - GRACE
    infos = (info for info in target.blobs.list(prefix) if info.modified < before)
    yield from batched(infos, BATCH_SIZE)


def _source_of(info: BlobInfo) -> str | None:
    return info.key.split("/")[1] if info.key.startswith(ARCHIVE) else None


def _document(key: str) -> UUID | None:
    """The document of `parsed/<user>/<document>.md`, which may have a hash after the id."""
    return _uuid(key.rpartition("/")[2].partition(".")[0])


def _uuid(text: str) -> UUID | None:
    with suppress(ValueError):
        return UUID(text)
    return None
