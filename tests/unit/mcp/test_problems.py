"""Whatever is asked, there is an answer or a structured error."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import OperationalError
from tests.unit.mcp.conftest import Refuse, call, text_of
from tests.unit.mcp.small import LONG

from fonds.errors import (
    EmbedError,
    SettingsError,
    StoreError,
    UnknownDocumentError,
    UnknownSourceError,
    UsageError,
)
from fonds.library import Library
from fonds.mcp.schemas import MAX_MESSAGE_LENGTH, InvalidCallError, problem_of
from fonds.mcp.server import CONCURRENCY, make_server

TOOLS = {
    "search",
    "get_document",
    "get_passage",
    "browse_code",
    "resolve_citation",
    "check_quote",
    "list_sources",
}
HOSTILE = [
    "' OR 1=1; DROP TABLE documents; --",
    'title:"x" AND NEAR(a b, 2) *^ {col} : -',
    '"""((((',
    "NOT NOT NOT",
    "%_\\%",
    "../../../etc/passwd",
    "🦆" * 400,
    "\u202e\u0007\x1b[2J",
    "\ufeff \u00a0",
    "a" * 500,
    "x#y#z#0",
    "{}",
    "[1,2]",
    "null",
    "#0",
    "-",
]
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("search", {}),
    ("search", {"query": ""}),
    ("search", {"query": None}),
    ("search", {"query": {"a": 1}}),
    ("search", {"query": "a\0b"}),
    ("search", {"query": "x" * 10_000}),
    ("search", {"query": "x", "limit": 0}),
    ("search", {"query": "x", "limit": 10**30}),
    ("search", {"query": "x", "offset": -1}),
    ("search", {"query": "x", "limit": "many"}),
    ("search", {"query": "x", "sources": ["no_such_source"]}),
    ("search", {"query": "x", "sources": ["x"] * 51}),
    ("search", {"query": "x", "mode": "guess"}),
    ("search", {"query": "x", "since": "yesterday"}),
    ("search", {"query": "x", "source": "usc"}),
    ("get_document", {"document": LONG, "offset": -1}),
    ("get_document", {"document": LONG, "length": 10**9}),
    ("get_document", {"document": "a\0"}),
    ("get_document", {"document": "x" * 501}),
    ("get_passage", {"passage": f"{LONG}#0", "around": 1000}),
    ("browse_code", {"path": "usc", "offset": 2**63}),
    ("browse_code", {"path": "\0"}),
    ("resolve_citation", {"citation": ["53 USC 103"]}),
    ("resolve_citation", {"citation": "53 USC 103", "as_of": "2025-02-30"}),
    ("check_quote", {"cite": "53 USC 103"}),
    ("check_quote", {"cite": "53 USC 103", "text": "x" * 20_001}),
    ("list_sources", {"verbose": True}),
    ("drop_tables", {}),
]


@pytest.mark.parametrize(("tool", "arguments"), REFUSED)
def test_arguments_that_make_no_sense_are_refused(
    tool: str, arguments: dict[str, Any], refuse: Refuse
) -> None:
    assert refuse(tool, **arguments)["code"] == "bad_request"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_gets_an_answer_or_a_structured_error(text: str, library: Library) -> None:
    questions: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": text}),
        ("search", {"query": "records", "under": text, "kinds": [text], "edition": text}),
        ("get_document", {"document": text}),
        ("get_passage", {"passage": text}),
        ("browse_code", {"path": text}),
        ("resolve_citation", {"citation": text}),
        ("check_quote", {"cite": "53 USC 103", "text": text}),
        ("check_quote", {"cite": text, "text": "records"}),
    ]

    async def exchange() -> None:
        async with Client(make_server(library)) as client:
            for tool, arguments in questions:
                result = await client.call_tool(tool, arguments)
                assert isinstance(result.structured_content, dict)
                if result.is_error:
                    code = result.structured_content["error"]["code"]
                    assert code in {"not_found", "bad_request", "ambiguous"}, (tool, arguments)

    asyncio.run(exchange())


def test_misspelled_argument_is_refused_and_the_right_ones_are_named(refuse: Refuse) -> None:
    error = refuse("search", query="x", source="usc")
    assert "'source'" in error["message"]
    assert "sources" in error["hint"]


def test_tools_are_read_only_described_and_have_schemas(library: Library) -> None:
    async def listed() -> None:
        async with Client(make_server(library)) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS
            for tool in tools:
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint
                assert tool.annotations.destructive_hint is False
                assert tool.output_schema is not None
                assert tool.output_schema["type"] == "object"
                assert len(tool.description or "") > 150
            assert "Cite" in (client.instructions or "")

    asyncio.run(listed())


def test_more_questions_at_once_than_threads_are_all_answered(library: Library) -> None:
    async def exchange() -> list[Any]:
        async with Client(make_server(library)) as client:
            asked = [
                client.call_tool("get_passage", {"passage": f"{LONG}#{number % 4}"})
                for number in range(3 * CONCURRENCY)
            ]
            return [result.structured_content for result in await asyncio.gather(*asked)]

    answers = asyncio.run(exchange())
    assert [answer["asked"] for answer in answers] == [f"{LONG}#{n % 4}" for n in range(24)]


class _Whole(BaseModel):
    number: int


def _invalid() -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        _Whole.model_validate({"number": "secret"})
    return raised.value


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownDocumentError("no"), "not_found"),
        (UnknownSourceError("no"), "bad_request"),
        (UsageError("no"), "bad_request"),
        (SettingsError("no"), "bad_request"),
        (EmbedError("no"), "unavailable"),
        (StoreError("no"), "unavailable"),
        (OSError(13, "Permission denied", "secret"), "unavailable"),
        (OperationalError("SELECT secret", {}, Exception("secret")), "unavailable"),
        (InvalidCallError("ambiguous", "two", hint="Choose."), "ambiguous"),
        (_invalid(), "bad_request"),
    ],
)
def test_error_is_told_by_its_type_and_gives_nothing_away(error: Exception, code: str) -> None:
    problem = problem_of(error)
    assert problem is not None
    assert problem.code == code
    assert "secret" not in problem.message


def test_message_is_bounded() -> None:
    problem = problem_of(UsageError("x" * 100_000))
    assert problem is not None
    assert len(problem.message) == MAX_MESSAGE_LENGTH + 1


def test_what_nobody_foresaw_is_logged_and_not_told(
    library: Library, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(_name: str, **_given: Any) -> None:
        raise ZeroDivisionError("in the engine room")

    monkeypatch.setattr(library, "document", explode)
    with caplog.at_level(logging.ERROR, logger="fonds.mcp"):
        result = call(library, "get_document", {"document": LONG})
    assert result.is_error
    assert "engine room" not in text_of(result)
    assert "engine room" in caplog.text


def test_library_that_vanished_is_unavailable(
    library: Library, monkeypatch: pytest.MonkeyPatch, refuse: Refuse, tmp_path: Path
) -> None:
    def gone(_name: str) -> None:
        raise OSError(2, "No such file", str(tmp_path))

    monkeypatch.setattr(library, "document", gone)
    error = refuse("get_document", document=LONG)
    assert error["code"] == "unavailable"
    assert str(tmp_path) not in error["message"]
