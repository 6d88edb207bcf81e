"""Pages of uploads: sending files, and following them until they can be searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

import anyio
import anyio.to_thread
from fastapi import APIRouter, Form, Query, Request
from sqlalchemy import Connection
from starlette.responses import JSONResponse, RedirectResponse, Response

from fonds import ids
from fonds.api.dependencies import VALID_FOR, app_state, unknown_job
from fonds.api.events import NewEvents, event, streamed
from fonds.api.problems import ProblemError, error_text
from fonds.api.schemas import UUID_PATTERN, UploadId
from fonds.errors import FondsError
from fonds.results import Reading
from fonds.uploads.deletion import delete_upload
from fonds.uploads.files import FORMATS
from fonds.uploads.intake import retry_upload
from fonds.uploads.jobs import Job, JobEvent, events_of, job_of, page_of_jobs
from fonds.uploads.live_workers import is_stuck
from fonds.uploads.states import ACTIVE, FAILURES, MOVES, JobStatus
from fonds.uploads.users import Caller
from fonds.web.rendering import Viewer, page, require_own_form, require_viewer, templates
from fonds.web.upload_form import FileOutcome, take_files

SEND: Final = "/upload/files"
"""The path to which forms send files; large bodies are allowed there."""
PAGE_SIZE: Final = 20
MAX_MOVES: Final = 100
"""The latest status changes of a job on its page."""
UPLOAD_TIMEOUT: Final = VALID_FOR
"""An announced file cannot arrive later, since its address has expired."""

_MAX_FIELD_LENGTH: Final = 2000
_STEPS: Final = tuple(status for status in MOVES if status not in FAILURES)
_PROGRESS_KEYS: Final = {
    JobStatus.CHUNKING: ("chunks_done", "chunks_total"),
    JobStatus.EMBEDDING_QUEUED: ("embeds_done", "embeds_total"),
    JobStatus.EMBEDDING_IN_PROGRESS: ("embeds_done", "embeds_total"),
}
_ACTORS: Final = {
    "user": "you",
    "admin": "an operator",
    "service": "a service",
    "webhook": "LlamaParse",
}

_FormKey = Annotated[str, Form(max_length=_MAX_FIELD_LENGTH)]
_Before = Annotated[str | None, Query(pattern=UUID_PATTERN)]

router: Final = APIRouter()


# Pages -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A job as displayed on pages."""

    job: Job
    now: datetime

    @property
    def state(self) -> str:
        """The displayed status; an announced file is `coming` until its address expires."""
        is_coming = (
            self.job.status is JobStatus.UPLOADED
            and self.now - self.job.updated_at < UPLOAD_TIMEOUT
        )
        return "coming" if is_coming else self.job.status.value

    @property
    def is_active(self) -> bool:
        """Whether the status will change without an action of the user."""
        return self.job.status in ACTIVE or self.state == "coming"

    @property
    def can_be_retried(self) -> bool:
        """Whether a retry is possible; a file that never arrived must be sent again."""
        return self.job.status in FAILURES and self.job.arrived_at is not None

    @property
    def reading(self) -> Reading | None:
        """The counts and warnings of reading the file; None in a list."""
        return Reading.of(self.job.parsed_map)

    @property
    def document_id(self) -> str | None:
        """The id of the finished document."""
        if self.job.status is not JobStatus.COMPLETE:
            return None
        return ids.upload_id(self.job.document_id)

    @property
    def passage_counts(self) -> tuple[int, int] | None:
        """Passages done and in total."""
        names, progress = _PROGRESS_KEYS.get(self.job.status), self.job.progress or {}
        if names is None or not progress.get(names[1]):
            return None
        return progress.get(names[0], 0), progress[names[1]]

    @property
    def progress(self) -> int:
        """The progress in percent."""
        if self.job.status not in _STEPS:
            return 0
        within = self.passage_counts[0] / self.passage_counts[1] if self.passage_counts else 0.0
        return int(100 * (_STEPS.index(self.job.status) + within) / (len(_STEPS) - 1))


@router.get("/upload")
def show_uploads(request: Request, before: _Before = None) -> Response:
    """The form for sending files, and the files already sent, newest first."""
    return _uploads_page(request, require_viewer(request), before)


