"""The moves of a job as they happen, as server-sent events.

Server-sent events: something is looked at again and again, and what is new is told.

A run as it goes on, as server-sent events: its counts and its log.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import anyio
import anyio.to_thread
from fastapi import APIRouter, Header, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response, StreamingResponse

from fonds.api.admin import known_run, looking
from fonds.api.admin_schemas import AT, LAST_ID, RunId, plain, run_answer
from fonds.api.dependencies import AppState, desk_of
from fonds.api.jobs import job_answer, shown_job
from fonds.api.problems import ProblemError
from fonds.api.schemas import BEARER, BEARER_OR_NOBODY, UploadId, problems
from fonds.runs import overview
from fonds.runs.overview import RunInsight
from fonds.runs.state import RunStatus
from fonds.stores.columns import format_timestamp
from fonds.uploads.jobs import JobEvent, events_of

POLL: Final = 0.5
"""Seconds between two looks."""
KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which proxies might think that nobody is there."""
LONGEST: Final = 3600.0
"""Seconds; a client that is still there then asks again, from where it was."""
AT_ONCE: Final = 4
"""Threads that look for all who watch, so that others find theirs free."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvents:
    """What one look showed that was not told before."""

    events: Sequence[str]
    is_over: bool
    """Whether nothing can follow."""
    is_new: bool = True
    """Whether there is anything in it for who has seen all but how it ended."""
    is_more: bool = False
    """Whether the next look need not wait."""


Look = Callable[[], NewEvents]
"""Looks, and remembers what it has told. Raises ProblemError for whom it is no more."""


def event(name: str, data: Any, *, number: int | None = None) -> str:
    """An event; a browser that asks again sends the last number that it was told."""
    told = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return (f"id: {number}\n" if number is not None else "") + f"event: {name}\ndata: {told}\n\n"


async def streamed(request: Request, look: Look, *, is_again: bool = False) -> Response:
    """What a look shows, and what changes from then on; 204 for who comes again for nothing."""
    turns = _turns(request)
    first = await anyio.to_thread.run_sync(look, limiter=turns)
    if is_again and first.is_over and not first.is_new:
        # A browser asks again whenever a stream ends; only this answer keeps it from doing so.
        return Response(status_code=204)
    return StreamingResponse(
        _stream(first, look, turns),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _stream(news: NewEvents, look: Look, turns: anyio.CapacityLimiter) -> AsyncIterator[str]:
    begun = spoken = anyio.current_time()
    while True:
        for each in news.events:
            spoken = anyio.current_time()
            yield each
        if news.is_over or anyio.current_time() - begun > LONGEST:
            return
        await anyio.sleep(0 if news.is_more else POLL)
        if anyio.current_time() - spoken > KEEP_ALIVE:
            spoken = anyio.current_time()
            yield ": still here\n\n"
        try:
            news = await anyio.to_thread.run_sync(look, limiter=turns)
        except ProblemError:
            return  # the token was revoked, or what was watched is gone
        except SQLAlchemyError:
            news = NewEvents(events=(), is_over=False)  # the database is away; it comes back


def _turns(request: Request) -> anyio.CapacityLimiter:
    """Of all who watch; the loop that it belongs to runs by now."""
    state = request.app.state
    if not hasattr(state, "turns"):
        state.turns = anyio.CapacityLimiter(AT_ONCE)
    turns: anyio.CapacityLimiter = state.turns
    return turns


_LAST_ID: Final = 2**31 - 1
_NAMED: Final = frozenset({"user", "admin", "service", "webhook"})

_JOB_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "Of a move; send the last as Last-Event-ID."},
        "event": {"enum": ["move", "progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

job_router: Final = APIRouter(tags=["jobs"])


@job_router.get(
    "/jobs/{document_id}/events",
    openapi_extra=BEARER,
    responses={
        200: {
            "description": "Events `move`, `progress` and, as the last one, `end`.",
            "content": {"text/event-stream": {"schema": _JOB_EVENT}},
        },
        204: {"description": "The job has ended, and you have seen all of it."},
        **problems(401, 404, 422, 503),
    },
)
async def follow_job(
    request: Request,
    document_id: UploadId,
    last_event_id: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            pattern=r"^[0-9]{0,18}$",
            description="The last move that was seen; the stream goes on behind it.",
        ),
    ] = None,
) -> Response:
    """Follow an upload until it has ended."""
    after = min(int(last_event_id or 0), _LAST_ID)
    look = _JobMoves(desk_of(request), request, document_id, after)
    return await streamed(request, look, is_again=after > 0)


class _JobMoves:
    """The token is looked up each time: one that is revoked sees nothing more."""

    def __init__(self, desk: AppState, request: Request, document_id: str, after: int) -> None:
        self._desk, self._request = desk, request
        self._document_id = document_id
        self._after = after
        self._shown: dict[str, Any] | None = None

    def __call__(self) -> NewEvents:
        with self._desk.library.database.read() as connection:
            caller = self._desk.known_caller(self._request, connection)
            row = shown_job(connection, caller, self._document_id)
            moves = events_of(connection, row.job_id, after=self._after)
        job = job_answer(row)
        events = [event("move", _move(move), number=move.id) for move in moves]
        if moves or _progress(job) != self._shown:
            self._shown = _progress(job)
            events.append(event("progress", self._shown))
        if job["ended"]:
            events.append(event("end", job))
        self._after = moves[-1].id if moves else self._after
        return NewEvents(events=events, is_over=job["ended"], is_new=bool(moves))


def _move(moved: JobEvent) -> dict[str, Any]:
    kind = moved.by.partition(":")[0]
    return {
        "from": moved.from_status,
        "to": moved.to_status,
        "at": format_timestamp(moved.at),
        # A worker calls itself by machine and process, which are nobody's business.
        "by": moved.by if kind in _NAMED else "worker",
        "why": moved.why,
    }


def _progress(job: dict[str, Any]) -> dict[str, Any]:
    names = ("status", "progress", "retry_count", "next_attempt_at", "last_error")
    return {name: job[name] for name in names}


LINES: Final = 500
"""Of the log, in one look."""

_RUN_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "Of a line; send the last as Last-Event-ID."},
        "event": {"enum": ["log", "counts", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

run_router: Final = APIRouter(prefix=AT, tags=["admin"])


@run_router.get(
    "/runs/{run_id}/logs/stream",
    openapi_extra=BEARER_OR_NOBODY,
    responses={
        200: {
            "description": "Events `log`, `counts` and, as the last one, `end`.",
            "content": {"text/event-stream": {"schema": _RUN_EVENT}},
        },
        204: {"description": "The run has ended, and you have seen all of it."},
        **problems(401, 403, 404, 422, 503),
    },
)
async def follow_run(
    request: Request,
    run_id: RunId,
    last_event_id: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            pattern=r"^[0-9]{0,18}$",
            description="The last line that was seen; the stream goes on behind it.",
        ),
    ] = None,
) -> Response:
    """Follow a run until it has ended."""
    after = min(int(last_event_id or 0), LAST_ID)
    return await streamed(request, _RunLog(request, run_id, after), is_again=bool(last_event_id))


class _RunLog:
    """The token is looked up each time: one that is revoked sees nothing more."""

    def __init__(self, request: Request, run_id: str, after: int) -> None:
        self._request = request
        self._run_id = run_id
        self._after = after
        self._shown: dict[str, Any] | None = None

    def __call__(self) -> NewEvents:
        with looking(self._request) as connection:
            # In this order: whatever a run logs before it ends is there when it has ended.
            run = known_run(connection, self._run_id)
            lines = overview.logs(connection, run.id, after=self._after, limit=LINES)
        events = [event("log", plain(line), number=line.id) for line in lines]
        self._after = lines[-1].id if lines else self._after
        if (counts := _counts(run)) != self._shown:
            self._shown = counts
            events.append(event("counts", counts))
        is_more = len(lines) == LINES
        is_over = run.status is not RunStatus.RUNNING and not is_more
        if is_over:
            # A number, so that a browser that asks again says what it has seen: all.
            told = run_answer(run, desk_of(self._request).now())
            events.append(event("end", told, number=self._after))
        return NewEvents(events=events, is_over=is_over, is_new=bool(lines), is_more=is_more)


def _counts(run: RunInsight) -> dict[str, Any]:
    return {"status": run.status, "counts": plain(run.counts)}
