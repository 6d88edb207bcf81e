"""State shared by all handlers: the library, authentication, signed addresses and rate limits."""

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

from fonds.api.clients import ClientAddresses, parse_address, proxy_trace
from fonds.api.middleware import RequestMetrics
from fonds.api.problems import ProblemError
from fonds.api.sessions import LoginLink, Sessions
from fonds.connections import IS_OWN_USER
from fonds.context import Context
from fonds.library import Library
from fonds.maintenance.store_monitor import StoreMonitor
from fonds.seams import Clock
from fonds.serving import is_loopback
from fonds.stores.blobs import Method
from fonds.stores.columns import format_timestamp
from fonds.uploads.logins import caller_of_session, count_failed_login
from fonds.uploads.signing import Signer
from fonds.uploads.users import Caller, Scope, authenticate, user_by_name

VALID_FOR: Final = timedelta(minutes=5)
"""How long a signed address may be used."""

LOCAL: Final = "local"
"""The user of requests from this machine without a token, where it serves no other machine."""
NIL_ID: Final = UUID(int=0)
"""An id that belongs to no user and no token."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")


@dataclass(kw_only=True, slots=True)
class CachedMetrics:
    """The metrics as they were last rendered."""

    text: str | None = None
    at: float = 0.0
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, kw_only=True, slots=True)
class AppState:
    """The state of one application, shared by all its threads."""

    library: Library
    context: Context
    signer: Signer
    sessions: Sessions
    addresses: ClientAddresses
    is_exposed: bool
    """Whether other machines can reach the server."""
    needs_login: bool = False
    """Whether requests from this machine need a token, too."""
    login_link: LoginLink | None = None
    metrics: CachedMetrics = field(default_factory=CachedMetrics)
    request_metrics: RequestMetrics = field(default_factory=RequestMetrics)
    store_monitor: StoreMonitor

    def now(self) -> datetime:
        """The current time."""
        return self.library.seams.clock.now()

    def caller(self, request: Request) -> Caller:
        """The authenticated caller, read in a separate transaction; 401 without one."""
        with self.library.database.read() as connection:
            return self.require_caller(request, connection)

    def require_caller(self, request: Request, connection: Connection) -> Caller:
        """The authenticated caller; 401 without one."""
        caller = self.find_caller(request, connection)
        if caller is None:
            raise _unauthorized(
                "a token is required: send the header Authorization: Bearer fonds_…", ""
            )
        return caller

    def find_caller(self, request: Request, connection: Connection) -> Caller | None:
        """The authenticated caller; None without token and session, 401 for an invalid token."""
        headers = request.headers.getlist("authorization")
        if not headers:
            return self.session_caller(request, connection)
        scheme, _, secret = headers[0].partition(" ")
        if len(headers) == 1 and scheme.lower() == "bearer":
            caller = authenticate(connection, secret.strip(), self.now())
            if caller is not None:
                return caller
        raise _unauthorized(
            "the token is wrong, revoked or expired; create one with `fonds token create`",
            ', error="invalid_token"',
        )

    def owner(self, request: Request) -> UUID | None:
        """The user whose uploads are visible in addition to public documents, if any."""
        if "authorization" not in request.headers and "cookie" not in request.headers:
            return None
        with self.library.database.read() as connection:
            caller = self.find_caller(request, connection)
        return None if caller is None else caller.user_id

    def session_caller(self, request: Request, connection: Connection) -> Caller | None:
        """The logged-in user; None if a page of another site may have sent the request."""
        session = self.sessions.cookies(request).session
        if session is None or not is_same_origin(request):
            return None
        return caller_of_session(connection, session, self.now())

    def require_operator(self, request: Request, connection: Connection) -> Caller:
        """The caller, who must have a token of the scope admin."""
        caller = self.require_caller(request, connection)
        require_scope(caller, "admin")
        return caller

    def local_caller(self, request: Request, connection: Connection) -> Caller | None:
        """The local user, who may upload, if the request can only have come from this machine."""
        if not self.is_local(request) or not is_same_origin(request):
            return None
        user_id = user_by_name(connection, LOCAL) or NIL_ID
        return Caller(user_id=user_id, user_name=LOCAL, scope="user", token_id=NIL_ID)

    def is_local(self, request: Request) -> bool:
        """True if a request needs no token for what the local user may do.

        A proxy may leave no trace; but as a service it runs as another user of this machine.
        """
        is_own_user = request.scope.get("state", {}).get(IS_OWN_USER)
        return not self.needs_login and is_own_user is not False and self.is_direct(request)

    def is_direct(self, request: Request) -> bool:
        """Whether a request comes from this machine, without a proxy and by a name of this machine.

        A proxy that leaves no trace cannot be noticed, so operators always need a token.
        """
        if self.is_exposed or request.client is None or proxy_trace(request) is not None:
            return False
        peer = parse_address(request.client.host)
        host = request.headers.get("host", "")
        name = urlsplit(f"//{host}").hostname if _HOST.fullmatch(host) else None
        return peer is not None and peer.is_loopback and name is not None and is_loopback(name)

    def address(self, request: Request, path: str) -> str:
        """The absolute address of a path of this server, as the client reaches it."""
        if public := self.library.settings.public_url:
            return public + path
        host = request.headers.get("host", "")
        return f"{request.scope['scheme']}://{host}{path}" if _HOST.fullmatch(host) else path

    def signed(
        self, request: Request, method: Method, key: str, *, filename: str | None = None
    ) -> dict[str, Any]:
        """An address valid for five minutes: signed by the object store, or else by this server."""
        until = self.now() + VALID_FOR
        seconds = int(VALID_FOR.total_seconds())
        presigned = self.library.blobs.sign(method, key, seconds) if "#" not in key else None
        if presigned is not None:
            url, headers = presigned.url, dict(presigned.headers)
        else:
            query = self.signer.sign(method, key, int(until.timestamp()), filename=filename)
            url, headers = self.address(request, f"/files/{quote(key)}?{query}"), {}
        return {
            "url": url,
            "method": method,
            "headers": headers,
            "expires_at": format_timestamp(until),
        }


def app_state(request: Request) -> AppState:
    """The shared state of the application that serves a request."""
    state: AppState = request.app.state.shared
    return state


def client_address(request: Request) -> str:
    """The address by which limits count the client: its own, also behind a trusted proxy."""
    return app_state(request).addresses.of(request)


def is_same_origin(request: Request) -> bool:
    """Whether a request changes nothing, or was not sent by a page of another site."""
    if request.method in _SAFE:
        return True
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def require_scope(caller: Caller, *scopes: Scope) -> None:
    """Raise 403 unless the token has one of these scopes."""
    if caller.scope not in scopes:
        needed = " or ".join(scopes)
        raise ProblemError(403, "scope", f"a token of the scope {needed} is required")


def unknown_job() -> ProblemError:
    """The same error for a job of another user and for one that does not exist."""
    return ProblemError(404, "unknown-job", "you have no upload with this id")


def _unauthorized(detail: str, reason: str) -> ProblemError:
    challenge = {"WWW-Authenticate": f'Bearer realm="fonds"{reason}'}
    return ProblemError(401, "unauthorized", detail, headers=challenge)


MAX_CLIENTS: Final = 10_000
"""The least recent client is forgotten beyond this, and starts with a full bucket."""


@dataclass(slots=True)
class _ClientBucket:
    tokens: float
    at: float


class RateLimiter:
    """A token bucket for each client."""

    def __init__(self, *, burst: int, per_second: float, clock: Clock) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, _ClientBucket] = OrderedDict()
        self._lock = Lock()

    def acquire(self, client: str) -> float:
        """Take one token: 0 if there was one, else the seconds until the next."""
        now = self._clock.monotonic()
        with self._lock:
            bucket = self._buckets.pop(client, None) or _ClientBucket(self._burst, now)
            filled = bucket.tokens + (now - bucket.at) * self._per_second
            bucket.tokens, bucket.at = min(self._burst, filled), now
            self._buckets[client] = bucket
            if len(self._buckets) > MAX_CLIENTS:
                self._buckets.popitem(last=False)
            if bucket.tokens < 1:
                return (1 - bucket.tokens) / self._per_second
            bucket.tokens -= 1
            return 0.0


def limit_searches(request: Request) -> None:
    """Raise 429 for a client that searches too often; local requests are not limited."""
    if not app_state(request).is_local(request):
        limiter: RateLimiter = request.app.state.search_limiter
        _raise_too_many(limiter.acquire(client_address(request)))


def limit_failed_logins(request: Request) -> None:
    """Count a failed login, and raise 429 for a client with too many of them."""
    app = app_state(request)
    _raise_too_many(count_failed_login(app.library.database, client_address(request), app.now()))


def _raise_too_many(wait: float) -> None:
    if wait:
        raise ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too-many-requests",
            f"too many requests; try again in {ceil(wait)} seconds",
            headers={"Retry-After": str(ceil(wait))},
        )


def make_search_limiter(clock: Clock) -> RateLimiter:
    """The limit of searches, for each client of this server."""
    return RateLimiter(burst=30, per_second=5, clock=clock)
