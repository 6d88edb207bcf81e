"""Deletion of an upload by its user: rows first, in one transaction, and then the files.

The rows of the job go with all that was made of it; a worker that has it stops at its next
transaction. What remains is a row without content in `upload_deletions`, by which files are
removed: now, and again until nothing can bring one back. If the process is killed, the next
request to delete the upload, or any worker, goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from sqlalchemy import Connection, Row, delete, insert, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from fonds import ids
from fonds.context import Context
from fonds.errors import FondsError
from fonds.stores.removal import remove_document
from fonds.stores.tables import idempotency_keys, upload_deletions, upload_jobs
from fonds.uploads.files import FORMATS
from fonds.uploads.jobs import Job, job_of

SWEEP_FOR: Final = timedelta(minutes=10)
"""For so long a file may come back: by a signed address, or by a worker that had the job."""
SWEEP_LEASE: Final = timedelta(minutes=1)
"""For so long the same bytes are not accepted again while their files are being removed."""
_BATCH: Final = 100
_UUID_LENGTH: Final = 36

_deletion: Final = upload_deletions.c
_job: Final = upload_jobs.c
_log: Final = structlog.get_logger(__name__)


def delete_upload(context: Context, user_id: UUID, document_id: UUID, *, by: str) -> bool:
    """Delete an upload of a user with all that was made of it; False if there is none."""
    now = context.seams.clock.now()
    with context.database.write() as connection:
        job = job_of(connection, document_id, user_id=user_id, to_write=True)
        if job is not None:
            _delete_rows(connection, context, job, now, by)
        elif not _open_deletions(connection, document_id, user_id):
            return False
    for content in (job.raw_sha256, job.parsed_sha256) if job is not None else ():
        context.readers.forget(content or "")
    _remove_files(context, document_id)
    _log.info("upload_deleted", document=str(document_id), by=by)
    return True


def finish_deletions(context: Context) -> None:
    """Remove files of deleted uploads that were left or have come back."""
    query = select(_deletion.document_id).where(_deletion.finished_at.is_(None)).distinct()
    with context.database.read() as connection:
        document_ids = list(connection.scalars(query.limit(_BATCH)))
    for document_id in document_ids:
        try:
            _remove_files(context, document_id)
        except (FondsError, SQLAlchemyError) as error:
            _log.warning(
                "deletion_unfinished", document=str(document_id), error=type(error).__name__
            )


def _delete_rows(
    connection: Connection, context: Context, job: Job, now: datetime, by: str
) -> None:
    document_id = ids.upload_id(job.document_id)
    remove_document(connection, context.database.fulltext, document_id, job.document_id)
    _forget_responses(connection, job)
    connection.execute(delete(upload_jobs).where(_job.job_id == job.job_id))
    row = {
        "job_id": job.job_id,
        "user_id": job.user_id,
        "document_id": job.document_id,
        "status": job.status.value,
        "bytes": job.bytes,
        "parsed_path": job.parsed_path,
        "deleted_at": now,
        "deleted_by": by,
    }
    connection.execute(insert(upload_deletions).values(row))


def _forget_responses(connection: Connection, job: Job) -> None:
    """Delete stored responses of the API, which contain the name of the file."""
    key = idempotency_keys.c
    rows = connection.execute(select(key.key, key.answer).where(key.user_id == job.user_id))
    own = [row.key for row in rows if _document_of(row.answer) == str(job.document_id)]
    same = (key.user_id == job.user_id) & key.key.in_(own)
    connection.execute(delete(idempotency_keys).where(same))


def _document_of(response: Any) -> Any:
    return response.get("document_id") if isinstance(response, dict) else None


def _open_deletions(
    connection: Connection, document_id: UUID, user_id: UUID | None = None
) -> Sequence[Row[Any]]:
    query = select(upload_deletions).where(
        _deletion.document_id == document_id, _deletion.finished_at.is_(None)
    )
    query = query if user_id is None else query.where(_deletion.user_id == user_id)
    return connection.execute(query.order_by(_deletion.job_id).with_for_update()).all()


def _remove_files(context: Context, document_id: UUID) -> None:
    """Remove the files of all deleted jobs of a document that no other job needs."""
    now = context.seams.clock.now()
    with context.database.write() as connection:
        deletions = _open_deletions(connection, document_id)
        _mark(connection, deletions, sweep_until=now + SWEEP_LEASE)
        is_back = job_of(connection, document_id) is not None
    keys = _keys(context, deletions, is_back=is_back)
    with context.database.read() as connection:
        unneeded = [key for key in keys if not _is_needed(connection, key)]
    for key in unneeded:
        context.blobs.delete(key)
    is_over = [row for row in deletions if now - row.deleted_at >= SWEEP_FOR]
    with context.database.write() as connection:
        _mark(connection, deletions, sweep_until=None)
        _mark(connection, is_over, finished_at=now, parsed_path=None)


def _is_needed(connection: Connection, key: str) -> bool:
    """True if a text belongs to another upload: it is shared by files of a user that have it."""
    if not key.startswith("parsed/"):
        return False
    document_id = UUID(key.rpartition("/")[2][:_UUID_LENGTH])
    shared = or_(_job.parsed_path == key, _job.document_id == document_id)
    return connection.scalar(select(_job.job_id).where(shared).limit(1)) is not None


def _mark(connection: Connection, deletions: Sequence[Row[Any]], **columns: Any) -> None:
    job_ids = [row.job_id for row in deletions]
    if job_ids:
        connection.execute(
            update(upload_deletions).where(_deletion.job_id.in_(job_ids)).values(columns)
        )


def _keys(context: Context, deletions: Sequence[Row[Any]], *, is_back: bool) -> list[str]:
    """The keys of all files of these jobs.

    The same bytes that were uploaded again have the same keys, except that of their arrival.
    """
    keys = {f"incoming/{row.user_id}/{row.job_id}" for row in deletions}
    if not is_back:
        for row in deletions:
            name = f"{row.user_id}/{row.document_id}"
            keys.update(f"raw/{name}.{form.extension}" for form in FORMATS.values())
            keys.update(info.key for info in context.blobs.list(f"parsed/{name}."))
    keys.update(row.parsed_path for row in deletions if row.parsed_path is not None)
    return sorted(keys)
