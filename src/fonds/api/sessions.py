"""Sessions of people: a signed cookie names the token that somebody logged in with.

Nothing is stored for a session. The token is looked up whenever it is used, so that revoking the
token ends all its sessions; logging out removes the cookie.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from starlette.requests import HTTPConnection
from starlette.responses import Response

LASTS: Final = timedelta(hours=12)
SESSION: Final = "fonds_session"
VISIT: Final = "fonds_visit"
"""Names a browser to the forms it is shown, logged in or not."""

_SECURE: Final = "__Host-"
"""Browsers let a cookie of such a name be set by this host alone, and over TLS alone."""
_LONGEST: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionCookies:
    """What the cookies of a request say."""

    nonce: str | None
    token_id: UUID | None
    """Of the token that the session is for; None without a session that is good."""


def new_name() -> str:
    """A name for a browser that has none."""
    return secrets.token_urlsafe(18)


class Sessions:
    """Gives out cookies, and tells its own from others."""

    def __init__(self, secret: bytes, *, is_secure: bool) -> None:
        self._secret = secret
        self._is_secure = is_secure
        self._prefix = _SECURE if is_secure else ""

    def visit(self, request: HTTPConnection, now: datetime) -> SessionCookies:
        """Read the cookies of a request; what is not ours counts as absent."""
        return SessionCookies(
            nonce=self._opened("visit", request.cookies.get(self._prefix + VISIT)),
            token_id=self._token(request, now),
        )

    def begin(self, response: Response, token_id: UUID, now: datetime) -> None:
        """Log somebody in, with the token of that id."""
        content = json.dumps([token_id.hex, int((now + LASTS).timestamp())])
        self._set(response, SESSION, self._sealed("session", content), LASTS)

    def end(self, response: Response) -> None:
        """Log out."""
        response.delete_cookie(
            self._prefix + SESSION, secure=self._is_secure, httponly=True, samesite="lax"
        )

    def name(self, response: Response, nonce: str) -> None:
        """Give a browser the name that the forms it is shown were made for."""
        self._set(response, VISIT, self._sealed("visit", nonce), None)

    def form_key(self, nonce: str, token_id: UUID | None) -> str:
        """What a form must bring back that was shown in this session of this browser."""
        return self._signature("form", f"{nonce} {token_id}")

    def is_own_form(self, visit: SessionCookies, given: str) -> bool:
        """Whether a form was shown to the same browser, in the same session."""
        if visit.nonce is None:
            return False
        expected = self.form_key(visit.nonce, visit.token_id)
        return hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))

    def _token(self, request: HTTPConnection, now: datetime) -> UUID | None:
        content = self._opened("session", request.cookies.get(self._prefix + SESSION))
        if content is None:
            return None
        with suppress(ValueError):
            token_id, until = json.loads(content)
            return UUID(token_id) if now.timestamp() < until else None
        return None

    def _set(self, response: Response, name: str, value: str, lasts: timedelta | None) -> None:
        response.set_cookie(
            self._prefix + name,
            value,
            max_age=int(lasts.total_seconds()) if lasts else None,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="lax",
        )

    def _sealed(self, purpose: str, content: str) -> str:
        return f"{_coded(content.encode())}.{self._signature(purpose, content)}"

    def _opened(self, purpose: str, value: str | None) -> str | None:
        if not value or len(value) > _LONGEST or not value.isascii():
            return None
        coded, _, signature = value.partition(".")
        with suppress(ValueError):
            content = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
            expected = self._signature(purpose, content)
            return content if hmac.compare_digest(expected, signature) else None
        return None

    def _signature(self, purpose: str, content: str) -> str:
        # The purpose is signed too: a cookie of one kind is never good as another.
        signed = json.dumps(["fonds:session:1", purpose, content]).encode()
        return _coded(hmac.digest(self._secret, signed, "sha256"))


def _coded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
