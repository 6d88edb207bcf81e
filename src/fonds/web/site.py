"""The web application: API and pages, static files, login, and the API reference."""

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
from fonds.api.dependencies import LOCAL, AppState, app_state, limit_failed_logins
from fonds.api.problems import ErrorText, ProblemError
from fonds.api.sessions import LoginLink
from fonds.library import Library
from fonds.uploads.logins import SESSION_LIFETIME, end_session, start_session
from fonds.uploads.users import authenticate, create_token
from fonds.web import documents, search, uploads
from fonds.web.admin import actions, runs, status
from fonds.web.document_html import HtmlTexts
from fonds.web.rendering import PageCache, page, query, require_own_form, viewer_of

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
# The address of a file contains a hash of its content.
_CACHE_FOREVER: Final = {"Cache-Control": "public, max-age=31536000, immutable"}

router: Final = APIRouter()


@router.get("/static/{name}")
def get_asset(name: str) -> Response:
    """Serve a static file."""
    if name not in _FILES:
        raise HTTPException(404)
    content, media_type = _FILES[name]
    return Response(content, media_type=media_type, headers=_CACHE_FOREVER)


@router.get("/favicon.ico")
def get_icon() -> Response:
    """Serve the icon at the address that browsers try by default."""
    return get_asset("icon.svg")


MAX_LENGTH: Final = 2000

_Next = Annotated[str, Query(max_length=MAX_LENGTH)]


@router.get("/login")
def show_login(
    request: Request, following: Annotated[_Next, Query(alias="next")] = "/"
) -> Response:
    """The login form."""
    return page(request, "login.html", following=_local_path(following), notice="")


@router.post("/login")
def log_in(
    request: Request,
    form_key: Annotated[str, Form(max_length=MAX_LENGTH)],
    token: Annotated[str, Form(max_length=MAX_LENGTH)],
    following: Annotated[str, Form(alias="next", max_length=MAX_LENGTH)] = "/",
) -> Response:
    """Start a session with a token; failed logins are limited, a valid token is not."""
    app, viewer = app_state(request), viewer_of(request)
    require_own_form(request, viewer, form_key)
    target = _local_path(following)
    with app.library.database.read() as connection:
        caller = authenticate(connection, token.strip(), app.now())
    if caller is None:
        limit_failed_logins(request)
        return _refuse_login(request, "This token is wrong, revoked or expired.", target)
    with app.library.database.write() as connection:
        session = start_session(connection, caller.token_id, app.now())
    return _logged_in(app, session, target)


@router.get("/login/link")
def use_login_link(
    request: Request, key: Annotated[str, Query(max_length=MAX_LENGTH)] = ""
) -> Response:
    """Log in an operator with the link that `fonds serve` printed, once and from this machine."""
    app = app_state(request)
    link = app.login_link if app.is_direct(request) else None
    if link is None or not link.redeem(key):
        limit_failed_logins(request)
        return _refuse_login(request, "This link has been used, or has expired.", "/")
    now, rng = app.now(), app.library.seams.rng
    with app.library.database.write() as connection:
        token, _ = create_token(
            connection,
            user=LOCAL,
            label="link of fonds serve",
            scope="admin",
            now=now,
            rng=rng,
            expires_at=now + SESSION_LIFETIME,
        )
        session = start_session(connection, token.id, now)
    return _logged_in(app, session, "/")


def _refuse_login(request: Request, notice: str, following: str) -> Response:
    return page(
        request, "login.html", status=HTTPStatus.FORBIDDEN, following=following, notice=notice
    )


def _logged_in(app: AppState, session: str, target: str) -> Response:
    response = RedirectResponse(target, HTTPStatus.SEE_OTHER)
    app.sessions.set_session(response, session)
    return response


@router.post("/logout")
def log_out(request: Request, form_key: Annotated[str, Form(max_length=MAX_LENGTH)]) -> Response:
    """End the session, here and in the library."""
    app, viewer = app_state(request), viewer_of(request)
    require_own_form(request, viewer, form_key)
    if viewer.cookies.session is not None:
        with app.library.database.write() as connection:
            end_session(connection, viewer.cookies.session)
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    app.sessions.remove_session(response)
    return response


def _local_path(address: str) -> str:
    """Check that an address is a path of this site, and not one of another host."""
    if not address.startswith("/") or address[1:2] in {"/", "\\"} or not address.isprintable():
        raise ProblemError(422, "bad-request", "`next` must be a path of this site")
    return address


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """An operation of the API."""

    group: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Mapping[str, Any]]
    has_body: bool
    statuses: list[str]
    accepts_token: bool
    needs_token: bool


@router.get("/docs")
def show_reference(request: Request) -> Response:
    """The API reference."""
    document = request.app.openapi()
    groups: dict[str, list[Operation]] = {}
    for operation in operations(document):
        groups.setdefault(operation.group, []).append(operation)
    return page(request, "reference.html", groups=groups, version=document["info"]["version"])


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """The operations of an OpenAPI document."""
    for path, methods in document["paths"].items():
        for method, details in methods.items():
            security = details.get("security", [])
            yield Operation(
                group=(details.get("tags") or ["other"])[0],
                method=method.upper(),
                path=path,
                summary=details.get("summary", ""),
                description=details.get("description", ""),
                parameters=details.get("parameters", []),
                has_body="requestBody" in details,
                statuses=sorted(details["responses"]),
                accepts_token=bool(security),
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

_API_PATHS: Final = (
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


def make_site(
    library: Library,
    *,
    is_exposed: bool = True,
    needs_login: bool = False,
    login_link: LoginLink | None = None,
) -> FastAPI:
    """Make the application with API and pages; `is_exposed` unless for this machine only."""
    app = make_app(
        library,
        is_exposed=is_exposed,
        needs_login=needs_login,
        login_link=login_link,
        render_error=_error_page,
    )
    app.state.texts = HtmlTexts(library.context)
    app.state.page_cache = PageCache(library.seams.clock)
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    len(library.sources)  # importing them takes a second, which the first request would wait for
    return app


def _error_page(scope: Scope, error: ErrorText) -> Response | None:
    """Render an error as a page, if a page was requested."""
    request = Request(scope)
    if scope["path"].startswith(_API_PATHS):
        return None
    if "text/html" not in request.headers.get("accept", "") and scope["path"] != "/":
        return None
    if error.status == HTTPStatus.UNAUTHORIZED and request.method == "GET":
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?{query({'next': target})}", HTTPStatus.SEE_OTHER)
    return page(
        request,
        "problem.html",
        status=error.status,
        headers=error.headers,
        error=error,
        phrase=HTTPStatus(error.status).phrase,
    )
