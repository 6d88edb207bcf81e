"""Upload intake: a file is announced, stored by its user, checked, and queued."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, func, select

from fonds import ids
from fonds.context import Context
from fonds.errors import (
    BlobExistsError,
    BlobMissingError,
    FondsError,
    UploadRefusedError,
    UsageError,
)
from fonds.runs.normalization import chunker_label
from fonds.settings import Settings
from fonds.stores.permissions import make_private_folder
from fonds.stores.tables import upload_jobs
from fonds.uploads.files import FORMATS, check_claim, check_content, claimed_format, clean_name
from fonds.uploads.jobs import Job, create, fail, is_being_deleted, job_of, move
from fonds.uploads.states import JobStatus

UPLOAD_TIMEOUT: Final = timedelta(hours=1)
"""An announced file that has not arrived by then is given up."""
EXPIRY_BATCH: Final = 100
MAX_ANNOUNCED: Final = 100
"""Files of a user that are announced and have not arrived."""
MAX_ANNOUNCED_FULL: Final = 8
"""The same, for files of the largest size: their bytes are added up."""
_INCOMING: Final = "incoming/"
PARSERS: Final = ("local", "llamaparse")


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadRequest:
    """The announcement of a file by its user."""

    name: str
    size: int
    sha256: str


def staging_key(job: Job) -> str:
    """The key under which a user stores a file, before it is checked."""
    return f"{_INCOMING}{job.user_id}/{job.job_id}"


def begin_upload(context: Context, settings: Settings, user_id: UUID, claim: UploadRequest) -> Job:
    """Create the job of a file, or return the one of the same bytes of the same user.

    A job that failed before its file arrived starts again.
    """
    check_claim(claim.size, claim.sha256, limit=settings.max_file_mib * 1024 * 1024)
    name = clean_name(claim.name)
    form = claimed_format(name)
    if settings.parser not in PARSERS:
        raise UsageError(f"the setting parser is {settings.parser!r}; possible: {PARSERS}")
    uid = ids.upload_uid(user_id, claim.sha256)
    now = context.seams.clock.now()
    values = {
        "job_id": UUID(int=context.seams.rng.getrandbits(128), version=4),
        "user_id": user_id,
        "document_id": uid,
        "status": JobStatus.UPLOADED.value,
        "name": name,
        "format": form,
        "bytes": claim.size,
        "raw_sha256": claim.sha256.lower(),
        "raw_path": f"raw/{user_id}/{uid}.{FORMATS[form].extension}",
        # An external parser does no better on text.
        "parser": settings.parser if form in {"pdf", "docx"} else "local",
        "chunks_version": chunker_label(context.chunker),
        "moved_by": f"user:{user_id}",
        "moved_why": "announced",
    }
    with context.database.write() as connection:
        if is_being_deleted(connection, uid, now):
            raise UploadRefusedError(
                "this file is being deleted; upload it again in a minute", kind="being-deleted"
            )
        job = job_of(connection, uid, to_write=True)
        if job is None or _has_expired(job):
            _require_room(connection, user_id, claim.size, settings, now)
        job = job or create(connection, values, now) or job_of(connection, uid, to_write=True)
        assert job is not None
        if _has_expired(job):
            renamed = {key: values[key] for key in ("name", "format", "raw_path", "parser")}
            return move(
                connection,
                job,
                JobStatus.UPLOADED,
                by=f"user:{user_id}",
                why="announced again",
                now=now,
                last_error=None,
                **renamed,
            )
        return job


def _has_expired(job: Job) -> bool:
    return job.status is JobStatus.FAILED_PARSE and job.arrived_at is None


def _require_room(
    connection: Connection, user_id: UUID, size: int, settings: Settings, now: datetime
) -> None:
    """Refuse another announcement of a user who has many files that have not arrived."""
    table = upload_jobs.c
    awaited = select(func.count(), func.coalesce(func.sum(table.bytes), 0)).where(
        table.user_id == user_id,
        table.status == JobStatus.UPLOADED.value,
        table.updated_at > now - UPLOAD_TIMEOUT,
    )
    count, total = connection.execute(awaited).one()
    max_bytes = MAX_ANNOUNCED_FULL * settings.max_file_mib * 1024 * 1024
    if count < MAX_ANNOUNCED and total + size <= max_bytes:
        return
    raise UploadRefusedError(
        f"{count} files of {total} bytes are announced and have not arrived; {MAX_ANNOUNCED} files "
        f"and {max_bytes} bytes are allowed: send and complete them, delete them, or wait an hour",
        kind="too-many",
    )


def complete_upload(context: Context, settings: Settings, job: Job) -> Job:
    """Check the file that has arrived against its announcement, store it, and queue its job.

    If it fails a check, its job fails with a reason that its user can read.
    """
    if job.status is not JobStatus.UPLOADED:
        return job
    try:
        with _staged_file(context, settings, job) as path:
            check_content(path, job.format)
            _store(context, job, path)
    except UploadRefusedError as error:
        if error.kind != "not-there":
            _refuse(context, job, error)
            context.blobs.delete(staging_key(job))
        raise
    now = context.seams.clock.now()
    with context.database.write() as connection:
        current = _undeleted(job_of(connection, job.document_id, to_write=True))
        if current.status is JobStatus.UPLOADED and current.raw_path == job.raw_path:
            why = f"{job.bytes} bytes arrived, as announced"
            by = f"user:{job.user_id}"
            current = move(
                connection, current, JobStatus.PARSE_QUEUED, by=by, why=why, now=now, arrived_at=now
            )
    context.blobs.delete(staging_key(job))
    return current


def _undeleted(job: Job | None) -> Job:
    if job is None:
        raise UploadRefusedError("this upload was deleted", kind="unknown-job")
    return job


@contextmanager
def _staged_file(context: Context, settings: Settings, job: Job) -> Iterator[Path]:
    """The bytes that arrived, in a file that no other process changes."""
    folder = settings.home / "tmp"
    make_private_folder(folder)
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        try:
            for block in context.blobs.stream(staging_key(job)):
                size += len(block)
                if size > job.bytes:
                    break
                digest.update(block)
                file.write(block)
        except BlobMissingError:
            raise UploadRefusedError(
                "the file has not arrived: send it to the upload address first", kind="not-there"
            ) from None
        file.flush()
        if size != job.bytes:
            count = "more" if size > job.bytes else str(size)
            raise UploadRefusedError(
                f"{job.bytes} bytes were announced, but {count} arrived", kind="size-mismatch"
            )
        if digest.hexdigest() != job.raw_sha256:
            raise UploadRefusedError(
                "the bytes are not those that were announced: their SHA-256 differs",
                kind="hash-mismatch",
            )
        yield Path(file.name)


def _store(context: Context, job: Job, path: Path) -> None:
    try:
        context.blobs.create(job.raw_path, path)
    except BlobExistsError:
        # The key is derived from user and hash: the stored bytes are these.
        return


def _refuse(context: Context, job: Job, error: FondsError) -> None:
    now = context.seams.clock.now()
    with context.database.write() as connection:
        current = job_of(connection, job.document_id, to_write=True)
        if current is not None and current.status is JobStatus.UPLOADED:
            fail(connection, current, error, now, by=f"user:{job.user_id}")


def retry_upload(context: Context, job: Job, *, by: str) -> Job:
    """Send a failed job back to its last good stage."""
    now = context.seams.clock.now()
    with context.database.write() as connection:
        current = _undeleted(job_of(connection, job.document_id, to_write=True))
        return move(
            connection,
            current,
            _last_good(current),
            by=by,
            why="retry",
            now=now,
            reprocessed=current.reprocessed + 1,
            submission=None,
        )


def _last_good(job: Job) -> JobStatus:
    if job.status is JobStatus.FAILED_PARSE:
        return JobStatus.UPLOADED if job.arrived_at is None else JobStatus.PARSE_QUEUED
    if job.status is JobStatus.FAILED_CHUNKING:
        return JobStatus.PARSE_VALIDATED
    if job.status is JobStatus.FAILED_EMBEDDING:
        return JobStatus.CHUNKS_STORED
    raise UsageError(f"only a job that failed can be retried; this one is {job.status}")


def check_arrivals(context: Context) -> None:
    """Delete files in the store that no upload waits for, or that are larger than announced.

    Users may send files to the store itself, which knows neither the size that was announced nor
    that a file has arrived before; of one that is too large the job fails.
    """
    for info in context.blobs.list(_INCOMING):
        try:
            job_id = UUID(info.key.rpartition("/")[2])
        except ValueError:
            continue
        with context.database.read() as connection:
            row = connection.execute(
                select(upload_jobs).where(upload_jobs.c.job_id == job_id)
            ).one_or_none()
        job = Job.from_row(row) if row is not None else None
        if job is None or job.status is not JobStatus.UPLOADED:
            context.blobs.delete(info.key)
        elif info.size > job.bytes:
            message = f"{job.bytes} bytes were announced, but {info.size} arrived"
            _refuse(context, job, UploadRefusedError(message, kind="size-mismatch"))
            context.blobs.delete(info.key)


def expire_uploads(context: Context) -> int:
    """Fail the jobs whose file has not arrived in time; returns how many."""
    now = context.seams.clock.now()
    table = upload_jobs.c
    query = select(table.document_id).where(
        table.status == JobStatus.UPLOADED.value, table.updated_at < now - UPLOAD_TIMEOUT
    )
    with context.database.read() as connection:
        document_ids = list(connection.scalars(query.limit(EXPIRY_BATCH)))
    for document_id in document_ids:
        with context.database.write() as connection:
            job = job_of(connection, document_id, to_write=True)
            if job is not None and job.status is JobStatus.UPLOADED:
                error = UploadRefusedError("the file did not arrive in time", kind="not-there")
                fail(connection, job, error, now)
    return len(document_ids)
