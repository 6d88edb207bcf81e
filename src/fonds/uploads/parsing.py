"""Parsing of files to Markdown, by the local normalizers or by an external parser."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from fonds import ids
from fonds.errors import BlobExistsError, GateError, ParserError
from fonds.model import NormalizedBody
from fonds.normalize.registry import (
    NormalizerInput,
    get_normalizer,
    read_text,
    text_of_json,
)
from fonds.settings import Settings
from fonds.stores.blobs import Blobs
from fonds.stores.documents import body_map, stored_text
from fonds.uploads.files import FORMATS
from fonds.uploads.jobs import Job, move
from fonds.uploads.llamaparse import NAME as LLAMAPARSE
from fonds.uploads.resources import ClaimedJob, WorkerResources
from fonds.uploads.states import JobStatus, check_parsed

MARKDOWN: Final = "markdown_v1"
"""The normalizer for the Markdown of external parsers."""
WEBHOOK_TIMEOUT: Final = timedelta(minutes=1)
"""The external parser is polled if its webhook has not arrived by then."""
POLL_INTERVAL: Final = timedelta(seconds=5)
"""The interval of polling the external parser."""
PARSER_TIMEOUT: Final = timedelta(hours=1)
"""After this time the external parser is taken to have failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedFile:
    """The stored text that a parser made of a file."""

    path: str
    sha256: str
    size: int
    by: str
    """name@version"""
    map: Mapping[str, Any]
    data: bytes = field(repr=False)

    @property
    def why(self) -> str:
        """The text of the move's event."""
        return f"{self.size} bytes of text by {self.by}"

    def columns(self, now: datetime) -> dict[str, Any]:
        """The columns of the job for it."""
        return {
            "parsed_path": self.path,
            "parsed_sha256": self.sha256,
            "parsed_bytes": self.size,
            "parsed_by": self.by,
            "parsed_map": dict(self.map),
            "parsed_at": now,
        }


def parse_locally(claimed: ClaimedJob) -> None:
    """Make the text of a file in the worker."""
    job, blobs = claimed.job, claimed.context.blobs
    name = FORMATS[job.format].normalizer
    work = NormalizerInput(normalizer=name, data=_raw(blobs, job), address=None)
    text = _normalized(claimed.resources, work)
    _finish_parsing(claimed, store_parsed(blobs, job, text, by=get_normalizer(name).label))


def _raw(blobs: Blobs, job: Job) -> bytes:
    data = blobs.get(job.raw_path)
    if hashlib.sha256(data).hexdigest() != job.raw_sha256:
        raise GateError("the stored file has changed since it was uploaded: its hash differs")
    return data


def _normalized(resources: WorkerResources, work: NormalizerInput) -> NormalizedBody:
    # Even a plain text may be made to take minutes: time and memory are limited there.
    (outcome,) = resources.engine.run(read_text, [work])
    return text_of_json(outcome.unwrap())


def parse_externally(claimed: ClaimedJob) -> None:
    """Send a file to the external parser, or poll it for a result that is overdue."""
    submission = claimed.job.submission
    if submission is None:
        _submit(claimed)
        return
    fetched = claimed.resources.llamaparse.fetch(submission["id"])
    if fetched is None:
        _wait_longer(claimed, datetime.fromisoformat(submission["at"]))
        return
    work = NormalizerInput(normalizer=MARKDOWN, data=fetched.markdown.encode(), address=None)
    text = _normalized(claimed.resources, work)
    by = f"{LLAMAPARSE}@{fetched.parser_version}"
    _finish_parsing(claimed, store_parsed(claimed.context.blobs, claimed.job, text, by=by))


def _wait_longer(claimed: ClaimedJob, submitted_at: datetime) -> None:
    if claimed.context.seams.clock.now() - submitted_at > PARSER_TIMEOUT:
        raise ParserError("the parser did not finish within an hour")
    with claimed.transition() as transition:
        transition.postpone(transition.now + POLL_INTERVAL, retry_count=0, takeovers=0)


def _submit(claimed: ClaimedJob) -> None:
    job, context = claimed.job, claimed.context
    external_id = claimed.resources.llamaparse.submit(
        context.blobs.stream(job.raw_path),
        job.bytes,
        f"{job.document_id}.{FORMATS[job.format].extension}",  # the user's name for it is private
        webhook_url=_webhook_address(context.settings),
        job_id=job.job_id,
        document_id=job.document_id,
    )
    wait = WEBHOOK_TIMEOUT if context.settings.public_url else POLL_INTERVAL
    with claimed.transition() as transition:
        at = transition.now.isoformat(timespec="milliseconds")
        transition.postpone(transition.now + wait, submission={"id": external_id, "at": at})


def _finish_parsing(claimed: ClaimedJob, parsed: ParsedFile) -> None:
    with claimed.transition() as transition:
        columns = parsed.columns(transition.now)
        transition.move(JobStatus.PARSED, why=parsed.why, **columns)
    claimed.markdown = parsed.data


def _webhook_address(settings: Settings) -> str | None:
    """The address for the result; None without a public URL, so that the parser is polled."""
    return f"{settings.public_url}/webhooks/llamaparse" if settings.public_url else None


# Storing ----------------------------------------------------------------------------------


def store_parsed(blobs: Blobs, job: Job, text: NormalizedBody, *, by: str) -> ParsedFile:
    """Store the Markdown under the job's key; a different text later gets another key."""
    data = text.markdown.encode()
    sha256 = hashlib.sha256(data).hexdigest()
    path = f"parsed/{job.user_id}/{job.document_id}.md"
    try:
        blobs.create(path, data)
    except BlobExistsError:
        if blobs.get(path) != data:
            path = ids.changed_key(path, sha256)
            blobs.put(path, data)
    return ParsedFile(
        path=path, sha256=sha256, size=len(data), by=by, map=body_map(text), data=data
    )


def read_parsed(blobs: Blobs, job: Job) -> NormalizedBody:
    """The text of a job, if it is still the one that was parsed."""
    assert job.parsed_path is not None
    return _checked(blobs.get(job.parsed_path), job)


def text_of(claimed: ClaimedJob) -> NormalizedBody:
    """The text of a job, checked once; it is read from the store unless this worker parsed it."""
    if claimed.text is None:
        if claimed.markdown is None:
            claimed.text = read_parsed(claimed.context.blobs, claimed.job)
        else:
            claimed.text = _checked(claimed.markdown, claimed.job)
    return claimed.text


def _checked(data: bytes, job: Job) -> NormalizedBody:
    assert job.parsed_sha256 is not None
    offsets = job.parsed_map or {"sections": [], "pages": []}
    return stored_text(check_parsed(data, job.parsed_sha256, offsets), offsets)


def move_to_parsed(
    connection: Connection, job: Job, stored: ParsedFile, *, by: str, now: datetime, **columns: Any
) -> Job:
    """Move a job that no worker has claimed to `parsed`."""
    return move(
        connection,
        job,
        JobStatus.PARSED,
        by=by,
        why=stored.why,
        now=now,
        **stored.columns(now),
        **columns,
    )
