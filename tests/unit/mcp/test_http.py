"""Who may reach the server over HTTP."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from fonds.errors import SettingsError
from fonds.mcp.exposure import is_loopback, require_safe
from fonds.mcp.http import TokenGuard


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    require_safe(host, token="", names=[])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", "localhost.evil"])
def test_any_other_address_needs_a_token(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(SettingsError, match="FONDS_MCP_TOKEN"):
        require_safe(host, token="", names=["fonds.example"])
    require_safe(host, token="secret", names=["fonds.example"])


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_every_address_at_once_needs_names(host: str) -> None:
    with pytest.raises(SettingsError, match="--allow-host"):
        require_safe(host, token="secret", names=[])


async def _application(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def _status(headers: list[tuple[bytes, bytes]], *, token: str = "se-crét") -> int:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        await asyncio.sleep(0)
        sent.append(message)

    async def receive() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    asyncio.run(TokenGuard(_application, token)(scope, receive, send))
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"se-cr\xc3\xa9t",
        b"Basic se-cr\xc3\xa9t",
        b"Bearer",
        b"Bearer ",
        b"Bearer se-cr",
        b"Bearer se-cr\xc3\xa9t2",
        b"Bearer \xff\xfe",
    ],
)
def test_wrong_token_is_refused(value: bytes) -> None:
    assert _status([(b"authorization", value)]) == 401


def test_missing_or_repeated_token_is_refused() -> None:
    right = (b"authorization", "Bearer se-crét".encode())
    assert _status([]) == 401
    assert _status([right, right]) == 401


def test_right_token_is_let_through() -> None:
    assert _status([(b"authorization", "Bearer se-crét".encode())]) == 200
    assert _status([(b"authorization", "bearer se-crét".encode())]) == 200
