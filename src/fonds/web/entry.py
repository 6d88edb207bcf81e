"""Logging in with a token, and out again."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from fonds.api.desk import desk_of
from fonds.api.limits import refuse_hurry
from fonds.api.problems import ProblemError
from fonds.uploads.users import authenticate
from fonds.web.frame import page, require_own_form, visitor_of

LONGEST: Final = 2000

_Next = Annotated[str, Query(max_length=LONGEST)]

router: Final = APIRouter()


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
