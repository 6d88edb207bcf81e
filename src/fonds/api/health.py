"""Whether the server is well, and what it measures.

`/llms.txt`: what a language model should know before it uses this library.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from fonds.api.dependencies import AppState, desk_of, require_scope
from fonds.api.problems import RETRY_AFTER, ErrorText, problem
from fonds.api.schemas import BEARER_OR_NOBODY, HealthAnswer, problems
from fonds.catalog.codes import Code, codes
from fonds.maintenance.metrics import CONTENT_TYPE, render
from fonds.runs.overview import SourceHeld, sources_held
from fonds.schema import require_current
from fonds.stores.revisions import current_version

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

        async def check(name: str, look: Callable[[AppState], str]) -> None:
            checks[name] = await _outcome(look, desk)

        group.start_soon(check, "database", _look_at_database)
        group.start_soon(check, "blobs", _look_at_blobs)
    if all(said.startswith("ok") for said in checks.values()):
        return JSONResponse({"status": "ok", "checks": checks})
    told = ErrorText(
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


def _figures(desk: AppState) -> str:
    """All figures, counted once for all who ask within some seconds."""
    with desk.figures.lock:
        now = desk.library.seams.clock.monotonic()
        if desk.figures.text is None or now - desk.figures.at >= COUNTED_EVERY:
            with desk.library.database.read() as connection:
                desk.figures.text = render(connection, desk.now())
            desk.figures.at = now
        return desk.figures.text


async def _outcome(look: Callable[[AppState], str], desk: AppState) -> str:
    with anyio.move_on_after(PATIENCE):
        return await anyio.to_thread.run_sync(look, desk, abandon_on_cancel=True)
    return f"no answer within {PATIENCE} seconds"


def _look_at_database(desk: AppState) -> str:
    try:
        version = current_version(desk.library.database)
        require_current(desk.library.database)
    except Exception as error:  # noqa: BLE001 — whatever it is, this is where it is told
        return type(error).__name__
    return f"ok, schema {version}"


def _look_at_blobs(desk: AppState) -> str:
    try:
        desk.library.blobs.head("health")
    except Exception as error:  # noqa: BLE001 — as above
        return type(error).__name__
    return "ok"


_ROUTES: Final = (
    ("Search", "/api/search?q={words}", "the best passages, each with a citation to paste"),
    ("Document", "/api/documents/{id}?text=true", "a document as Markdown, with its provenance"),
    ("Links", "/api/documents/{id}/links", "what it cites; `direction=cited-by` for what cites it"),
    ("Editions", "/api/documents/{id}/editions", "earlier versions, and other editions"),
    ("Codes", "/api/codes/{path}", "statutes and regulations from the top, one level at a time"),
    ("Resolve", "/api/resolve?citation={citation}", "what a citation leads to"),
    ("Cite", "/api/cite?id={id}&style=bluebook", "how to cite it; also `csl` and `bibtex`"),
    ("Compare", "/api/compare?from={id}&to={id}", "two texts, word by word"),
    ("Changes", "/api/changes?since={day}", "what was added, changed and withdrawn"),
)
_SUMMARY: Final = (
    "A library of public documents. Every answer carries the publisher, the address and a citation;"
    " quote only what a passage says, and cite it as its citation string does."
)
_RULES: Final = (
    "Ask in plain words; words in quotation marks must occur, words behind a minus sign must not."
    " A citation alone, such as 42 USC 1396a, leads straight to its document. What is not listed"
    " under Held cannot be found or ruled out here. Ids contain slashes; passages are named by"
    " document and number: fr:2026-00101#3."
)
_SPACE: Final = re.compile(r"\s+")

llms_router: Final = APIRouter(tags=["changes"])


@llms_router.get(
    "/llms.txt",
    response_class=PlainTextResponse,
    responses={200: {"description": "In the form of llms.txt."}, **problems(503)},
)
def llms(request: Request) -> PlainTextResponse:
    """What the library holds, and how to search and cite it."""
    desk = desk_of(request)
    held = sources_held(desk.library.database, desk.library.sources)
    return PlainTextResponse(
        "\n".join(_lines(desk, request, held, codes(desk.library.database, desk.library.sources))),
        headers={"Cache-Control": "max-age=300"},
    )


def _lines(
    desk: AppState, request: Request, held: list[SourceHeld], found: list[Code]
) -> list[str]:
    def at(path: str) -> str:
        return desk.address(request, path)

    return [
        "# fonds",
        "",
        f"> {_SUMMARY}",
        "",
        _RULES,
        "",
        "## How to ask",
        "",
        *(f"- [{name}]({at(path)}): {what}" for name, path, what in _ROUTES),
        f"- [OpenAPI]({at('/openapi.json')}): every route with its answers",
        "",
        "## Held",
        "",
        *(
            f"- [{_plain(one.title)}]({at(f'/feeds/{one.name}.atom')}): {_about(one)}"
            for one in held
        ),
        *(["", "## Codes", ""] if found else []),
        *(
            f"- [{_plain(one.title)}]({at(f'/api/codes/{one.name}')}): {_editions(one)}"
            for one in found
        ),
        "",
    ]


def _about(one: SourceHeld) -> str:
    span = f", {one.first} to {one.last}" if one.first else ""
    return f"`source={one.name}`, published by {_plain(one.organisation)}{span}"


def _editions(one: Code) -> str:
    shown = ", ".join(each.version for each in one.editions)
    return f"editions {shown}" if len(one.editions) > 1 else f"edition {shown}"


def _plain(text: str) -> str:
    """On one line, and unable to end a link."""
    return _SPACE.sub(" ", text).replace("[", "(").replace("]", ")")
