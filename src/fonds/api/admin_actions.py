"""Routes for operator commands, which the scheduler or a worker executes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse

from fonds.api.admin import Limit, SourceFilter, operator_connection, run_or_404, source_or_404
from fonds.api.admin_schemas import (
    AT,
    LAST_ID,
    AuditOrder,
    BackfillOrder,
    CommandId,
    CommandOrder,
    CommandPage,
    CommandResponse,
    DrainOrder,
    QueueParameter,
    RunId,
    RunOrder,
    SourceName,
    command_json,
)
from fonds.api.dependencies import app_state
from fonds.api.problems import ProblemError
from fonds.api.schemas import BEARER, problems, returns_to_operators
from fonds.runs import commands
from fonds.runs.commands import Kind
from fonds.runs.state import RunStatus

router: Final = APIRouter(prefix=AT, tags=["admin"])

_RUN: Final = RunOrder()
_BACKFILL: Final = BackfillOrder()
_AUDIT: Final = AuditOrder()
_DRAIN: Final = DrainOrder()


def _accepts_command(*errors: int) -> dict[str, Any]:
    """The options of a route that stores a command."""
    accepted = {
        "model": CommandResponse,
        "description": "Accepted; `Location` is the address of the command.",
    }
    return {
        "status_code": 202,
        "openapi_extra": BEARER,
        "responses": {202: accepted, **problems(*errors)},
    }


def submit(
    request: Request, command: Kind, source: str | None, args: Mapping[str, Any]
) -> JSONResponse:
    """Store a command of an operator, unless the same command is already open."""
    app = app_state(request)
    with app.library.database.read() as connection:
        caller = app.require_operator(request, connection)
    with app.library.database.write() as connection:
        command_id = commands.submit(
            connection,
            command,
            source,
            args,
            registry=app.library.sources,
            requested_by=caller.user_name,
            now=app.now(),
        )
        stored = commands.get(connection, command_id)
    assert stored is not None
    headers = {"Location": f"{AT}/commands/{command_id}"}
    return JSONResponse(command_json(stored), 202, headers=headers)


@router.post("/sources/{name}/run", **_accepts_command(400, 401, 403, 404, 413, 422, 503))
def run(request: Request, name: SourceName, order: RunOrder = _RUN) -> JSONResponse:
    """Run a source."""
    return _submit_for_source(request, "run", name, order.model_dump(mode="json"))


@router.post("/sources/{name}/backfill", **_accepts_command(400, 401, 403, 404, 413, 422, 503))
def backfill(request: Request, name: SourceName, order: BackfillOrder = _BACKFILL) -> JSONResponse:
    """Backfill a source, or a range of it."""
    return _submit_for_source(request, "backfill", name, order.model_dump(mode="json"))


@router.post("/sources/{name}/retry", **_accepts_command(400, 401, 403, 404, 413, 422, 503))
def retry(request: Request, name: SourceName) -> JSONResponse:
    """Retry all failed tasks of a source, including those given up."""
    return _submit_for_source(request, "retry", name, {})


@router.post("/sources/{name}/audit", **_accepts_command(400, 401, 403, 404, 413, 422, 503))
def audit(request: Request, name: SourceName, order: AuditOrder = _AUDIT) -> JSONResponse:
    """Compare the listings of the publisher with the library."""
    return _submit_for_source(request, "audit", name, order.model_dump(mode="json"))


@router.post("/runs/{run_id}/cancel", **_accepts_command(401, 403, 404, 409, 413, 422, 503))
def cancel(request: Request, run_id: RunId) -> JSONResponse:
    """Cancel a run in any process; documents already loaded remain."""
    with operator_connection(request) as connection:
        run = run_or_404(connection, run_id)
    if run.status is not RunStatus.RUNNING:
        raise ProblemError(409, "run-ended", f"the run has already ended: {run.status}")
    return submit(request, "cancel", run.source, {"run_id": run_id})


@router.post("/queues/{queue}/drain", **_accepts_command(400, 401, 403, 413, 422, 503))
def drain(request: Request, queue: QueueParameter, order: DrainOrder = _DRAIN) -> JSONResponse:
    """Process all entries of a queue."""
    return submit(request, "drain", None, {"queue": queue, **order.model_dump()})


@router.post("/commands", **_accepts_command(400, 401, 403, 413, 422, 503))
def post_command(request: Request, order: CommandOrder) -> JSONResponse:
    """Submit a command of any kind."""
    return submit(request, order.command, order.source, order.args)


@router.get("/commands", **returns_to_operators(CommandPage, 422, 503))
def list_commands(
    request: Request,
    *,
    source: SourceFilter = None,
    is_open: Annotated[
        bool | None, Query(alias="open", description="Only open commands, or only finished ones.")
    ] = None,
    before: Annotated[int | None, Query(ge=1, le=LAST_ID)] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """Commands with their outcomes, newest first."""
    with operator_connection(request) as connection:
        rows = commands.listing(
            connection, source=source, is_open=is_open, before=before, limit=limit + 1
        )
    page, is_last = rows[:limit], len(rows) <= limit
    return JSONResponse(
        {
            "commands": [command_json(command) for command in page],
            "next_before": None if is_last else page[-1].id,
        }
    )


@router.get("/commands/{command_id}", **returns_to_operators(CommandResponse, 404, 422, 503))
def get_command(request: Request, command_id: CommandId) -> JSONResponse:
    """A command and its outcome."""
    with operator_connection(request) as connection:
        command = commands.get(connection, command_id)
    if command is None:
        raise ProblemError(404, "unknown-command", "there is no command with this id")
    return JSONResponse(command_json(command))


def _submit_for_source(
    request: Request, command: Kind, name: str, args: Mapping[str, Any]
) -> JSONResponse:
    with operator_connection(request):
        source_or_404(request, name)
    return submit(request, command, name, args)
