"""From a file to Markdown: by our own normalizers, or by a parser outside; both end here."""

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
from fonds.normalize.registry import BodyToNormalize, get_normalizer, make_text
from fonds.settings import Settings
from fonds.stores.blobs import Blobs
from fonds.stores.documents import body_map, stored_text
from fonds.uploads.files import extension_of, normalizer_of
from fonds.uploads.jobs import Job, Way, move, moving, postpone
from fonds.uploads.llamaparse import NAME as LLAMAPARSE
from fonds.uploads.resources import WorkerResources
from fonds.uploads.states import JobStatus, check_parsed

MARKDOWN: Final = "markdown_v1"
"""What reads the Markdown of parsers outside."""
ANSWER_WITHIN: Final = timedelta(minutes=1)
"""A parser outside is asked itself when its webhook has not come by then."""

ASK_AGAIN: Final = timedelta(seconds=5)
"""A parser outside that cannot call us is asked so often."""
GIVE_UP: Final = timedelta(hours=1)
"""A file that a parser outside works on for so long is not read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedFile:
    """What a parser made of a file, stored."""

    path: str
    sha256: str
    size: int
    by: str
    """name@version"""
    map: Mapping[str, Any]
    data: bytes = field(repr=False)

    def text(self) -> NormalizedBody:
        """The text, if it is whole."""
        return _checked(self.data, self.sha256, self.map)

    @property
    def why(self) -> str:
        """What the event of the move says."""
        return f"{self.size} bytes of text by {self.by}"

    def columns(self, now: datetime) -> dict[str, Any]:
        """What the job knows of it."""
        return {
            "parsed_path": self.path,
            "parsed_sha256": self.sha256,
            "parsed_bytes": self.size,
            "parsed_by": self.by,
            "parsed_map": dict(self.map),
            "parsed_at": now,
        }


def parse_here(resources: WorkerResources, job: Job) -> Job:
    """Make the text of a file in the worker."""
    stored = read_file(resources, job)
    with moving(resources.context.database, job) as way:
        parsed(way, stored, resources.context.seams.clock.now())
    return way.job


def read_file(resources: WorkerResources, job: Job) -> ParsedFile:
    """What our own normalizers make of a file."""
    data = _raw(resources.context.blobs, job)
    name = normalizer_of(job.format)
    text = _normalized(resources, BodyToNormalize(normalizer=name, data=data, address=None))
    return store_parsed(resources.context.blobs, job, text, by=get_normalizer(name).label)


def _raw(blobs: Blobs, job: Job) -> bytes:
    data = blobs.get(job.raw_path)
    if hashlib.sha256(data).hexdigest() != job.raw_sha256:
        raise GateError("the stored file is not the one that was uploaded: its hash differs")
    return data


def _normalized(resources: WorkerResources, work: BodyToNormalize) -> NormalizedBody:
    # A hostile file may end the process it is read in, or never end: its time and memory are
    # limited elsewhere. Plain text is harmless.
    if work.normalizer in {MARKDOWN, "text_v1"}:
        return make_text(work)
    (outcome,) = resources.engine.run(make_text, [work])
    text: NormalizedBody = outcome.unwrap()
    return text


def parse_outside(resources: WorkerResources, job: Job) -> Job:
    """Send a file to the parser outside, or ask it for an answer that is overdue."""
    if job.submission is None:
        return _submit(resources, job)
    fetched = resources.llamaparse.fetch(job.submission["id"])
    if fetched is None:
        return _wait_on(resources, job)
    text = get_normalizer(MARKDOWN).to_markdown(fetched.markdown.encode())
    stored = store_parsed(
        resources.context.blobs, job, text, by=f"{LLAMAPARSE}@{fetched.parser_version}"
    )
    with moving(resources.context.database, job) as way:
        parsed(way, stored, resources.context.seams.clock.now())
    return way.job


def _wait_on(resources: WorkerResources, job: Job) -> Job:
    assert job.submission is not None
    now = resources.context.seams.clock.now()
    if now - datetime.fromisoformat(job.submission["at"]) > GIVE_UP:
        raise ParserError("the parser did not finish within an hour")
    with resources.context.database.write() as connection:
        return postpone(connection, job, now + ASK_AGAIN, now, retry_count=0, takeovers=0)


def _submit(resources: WorkerResources, job: Job) -> Job:
    theirs = resources.llamaparse.submit(
        resources.context.blobs.stream(job.raw_path),
        job.bytes,
        f"{job.document_id}.{extension_of(job.format)}",  # how its user calls it stays here
        webhook_url=_webhook_address(resources.context.settings),
        job_id=job.job_id,
        document_id=job.document_id,
    )
    now = resources.context.seams.clock.now()
    submission = {"id": theirs, "at": now.isoformat(timespec="milliseconds")}
    with resources.context.database.write() as connection:
        wait = ANSWER_WITHIN if resources.context.settings.public_url else ASK_AGAIN
        return postpone(connection, job, now + wait, now, submission=submission)


def _webhook_address(settings: Settings) -> str | None:
    """Where the answer is to be sent; without an address of ours we come and ask."""
    return f"{settings.public_url}/webhooks/llamaparse" if settings.public_url else None


# The one end of all parsers ---------------------------------------------------------------


def store_parsed(blobs: Blobs, job: Job, text: NormalizedBody, *, by: str) -> ParsedFile:
    """Keep the Markdown under the job's own key; other text gets a key of its own."""
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
    assert job.parsed_sha256 is not None
    told = job.parsed_map or {"sections": [], "pages": []}
    return _checked(blobs.get(job.parsed_path), job.parsed_sha256, told)


def _checked(data: bytes, sha256: str, told: Mapping[str, Any]) -> NormalizedBody:
    return stored_text(check_parsed(data, sha256, told), told)


def parsed(way: Way, stored: ParsedFile, now: datetime) -> None:
    """The text is stored, by a worker."""
    way.move(JobStatus.PARSED, why=stored.why, now=now, **stored.columns(now))


def take_parsed(
    connection: Connection, job: Job, stored: ParsedFile, *, by: str, now: datetime, **columns: Any
) -> Job:
    """Move a job to `parsed` that no worker holds."""
    told = stored.columns(now)
    return move(
        connection, job, JobStatus.PARSED, by=by, why=stored.why, now=now, **told, **columns
    )
