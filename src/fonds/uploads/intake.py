"""Taking files in: announced, stored by their user, checked, and queued."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy import select

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
from fonds.stores.tables import upload_jobs
from fonds.uploads.files import check_claim, check_content, claimed_format, clean_name, extension_of
from fonds.uploads.jobs import Job, create, fail, job_of, move
from fonds.uploads.states import JobStatus

ARRIVES_WITHIN: Final = timedelta(hours=1)
"""A file that was announced and has not come by then does not come."""
AT_ONCE: Final = 100
PARSERS: Final = ("local", "llamaparse")


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadRequest:
    """What a user says of a file before it comes."""

    name: str
    size: int
    sha256: str


def staging_key(job: Job) -> str:
    """Where a file is put by its user, before it is believed."""
    return f"incoming/{job.user_id}/{job.job_id}"


def begin_upload(context: Context, settings: Settings, user_id: UUID, claim: UploadRequest) -> Job:
    """The job of a file: made, or the one there is already of the same bytes of the same user.

    One that failed before its file came begins again.
    """
    check_claim(claim.size, claim.sha256, limit=settings.max_file_mib * 1024 * 1024)
    name = clean_name(claim.name)
    form = claimed_format(name)
    if settings.parser not in PARSERS:
        raise UsageError(f"the setting parser is {settings.parser!r}; possible: {PARSERS}")
    uid = ids.upload_uid(user_id, claim.sha256)
    now = context.seams.clock.now()
    values = {
        "job_id": UUID(int=context.seams.chance.getrandbits(128), version=4),
        "user_id": user_id,
        "document_id": uid,
        "status": JobStatus.UPLOADED.value,
        "name": name,
        "format": form,
        "bytes": claim.size,
        "raw_sha256": claim.sha256.lower(),
        "raw_path": f"raw/{user_id}/{uid}.{extension_of(form)}",
        # Others cannot do more with a text than we can.
        "parser": settings.parser if form in {"pdf", "docx"} else "local",
        "chunks_version": chunker_label(context.chunker),
        "moved_by": f"user:{user_id}",
        "moved_why": "announced",
    }
    with context.database.write() as connection:
        held = job_of(connection, uid, to_write=True)
        held = held or create(connection, values, now) or job_of(connection, uid, to_write=True)
        assert held is not None
        if held.status is JobStatus.FAILED_PARSE and held.arrived_at is None:
            renamed = {key: values[key] for key in ("name", "format", "raw_path", "parser")}
            return move(
                connection,
                held,
                JobStatus.UPLOADED,
                by=f"user:{user_id}",
                why="announced again",
                now=now,
                last_error=None,
                **renamed,
            )
        return held


def complete_upload(context: Context, settings: Settings, job: Job) -> Job:
    """Check the file that has come against what was said of it, keep it, and queue it.

    Whatever is wrong with it ends the job, with a reason its user can read.
    """
    if job.status is not JobStatus.UPLOADED:
        return job
    try:
        with _staged_file(context, settings, job) as path:
            check_content(path, job.format)
            _keep(context, job, path)
    except UploadRefusedError as error:
        if error.kind != "not-there":
            _refuse(context, job, error)
            context.blobs.delete(staging_key(job))
        raise
    now = context.seams.clock.now()
    with context.database.write() as connection:
        held = job_of(connection, job.document_id, to_write=True)
        assert held is not None
        if held.status is JobStatus.UPLOADED and held.raw_path == job.raw_path:
            why = f"{job.bytes} bytes came, as announced"
            by = f"user:{job.user_id}"
            held = move(
                connection, held, JobStatus.PARSE_QUEUED, by=by, why=why, now=now, arrived_at=now
            )
    context.blobs.delete(staging_key(job))
    return held


@contextmanager
def _staged_file(context: Context, settings: Settings, job: Job) -> Iterator[Path]:
    """The bytes that came, in a file that nobody else can change."""
    folder = settings.home / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        try:
            for piece in context.blobs.stream(staging_key(job)):
                size += len(piece)
                if size > job.bytes:
                    break
                digest.update(piece)
                file.write(piece)
        except BlobMissingError:
            raise UploadRefusedError(
                "the file has not come yet: send it to the upload address first", kind="not-there"
            ) from None
        file.flush()
        if size != job.bytes:
            said = f"{job.bytes} bytes were announced, "
            came = "but more came" if size > job.bytes else f"but {size} came"
            raise UploadRefusedError(said + came, kind="size-mismatch")
        if digest.hexdigest() != job.raw_sha256:
            raise UploadRefusedError(
                "the bytes that came are not those that were announced: their SHA-256 differs",
                kind="hash-mismatch",
            )
        yield Path(file.name)


def _keep(context: Context, job: Job, path: Path) -> None:
    try:
        context.blobs.create(job.raw_path, path)
    except BlobExistsError:
        # The key follows from user and hash: what is there are these bytes.
        return


def _refuse(context: Context, job: Job, error: FondsError) -> None:
    now = context.seams.clock.now()
    with context.database.write() as connection:
        held = job_of(connection, job.document_id, to_write=True)
        if held is not None and held.status is JobStatus.UPLOADED:
            fail(connection, held, error, now, by=f"user:{job.user_id}")


def retry_upload(context: Context, job: Job, *, by: str) -> Job:
    """Send a failed job back to its last good stage."""
    now = context.seams.clock.now()
    with context.database.write() as connection:
        held = job_of(connection, job.document_id, to_write=True)
        assert held is not None
        target = _last_good(held)
        return move(
            connection,
            held,
            target,
            by=by,
            why="retry",
            now=now,
            reprocessed=held.reprocessed + 1,
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


def expire_uploads(context: Context) -> int:
    """End the jobs whose file never came; says how many."""
    now = context.seams.clock.now()
    table = upload_jobs.c
    overdue = (table.status == JobStatus.UPLOADED.value) & (table.updated_at < now - ARRIVES_WITHIN)
    with context.database.read() as connection:
        found = list(connection.scalars(select(table.document_id).where(overdue).limit(AT_ONCE)))
    for document_id in found:
        with context.database.write() as connection:
            job = job_of(connection, document_id, to_write=True)
            if job is not None and job.status is JobStatus.UPLOADED:
                error = UploadRefusedError("the file never came", kind="not-there")
                fail(connection, job, error, now)
    return len(found)
