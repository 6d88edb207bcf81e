"""Errors as `application/problem+json` (RFC 9457): one shape for whatever goes wrong."""

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
    EmbedError,
    FondsError,
    GateError,
    LeaseLostError,
    SettingsError,
    StoreError,
    UnknownDocumentError,
    UploadRefusedError,
    UsageError,
    WebhookError,
)

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = {"Retry-After": "5"}
"""Seconds after which what does not answer may be there again."""

_LONGEST_INSTANCE: Final = 500
_MOST_COMPLAINTS: Final = 20
_NO_WORD: Final = re.compile(r"[^a-z]+")

_BY_KIND: Final = {
    "not-there": 409,
    "too-large": 413,
    "unsigned": 401,
    "bad-signature": 401,
    "stale": 401,
    "replayed": 409,
    "unknown-job": 404,
    "malformed": 400,
}
"""Statuses of uploads and webhooks that are refused; 422 is any other kind."""

_BY_TYPE: Final[tuple[tuple[type[FondsError], int, str, str], ...]] = (
    (UnknownDocumentError, 404, "unknown-document", ""),
    (UsageError, 422, "bad-request", ""),
    (GateError, 409, "gate", ""),
    (LeaseLostError, 409, "moved-on", "the job has moved on; look again"),
    (BlobMissingError, 404, "file-missing", "the file is not in the store"),
    (StoreError, 503, "store-unavailable", "the object store does not answer; try again"),
    (EmbedError, 503, "model-unavailable", "the model for vectors does not answer; try again"),
)
"""The first that fits; an empty detail is the error's own text, which is fit for users."""

_AWAY: Final = (
    database_errors.OperationalError,
    database_errors.InterfaceError,
    database_errors.TimeoutError,
)


class ProblemError(HTTPException):
    """A request that the API itself refuses; `kind` is for programs."""

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorText:
    """What a client is told of an error."""

    status: int
    kind: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, path: str, **more: Any) -> dict[str, Any]:
        """The problem document, for a request to this path."""
        return {
            "type": f"urn:fonds:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "instance": quote(path[:_LONGEST_INSTANCE]),
            "kind": self.kind,
            **more,
        }


UNEXPECTED: Final = ErrorText(
    status=500, kind="unexpected", detail="something went wrong here; the log of the server has it"
)


def told(error: Exception) -> ErrorText | None:
    """What a client is told of an error; None for one that nobody foresaw."""
    if isinstance(error, ProblemError):
        return ErrorText(
            status=error.status_code,
            kind=error.kind,
            detail=error.detail,
            headers=error.headers or {},
        )
    if isinstance(error, _AWAY):
        return _away("database-unavailable", "the database does not answer; try again")
    return _told_of_ours(error) if isinstance(error, FondsError) else None


def _told_of_ours(error: FondsError) -> ErrorText | None:
    if isinstance(error, UploadRefusedError | WebhookError):
        return ErrorText(status=_BY_KIND.get(error.kind, 422), kind=error.kind, detail=str(error))
    if isinstance(error, AddressRefusedError):
        return ErrorText(status=403, kind=error.kind, detail=str(error))
    if isinstance(error, SettingsError):
        return None  # nothing that a client could mend
    for family, status, kind, detail in _BY_TYPE:
        if isinstance(error, family):
            if status == HTTPStatus.SERVICE_UNAVAILABLE:
                return _away(kind, detail)
            return ErrorText(status=status, kind=kind, detail=detail or str(error))
    return None


def _away(kind: str, detail: str) -> ErrorText:
    return ErrorText(status=503, kind=kind, detail=detail, headers=RETRY_AFTER)


def problem(told: ErrorText, path: str, **more: Any) -> JSONResponse:
    """The answer to a request that cannot be answered as it was meant."""
    return JSONResponse(
        told.body(path, **more), told.status, headers=dict(told.headers), media_type=MEDIA_TYPE
    )


Present = Callable[[Scope, ErrorText], Response | None]
"""Tells somebody of an error in another shape than a problem; None for whom that is right."""


def install(app: FastAPI, present: Present | None = None) -> None:
    """Have the app answer every error it knows as a problem, or as `present` shows it."""
    app.state.present = present
    for kind in (FondsError, *_AWAY, ProblemError):
        app.add_exception_handler(kind, _answer_known)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(RequestValidationError, _answer_invalid)


def answer(scope: Scope, known: ErrorText, **more: Any) -> Response:
    """Tell whoever sent a request what went wrong."""
    present: Present | None = scope["app"].state.present
    shown = present(scope, known) if present is not None else None
    return shown or problem(known, scope["path"], **more)


async def _answer_known(request: Request, error: Exception) -> Response:
    known = told(error)
    if known is None:
        raise error
    return answer(request.scope, known)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    kind = _NO_WORD.sub("-", phrase.lower())
    # The framework's own words say no more than the phrase.
    known = ErrorText(
        status=error.status_code, kind=kind, detail=phrase.lower(), headers=error.headers or {}
    )
    return answer(request.scope, known)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    complaints = [_complaint(each) for each in error.errors()[:_MOST_COMPLAINTS]]
    detail = "; ".join(f"{each['where']}: {each['what']}" for each in complaints)
    known = ErrorText(status=422, kind="invalid", detail=detail)
    return answer(request.scope, known, errors=complaints)


def _complaint(error: Mapping[str, Any]) -> dict[str, str]:
    """Where and what, without what was sent: it may be a secret in the wrong place."""
    place = list(error["loc"])
    if error["type"] in {"extra_forbidden", "json_invalid"}:
        place.pop()
    return {"where": ".".join(map(str, place)), "what": str(error["msg"])}
