"""The pages of uploads: files are sent, and followed until they can be searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

import anyio
import anyio.to_thread
from fastapi import APIRouter, Form, Query, Request
from sqlalchemy import Connection, select
from starlette.responses import JSONResponse, RedirectResponse, Response

from fonds import ids
from fonds.api.dependencies import VALID_FOR, desk_of, unknown_job
from fonds.api.events import NewEvents, event, streamed
from fonds.api.problems import ProblemError, told
from fonds.api.schemas import UUID_PATTERN, UploadId
from fonds.errors import FondsError
from fonds.stores.tables import upload_jobs
from fonds.uploads.files import FORMATS
from fonds.uploads.intake import retry_upload
from fonds.uploads.jobs import Job, JobEvent, events_of, job_of, page_of_jobs
from fonds.uploads.states import ACTIVE, FAILURES, MOVES, JobStatus
from fonds.uploads.users import Caller
from fonds.web.rendering import Visitor, known_visitor, page, require_own_form, templates
from fonds.web.upload_form import FileOutcome, take_files

SEND: Final = "/upload/files"
"""Where forms send files; the edge lets large bodies through there."""
ON_A_PAGE: Final = 20
MOST_MOVES: Final = 100
"""Of a job that was sent back again and again, the last ones."""
COMES: Final = VALID_FOR
"""A file that was announced longer ago does not come: its address is good for nothing."""
PATIENCE: Final = timedelta(seconds=30)
"""A worker takes a job up sooner; so long do leases last of one that was killed."""

_LONGEST_FIELD: Final = 2000
_WAY: Final = tuple(status for status in MOVES if status not in FAILURES)
_DONE: Final = {
    JobStatus.CHUNKING: ("chunks_done", "chunks_total"),
    JobStatus.EMBEDDING_QUEUED: ("embeds_done", "embeds_total"),
    JobStatus.EMBEDDING_IN_PROGRESS: ("embeds_done", "embeds_total"),
}
_BY: Final = {
    "user": "you",
    "admin": "an operator",
    "service": "a service",
    "webhook": "LlamaParse",
}

_FormKey = Annotated[str, Form(max_length=_LONGEST_FIELD)]
_Before = Annotated[str | None, Query(pattern=UUID_PATTERN)]

router: Final = APIRouter()


# What is shown ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A job as pages show it."""

    job: Job
    now: datetime

    @property
    def state(self) -> str:
        """Where it stands; an upload that is announced is `coming`, until nobody awaits it."""
        is_coming = self.job.status is JobStatus.UPLOADED and self.now - self.job.updated_at < COMES
        return "coming" if is_coming else self.job.status.value

    @property
    def is_under_way(self) -> bool:
        """Whether there will be more to see without anybody doing anything."""
        return self.job.status in ACTIVE or self.state == "coming"

    @property
    def can_be_retried(self) -> bool:
        """Whether the same file may fare better; one that never came must be sent again."""
        return self.job.status in FAILURES and self.job.arrived_at is not None

    @property
    def document_id(self) -> str | None:
        """The document that came of it."""
        if self.job.status is not JobStatus.COMPLETE:
            return None
        return ids.upload_id(self.job.document_id)

    @property
    def counted(self) -> tuple[int, int] | None:
        """How many passages are done, and of how many."""
        names, progress = _DONE.get(self.job.status), self.job.progress or {}
        if names is None or not progress.get(names[1]):
            return None
        return progress.get(names[0], 0), progress[names[1]]

    @property
    def share(self) -> int:
        """How much of the way is behind it, in percent."""
        if self.job.status not in _WAY:
            return 0
        within = self.counted[0] / self.counted[1] if self.counted else 0.0
        return int(100 * (_WAY.index(self.job.status) + within) / (len(_WAY) - 1))


@router.get("/upload")
def show_uploads(request: Request, before: _Before = None) -> Response:
    """The form to send files with, and the files that were sent, the newest first."""
    return _uploads_page(request, known_visitor(request), before)


