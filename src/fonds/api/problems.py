"""Error responses as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy import exc as database_errors
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from fonds.errors import (
    AddressRefusedError,
    BlobMissingError,
    DatabaseUnavailableError,
    EmbedError,
    EngineError,
    FondsError,
    GateError,
    LeaseLostError,
    ParseError,
    SettingsError,
    StoreError,
    UnknownDocumentError,
    UploadRefusedError,
    UsageError,
    WebhookError,
    WorkerDiedError,
)

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = {"Retry-After": "5"}
"""Seconds after which an unavailable service is worth another try."""

_MAX_INSTANCE_LENGTH: Final = 500
_MAX_FIELD_ERRORS: Final = 20
_NON_LETTERS: Final = re.compile(r"[^a-z]+")

_BY_KIND: Final = {
    "not-there": 409,
    "too-large": 413,
    "unsigned": 401,
    "bad-signature": 401,
    "stale": 401,
    "replayed": 409,
    "unknown-job": 404,
    "being-deleted": 409,
    "too-many": 429,
    "malformed": 400,
}
"""HTTP status by the kind of a rejected upload or webhook; 422 otherwise."""

_BY_TYPE: Final[tuple[tuple[type[FondsError], int, str, str], ...]] = (
    (UnknownDocumentError, 404, "unknown-document", ""),
    (UsageError, 422, "bad-request", ""),
    (GateError, 409, "gate", ""),
    (LeaseLostError, 409, "moved-on", "the job changed in the meantime; read it again"),
    (BlobMissingError, 404, "file-missing", "the file is not in the store"),
    (
        DatabaseUnavailableError,
        503,
        "database-unavailable",
        "the database does not respond; try again",
    ),
    (StoreError, 503, "store-unavailable", "the object store does not respond; try again"),
    (ParseError, 422, "unreadable", ""),
    (WorkerDiedError, 503, "reader-died", "the process that read the file has ended; try again"),
    (EngineError, 422, "unreadable", ""),
    (EmbedError, 503, "model-unavailable", "the embedding model does not respond; try again"),
)
"""The first match applies; an empty detail means the text of the error."""

_DATABASE_DOWN: Final = (
    database_errors.OperationalError,
    database_errors.InterfaceError,
    database_errors.TimeoutError,
)


class ProblemError(HTTPException):
    """A request that the API rejects; clients distinguish the reason by `kind`."""

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorText:
    """Status and text of an error response."""

    status: int
    kind: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self, path: str, **more: Any) -> dict[str, Any]:
        """The problem document of a request to this path."""
        return {
            "type": f"urn:fonds:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "instance": quote(path[:_MAX_INSTANCE_LENGTH]),
            "kind": self.kind,
            **more,
        }


UNEXPECTED: Final = ErrorText(
    status=500, kind="unexpected", detail="unexpected error; the log of the server has details"
)


def error_text(error: Exception) -> ErrorText | None:
    """Status and text for an error; None for an unexpected one."""
    if isinstance(error, ProblemError):
        return ErrorText(
            status=error.status_code,
            kind=error.kind,
            detail=error.detail,
            headers=error.headers or {},
        )
    if isinstance(error, _DATABASE_DOWN):
        return _unavailable("database-unavailable", "the database does not respond; try again")
    return _fonds_error_text(error) if isinstance(error, FondsError) else None


def _fonds_error_text(error: FondsError) -> ErrorText | None:
    if isinstance(error, UploadRefusedError | WebhookError):
        status = _BY_KIND.get(error.kind, 422)
        headers = {"Retry-After": "60"} if status == HTTPStatus.TOO_MANY_REQUESTS else {}
        return ErrorText(status=status, kind=error.kind, detail=str(error), headers=headers)
    if isinstance(error, AddressRefusedError):
        return ErrorText(status=403, kind=error.kind, detail=str(error))
    if isinstance(error, SettingsError):
        return None  # a client cannot fix it
    for family, status, kind, detail in _BY_TYPE:
        if isinstance(error, family):
            if status == HTTPStatus.SERVICE_UNAVAILABLE:
                return _unavailable(kind, detail)
            return ErrorText(status=status, kind=kind, detail=detail or str(error))
    return None


def _unavailable(kind: str, detail: str) -> ErrorText:
    return ErrorText(status=503, kind=kind, detail=detail, headers=RETRY_AFTER)


def problem_response(text: ErrorText, path: str, **more: Any) -> JSONResponse:
    """The response with a problem document."""
    return JSONResponse(
        text.content(path, **more), text.status, headers=dict(text.headers), media_type=MEDIA_TYPE
    )


ErrorRenderer = Callable[[Scope, ErrorText], Response | None]
"""Renders an error in another format; None for requests that get a problem document."""


def install(app: FastAPI, render_error: ErrorRenderer | None = None) -> None:
    """Respond to every known error with a problem document, or with what `render_error` makes."""
    app.state.render_error = render_error
    for kind in (FondsError, *_DATABASE_DOWN, ProblemError):
        app.add_exception_handler(kind, _handle_expected)
    app.add_exception_handler(HTTPException, _handle_http)
    app.add_exception_handler(RequestValidationError, _handle_invalid)


def error_response(scope: Scope, text: ErrorText, **more: Any) -> Response:
    """The response to a request that failed."""
    render_error: ErrorRenderer | None = scope["app"].state.render_error
    rendered = render_error(scope, text) if render_error is not None else None
    return rendered or problem_response(text, scope["path"], **more)


async def _handle_expected(request: Request, error: Exception) -> Response:
    text = error_text(error)
    if text is None:
        raise error
    return error_response(request.scope, text)


async def _handle_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    kind = _NON_LETTERS.sub("-", phrase.lower())
    # The framework's own texts add nothing to the phrase.
    text = ErrorText(
        status=error.status_code, kind=kind, detail=phrase.lower(), headers=error.headers or {}
    )
    return error_response(request.scope, text)


async def _handle_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    field_errors = [_field_error(each) for each in error.errors()[:_MAX_FIELD_ERRORS]]
    detail = "; ".join(f"{each['where']}: {each['what']}" for each in field_errors)
    text = ErrorText(status=422, kind="invalid", detail=detail)
    return error_response(request.scope, text, errors=field_errors)


def _field_error(error: Mapping[str, Any]) -> dict[str, str]:
    """Location and message, without the value: it may be a misplaced secret."""
    location = list(error["loc"])
    if error["type"] in {"extra_forbidden", "json_invalid"}:
        location.pop()
    return {"where": ".".join(map(str, location)), "what": str(error["msg"])}
