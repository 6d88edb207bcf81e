"""What is done with a webhook: believed or not, once, and never against the state of its job."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import Connection

from fonds.errors import ParseError, ParserError, WebhookError
from fonds.normalize.registry import get_normalizer
from fonds.runs.shelf import Shelf
from fonds.settings import Settings
from fonds.uploads.jobs import Job, fail, job_of
from fonds.uploads.parsing import MARKDOWN, ParsedFile, store_parsed, take_parsed
from fonds.uploads.states import JobStatus
from fonds.uploads.webhook import Failed, Parsed, read_payload, remember_nonce, verify_signature

_BY: Final = "webhook:llamaparse"

Effect = Literal["taken", "ignored"]
"""`ignored`: the job has its text already, or has ended; a late answer changes nothing."""


def receive_webhook(
    shelf: Shelf, settings: Settings, headers: Iterable[tuple[str, str]], body: bytes
) -> Effect:
    """Take the answer of the parser outside; WebhookError says why it is not believed."""
    webhook_id = verify_signature(headers, body, settings.webhook_secrets, shelf.seams.clock.now())
    told = read_payload(body, most=settings.max_file_mib * 1024 * 1024)
    with shelf.database.read() as connection:
        job = _job_told_of(connection, told)
    try:
        stored = _stored(shelf, job, told) if isinstance(told, Parsed) else None
    except ParseError as error:
        told, stored = (
            Failed(job_id=job.job_id, document_id=job.document_id, error=str(error)),
            None,
        )
    now = shelf.seams.clock.now()
    with shelf.database.write() as connection:
        remember_nonce(connection, webhook_id, now)
        return _take(connection, _job_told_of(connection, told, to_write=True), told, stored, now)


def _job_told_of(connection: Connection, told: Parsed | Failed, *, to_write: bool = False) -> Job:
    job = job_of(connection, told.document_id, to_write=to_write)
    if job is None or job.job_id != told.job_id or job.parser == "local":
        raise WebhookError("no job waits for this answer", kind="unknown-job")
    return job


def _stored(shelf: Shelf, job: Job, told: Parsed) -> ParsedFile | None:
    if job.status is not JobStatus.PARSE_QUEUED:
        return None
    text = get_normalizer(MARKDOWN).to_markdown(told.markdown.encode())
    return store_parsed(shelf.blobs, job, text, by=f"{told.parser_name}@{told.parser_version}")


def _take(
    connection: Connection,
    job: Job,
    told: Parsed | Failed,
    stored: ParsedFile | None,
    now: datetime,
) -> Effect:
    if job.status is not JobStatus.PARSE_QUEUED:
        return "ignored"
    if isinstance(told, Failed):
        fail(connection, job, ParserError(told.error), now, by=_BY)
    elif stored is None:
        return "ignored"  # it was sent back this very moment; the parser will be asked again
    else:
        take_parsed(connection, job, stored, by=_BY, now=now, lease_owner=None, lease_until=None)
    return "taken"