def _uploads_page(
    request: Request,
    visitor: Visitor,
    before: str | None = None,
    refused: Sequence[FileOutcome] = (),
) -> Response:
    desk = desk_of(request)
    with desk.library.database.read() as connection:
        jobs = _listed(connection, _known(visitor).user_id, before)
        is_stuck = _is_stuck(connection, jobs, desk.now())
    shown = jobs[:ON_A_PAGE]
    return page(
        request,
        "upload.html",
        visitor=visitor,
        status=HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK,
        refused=refused,
        cards=[Card(job=job, now=desk.now()) for job in shown],
        following=shown[-1].document_id if len(jobs) > ON_A_PAGE else None,
        before=before,
        is_stuck=is_stuck,
        send=SEND,
        most=desk.library.settings.max_file_mib * 1024 * 1024,
        endings=",".join(ending for each in FORMATS.values() for ending in each.endings),
    )


@router.get("/upload/events")
async def follow_uploads(request: Request, before: _Before = None) -> Response:
    """The same list as it changes, until nothing in it is under way."""

    def look() -> _UploadRow:
        desk, visitor = desk_of(request), known_visitor(request)
        with desk.library.database.read() as connection:
            jobs = _listed(connection, _known(visitor).user_id, before)[:ON_A_PAGE]
            is_stuck = _is_stuck(connection, jobs, desk.now())
        cards = [Card(job=job, now=desk.now()) for job in jobs]
        # The oldest first: the page puts what it does not know yet on top.
        parts = {_element(each.job): _part("card", each) for each in reversed(cards)}
        return _UploadRow(
            parts={"stuck": _part("stuck", is_stuck), **parts},
            is_over=not any(each.is_under_way for each in cards),
        )

    return await _followed(request, look)


@router.get("/upload/{document_id}")
def show_upload(request: Request, document_id: UploadId) -> Response:
    """One file, and all that happened to it."""
    visitor = known_visitor(request)
    card, moves, is_stuck = _one(request, visitor, document_id)
    return page(
        request, "upload_one.html", visitor=visitor, card=card, moves=moves, is_stuck=is_stuck
    )


@router.get("/upload/{document_id}/events")
async def follow_upload(request: Request, document_id: UploadId) -> Response:
    """The same as it happens, until it has ended."""

    def look() -> _UploadRow:
        card, moves, is_stuck = _one(request, known_visitor(request), document_id)
        parts = {
            "state": _part("state", card),
            "moves": _part("timeline", moves),
            "stuck": _part("stuck", is_stuck),
        }
        return _UploadRow(parts=parts, is_over=not card.is_under_way)

    return await _followed(request, look)


@router.post("/upload/{document_id}/retry")
def retry(request: Request, document_id: UploadId, form_key: _FormKey) -> Response:
    """Send a file that failed back to its last good stage."""
    visitor, desk = known_visitor(request), desk_of(request)
    require_own_form(request, visitor, form_key)
    with desk.library.database.read() as connection:
        card = Card(job=_own_job(connection, visitor, document_id), now=desk.now())
    if card.can_be_retried:
        retry_upload(desk.context, card.job, by=f"user:{card.job.user_id}")
    elif card.job.status in FAILURES:
        raise ProblemError(409, "not-there", "its file never came: send it again")
    return RedirectResponse(f"/upload/{document_id}", HTTPStatus.SEE_OTHER)


def _one(
    request: Request, visitor: Visitor, document_id: str
) -> tuple[Card, list[dict[str, Any]], bool]:
    desk = desk_of(request)
    with desk.library.database.read() as connection:
        job = _own_job(connection, visitor, document_id)
        moves = events_of(connection, job.job_id)[-MOST_MOVES:]
        is_stuck = _is_stuck(connection, [job], desk.now())
    return Card(job=job, now=desk.now()), [_told_move(move) for move in moves], is_stuck


def _told_move(move: JobEvent) -> dict[str, Any]:
    # A worker calls itself by machine and process, which are nobody's business.
    by = _BY.get(move.by.partition(":")[0], "a worker")
    return {"to": move.to_status, "at": move.at, "by": by, "why": move.why}


