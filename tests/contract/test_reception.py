"""What becomes of a webhook of the parser outside, by name, on both databases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any, NoReturn
from uuid import uuid4

import pytest
from sqlalchemy import func, select
from tests.support.libraries.uploads import (
    TEXT,
    announce,
    make_user,
    now_of,
    send,
    upload_library,
    work,
)

from fonds import ids
from fonds.context import Context
from fonds.errors import ParserError, RetryableParserError, StoreError, WebhookError
from fonds.library import Library
from fonds.seams import Seams
from fonds.stores.blobs import Data, FolderBlobs
from fonds.stores.tables import upload_jobs, webhook_nonces
from fonds.testing import ManualClock
from fonds.uploads.intake import retry_upload
from fonds.uploads.jobs import Job, events_of
from fonds.uploads.llamaparse import LlamaParse, ParsedText
from fonds.uploads.states import JobStatus
from fonds.uploads.webhook import Effect, receive_webhook, sign
from fonds.uploads.worker import UploadWorker

SECRET = "the secret of this test"
PDF = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> Iterator[Library]:
    on: dict[str, Any] = {
        "parser": "llamaparse",
        "llamaparse_key": "llx-test",
        "webhook_secrets": (SECRET,),
        "public_url": "https://fonds.example",
    }
    if request.param == "postgres":
        on["database"] = request.getfixturevalue("postgres_database")
    with upload_library(tmp_path, seams=Seams(clock=clock), **on) as library:
        yield library


@pytest.fixture
def job(library: Library) -> Job:
    return send(library, make_user(library), PDF, "policy.pdf")


def parsed(job: Job, markdown: str = TEXT, **changes: Any) -> bytes:
    content = markdown.encode()
    artifact = {
        "type": "markdown",
        "content": markdown,
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
    }
    told = {
        "job_id": str(job.job_id),
        "document_id": str(job.document_id),
        "status": "parsed",
        "artifacts": [artifact | changes.pop("artifact", {})],
        "meta": {"parser_name": "llamaparse", "parser_version": "2025-08-01"},
    }
    return json.dumps(told | changes).encode()


def failed(job: Job, error: str) -> bytes:
    told = {"job_id": str(job.job_id), "document_id": str(job.document_id), "status": "failed"}
    return json.dumps(told | {"error": error}).encode()


def deliver(
    library: Library,
    body: bytes,
    *,
    name: str | None = None,
    secret: str = SECRET,
    context: Context | None = None,
) -> Effect:
    moment = library.seams.clock.now()
    headers = sign(name or f"msg_{uuid4().hex}", moment, body, [secret])
    return receive_webhook(context or library.context, library.settings, headers.items(), body)


def refusal(library: Library, body: bytes, **how: Any) -> str:
    with pytest.raises(WebhookError) as refused:
        deliver(library, body, **how)
    return refused.value.kind


def traces(library: Library) -> dict[str, Any]:
    """Everything that a webhook could have left behind."""
    with library.database.read() as connection:
        jobs = sorted(map(repr, connection.execute(select(upload_jobs))))
        nonces = connection.scalar(select(func.count()).select_from(webhook_nonces))
    blobs = [(info.key, info.etag) for info in library.blobs.list("")]
    return {"jobs": jobs, "nonces": nonces, "blobs": blobs}


def statuses(library: Library, job: Job) -> list[str]:
    with library.database.read() as connection:
        return [event.to_status for event in events_of(connection, job.job_id)]


# Taken --------------------------------------------------------------------------------------


def test_text_is_taken_and_ends_as_a_document(library: Library, job: Job) -> None:
    assert deliver(library, parsed(job)) == "taken"
    held = now_of(library, job)
    assert held.status is JobStatus.PARSED
    assert held.parsed_by == "llamaparse@2025-08-01"
    assert held.parsed_path == f"parsed/{job.user_id}/{job.document_id}.md"
    assert library.blobs.get(held.parsed_path).decode() == TEXT
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE
    (hit,) = library.search("water damage", owner=job.user_id, limit=1)
    assert hit.id == ids.upload_id(job.document_id)


def test_failure_ends_the_job_with_the_message_of_the_parser(library: Library, job: Job) -> None:
    assert deliver(library, failed(job, "the file is\n locked")) == "taken"
    held = now_of(library, job)
    assert held.status is JobStatus.FAILED_PARSE
    assert held.last_error is not None
    assert held.last_error["message"] == "the file is locked"
    with library.database.read() as connection:
        last = events_of(connection, job.job_id)[-1]
    assert (last.by, last.why) == ("webhook:llamaparse", "the file is locked")


def test_answer_after_a_retry_is_taken(library: Library, job: Job) -> None:
    deliver(library, failed(job, "too busy"))
    retry_upload(library.context, now_of(library, job), by="tester")
    assert deliver(library, parsed(job)) == "taken"
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE


# Ignored ------------------------------------------------------------------------------------


def test_second_text_of_a_job_changes_nothing(library: Library, job: Job) -> None:
    deliver(library, parsed(job))
    before = traces(library)
    assert deliver(library, parsed(job, "# Another text\n\nOf the same file.")) == "ignored"
    after = traces(library)
    assert (after["jobs"], after["blobs"]) == (before["jobs"], before["blobs"])


@pytest.mark.parametrize("late", ["text", "failure"])
def test_answer_to_a_job_that_has_ended_changes_nothing(
    library: Library, job: Job, late: str
) -> None:
    body = parsed(job, "# Late\n\nToo late.") if late == "text" else failed(job, "too late")
    deliver(library, parsed(job))
    work(library)
    assert deliver(library, body) == "ignored"
    assert now_of(library, job).status is JobStatus.COMPLETE
    assert now_of(library, job).last_error is None


def test_text_of_a_job_that_failed_meanwhile_changes_nothing(library: Library, job: Job) -> None:
    deliver(library, failed(job, "no pages"))
    assert deliver(library, parsed(job)) == "ignored"
    assert now_of(library, job).status is JobStatus.FAILED_PARSE


def test_answer_before_the_file_has_come_changes_nothing(library: Library) -> None:
    job = announce(library, make_user(library), PDF, "policy.pdf")
    assert deliver(library, parsed(job)) == "ignored"
    assert now_of(library, job).status is JobStatus.UPLOADED


# Refused ------------------------------------------------------------------------------------


def test_replay_is_refused_and_changes_nothing(library: Library, job: Job) -> None:
    deliver(library, failed(job, "too busy"), name="msg_1")
    retry_upload(library.context, now_of(library, job), by="tester")
    before = traces(library)
    assert refusal(library, failed(job, "too busy"), name="msg_1") == "replayed"
    assert traces(library) == before


def test_forged_webhook_leaves_no_trace(library: Library, job: Job) -> None:
    before = traces(library)
    assert refusal(library, parsed(job), secret="a guess") == "bad-signature"
    assert traces(library) == before


@pytest.mark.parametrize(
    "told_of",
    [
        lambda job: replace(job, document_id=uuid4()),
        lambda job: replace(job, job_id=uuid4()),
        lambda job: replace(job, job_id=uuid4(), document_id=uuid4()),
    ],
)
def test_answer_about_no_job_of_ours_is_refused(
    library: Library, job: Job, told_of: Callable[[Job], Job]
) -> None:
    before = traces(library)
    assert refusal(library, parsed(told_of(job))) == "unknown-job"
    assert refusal(library, failed(told_of(job), "no")) == "unknown-job"
    assert traces(library) == before


def test_job_that_is_read_here_takes_no_answer_from_outside(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode(), "policy.md")
    assert job.parser == "local"
    before = traces(library)
    assert refusal(library, parsed(job)) == "unknown-job"
    assert traces(library) == before


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"artifact": {"sha256": "0" * 64}}, "hash-mismatch"),
        ({"artifact": {"bytes": 1}}, "hash-mismatch"),
        ({"artifacts": []}, "malformed"),
        ({"status": "done"}, "malformed"),
    ],
)
def test_payload_that_contradicts_itself_leaves_no_trace(
    library: Library, job: Job, changes: dict[str, Any], kind: str
) -> None:
    before = traces(library)
    assert refusal(library, parsed(job, **changes)) == kind
    assert traces(library) == before


def test_text_with_nul_is_refused_and_the_job_waits_on(library: Library, job: Job) -> None:
    before = traces(library)
    assert refusal(library, parsed(job, "# A\0B\n")) == "malformed"
    assert traces(library) == before


@pytest.mark.parametrize("markdown", ["", " \n\n", "***\n"])
def test_text_without_a_word_ends_the_job(library: Library, job: Job, markdown: str) -> None:
    assert deliver(library, parsed(job, markdown)) == "taken"
    work(library)
    held = now_of(library, job)
    assert held.status is JobStatus.FAILED_PARSE
    assert held.last_error is not None
    assert held.last_error["message"]


# Trouble of our own -------------------------------------------------------------------------


class Down(FolderBlobs):
    """A store that takes nothing."""

    def create(self, key: str, data: Data) -> NoReturn:  # noqa: ARG002 — it looks at neither
        raise StoreError("the object store answers 503")


def test_handling_that_failed_can_be_repeated_under_the_same_id(
    library: Library, job: Job, tmp_path: Path
) -> None:
    down = replace(library.context, blobs=Down(tmp_path / "down", seams=Seams()))
    before = traces(library)
    with pytest.raises(StoreError):
        deliver(library, parsed(job), name="msg_1", context=down)
    assert traces(library) == before
    assert deliver(library, parsed(job), name="msg_1") == "taken"
    assert refusal(library, parsed(job), name="msg_1") == "replayed"


# At once ------------------------------------------------------------------------------------


def _at_once(calls: Iterable[Callable[[], str]]) -> list[str]:
    waiting = list(calls)
    together = Barrier(len(waiting))

    def called(call: Callable[[], str]) -> str:
        together.wait()
        try:
            return call()
        except WebhookError as error:
            return error.kind

    with ThreadPoolExecutor(len(waiting)) as pool:
        return sorted(pool.map(called, waiting))


def test_one_webhook_delivered_twice_at_once_takes_effect_once(library: Library, job: Job) -> None:
    body = parsed(job)
    ends = _at_once([lambda: deliver(library, body, name="msg_1")] * 4)
    assert ends == ["replayed", "replayed", "replayed", "taken"]
    assert statuses(library, job) == ["uploaded", "parse_queued", "parsed"]


def test_of_different_answers_at_once_one_is_taken(library: Library, job: Job) -> None:
    texts = [f"# Text {number}\n\nOf the file." for number in range(3)]
    bodies = [*(parsed(job, text) for text in texts), failed(job, "no")]
    ends = _at_once([lambda body=body: deliver(library, body) for body in bodies])  # type: ignore[misc]  # mypy cannot type a default
    assert ends == ["ignored", "ignored", "ignored", "taken"]
    assert len(statuses(library, job)) == 3
    held = now_of(library, job)
    if held.status is JobStatus.PARSED:
        assert held.parsed_path is not None
        text = library.blobs.get(held.parsed_path)
        assert hashlib.sha256(text).hexdigest() == held.parsed_sha256


# While a worker has the job -----------------------------------------------------------------


class Outside(LlamaParse):
    """The parser outside, which does what a test wants when it is asked for an answer."""

    def __init__(self, library: Library, asked: Callable[[], ParsedText | None]) -> None:
        super().__init__(library.settings, library.seams)
        self._asked = asked

    def submit(self, *_: Any, **__: Any) -> str:
        return "theirs"

    def fetch(self, their_id: str) -> ParsedText | None:
        assert their_id == "theirs"
        return self._asked()


def _asking(library: Library, clock: ManualClock, asked: Callable[[], ParsedText | None]) -> None:
    """A worker submits the file, and asks for the answer when it is overdue."""
    with library.worker_resources() as resources:
        resources._llamaparse = Outside(library, asked)
        worker = UploadWorker(resources)
        assert worker.work_once()
        clock.move(minutes=2)
        assert worker.work_once()


def test_answer_that_is_fetched_and_sent_at_once_is_taken_once(
    library: Library, job: Job, clock: ManualClock
) -> None:
    def asked() -> ParsedText:
        assert deliver(library, parsed(job)) == "taken"
        return ParsedText(markdown=TEXT, parser_version="api-v1")

    _asking(library, clock, asked)
    assert statuses(library, job)[2:].count("parsed") == 1
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE


@pytest.mark.parametrize("error", [ParserError, RetryableParserError])
def test_worker_that_asks_in_vain_cannot_undo_an_answer_that_came_meanwhile(
    library: Library, job: Job, clock: ManualClock, error: type[ParserError]
) -> None:
    def asked() -> NoReturn:
        assert deliver(library, parsed(job)) == "taken"
        raise error("there is no such job")

    _asking(library, clock, asked)
    held = now_of(library, job)
    assert (held.status, held.last_error) == (JobStatus.PARSED, None)


def test_answer_that_came_while_a_worker_asked_is_worked_on_at_once(
    library: Library, job: Job, clock: ManualClock
) -> None:
    def asked() -> None:
        assert deliver(library, parsed(job)) == "taken"

    _asking(library, clock, asked)
    work(library)
    done = now_of(library, job)
    assert (done.status, done.takeovers) == (JobStatus.COMPLETE, 0)
