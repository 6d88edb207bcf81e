"""Who may reach the server over HTTP, and as whom."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.exc import OperationalError
from starlette.types import Message, Receive, Scope, Send

from fonds.errors import SettingsError
from fonds.mcp.http import TokenGuard
from fonds.mcp.server import OWNER
from fonds.serving import is_exposed, is_loopback, require_safe
from fonds.uploads.users import Caller

MARIA = Caller(user_id=UUID(int=1), user_name="maria", scope="user", token_id=UUID(int=2))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    assert not is_exposed(host, [])
    require_safe(host, names=[], has_token=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", "localhost.evil"])
def test_any_other_address_needs_a_token(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(SettingsError, match="fonds token create"):
        require_safe(host, names=["fonds.example"], has_token=False)
    require_safe(host, names=["fonds.example"], has_token=True)


def test_loopback_with_a_name_outside_needs_a_token() -> None:
    assert is_exposed("127.0.0.1", ["fonds.example"])
    with pytest.raises(SettingsError, match=r"127\.0\.0\.1, fonds\.example.*fonds token create"):
        require_safe("127.0.0.1", names=["fonds.example"], has_token=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_every_address_at_once_needs_names(host: str) -> None:
    with pytest.raises(SettingsError, match="--allow-host"):
        require_safe(host, names=[], has_token=True)


class Exchange:
    """One request to an application behind the guard, and what came of it."""

    def __init__(self, headers: list[tuple[bytes, bytes]], *, is_required: bool = True) -> None:
        self.owner: Any = "nobody was asked"
        self.sent: list[Message] = []
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
        guard = TokenGuard(self._application, self._authenticate, is_required=is_required)
        asyncio.run(guard(scope, self._receive, self._send))

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> Any:
        return json.loads(self.sent[1]["body"])

    async def _application(self, scope: Scope, _receive: Receive, send: Send) -> None:
        self.owner = scope[OWNER]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def _send(self, message: Message) -> None:
        await asyncio.sleep(0)
        self.sent.append(message)

    async def _receive(self) -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": False}

    def _authenticate(self, secret: str) -> Caller | None:
        if secret == "down":
            raise OperationalError("SELECT", {}, Exception("no connection"))
        return MARIA if secret == "se-cret" else None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"se-cret",
        b"Basic se-cret",
        b"Bearer",
        b"Bearer ",
        b"Bearer se-cre",
        b"Bearer se-cret2",
        b"Bearer \xff\xfe",
    ],
)
def test_wrong_token_is_refused_wherever_the_server_listens(value: bytes) -> None:
    for is_required in (True, False):
        exchange = Exchange([(b"authorization", value)], is_required=is_required)
        assert exchange.status == 401
        assert exchange.body["error"] == "unauthorized"
        assert (b"www-authenticate", b"Bearer") in exchange.sent[0]["headers"]
        assert exchange.owner == "nobody was asked"


def test_missing_or_repeated_token_is_refused() -> None:
    right = (b"authorization", b"Bearer se-cret")
    assert Exchange([]).status == 401
    assert Exchange([right, right]).status == 401
    assert Exchange([right, right], is_required=False).status == 401


def test_every_refusal_looks_the_same() -> None:
    bodies = [
        Exchange(headers).sent
        for headers in ([], [(b"authorization", b"Bearer x")], [(b"authorization", b"Basic x")])
    ]
    assert bodies[0] == bodies[1] == bodies[2]


@pytest.mark.parametrize("value", [b"Bearer se-cret", b"bearer se-cret"])
def test_right_token_says_who_asks(value: bytes) -> None:
    exchange = Exchange([(b"authorization", value)])
    assert exchange.status == 200
    assert exchange.owner == MARIA.user_id


def test_nobody_is_let_through_where_tokens_are_not_required() -> None:
    exchange = Exchange([], is_required=False)
    assert exchange.status == 200
    assert exchange.owner is None


def test_database_that_does_not_answer_lets_nobody_in() -> None:
    exchange = Exchange([(b"authorization", b"Bearer down")])
    assert exchange.status == 503
    assert exchange.body["error"] == "unavailable"
    assert exchange.owner == "nobody was asked"
