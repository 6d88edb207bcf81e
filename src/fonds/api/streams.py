"""Server-sent events: something is looked at again and again, and what is new is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio
import anyio.to_thread
from fastapi import Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response, StreamingResponse

from fonds.api.problems import ProblemError

POLL: Final = 0.5
"""Seconds between two looks."""
KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which proxies might think that nobody is there."""
LONGEST: Final = 3600.0
"""Seconds; a client that is still there then asks again, from where it was."""
AT_ONCE: Final = 4
"""Threads that look for all who watch, so that others find theirs free."""


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """What one look showed that was not told before."""

    events: Sequence[str]
    is_over: bool
    """Whether nothing can follow."""
    is_new: bool = True
    """Whether there is anything in it for who has seen all but how it ended."""
    is_more: bool = False
    """Whether the next look need not wait."""


Look = Callable[[], News]
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


async def _stream(news: News, look: Look, turns: anyio.CapacityLimiter) -> AsyncIterator[str]:
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
            news = News(events=(), is_over=False)  # the database is away; it comes back


def _turns(request: Request) -> anyio.CapacityLimiter:
    """Of all who watch; the loop that it belongs to runs by now."""
    state = request.app.state
    if not hasattr(state, "turns"):
        state.turns = anyio.CapacityLimiter(AT_ONCE)
    turns: anyio.CapacityLimiter = state.turns
    return turns
