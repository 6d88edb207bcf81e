"""The moves of a job as they happen, as server-sent events."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from fonds.api.answers import BEARER, UploadId, problems
from fonds.api.desk import Desk, desk_of
from fonds.api.jobs import job_answer, shown_job
from fonds.api.streams import News, event, streamed
from fonds.stores.columns import format_timestamp
from fonds.uploads.jobs import JobEvent, events_of

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

    def __init__(self, desk: Desk, request: Request, document_id: str, after: int) -> None:
        self._desk, self._request = desk, request
        self._document_id = document_id
        self._after = after
        self._shown: dict[str, Any] | None = None

    def __call__(self) -> News:
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
        return News(events=events, is_over=job["ended"], is_new=bool(moves))


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