def _uploads_page(
    request: Request,
    viewer: Viewer,
    before: str | None = None,
    rejected: Sequence[FileOutcome] = (),
) -> Response:
    app = app_state(request)
    with app.library.database.read() as connection:
        jobs = _jobs_before(connection, _caller(viewer).user_id, before)
        stuck = is_stuck(connection, jobs, app.now())
    visible = jobs[:PAGE_SIZE]
    return page(
        request,
        "upload.html",
        viewer=viewer,
        status=HTTPStatus.UNPROCESSABLE_ENTITY if rejected else HTTPStatus.OK,
        rejected=rejected,
        cards=[Card(job=job, now=app.now()) for job in visible],
        following=visible[-1].document_id if len(jobs) > PAGE_SIZE else None,
        before=before,
        is_stuck=stuck,
        send=SEND,
        max_bytes=app.library.settings.max_file_mib * 1024 * 1024,
        endings=",".join(ending for each in FORMATS.values() for ending in each.endings),
    )


@router.get("/upload/events")
async def follow_uploads(request: Request, before: _Before = None) -> Response:
    """Stream changes of the list until all jobs in it have ended."""

    def render() -> _PageParts:
        app, viewer = app_state(request), require_viewer(request)
        with app.library.database.read() as connection:
            jobs = _jobs_before(connection, _caller(viewer).user_id, before)[:PAGE_SIZE]
            stuck = is_stuck(connection, jobs, app.now())
        cards = [Card(job=job, now=app.now()) for job in jobs]
        # Oldest first: the page inserts new jobs at the top.
        parts = {_element_id(each.job): _render_part("card", each) for each in reversed(cards)}
        return _PageParts(
            parts={"stuck": _render_part("stuck", stuck), **parts},
            is_over=not any(each.is_active for each in cards),
        )

    return await _stream_parts(request, render)


@router.get("/upload/{document_id}")
def show_upload(request: Request, document_id: UploadId) -> Response:
    """A file and its history."""
    viewer = require_viewer(request)
    card, moves, stuck = _upload_details(request, viewer, document_id)
    return page(request, "upload_one.html", viewer=viewer, card=card, moves=moves, is_stuck=stuck)


@router.get("/upload/{document_id}/events")
async def follow_upload(request: Request, document_id: UploadId) -> Response:
    """Stream changes of a job until it ends."""

    def render() -> _PageParts:
        card, moves, stuck = _upload_details(request, require_viewer(request), document_id)
        parts = {
            "state": _render_part("state", card),
            "moves": _render_part("timeline", moves),
            "stuck": _render_part("stuck", stuck),
        }
        return _PageParts(parts=parts, is_over=not card.is_active)

    return await _stream_parts(request, render)


@router.post("/upload/{document_id}/retry")
def retry(request: Request, document_id: UploadId, form_key: _FormKey) -> Response:
    """Retry a failed file from its last successful stage."""
    viewer, app = require_viewer(request), app_state(request)
    require_own_form(request, viewer, form_key)
    with app.library.database.read() as connection:
        card = Card(job=_own_job(connection, viewer, document_id), now=app.now())
    if card.can_be_retried:
        retry_upload(app.context, card.job, by=f"user:{card.job.user_id}")
    elif card.job.status in FAILURES:
        raise ProblemError(409, "not-there", "the file of this upload never arrived: send it again")
    return RedirectResponse(f"/upload/{document_id}", HTTPStatus.SEE_OTHER)


@router.post("/upload/{document_id}/delete")
def delete(request: Request, document_id: UploadId, form_key: _FormKey) -> Response:
    """Delete a file of the viewer with all that was made of it."""
    viewer, app = require_viewer(request), app_state(request)
    require_own_form(request, viewer, form_key)
    user_id = _caller(viewer).user_id
    if not delete_upload(app.context, user_id, UUID(document_id), by=f"user:{user_id}"):
        raise unknown_job()
    return RedirectResponse("/upload", HTTPStatus.SEE_OTHER)


