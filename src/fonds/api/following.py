"""A run as it goes on, as server-sent events: its counts and its log."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from fonds.api.admin import known_run, looking
from fonds.api.admin_answers import AT, LAST_ID, RunId, plain, run_answer
from fonds.api.answers import BEARER_OR_NOBODY, problems
from fonds.api.desk import desk_of
from fonds.api.streams import News, event, streamed
from fonds.runs import insight
from fonds.runs.insight import RunInsight
from fonds.runs.state import RunStatus

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

    def __call__(self) -> News:
        with looking(self._request) as connection:
            # In this order: whatever a run logs before it ends is there when it has ended.
            run = known_run(connection, self._run_id)
            lines = insight.logs(connection, run.id, after=self._after, limit=LINES)
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
        return News(events=events, is_over=is_over, is_new=bool(lines), is_more=is_more)


def _counts(run: RunInsight) -> dict[str, Any]:
    return {"status": run.status, "counts": plain(run.counts)}
