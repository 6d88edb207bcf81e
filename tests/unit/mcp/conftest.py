"""The server in this process, asked by the official client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from mcp import Client
from mcp.types import CallToolResult
from tests.unit.mcp.small import small_library

from fonds.library import Library
from fonds.mcp.server import make_server, open_for_reading
from fonds.settings import read_settings


class Ask(Protocol):
    """Calls a tool and gives its structured content; an error fails the test."""

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]: ...


class Refuse(Protocol):
    """Calls a tool that must refuse, and gives the error."""

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]: ...


@pytest.fixture(scope="session")
def library() -> Iterator[Library]:
    with open_for_reading(read_settings({"home": small_library()}, environ={})) as opened:
        yield opened


def call(library: Library, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    async def exchange() -> CallToolResult:
        async with Client(make_server(library)) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(exchange())


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


@pytest.fixture
def ask(library: Library) -> Ask:
    def asked(tool: str, **arguments: Any) -> dict[str, Any]:
        result = call(library, tool, arguments)
        assert not result.is_error, text_of(result)
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    return asked


@pytest.fixture
def refuse(library: Library) -> Refuse:
    def refused(tool: str, **arguments: Any) -> dict[str, Any]:
        result = call(library, tool, arguments)
        assert result.is_error, result.structured_content
        assert isinstance(result.structured_content, dict)
        error: dict[str, Any] = result.structured_content["error"]
        assert set(error) == {"code", "message", "hint"}
        assert all(error.values())
        assert text_of(result).startswith(f"{error['code']}: ")
        assert len(text_of(result)) < 3000
        assert "Traceback" not in text_of(result)
        return error

    return refused
