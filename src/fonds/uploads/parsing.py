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
from fonds.uploads.jobs import Job, move
from fonds.uploads.llamaparse import NAME as LLAMAPARSE
from fonds.uploads.resources import ClaimedJob, WorkerResources
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


def parse_here(claimed: ClaimedJob) -> None:
    """Make the text of a file in the worker."""
    job, blobs = claimed.job, claimed.context.blobs
    name = normalizer_of(job.format)
    work = BodyToNormalize(normalizer=name, data=_raw(blobs, job), address=None)
    text = _normalized(claimed.resources, work)
    _finish_parsing(claimed, store_parsed(blobs, job, text, by=get_normalizer(name).label))


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


def parse_outside(claimed: ClaimedJob) -> None:
    """Send a file to the parser outside, or ask it for an answer that is overdue."""
    submission = claimed.job.submission
    if submission is None:
        _submit(claimed)
        return
    fetched = claimed.resources.llamaparse.fetch(submission["id"])
    if fetched is None:
        _wait_longer(claimed, datetime.fromisoformat(submission["at"]))
        return
    text = get_normalizer(MARKDOWN).to_markdown(fetched.markdown.encode())
    by = f"{LLAMAPARSE}@{fetched.parser_version}"
    _finish_parsing(claimed, store_parsed(claimed.context.blobs, claimed.job, text, by=by))


def _wait_longer(claimed: ClaimedJob, submitted_at: datetime) -> None:
    if claimed.context.seams.clock.now() - submitted_at > GIVE_UP:
        raise ParserError("the parser did not finish within an hour")
    with claimed.transition() as transition:
        transition.postpone(transition.now + ASK_AGAIN, retry_count=0, takeovers=0)


def _submit(claimed: ClaimedJob) -> None:
    job, context = claimed.job, claimed.context
    theirs = claimed.resources.llamaparse.submit(
        context.blobs.stream(job.raw_path),
        job.bytes,
        f"{job.document_id}.{extension_of(job.format)}",  # how its user calls it stays here
        webhook_url=_webhook_address(context.settings),
        job_id=job.job_id,
        document_id=job.document_id,
    )
    wait = ANSWER_WITHIN if context.settings.public_url else ASK_AGAIN
    with claimed.transition() as transition:
        at = transition.now.isoformat(timespec="milliseconds")
        transition.postpone(transition.now + wait, submission={"id": theirs, "at": at})


def _finish_parsing(claimed: ClaimedJob, parsed: ParsedFile) -> None:
    with claimed.transition() as transition:
        columns = parsed.columns(transition.now)
        transition.move(JobStatus.PARSED, why=parsed.why, **columns)
    claimed.markdown = parsed.data


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


def take_parsed(
    connection: Connection, job: Job, stored: ParsedFile, *, by: str, now: datetime, **columns: Any
) -> Job:
    """Move a job to `parsed` that no worker holds."""
    told = stored.columns(now)
    return move(
        connection, job, JobStatus.PARSED, by=by, why=stored.why, now=now, **told, **columns
    )
