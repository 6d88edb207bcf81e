"""The moves of a job as they happen, as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

import anyio
import anyio.to_thread
from fastapi import APIRouter, Header, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response, StreamingResponse

from fonds.api.answers import BEARER, UploadId, problems
from fonds.api.desk import Desk, desk_of
from fonds.api.jobs import job_answer, shown_job
from fonds.api.problems import ProblemError
from fonds.stores.columns import format_timestamp
from fonds.uploads.jobs import JobEvent, events_of

POLL: Final = 0.5
"""Seconds between two looks at a job."""
KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which proxies might think that nobody is there."""
LONGEST: Final = 3600.0
"""Seconds; a client that is still there then asks again, from where it was."""
_AT_ONCE: Final = 4
"""Threads that look for all who watch, so that others find theirs free."""
_LAST_ID: Final = 2**31 - 1
_NAMED: Final = frozenset({"user", "admin", "service", "webhook"})

_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "Of a move; send the last as Last-Event-ID."},
        "event": {"enum": ["move", "progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

router: Final = APIRouter(tags=["jobs"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What one look at a job showed."""

    job: dict[str, Any]
    moves: list[JobEvent]


@router.get(
    "/jobs/{document_id}/events",
    openapi_extra=BEARER,
    responses={
        200: {
            "description": "Events `move`, `progress` and, as the last one, `end`.",
            "content": {"text/event-stream": {"schema": _EVENT}},
        },
        204: {"description": "The job has ended, and you have seen all of it."},
        **problems(401, 404, 422, 503),
    },
)
async def follow(
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
    desk = desk_of(request)
    after = min(int(last_event_id or 0), _LAST_ID)

    def look(after: int) -> Look:
        return _look(desk, request, document_id, after)

    turns = _turns(request)
    first = await anyio.to_thread.run_sync(look, after, limiter=turns)
    if first.job["ended"] and not first.moves and after:
        # A browser asks again whenever a stream ends; only this answer keeps it from doing so.
        return Response(status_code=204)
    return StreamingResponse(
        _stream(first, after, look, turns),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


def _look(desk: Desk, request: Request, document_id: str, after: int) -> Look:
    """The token is looked up each time: one that is revoked sees nothing more."""
    with desk.library.database.read() as connection:
        caller = desk.known_caller(request, connection)
        row = shown_job(connection, caller, document_id)
        return Look(job=job_answer(row), moves=events_of(connection, row.job_id, after=after))


def _turns(request: Request) -> anyio.CapacityLimiter:
    """Of all who watch; the loop that it belongs to runs by now."""
    state = request.app.state
    if not hasattr(state, "event_turns"):
        state.event_turns = anyio.CapacityLimiter(_AT_ONCE)
    turns: anyio.CapacityLimiter = state.event_turns
    return turns


async def _stream(
    look: Look, after: int, again: Callable[[int], Look], turns: anyio.CapacityLimiter
) -> AsyncIterator[str]:
    begun = spoken = anyio.current_time()
    shown: dict[str, Any] | None = None
    while True:
        for move in look.moves:
            after = move.id
            yield _event("move", _move(move), number=move.id)
        if look.moves or _progress(look.job) != shown:
            shown, spoken = _progress(look.job), anyio.current_time()
            yield _event("progress", shown)
        if look.job["ended"]:
            yield _event("end", look.job)
            return
        if anyio.current_time() - begun > LONGEST:
            return
        await anyio.sleep(POLL)
        if anyio.current_time() - spoken > KEEP_ALIVE:
            spoken = anyio.current_time()
            yield ": still here\n\n"
        try:
            look = await anyio.to_thread.run_sync(again, after, limiter=turns)
        except ProblemError:
            return  # the token was revoked, or the job is gone
        except SQLAlchemyError:
            look = Look(job=look.job, moves=[])  # the database is away; it comes back


def _event(name: str, data: Any, *, number: int | None = None) -> str:
    told = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return (f"id: {number}\n" if number is not None else "") + f"event: {name}\ndata: {told}\n\n"


def _move(event: JobEvent) -> dict[str, Any]:
    kind = event.by.partition(":")[0]
    return {
        "from": event.from_status,
        "to": event.to_status,
        "at": format_timestamp(event.at),
        # A worker calls itself by machine and process, which are nobody's business.
        "by": event.by if kind in _NAMED else "worker",
        "why": event.why,
    }


def _progress(job: dict[str, Any]) -> dict[str, Any]:
    names = ("status", "progress", "retry_count", "next_attempt_at", "last_error")
    return {name: job[name] for name in names}
