"""Server-sent events: the status changes of a job, and the counts and log of a run.

A poll function reads the database repeatedly and returns what is new.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fonds.api.admin import operator_connection, run_or_404
from fonds.api.admin_schemas import AT, LAST_ID, RunId, run_json, to_json
from fonds.api.dependencies import AppState, app_state
from fonds.api.jobs import job_json, job_notice, visible_job
from fonds.api.problems import RETRY_AFTER, ProblemError
from fonds.api.schemas import BEARER, LastEventId, UploadId, problems
from fonds.errors import DatabaseUnavailableError
from fonds.runs import overview
from fonds.runs.overview import RunInsight
from fonds.runs.state import RunStatus
from fonds.stores.columns import format_timestamp
from fonds.uploads.jobs import JobEvent, events_of

POLL_SECONDS: Final = 0.5
KEEP_ALIVE: Final = 15.0
"""Seconds without an event after which proxies might close the connection."""
MAX_SECONDS: Final = 3600.0
"""The length of a stream; clients reconnect and continue after the last event."""
MAX_STREAMS: Final = 20
"""Streams that a user may have open at a server."""
POLL_CONCURRENCY: Final = 4
"""Threads that poll for all streams, so that some remain for other requests."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvents:
    """The events of one poll that were not sent before."""

    events: Sequence[str]
    is_over: bool
    """Whether no event can follow."""
    is_new: bool = True
    """Whether a client that reconnects has missed more than the end."""
    is_more: bool = False
    """Whether more events are ready."""


Poll = Callable[[], NewEvents]
"""Returns new events, and remembers them. Raises ProblemError once access is denied."""


