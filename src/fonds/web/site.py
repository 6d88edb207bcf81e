"""The whole site: the API, and the pages beside it.

Files of our own that pages load.

Logging in with a token, and out again.

The API, described for people from its own OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Form, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from fonds.api.app import make_app
from fonds.api.dependencies import desk_of, refuse_hurry
from fonds.api.problems import ErrorText, ProblemError
from fonds.library import Library
from fonds.uploads.users import authenticate
from fonds.web import documents, search, uploads
from fonds.web.admin import actions, runs, status
from fonds.web.document_html import HtmlTexts
from fonds.web.rendering import Kept, page, query, require_own_form, visitor_of

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOLDER: Final = files("fonds.web") / "static"
_FILES: Final = {
    each.name: (each.read_bytes(), _TYPES[each.name.rpartition(".")[2]])
    for each in _FOLDER.iterdir()
    if each.name.rpartition(".")[2] in _TYPES
}
# Their addresses change with their content.
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}

router: Final = APIRouter()


@router.get("/static/{name}")
def get_asset(name: str) -> Response:
    """One of our files."""
    if name not in _FILES:
        raise HTTPException(404)
    content, media_type = _FILES[name]
    return Response(content, media_type=media_type, headers=_KEPT)


@router.get("/favicon.ico")
def get_icon() -> Response:
    """What browsers ask for unasked."""
    return get_asset("icon.svg")


LONGEST: Final = 2000

_Next = Annotated[str, Query(max_length=LONGEST)]


@router.get("/login")
def show_login(
    request: Request, following: Annotated[_Next, Query(alias="next")] = "/"
) -> Response:
    """The form to log in with."""
    return page(request, "login.html", following=_within(following), wrong=False)


@router.post("/login")
def log_in(
    request: Request,
    form_key: Annotated[str, Form(max_length=LONGEST)],
    token: Annotated[str, Form(max_length=LONGEST)],
    following: Annotated[str, Form(alias="next", max_length=LONGEST)] = "/",
) -> Response:
    """Begin a session with a token."""
    refuse_hurry(request, "login")
    desk, visitor = desk_of(request), visitor_of(request)
    require_own_form(request, visitor, form_key)
    with desk.library.database.read() as connection:
        caller = authenticate(connection, token.strip(), desk.now())
    if caller is None:
        wanted = _within(following)
        return page(
            request, "login.html", status=HTTPStatus.FORBIDDEN, following=wanted, wrong=True
        )
    response = RedirectResponse(_within(following), HTTPStatus.SEE_OTHER)
    desk.sessions.begin(response, caller.token_id, desk.now())
    return response


@router.post("/logout")
def log_out(request: Request, form_key: Annotated[str, Form(max_length=LONGEST)]) -> Response:
    """End the session."""
    require_own_form(request, visitor_of(request), form_key)
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    desk_of(request).sessions.end(response)
    return response


def _within(address: str) -> str:
    """A path of this site; anything that a browser could take for another one is refused."""
    if not address.startswith("/") or address[1:2] in {"/", "\\"} or not address.isprintable():
        raise ProblemError(422, "bad-request", "one can only be led on within this site")
    return address


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One thing that a program can ask for."""

    group: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Mapping[str, Any]]
    takes_body: bool
    statuses: list[str]
    takes_token: bool
    needs_token: bool


@router.get("/docs")
def show_reference(request: Request) -> Response:
    """All operations of the API."""
    described = request.app.openapi()
    groups: dict[str, list[Operation]] = {}
    for operation in operations(described):
        groups.setdefault(operation.group, []).append(operation)
    return page(request, "reference.html", groups=groups, version=described["info"]["version"])


def operations(described: Mapping[str, Any]) -> Iterator[Operation]:
    """All that an OpenAPI document describes."""
    for path, methods in described["paths"].items():
        for method, told in methods.items():
            security = told.get("security", [])
            yield Operation(
                group=(told.get("tags") or ["other"])[0],
                method=method.upper(),
                path=path,
                summary=told.get("summary", ""),
                description=told.get("description", ""),
                parameters=told.get("parameters", []),
                takes_body="requestBody" in told,
                statuses=sorted(told["responses"]),
                takes_token=bool(security),
                needs_token=bool(security) and {} not in security,
            )


ROUTERS: Final = (
    search.router,
    documents.router,
    uploads.router,
    status.router,
    runs.router,
    actions.router,
    router,
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
    app.state.texts = HtmlTexts(library.database, library.settings.home)
    app.state.kept = Kept(library.seams.clock)
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    len(library.sources)  # importing them takes a second, which the first visitor would wait for
    return app


def _shown_to_people(scope: Scope, told: ErrorText) -> Response | None:
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
