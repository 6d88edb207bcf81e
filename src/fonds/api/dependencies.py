"""What all handlers hold: the library, who is calling, and addresses that allow one thing.

How often one client may ask; each has a bucket that fills at a steady rate.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from math import ceil
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, urlsplit
from uuid import UUID

from fastapi import Request
from sqlalchemy import Connection

from fonds.api.middleware import Traffic
from fonds.api.problems import ProblemError
from fonds.api.sessions import Sessions
from fonds.context import Context
from fonds.library import Library
from fonds.seams import Clock
from fonds.serving import is_loopback
from fonds.stores.blobs import Method
from fonds.stores.columns import format_timestamp
from fonds.uploads.signing import Signer
from fonds.uploads.users import Caller, Scope, authenticate, caller_of_token, user_by_name

VALID_FOR: Final = timedelta(minutes=5)
"""How long a signed address may be used."""

LOCAL: Final = "local"
"""The user who is whoever sits at this machine, where nobody else reaches the server."""
NOBODY: Final = UUID(int=0)
"""An id that no user and no token has."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")


@dataclass(kw_only=True, slots=True)
class Figures:
    """The figures as they were counted last."""

    text: str | None = None
    at: float = 0.0
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, kw_only=True, slots=True)
class AppState:
    """One for an application; shared by all its threads."""

    library: Library
    context: Context
    signer: Signer
    sessions: Sessions
    is_exposed: bool
    """Whether others than this machine reach the server."""
    needs_login: bool = False
    """Whether whoever sits at this machine must show a token too."""
    figures: Figures = field(default_factory=Figures)
    traffic: Traffic = field(default_factory=Traffic)

    def now(self) -> datetime:
        """The moment of a request."""
        return self.library.seams.clock.now()

    def caller(self, request: Request) -> Caller:
        """Who calls, looked up in a transaction of its own."""
        with self.library.database.read() as connection:
            return self.known_caller(request, connection)

    def known_caller(self, request: Request, connection: Connection) -> Caller:
        """Who calls; 401 for whoever does not say so."""
        caller = self.any_caller(request, connection)
        if caller is None:
            raise _unauthorized("send a token, as Authorization: Bearer fonds_…", "")
        return caller

    def any_caller(self, request: Request, connection: Connection) -> Caller | None:
        """Who calls, or None without token and session; 401 for a token good for nothing."""
        given = request.headers.getlist("authorization")
        if not given:
            return self.in_session(request, connection)
        scheme, _, secret = given[0].partition(" ")
        if len(given) == 1 and scheme.lower() == "bearer":
            caller = authenticate(connection, secret.strip(), self.now())
            if caller is not None:
                return caller
        raise _unauthorized(
            "the token is wrong, revoked or out of date; `fonds token create` makes another",
            ', error="invalid_token"',
        )

    def owner(self, request: Request) -> UUID | None:
        """The user whose uploads are shown beside what is public; nobody is asked to say."""
        if "authorization" not in request.headers and "cookie" not in request.headers:
            return None
        with self.library.database.read() as connection:
            caller = self.any_caller(request, connection)
        return None if caller is None else caller.user_id

    def in_session(self, request: Request, connection: Connection) -> Caller | None:
        """Who is logged in; nobody, if a page of somebody else's may have sent the request."""
        now = self.now()
        token_id = self.sessions.visit(request, now).token_id
        if token_id is None or not is_our_own(request):
            return None
        return caller_of_token(connection, token_id, now)

    def operator(self, request: Request, connection: Connection) -> Caller:
        """Who may look after the library: a token or session of the scope admin, or local."""
        caller = self.any_caller(request, connection) or self.local(request, connection)
        if caller is None:
            caller = self.known_caller(request, connection)
        require_scope(caller, "admin")
        return caller

    def local(self, request: Request, connection: Connection) -> Caller | None:
        """Whoever sits at this machine, if nobody else can have asked."""
        if self.needs_login or not self.is_local(request) or not is_our_own(request):
            return None
        user_id = user_by_name(connection, LOCAL) or NOBODY
        return Caller(user_id=user_id, user_name=LOCAL, scope="admin", token_id=NOBODY)

    def is_local(self, request: Request) -> bool:
        """Whether only this machine can have asked, not even a web page under another name."""
        host = request.headers.get("host", "")
        name = urlsplit(f"//{host}").hostname if _HOST.fullmatch(host) else None
        return not self.is_exposed and name is not None and is_loopback(name)

    def address(self, request: Request, path: str) -> str:
        """A path of ours as the client reaches it."""
        if public := self.library.settings.public_url:
            return public + path
        host = request.headers.get("host", "")
        return f"{request.scope['scheme']}://{host}{path}" if _HOST.fullmatch(host) else path

    def signed(
        self, request: Request, method: Method, key: str, *, filename: str | None = None
    ) -> dict[str, Any]:
        """An address that allows this for five minutes: the store's own, or else one of ours."""
        until = self.now() + VALID_FOR
        seconds = int(VALID_FOR.total_seconds())
        theirs = self.library.blobs.sign(method, key, seconds) if "#" not in key else None
        if theirs is not None:
            url, headers = theirs.url, dict(theirs.headers)
        else:
            query = self.signer.sign(method, key, int(until.timestamp()), filename=filename)
            url, headers = self.address(request, f"/files/{quote(key)}?{query}"), {}
        return {
            "url": url,
            "method": method,
            "headers": headers,
            "expires_at": format_timestamp(until),
        }


