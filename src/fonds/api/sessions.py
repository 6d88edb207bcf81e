"""Browser sessions: a signed cookie names the token that was used to log in.

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

SESSION_LIFETIME: Final = timedelta(hours=12)
SESSION: Final = "fonds_session"
BROWSER: Final = "fonds_visit"
"""The cookie that ties forms to a browser, logged in or not."""

_SECURE: Final = "__Host-"
"""A prefix of cookie names that browsers accept only from this host and over TLS."""
_MAX_COOKIE_LENGTH: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionCookies:
    """The verified cookies of a request."""

    nonce: str | None
    token_id: UUID | None
    """The token of the session; None without a valid session."""


def new_nonce() -> str:
    """A random value that identifies a browser."""
    return secrets.token_urlsafe(18)


class Sessions:
    """Sets and verifies the cookies of sessions and forms."""

    def __init__(self, secret: bytes, *, is_secure: bool) -> None:
        self._secret = secret
        self._is_secure = is_secure
        self._prefix = _SECURE if is_secure else ""

    def cookies(self, request: HTTPConnection, now: datetime) -> SessionCookies:
        """Read the cookies of a request; those with invalid signatures count as absent."""
        return SessionCookies(
            nonce=self._verified("visit", request.cookies.get(self._prefix + BROWSER)),
            token_id=self._token(request, now),
        )

    def begin(self, response: Response, token_id: UUID, now: datetime) -> None:
        """Log in with the token of this id."""
        content = json.dumps([token_id.hex, int((now + SESSION_LIFETIME).timestamp())])
        self._set(response, SESSION, self._signed("session", content), SESSION_LIFETIME)

    def end(self, response: Response) -> None:
        """Log out."""
        response.delete_cookie(
            self._prefix + SESSION, secure=self._is_secure, httponly=True, samesite="lax"
        )

    def set_nonce(self, response: Response, nonce: str) -> None:
        """Store in the browser the nonce of the forms on this page."""
        self._set(response, BROWSER, self._signed("visit", nonce), None)

    def form_key(self, nonce: str, token_id: UUID | None) -> str:
        """The key that forms of this browser and session must contain."""
        return self._signature("form", f"{nonce} {token_id}")

    def is_own_form(self, cookies: SessionCookies, form_key: str) -> bool:
        """Whether a form was made for this browser and session."""
        if cookies.nonce is None:
            return False
        expected = self.form_key(cookies.nonce, cookies.token_id)
        return hmac.compare_digest(expected.encode(), form_key.encode("utf-8", "replace"))

    def _token(self, request: HTTPConnection, now: datetime) -> UUID | None:
        content = self._verified("session", request.cookies.get(self._prefix + SESSION))
        if content is None:
            return None
        with suppress(ValueError):
            token_id, until = json.loads(content)
            return UUID(token_id) if now.timestamp() < until else None
        return None

    def _set(self, response: Response, name: str, value: str, max_age: timedelta | None) -> None:
        response.set_cookie(
            self._prefix + name,
            value,
            max_age=int(max_age.total_seconds()) if max_age else None,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="lax",
        )

    def _signed(self, purpose: str, content: str) -> str:
        return f"{_base64(content.encode())}.{self._signature(purpose, content)}"

    def _verified(self, purpose: str, value: str | None) -> str | None:
        if not value or len(value) > _MAX_COOKIE_LENGTH or not value.isascii():
            return None
        coded, _, signature = value.partition(".")
        with suppress(ValueError):
            content = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
            expected = self._signature(purpose, content)
            return content if hmac.compare_digest(expected, signature) else None
        return None

    def _signature(self, purpose: str, content: str) -> str:
        # The purpose is signed, too: a cookie of one kind is never valid as another.
        signed = json.dumps(["fonds:session:1", purpose, content]).encode()
        return _base64(hmac.digest(self._secret, signed, "sha256"))


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
