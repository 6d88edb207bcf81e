"""Whether the server is well, and what it measures."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from fonds.api.answers import BEARER_OR_NOBODY, HealthAnswer, problems
from fonds.api.desk import Desk, desk_of, require_scope
from fonds.api.problems import RETRY_AFTER, Told, problem
from fonds.runs.exposition import CONTENT_TYPE
from fonds.schema import require_current
from fonds.stores.revisions import current_version
from fonds.upkeep.metrics import render

PATIENCE: Final = 5
"""Seconds; what takes longer to answer does not."""

COUNTED_EVERY: Final = 10.0
"""Seconds; counting takes longer the more jobs there are."""

router: Final = APIRouter(tags=["operation"])


@router.get("/health", responses={200: {"model": HealthAnswer}, **problems(503)})
async def health(request: Request) -> Response:
    """Whether database and object store answer, and the schema is the one of this program."""
    desk = desk_of(request)
    checks = {}
    async with anyio.create_task_group() as group:

        async def check(name: str, look: Callable[[Desk], str]) -> None:
            checks[name] = await _outcome(look, desk)

        group.start_soon(check, "database", _look_at_database)
        group.start_soon(check, "blobs", _look_at_blobs)
    if all(said.startswith("ok") for said in checks.values()):
        return JSONResponse({"status": "ok", "checks": checks})
    told = Told(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        kind="unwell",
        detail="not everything answers that is needed",
        headers=RETRY_AFTER,
    )
    return problem(told, request.scope["path"], checks=checks)


@router.get(
    "/metrics",
    openapi_extra=BEARER_OR_NOBODY,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(401, 403, 503),
    },
)
def metrics(request: Request) -> Response:
    """All figures, for Prometheus; from elsewhere with a token of the scope admin or service.

    Those of requests are of the process that answers; the others are the library's.
    """
    desk = desk_of(request)
    with desk.library.database.read() as connection:
        if not desk.is_local(request):
            require_scope(desk.known_caller(request, connection), "admin", "service")
    return Response(_figures(desk) + desk.traffic.render(), media_type=CONTENT_TYPE)


def _figures(desk: Desk) -> str:
    """All figures, counted once for all who ask within some seconds."""
    with desk.figures.lock:
        now = desk.library.seams.clock.monotonic()
        if desk.figures.text is None or now - desk.figures.at >= COUNTED_EVERY:
            with desk.library.database.read() as connection:
                desk.figures.text = render(connection, desk.now())
            desk.figures.at = now
        return desk.figures.text


async def _outcome(look: Callable[[Desk], str], desk: Desk) -> str:
    with anyio.move_on_after(PATIENCE):
        return await anyio.to_thread.run_sync(look, desk, abandon_on_cancel=True)
    return f"no answer within {PATIENCE} seconds"


def _look_at_database(desk: Desk) -> str:
    try:
        version = current_version(desk.library.database)
        require_current(desk.library.database)
    except Exception as error:  # noqa: BLE001 — whatever it is, this is where it is told
        return type(error).__name__
    return f"ok, schema {version}"


def _look_at_blobs(desk: Desk) -> str:
    try:
        desk.library.blobs.head("health")
    except Exception as error:  # noqa: BLE001 — as above
        return type(error).__name__
    return "ok"
