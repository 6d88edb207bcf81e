"""The whole site: the API, and the pages beside it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from fonds.api.app import make_app
from fonds.api.problems import Told
from fonds.library import Library
from fonds.sources.registry import all_sources
from fonds.web import assets, changing, codes, documents, entry, reference, searching, uploading
from fonds.web.admin import asking, overview, queues, records, runs, sources, stores
from fonds.web.frame import page, query
from fonds.web.kept import Kept
from fonds.web.texts import Texts

ROUTERS: Final = (
    searching.router,
    documents.router,
    codes.router,
    changing.router,
    uploading.router,
    overview.router,
    sources.router,
    runs.router,
    queues.router,
    stores.router,
    records.router,
    asking.router,
    entry.router,
    reference.router,
    assets.router,
)

_FOR_PROGRAMS: Final = (
    "/api/",
    "/jobs",
    "/uploads",
    "/feeds/",
    "/files/",
    "/llms.txt",
    "/webhooks/",
    "/health",
    "/metrics",
)


def make_site(library: Library, *, is_exposed: bool = True, needs_login: bool = False) -> FastAPI:
    """The library for people and programs; `is_exposed` unless only this machine reaches it."""
    app = make_app(
        library, is_exposed=is_exposed, needs_login=needs_login, present=_shown_to_people
    )
    app.state.texts = Texts(library.database, library.settings.home)
    app.state.kept = Kept(library.seams.clock)
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    all_sources()  # importing them takes a second, which the first visitor would wait for
    return app


def _shown_to_people(scope: Scope, told: Told) -> Response | None:
    """An error as a page, for whoever asked for one."""
    request = Request(scope)
    if scope["path"].startswith(_FOR_PROGRAMS):
        return None
    if "text/html" not in request.headers.get("accept", "") and scope["path"] != "/":
        return None
    if told.status == HTTPStatus.UNAUTHORIZED and request.method == "GET":
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?{query({'next': wanted})}", HTTPStatus.SEE_OTHER)
    return page(
        request,
        "problem.html",
        status=told.status,
        headers=told.headers,
        told=told,
        phrase=HTTPStatus(told.status).phrase,
    )