def _known(visitor: Visitor) -> Caller:
    assert visitor.caller is not None
    return visitor.caller


def _own_job(connection: Connection, visitor: Visitor, document_id: str) -> Job:
    """Also those who run the library see here what they sent themselves."""
    job = job_of(connection, UUID(document_id), user_id=_known(visitor).user_id)
    if job is None:
        raise unknown_job()
    return job


def _listed(connection: Connection, user_id: UUID, before: str | None) -> list[Job]:
    """One more than fit on a page, to know whether there is another page."""
    last = None
    if before is not None:
        job = job_of(connection, UUID(before), user_id=user_id)
        if job is None:
            raise unknown_job()
        last = (job.created_at, job.job_id)
    return page_of_jobs(connection, user_id=user_id, before=last, limit=ON_A_PAGE + 1)


def _is_stuck(connection: Connection, jobs: Sequence[Job], now: datetime) -> bool:
    """Whether jobs wait for long, and nobody anywhere works on any: workers leave no other sign."""
    if not any(_waits(job, now) for job in jobs):
        return False
    row = upload_jobs.c
    working = select(row.job_id).where(
        row.status.in_([status.value for status in ACTIVE]), row.lease_until > now
    )
    return connection.scalar(working.limit(1)) is None


def _waits(job: Job, now: datetime) -> bool:
    since = max(job.updated_at, job.next_attempt_at or job.updated_at)
    return job.status in ACTIVE and now - since > PATIENCE


def _element(job: Job) -> str:
    return f"job-{job.document_id}"


def _part(macro: str, shown: Any) -> str:
    """A part of a page, as the page itself would have it."""
    module: Any = templates().get_template("upload_parts.html").module
    return str(getattr(module, macro)(shown)).strip()


# Sending ----------------------------------------------------------------------------------


@router.post(SEND)
async def send_files(request: Request) -> Response:
    """Take in the files of a form."""
    try:
        visitor = await anyio.to_thread.run_sync(known_visitor, request)
        check = partial(require_own_form, request, visitor)
        outcomes = await take_files(request, _known(visitor), check)
    except (FondsError, ProblemError) as error:
        if _wants_data(request) or (known := told(error)) is None:
            raise
        show = partial(page, request, "problem.html", status=known.status, headers=known.headers)
        phrase = HTTPStatus(known.status).phrase
        return await anyio.to_thread.run_sync(partial(show, told=known, phrase=phrase))
    if _wants_data(request):
        return JSONResponse({"files": [_answer(each, desk_of(request).now()) for each in outcomes]})
    refused = [each for each in outcomes if each.problem]
    if refused:
        return await anyio.to_thread.run_sync(_with_refused, request, refused)
    only = outcomes[0].job if len(outcomes) == 1 else None
    return RedirectResponse(
        f"/upload/{only.document_id}" if only else "/upload", HTTPStatus.SEE_OTHER
    )


def _with_refused(request: Request, refused: Sequence[FileOutcome]) -> Response:
    # The first file may have made a user of whoever sits at this machine.
    return _uploads_page(request, known_visitor(request), refused=refused)


def _wants_data(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def _answer(outcome: FileOutcome, now: datetime) -> dict[str, Any]:
    """For the script of the page."""
    job = outcome.job
    return {
        "name": outcome.name,
        "problem": outcome.problem,
        "id": _element(job) if job else None,
        "html": _part("card", Card(job=job, now=now)) if job else None,
    }


# Following --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _UploadRow:
    parts: Mapping[str, str]
    """HTML by the id of the element that it takes the place of."""
    is_over: bool


async def _followed(request: Request, look: Callable[[], _UploadRow]) -> Response:
    shown: dict[str, str] = {}

    def news() -> NewEvents:
        seen = look()
        new = {name: html for name, html in seen.parts.items() if shown.get(name) != html}
        shown.update(new)
        events = [event("show", {"id": name, "html": html}) for name, html in new.items()]
        if seen.is_over:
            events.append(event("end", {}))
        return NewEvents(events=events, is_over=seen.is_over)

    return await streamed(request, news)
