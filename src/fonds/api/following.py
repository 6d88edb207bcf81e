"""A run as it goes on, as server-sent events: its counts and its log."""

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

from fonds.api.admin import known_run, looking
from fonds.api.admin_answers import AT, LAST_ID, RunId, plain, run_answer
from fonds.api.answers import BEARER_OR_NOBODY, problems
from fonds.api.desk import desk_of
from fonds.api.problems import ProblemError
from fonds.runs import insight
from fonds.runs.insight import LogLine, RunInsight
from fonds.runs.state import Status

POLL: Final = 1.0
"""Seconds between two looks at a run."""
KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which proxies might think that nobody is there."""
LONGEST: Final = 3600.0
"""Seconds; a client that is still there then asks again, from where it was."""
LINES: Final = 500
"""Of the log, in one look."""
_AT_ONCE: Final = 4
"""Threads that look for all who follow a run, so that others find theirs free."""

_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "Of a line; send the last as Last-Event-ID."},
        "event": {"enum": ["log", "counts", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

router: Final = APIRouter(prefix=AT, tags=["admin"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What one look at a run showed."""

    run: RunInsight
    lines: list[LogLine]

    @property
    def is_last(self) -> bool:
        """Whether nothing can follow."""
        return self.run.status is not Status.RUNNING and len(self.lines) < LINES


@router.get(
    "/runs/{run_id}/logs/stream",
    openapi_extra=BEARER_OR_NOBODY,
    responses={
        200: {
            "description": "Events `log`, `counts` and, as the last one, `end`.",
            "content": {"text/event-stream": {"schema": _EVENT}},
        },
        204: {"description": "The run has ended, and you have seen all of it."},
        **problems(401, 403, 404, 422, 503),
    },
)
async def follow(
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

    def look(after: int) -> Look:
        return _look(request, run_id, after)

    turns = _turns(request)
    first = await anyio.to_thread.run_sync(look, after, limiter=turns)
    if first.is_last and not first.lines and last_event_id:
        # A browser asks again whenever a stream ends; only this answer keeps it from doing so.
        return Response(status_code=204)
    return StreamingResponse(
        _stream(request, first, after, look, turns),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


def _look(request: Request, run_id: str, after: int) -> Look:
    """The token is looked up each time: one that is revoked sees nothing more."""
    with looking(request) as connection:
        # In this order: whatever a run logs before it ends is there when it has ended.
        run = known_run(connection, run_id)
        return Look(run=run, lines=insight.logs(connection, run.id, after=after, limit=LINES))


def _turns(request: Request) -> anyio.CapacityLimiter:
    """Of all who follow a run; the loop that it belongs to runs by now."""
    state = request.app.state
    if not hasattr(state, "run_turns"):
        state.run_turns = anyio.CapacityLimiter(_AT_ONCE)
    turns: anyio.CapacityLimiter = state.run_turns
    return turns


async def _stream(
    request: Request,
    look: Look,
    after: int,
    again: Callable[[int], Look],
    turns: anyio.CapacityLimiter,
) -> AsyncIterator[str]:
    begun = spoken = anyio.current_time()
    shown: dict[str, Any] | None = None
    while True:
        for line in look.lines:
            after = line.id
            yield _event("log", plain(line), number=line.id)
        if (counts := _counts(look.run)) != shown:
            shown, spoken = counts, anyio.current_time()
            yield _event("counts", counts)
        if look.is_last:
            # A number, so that a browser that asks again says what it has seen: all.
            yield _event("end", run_answer(look.run, desk_of(request).now()), number=after or 0)
            return
        if anyio.current_time() - begun > LONGEST:
            return
        await anyio.sleep(0 if len(look.lines) == LINES else POLL)
        if anyio.current_time() - spoken > KEEP_ALIVE:
            spoken = anyio.current_time()
            yield ": still here\n\n"
        try:
            look = await anyio.to_thread.run_sync(again, after, limiter=turns)
        except ProblemError:
            return  # the token was revoked, or the run is gone
        except SQLAlchemyError:
            look = Look(run=look.run, lines=[])  # the database is away; it comes back


def _counts(run: RunInsight) -> dict[str, Any]:
    return {"status": run.status, "counts": plain(run.counts)}


def _event(name: str, data: Any, *, number: int | None = None) -> str:
    told = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return (f"id: {number}\n" if number is not None else "") + f"event: {name}\ndata: {told}\n\n"
