"""What operators ask for: commands, which the scheduler or a worker takes up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse

from fonds.api.admin import Limit, known_run, looking, source_named
from fonds.api.admin_schemas import (
    AT,
    LAST_ID,
    AuditOrder,
    BackfillOrder,
    CommandAnswer,
    CommandId,
    CommandOrder,
    CommandPage,
    DrainOrder,
    QueueNamed,
    RunId,
    RunOrder,
    SourceNamed,
    command_answer,
)
from fonds.api.dependencies import desk_of
from fonds.api.problems import ProblemError
from fonds.api.schemas import BEARER_OR_NOBODY, problems
from fonds.runs import commands
from fonds.runs.commands import Kind
from fonds.runs.state import RunStatus

router: Final = APIRouter(prefix=AT, tags=["admin"])

_ASKED: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": CommandAnswer, "description": "Asked for; `Location` says what comes of it."}
}
_RUN: Final = RunOrder()
_BACKFILL: Final = BackfillOrder()
_AUDIT: Final = AuditOrder()
_DRAIN: Final = DrainOrder()


def ask(
    request: Request, command: Kind, source: str | None, args: Mapping[str, Any]
) -> JSONResponse:
    """Write down what an operator wants, unless somebody has already."""
    desk = desk_of(request)
    with desk.library.database.read() as connection:
        caller = desk.operator(request, connection)
    with desk.library.database.write() as connection:
        asked = commands.ask(
            connection,
            command,
            source,
            args,
            registry=desk.library.sources,
            requested_by=caller.user_name,
            now=desk.now(),
        )
        told = commands.get(connection, asked)
    assert told is not None
    headers = {"Location": f"{AT}/commands/{asked}"}
    return JSONResponse(command_answer(told), 202, headers=headers)


@router.post(
    "/sources/{name}/run",
    status_code=202,
    openapi_extra=BEARER_OR_NOBODY,
    responses={**_ASKED, **problems(400, 401, 403, 404, 413, 422, 503)},
)
def run(request: Request, name: SourceNamed, order: RunOrder = _RUN) -> JSONResponse:
    """Have a source brought up to date."""
    return _of_source(request, "run", name, order.model_dump(mode="json"))


@router.post(
    "/sources/{name}/backfill",
    status_code=202,
    openapi_extra=BEARER_OR_NOBODY,
    responses={**_ASKED, **problems(400, 401, 403, 404, 413, 422, 503)},
)
def backfill(request: Request, name: SourceNamed, order: BackfillOrder = _BACKFILL) -> JSONResponse:
    """Have a range of a source filled, or all of it."""
    return _of_source(request, "backfill", name, order.model_dump(mode="json"))


@router.post(
    "/sources/{name}/retry",
    status_code=202,
    openapi_extra=BEARER_OR_NOBODY,
    responses={**_ASKED, **problems(400, 401, 403, 404, 413, 422, 503)},
)
def retry(request: Request, name: SourceNamed) -> JSONResponse:
    """Have all tried again that failed in a source, also what was given up."""
    return _of_source(request, "retry", name, {})


@router.post(
    "/sources/{name}/audit",
    status_code=202,
    openapi_extra=BEARER_OR_NOBODY,
    responses={**_ASKED, **problems(400, 401, 403, 404, 413, 422, 503)},
)
def audit(request: Request, name: SourceNamed, order: AuditOrder = _AUDIT) -> JSONResponse:
    """Have what the publisher lists compared with what is held."""
    return _of_source(request, "audit", name, order.model_dump(mode="json"))


@router.post(
    "/runs/{run_id}/cancel",
    status_code=202,
    openapi_extra=BEARER_OR_NOBODY,
    responses={**_ASKED, **problems(401, 403, 404, 409, 413, 422, 503)},
)
def cancel(request: Request, run_id: RunId) -> JSONResponse:
    """Have a run ended, in whatever process it is; what it has loaded stays."""
    with looking(request) as connection:
        going_on = known_run(connection, run_id)
    if going_on.status is not RunStatus.RUNNING:
        raise ProblemError(409, "run-ended", f"the run has ended already: {going_on.status}")
    return ask(request, "cancel", going_on.source, {"run_id": run_id})


@router.post(
    "/queues/{queue}/drain",
    status_code=202,
    openapi_extra=BEARER_OR_NOBODY,
    responses={**_ASKED, **problems(400, 401, 403, 413, 422, 503)},
)
def drain(request: Request, queue: QueueNamed, order: DrainOrder = _DRAIN) -> JSONResponse:
    """Have all done that waits in a queue."""
    return ask(request, "drain", None, {"queue": queue, **order.model_dump()})


@router.post(
    "/commands",
    status_code=202,
    openapi_extra=BEARER_OR_NOBODY,
    responses={**_ASKED, **problems(400, 401, 403, 413, 422, 503)},
)
def post_command(request: Request, order: CommandOrder) -> JSONResponse:
    """Ask for anything that can be asked for."""
    return ask(request, order.command, order.source, order.args)


@router.get(
    "/commands",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": CommandPage}, **problems(401, 403, 422, 503)},
)
def list_commands(
    request: Request,
    *,
    source: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")] = None,
    is_open: Annotated[
        bool | None, Query(alias="open", description="Only those that are open, or are not.")
    ] = None,
    before: Annotated[int | None, Query(ge=1, le=LAST_ID)] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """What was asked for, the newest first, and what came of it."""
    with looking(request) as connection:
        found = commands.listing(
            connection, source=source, is_open=is_open, before=before, limit=limit + 1
        )
    page, is_last = found[:limit], len(found) <= limit
    return JSONResponse(
        {
            "commands": [command_answer(each) for each in page],
            "next_before": None if is_last else page[-1].id,
        }
    )


@router.get(
    "/commands/{command_id}",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": CommandAnswer}, **problems(401, 403, 404, 422, 503)},
)
def get_command(request: Request, command_id: CommandId) -> JSONResponse:
    """One command, and what came of it."""
    with looking(request) as connection:
        found = commands.get(connection, command_id)
    if found is None:
        raise ProblemError(404, "unknown-command", "there is no command with this id")
    return JSONResponse(command_answer(found))


def _of_source(request: Request, command: Kind, name: str, args: Mapping[str, Any]) -> JSONResponse:
    with looking(request):
        source_named(request, name)
    return ask(request, command, name, args)