def event(name: str, data: Any, *, number: int | None = None) -> str:
    """One event; browsers that reconnect send the last number they received."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return (f"id: {number}\n" if number is not None else "") + f"event: {name}\ndata: {text}\n\n"


async def streamed(
    request: Request, find_user: Callable[[], UUID], poll: Poll, *, is_reconnect: bool = False
) -> Response:
    """Stream the events of a poll function; 204 for a client that has already seen all.

    429 if the user follows too much at the same time already.
    """
    slots = _poll_slots(request)

    def begin() -> tuple[UUID, NewEvents]:
        return find_user(), poll()

    user_id, first = await anyio.to_thread.run_sync(begin, limiter=slots)
    if is_reconnect and first.is_over and not first.is_new:
        # Browsers reconnect whenever a stream ends; only this status stops them.
        return Response(status_code=204)
    release = _open_streams(request).take(user_id)
    return _EventStream(_stream(first, poll, slots), release)


class _OpenStreams:
    """The streams that are open, by user. It belongs to one event loop."""

    def __init__(self) -> None:
        self._open: Counter[UUID] = Counter()

    def take(self, user_id: UUID) -> Callable[[], None]:
        """Count one more; returns what ends it."""
        if self._open[user_id] >= MAX_STREAMS:
            raise ProblemError(
                429,
                "too-many-streams",
                f"you follow {MAX_STREAMS} jobs or runs already: close some of these pages or "
                "streams, or ask for the status now and then",
                headers=RETRY_AFTER,
            )
        self._open[user_id] += 1

        def release() -> None:
            self._open[user_id] -= 1
            self._open += Counter()  # forgets users without a stream

        return release


class _EventStream(StreamingResponse):
    """A stream that is counted until it ends, however it ends."""

    def __init__(self, content: AsyncIterator[str], release: Callable[[], None]) -> None:
        headers = {"X-Accel-Buffering": "no"}
        super().__init__(content, media_type="text/event-stream", headers=headers)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


async def _stream(news: NewEvents, poll: Poll, slots: anyio.CapacityLimiter) -> AsyncIterator[str]:
    started = last_sent = anyio.current_time()
    while True:
        for each in news.events:
            last_sent = anyio.current_time()
            yield each
        if news.is_over or anyio.current_time() - started > MAX_SECONDS:
            return
        await anyio.sleep(0 if news.is_more else POLL_SECONDS)
        if anyio.current_time() - last_sent > KEEP_ALIVE:
            last_sent = anyio.current_time()
            yield ": still here\n\n"
        try:
            news = await anyio.to_thread.run_sync(poll, limiter=slots)
        except ProblemError:
            return  # the token was revoked, or the job or run deleted
        except (SQLAlchemyError, DatabaseUnavailableError):
            news = NewEvents(events=(), is_over=False)  # the database is unavailable; poll again


def _open_streams(request: Request) -> _OpenStreams:
    state = request.app.state
    if not hasattr(state, "open_streams"):
        state.open_streams = _OpenStreams()
    streams: _OpenStreams = state.open_streams
    return streams


def _poll_slots(request: Request) -> anyio.CapacityLimiter:
    """Made by the first request, since a limiter belongs to the running event loop."""
    state = request.app.state
    if not hasattr(state, "poll_slots"):
        state.poll_slots = anyio.CapacityLimiter(POLL_CONCURRENCY)
    slots: anyio.CapacityLimiter = state.poll_slots
    return slots


_PUBLIC_ACTORS: Final = frozenset({"user", "admin", "service", "webhook"})

_JOB_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {
            "type": "string",
            "description": "Of a move; to continue, send the last one as Last-Event-ID.",
        },
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
            "description": "Events `move`, `progress`, and finally `end`.",
            "content": {"text/event-stream": {"schema": _JOB_EVENT}},
        },
        204: {"description": "The job has ended, and you have received all events."},
        **problems(401, 404, 422, 429, 503),
    },
)
async def follow_job(
    request: Request,
    document_id: UploadId,
    last_event_id: LastEventId = None,
) -> Response:
    """Follow an upload until it ends."""
    after = min(int(last_event_id or 0), LAST_ID)
    app = app_state(request)
    poll = _JobPoll(app, request, document_id, after)
    return await streamed(
        request, lambda: app.caller(request).user_id, poll, is_reconnect=after > 0
    )


class _JobPoll:
    """Reads a job; the token is checked each time, so that revoking it ends the stream."""

    def __init__(self, app: AppState, request: Request, document_id: str, after: int) -> None:
        self._app, self._request = app, request
        self._document_id = document_id
        self._after = after
        self._last: dict[str, Any] | None = None

    def __call__(self) -> NewEvents:
        with self._app.library.database.read() as connection:
            caller = self._app.require_caller(self._request, connection)
            row = visible_job(connection, caller, self._document_id)
            moves = events_of(connection, row.job_id, after=self._after)
            notice = job_notice(connection, row, self._app.now())
        job = job_json(row, notice=notice)
        events = [event("move", _move(move), number=move.id) for move in moves]
        if moves or _progress(job) != self._last:
            self._last = _progress(job)
            events.append(event("progress", self._last))
        if job["ended"]:
            events.append(event("end", job))
        self._after = moves[-1].id if moves else self._after
        return NewEvents(events=events, is_over=job["ended"], is_new=bool(moves))


def _move(move: JobEvent) -> dict[str, Any]:
    kind = move.by.partition(":")[0]
    return {
        "from": move.from_status,
        "to": move.to_status,
        "at": format_timestamp(move.at),
        # The name of a worker contains machine and process, which are not public.
        "by": move.by if kind in _PUBLIC_ACTORS else "worker",
        "why": move.why,
    }


def _progress(job: dict[str, Any]) -> dict[str, Any]:
    names = ("status", "progress", "retry_count", "next_attempt_at", "last_error", "notice")
    return {name: job[name] for name in names}


BATCH_LINES: Final = 500
"""Lines of the log per poll."""

_RUN_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {
            "type": "string",
            "description": "Of a line; to continue, send the last one as Last-Event-ID.",
        },
        "event": {"enum": ["log", "counts", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

run_router: Final = APIRouter(prefix=AT, tags=["admin"])


@run_router.get(
    "/runs/{run_id}/logs/stream",
    openapi_extra=BEARER,
    responses={
        200: {
            "description": "Events `log`, `counts`, and finally `end`.",
            "content": {"text/event-stream": {"schema": _RUN_EVENT}},
        },
        204: {"description": "The run has ended, and you have received all events."},
        **problems(401, 403, 404, 422, 429, 503),
    },
)
async def follow_run(
    request: Request,
    run_id: RunId,
    last_event_id: LastEventId = None,
) -> Response:
    """Follow a run until it ends."""
    after = min(int(last_event_id or 0), LAST_ID)
    poll = _RunPoll(request, run_id, after)
    return await streamed(
        request, lambda: _operator_id(request), poll, is_reconnect=bool(last_event_id)
    )


def _operator_id(request: Request) -> UUID:
    app = app_state(request)
    with app.library.database.read() as connection:
        return app.require_operator(request, connection).user_id


class _RunPoll:
    """Reads a run; the token is checked each time, so that revoking it ends the stream."""

    def __init__(self, request: Request, run_id: str, after: int) -> None:
        self._request = request
        self._run_id = run_id
        self._after = after
        self._last: dict[str, Any] | None = None

    def __call__(self) -> NewEvents:
        with operator_connection(self._request) as connection:
            # The status first: all lines of a run that has ended are stored by then.
            run = run_or_404(connection, self._run_id)
            lines = overview.logs(connection, run.id, after=self._after, limit=BATCH_LINES)
        events = [event("log", to_json(line), number=line.id) for line in lines]
        self._after = lines[-1].id if lines else self._after
        if (counts := _counts(run)) != self._last:
            self._last = counts
            events.append(event("counts", counts))
        is_more = len(lines) == BATCH_LINES
        is_over = run.status is not RunStatus.RUNNING and not is_more
        if is_over:
            # With a number, so that a browser that reconnects reports that it has seen all.
            final = run_json(run, app_state(self._request).now())
            events.append(event("end", final, number=self._after))
        return NewEvents(events=events, is_over=is_over, is_new=bool(lines), is_more=is_more)


def _counts(run: RunInsight) -> dict[str, Any]:
    return {"status": run.status, "counts": to_json(run.counts)}
