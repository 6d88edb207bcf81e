"""Cookies of browser sessions and forms, and the link that logs in an operator.

The cookie of a session has a random value, of which the library stores the hash: see
`uploads/logins.py`.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from fonds.seams import Clock
from fonds.serving import LINK_MINUTES
from fonds.uploads.logins import SESSION_LIFETIME

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
    session: str | None
    """The value by which the library knows the session; it may have ended."""


def new_nonce() -> str:
    """A random value that identifies a browser."""
    return secrets.token_urlsafe(18)


class Sessions:
    """Sets and verifies the cookies of sessions and forms."""

    def __init__(self, secret: bytes, *, is_secure: bool) -> None:
        self._secret = secret
        self._is_secure = is_secure
        self._prefix = _SECURE if is_secure else ""

    def cookies(self, request: HTTPConnection) -> SessionCookies:
        """Read the cookies of a request; those with invalid signatures count as absent."""
        return SessionCookies(
            nonce=self._verified("visit", request.cookies.get(self._prefix + BROWSER)),
            session=self._verified("session", request.cookies.get(self._prefix + SESSION)),
        )

    def set_session(self, response: Response, session: str) -> None:
        """Store in the browser the value of its session."""
        self._set(response, SESSION, self._signed("session", session), SESSION_LIFETIME)

    def remove_session(self, response: Response) -> None:
        """Remove from the browser the value of its session."""
        response.delete_cookie(
            self._prefix + SESSION, secure=self._is_secure, httponly=True, samesite="lax"
        )

    def set_nonce(self, response: Response, nonce: str) -> None:
        """Store in the browser the nonce of the forms on this page."""
        self._set(response, BROWSER, self._signed("visit", nonce), None)

    def form_key(self, nonce: str, session: str | None) -> str:
        """The key that forms of this browser and session must contain."""
        return self._signature("form", f"{nonce} {session}")

    def is_own_form(self, cookies: SessionCookies, form_key: str) -> bool:
        """Whether a form was made for this browser and session."""
        if cookies.nonce is None:
            return False
        expected = self.form_key(cookies.nonce, cookies.session)
        return hmac.compare_digest(expected.encode(), form_key.encode("utf-8", "replace"))

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


class LoginLink:
    """The secret in a link that logs in one browser, once, soon after the server has started."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = clock.monotonic() + LINK_MINUTES * 60
        self._secret: str | None = secrets.token_urlsafe(32)
        self._lock = Lock()

    def path(self) -> str:
        """The path of the link, which must not be logged."""
        return f"/login/link?key={self._secret}"

    def redeem(self, key: str) -> bool:
        """True for the secret, the first time and in time; it is of no use afterwards."""
        with self._lock:
            secret = self._secret
            if secret is None or not hmac.compare_digest(
                secret.encode(), key.encode("utf-8", "replace")
            ):
                return False
            self._secret = None
            return self._clock.monotonic() < self._until
