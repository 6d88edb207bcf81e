"""Routes for operation: health, metrics, and `/llms.txt` for language models."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from fonds.api.dependencies import AppState, app_state, require_scope
from fonds.api.problems import RETRY_AFTER, ErrorText, problem_response
from fonds.api.schemas import OPTIONAL_BEARER, HealthResponse, problems
from fonds.catalog.codes import Code, codes
from fonds.maintenance.checks import CRITICAL_FREE
from fonds.maintenance.findings import sized
from fonds.maintenance.metrics import CONTENT_TYPE, render
from fonds.runs.overview import LoadedSource, loaded_sources
from fonds.schema import current_version, require_current
from fonds.uploads.live_workers import NO_WORKER, is_worker_running

TIMEOUT_SECONDS: Final = 5

CACHE_SECONDS: Final = 10.0
"""How long metrics are reused: counting takes longer the more jobs there are."""

router: Final = APIRouter(tags=["operation"])


@router.get("/health", responses={200: {"model": HealthResponse}, **problems(503)})
async def health(request: Request) -> Response:
    """Check that database and object store respond, and that schema and disk are in order.

    The object store is tried in the background every half minute; the age of the last attempt is
    given. A missing worker is named, too; without one only uploads wait.
    """
    app = app_state(request)
    checks = {}
    async with anyio.create_task_group() as group:

        async def run(name: str, check: Callable[[AppState], str]) -> None:
            checks[name] = await _outcome(check, app)

        group.start_soon(run, "database", _check_database)
        group.start_soon(run, "blobs", _check_blobs)
        group.start_soon(run, "disk", _check_disk)
        group.start_soon(run, "worker", _check_worker)
    # A server without a worker serves all that is there: it needs no other in its place.
    if all(outcome.startswith("ok") for name, outcome in checks.items() if name != "worker"):
        return JSONResponse({"status": "ok", "checks": checks})
    text = ErrorText(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        kind="unwell",
        detail="the database or the object store does not respond, or the disk is full; see checks",
        headers=RETRY_AFTER,
    )
    return problem_response(text, request.scope["path"], checks=checks)


@router.get(
    "/metrics",
    openapi_extra=OPTIONAL_BEARER,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(401, 403, 503),
    },
)
def metrics(request: Request) -> Response:
    """All metrics for Prometheus, with a token of the scope admin or service.

    A server without --login that serves no other machine gives them to this machine without one.

    Request metrics are those of the process that responds; all others are those of the library.
    """
    app = app_state(request)
    with app.library.database.read() as connection:
        if not app.is_local(request):
            require_scope(app.require_caller(request, connection), "admin", "service")
    return Response(_library_metrics(app) + app.request_metrics.render(), media_type=CONTENT_TYPE)


def _library_metrics(app: AppState) -> str:
    """The metrics of the library, cached for some seconds."""
    with app.metrics.lock:
        now = app.library.seams.clock.monotonic()
        if app.metrics.text is None or now - app.metrics.at >= CACHE_SECONDS:
            with app.library.database.read() as connection:
                app.metrics.text = render(connection, app.now(), app.library.settings)
            app.metrics.at = now
        return app.metrics.text


async def _outcome(check: Callable[[AppState], str], app: AppState) -> str:
    with anyio.move_on_after(TIMEOUT_SECONDS):
        return await anyio.to_thread.run_sync(check, app, abandon_on_cancel=True)
    return f"no response within {TIMEOUT_SECONDS} seconds"


def _check_database(app: AppState) -> str:
    try:
        version = current_version(app.library.database)
        require_current(app.library.database)
    except Exception as error:  # noqa: BLE001 — any error is the result of the check
        return type(error).__name__
    return f"ok, schema {version}"


def _check_blobs(app: AppState) -> str:
    return app.store_monitor.result(TIMEOUT_SECONDS - 1)


def _check_disk(app: AppState) -> str:
    try:
        free = shutil.disk_usage(app.library.settings.home).free
    except OSError as error:
        return type(error).__name__
    return f"{'ok' if free >= CRITICAL_FREE else 'full'}, {sized(free)} free"


def _check_worker(app: AppState) -> str:
    try:
        with app.library.database.read() as connection:
            is_running = is_worker_running(connection, app.now())
    except Exception as error:  # noqa: BLE001 — any error is the result of the check
        return type(error).__name__
    return "ok, running" if is_running else NO_WORKER


_ROUTES: Final = (
    ("Search", "/api/search?q={words}", "the best passages, each with a citation to paste"),
    ("Document", "/api/documents/{id}?text=true", "a document as Markdown, with its provenance"),
    ("Links", "/api/documents/{id}/links", "what it cites; `direction=cited-by` for what cites it"),
    ("Editions", "/api/documents/{id}/editions", "earlier versions, and other editions"),
    ("Codes", "/api/codes/{path}", "statutes and regulations from the top, one level at a time"),
    ("Resolve", "/api/resolve?citation={citation}", "the document that a citation refers to"),
    ("Cite", "/api/cite?id={id}&style=bluebook", "how to cite it; also `csl` and `bibtex`"),
    ("Compare", "/api/compare?from={id}&to={id}", "two texts, word by word"),
    ("Changes", "/api/changes?since={day}", "documents added, changed and withdrawn"),
)
_SUMMARY: Final = (
    "A library of public documents. Every result has its publisher, address and citation;"
    " quote only the text of a passage, and cite it with its citation string."
)
_RULES: Final = (
    "Search in plain words; words in quotation marks must occur, words after a minus sign must not."
    " A citation alone, such as 42 USC 1396a, returns its document. Sources that are not listed"
    " below are not searched, so their documents cannot be ruled out. Ids contain slashes; a"
    " passage is the id of its document and a number: fr:2026-00101#3."
)
_SPACE: Final = re.compile(r"\s+")

llms_router: Final = APIRouter(tags=["changes"])


@llms_router.get(
    "/llms.txt",
    response_class=PlainTextResponse,
    responses={200: {"description": "In the form of llms.txt."}, **problems(503)},
)
def llms(request: Request) -> PlainTextResponse:
    """The contents of the library, and how to search and cite it."""
    app = app_state(request)
    sources = loaded_sources(app.library.database, app.library.sources)
    return PlainTextResponse(
        "\n".join(_lines(app, request, sources, codes(app.library.database, app.library.sources))),
        headers={"Cache-Control": "max-age=300"},
    )


def _lines(
    app: AppState, request: Request, sources: list[LoadedSource], all_codes: list[Code]
) -> list[str]:
    def at(path: str) -> str:
        return app.address(request, path)

    return [
        "# fonds",
        "",
        f"> {_SUMMARY}",
        "",
        _RULES,
        "",
        "## Routes",
        "",
        *(f"- [{name}]({at(path)}): {what}" for name, path, what in _ROUTES),
        f"- [OpenAPI]({at('/openapi.json')}): every route with its responses",
        "",
        "## Sources",
        "",
        *(
            f"- [{_one_line(source.title)}]({at(f'/feeds/{source.name}.atom')}): {_about(source)}"
            for source in sources
        ),
        *(["", "## Codes", ""] if all_codes else []),
        *(
            f"- [{_one_line(code.title)}]({at(f'/api/codes/{code.name}')}): {_editions(code)}"
            for code in all_codes
        ),
        "",
    ]


def _about(source: LoadedSource) -> str:
    span = f", {source.first} to {source.last}" if source.first else ""
    return f"`source={source.name}`, published by {_one_line(source.organisation)}{span}"


def _editions(code: Code) -> str:
    versions = ", ".join(edition.version for edition in code.editions)
    return f"editions {versions}" if len(code.editions) > 1 else f"edition {versions}"


def _one_line(text: str) -> str:
    """Text on one line, without brackets that would end a link."""
    return _SPACE.sub(" ", text).replace("[", "(").replace("]", ")")