def _upload_details(
    request: Request, viewer: Viewer, document_id: str
) -> tuple[Card, list[dict[str, Any]], bool]:
    app = app_state(request)
    with app.library.database.read() as connection:
        job = _own_job(connection, viewer, document_id)
        moves = events_of(connection, job.job_id)[-MAX_MOVES:]
        stuck = is_stuck(connection, [job], app.now())
    return Card(job=job, now=app.now()), [_move(move) for move in moves], stuck


def _move(move: JobEvent) -> dict[str, Any]:
    # The name of a worker contains machine and process, which are not public.
    by = _ACTORS.get(move.by.partition(":")[0], "a worker")
    return {"to": move.to_status, "at": move.at, "by": by, "why": move.why}


def _caller(viewer: Viewer) -> Caller:
    assert viewer.caller is not None
    return viewer.caller


def _own_job(connection: Connection, viewer: Viewer, document_id: str) -> Job:
    """The job of the viewer; operators, too, only see their own here."""
    job = job_of(connection, UUID(document_id), user_id=_caller(viewer).user_id)
    if job is None:
        raise unknown_job()
    return job


def _jobs_before(connection: Connection, user_id: UUID, before: str | None) -> list[Job]:
    """The jobs of a page, and one more if there is another page."""
    last = None
    if before is not None:
        job = job_of(connection, UUID(before), user_id=user_id)
        if job is None:
            raise unknown_job()
        last = (job.created_at, job.job_id)
    return page_of_jobs(connection, user_id=user_id, before=last, limit=PAGE_SIZE + 1)


def _element_id(job: Job) -> str:
    return f"job-{job.document_id}"


def _render_part(macro: str, value: Any) -> str:
    """A part of a page, rendered by the macro that the page uses."""
    module: Any = templates().get_template("upload_parts.html").module
    return str(getattr(module, macro)(value)).strip()


# Sending ----------------------------------------------------------------------------------


@router.post(SEND)
async def send_files(request: Request) -> Response:
    """Receive the files of a form."""
    try:
        viewer = await anyio.to_thread.run_sync(require_viewer, request)
        check = partial(require_own_form, request, viewer)
        outcomes = await take_files(request, _caller(viewer), check)
    except (FondsError, ProblemError) as error:
        if _accepts_json(request) or (text := error_text(error)) is None:
            raise
        show = partial(page, request, "problem.html", status=text.status, headers=text.headers)
        phrase = HTTPStatus(text.status).phrase
        return await anyio.to_thread.run_sync(partial(show, error=text, phrase=phrase))
    if _accepts_json(request):
        return JSONResponse(
            {"files": [_outcome_json(each, app_state(request).now()) for each in outcomes]}
        )
    rejected = [each for each in outcomes if each.problem]
    if rejected:
        return await anyio.to_thread.run_sync(_with_rejected, request, rejected)
    only = outcomes[0].job if len(outcomes) == 1 else None
    return RedirectResponse(
        f"/upload/{only.document_id}" if only else "/upload", HTTPStatus.SEE_OTHER
    )


def _with_rejected(request: Request, rejected: Sequence[FileOutcome]) -> Response:
    # The first file may have created the local user.
    return _uploads_page(request, require_viewer(request), rejected=rejected)


def _accepts_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def _outcome_json(outcome: FileOutcome, now: datetime) -> dict[str, Any]:
    """The outcome for the script of the page."""
    job = outcome.job
    return {
        "name": outcome.name,
        "problem": outcome.problem,
        "id": _element_id(job) if job else None,
        "html": _render_part("card", Card(job=job, now=now)) if job else None,
    }


# Following --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _PageParts:
    parts: Mapping[str, str]
    """HTML by the id of the element that it replaces."""
    is_over: bool


async def _stream_parts(request: Request, render: Callable[[], _PageParts]) -> Response:
    sent: dict[str, str] = {}

    def poll() -> NewEvents:
        current = render()
        new = {name: html for name, html in current.parts.items() if sent.get(name) != html}
        sent.update(new)
        events = [event("show", {"id": name, "html": html}) for name, html in new.items()]
        if current.is_over:
            events.append(event("end", {}))
        return NewEvents(events=events, is_over=current.is_over)

    return await streamed(request, lambda: _caller(require_viewer(request)).user_id, poll)