def desk_of(request: Request) -> AppState:
    """The desk of the application that was asked."""
    desk: AppState = request.app.state.desk
    return desk


def is_our_own(request: Request) -> bool:
    """Whether a request changes nothing, or comes from a page of ours or from no page at all."""
    if request.method in _SAFE:
        return True
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def require_scope(caller: Caller, *scopes: Scope) -> None:
    """Refuse a token that is not good for this."""
    if caller.scope not in scopes:
        needed = " or ".join(scopes)
        raise ProblemError(403, "scope", f"this needs a token of the scope {needed}")


def unknown_job() -> ProblemError:
    """The same answer for a job that is another's and for one that nobody has."""
    return ProblemError(404, "unknown-job", "you have no upload with this id")


def _unauthorized(detail: str, reason: str) -> ProblemError:
    challenge = {"WWW-Authenticate": f'Bearer realm="fonds"{reason}'}
    return ProblemError(401, "unauthorized", detail, headers=challenge)


MOST_CLIENTS: Final = 10_000
"""Whoever has not asked for longest is forgotten, and begins with a full bucket."""


@dataclass(slots=True)
class _ClientBucket:
    tokens: float
    at: float


class Limit:
    """So many at once, and so many a second."""

    def __init__(self, *, burst: int, per_second: float, clock: Clock) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, _ClientBucket] = OrderedDict()
        self._lock = Lock()

    def wait(self, client: str) -> float:
        """Take one; the seconds until there is one again, or 0 if it was given."""
        now = self._clock.monotonic()
        with self._lock:
            bucket = self._buckets.pop(client, None) or _ClientBucket(self._burst, now)
            filled = bucket.tokens + (now - bucket.at) * self._per_second
            bucket.tokens, bucket.at = min(self._burst, filled), now
            self._buckets[client] = bucket
            if len(self._buckets) > MOST_CLIENTS:
                self._buckets.popitem(last=False)
            if bucket.tokens < 1:
                return (1 - bucket.tokens) / self._per_second
            bucket.tokens -= 1
            return 0.0


def refuse_hurry(request: Request, what: str) -> None:
    """Answer 429 to a client that asks too often; where nobody else is served, as often as wanted.

    Guesses at a token are counted everywhere.
    """
    desk = desk_of(request)
    if what != "login" and not desk.is_exposed:
        return
    limits: dict[str, Limit] = request.app.state.limits
    wait = limits[what].wait(request.client.host if request.client else "")
    if wait:
        raise ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too-many-requests",
            f"this was asked too often; try again in {ceil(wait)} seconds",
            headers={"Retry-After": str(ceil(wait))},
        )


def make_limits(clock: Clock) -> dict[str, Limit]:
    """How often each client may search, and try to log in."""
    return {
        "search": Limit(burst=30, per_second=5, clock=clock),
        "login": Limit(burst=5, per_second=5 / 60, clock=clock),
    }
