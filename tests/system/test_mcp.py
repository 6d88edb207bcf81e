"""`fonds mcp` as a process, spoken to by the official client over both transports."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult
from tests.support import servers
from tests.unit.mcp.small import LONG, SECTION, small_library, token

pytestmark = pytest.mark.smoke

FONDS: Final = str(Path(sys.executable).parent / "fonds")
PATIENCE: Final = 60.0


def environment(**more: str) -> dict[str, str]:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    return {**inherited, **more}


@contextmanager
def http_server(*arguments: str, **variables: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server on a free port, by its address."""
    fonds = str(servers.serving_command())
    command = [fonds, "--home", str(small_library()), "mcp", "--http", "--port", "0", *arguments]
    with subprocess.Popen(
        command, env=environment(**variables), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        address = re.search(r"serving (http://\S+/mcp);", said)
        assert address is not None, said + process.stderr.read()
        try:
            yield address[1], process
        finally:
            process.terminate()
            process.wait(PATIENCE)


class Agent:
    """A client that stays connected, asked from outside its event loop."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result: CallToolResult = self._portal.call(self._client.call_tool, tool, arguments)
        return result

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    def tools(self) -> dict[str, Any]:
        listed = self._portal.call(self._client.list_tools)
        return {tool.name: tool for tool in listed.tools}

    def all_at_once(self, questions: list[tuple[str, dict[str, Any]]]) -> list[CallToolResult]:
        async def gather() -> list[CallToolResult]:
            answers: dict[int, CallToolResult] = {}

            async def one(number: int, tool: str, arguments: dict[str, Any]) -> None:
                answers[number] = await self._client.call_tool(tool, arguments)

            async with anyio.create_task_group() as group:
                for number, (tool, arguments) in enumerate(questions):
                    group.start_soon(one, number, tool, arguments)
            return [answers[number] for number in range(len(questions))]

        return self._portal.call(gather)


@contextmanager
def connected(connection: AbstractAsyncContextManager[Client]) -> Iterator[Agent]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(connection) as client,
    ):
        yield Agent(portal, client)


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with http_server() as (address, _):
        yield address


@pytest.fixture(scope="module", params=["stdio", "http", "http-legacy"])
def agent(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """One process for all tests of a transport; legacy is the protocol with a handshake."""
    transport, _, legacy = request.param.partition("-")
    mode = legacy or "auto"
    server: StdioServerParameters | str
    if transport == "http":
        server = str(request.getfixturevalue("served"))
    else:
        arguments = ["--home", str(small_library()), "mcp"]
        server = StdioServerParameters(command=str(servers.serving_command()), args=arguments)
    client = Client(server, mode=mode, read_timeout_seconds=PATIENCE)
    with connected(client) as agent:
        yield agent


def test_tools_are_offered_with_schemas_and_as_read_only(agent: Agent) -> None:
    tools = agent.tools()
    assert sorted(tools) == [
        "browse_code",
        "check_quote",
        "get_document",
        "get_passage",
        "list_sources",
        "resolve_citation",
        "search",
    ]
    for tool in tools.values():
        assert tool.annotations.read_only_hint
        assert tool.output_schema["type"] == "object"


def test_agent_goes_from_a_question_to_a_quotation(agent: Agent) -> None:
    question = "how soon must a request for a record be answered?"
    hit = agent.ask("search", query=question)["results"][0]
    assert hit["id"] == SECTION
    read = agent.ask("get_passage", passage=hit["passage"])
    words = "The keeper shall answer a request within ten working days."
    assert words in read["passages"][0]["text"]
    cited = hit["citation"]["citation_string"]
    assert agent.ask("resolve_citation", citation=cited)["document"]["id"] == SECTION
    checked = agent.ask("check_quote", cite=cited, text=words)
    assert checked["verdict"] == "exact"
    assert read["document"]["raw_sha256"] == hit["raw_sha256"]


def test_agent_walks_a_code_and_learns_what_is_held(agent: Agent) -> None:
    path = agent.ask("browse_code")["children"][0]["id"]
    while True:
        listing = agent.ask("browse_code", path=path)
        if listing["node"]["is_leaf"]:
            break
        path = listing["children"][-1]["id"]
    assert agent.ask("get_document", document=path)["text"]
    held = {one["source"]: one for one in agent.ask("list_sources")["sources"]}
    assert held["usc"]["editions"]


def test_errors_are_structured(agent: Agent) -> None:
    missing = agent.call("get_document", document="fr:1900-1")
    assert missing.is_error
    assert isinstance(missing.structured_content, dict)
    assert missing.structured_content["error"]["code"] == "not_found"
    wrong = agent.call("search", query="x", limit=-1)
    assert isinstance(wrong.structured_content, dict)
    assert wrong.structured_content["error"]["code"] == "bad_request"


def test_questions_at_once_are_answered_each(agent: Agent) -> None:
    questions: list[tuple[str, dict[str, Any]]] = []
    for number in range(12):
        questions.append(("get_passage", {"passage": f"{LONG}#{number % 4}"}))
        questions.append(("search", {"query": f"records {number}"}))
    answers = agent.all_at_once(questions)
    assert [answer.is_error for answer in answers] == [False] * 24
    passages = [answer.structured_content for answer in answers[::2]]
    assert [isinstance(one, dict) and one["asked"] for one in passages] == [
        f"{LONG}#{number % 4}" for number in range(12)
    ]


def test_nothing_is_written(agent: Agent) -> None:
    before = _contents(small_library())
    agent.ask("search", query="records")
    agent.ask("check_quote", cite="53 USC 103", text="nowhere to be found")
    assert _contents(small_library()) == before


def _contents(home: Path) -> dict[str, str]:
    # A reader of SQLite shares memory in a file of its own, and leaves an empty log.
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.mark.long
def test_stdout_carries_the_protocol_alone() -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "tests", "version": "1"}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        "no JSON at all",
        "[[[[",
        '{"jsonrpc": "2.0", "id": 2, "method": "no/such/method"}',
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_sources"}},
    ]
    typed = "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines)
    command = [FONDS, "--home", str(small_library()), "mcp"]
    variables = environment(FONDS_LOG_LEVEL="debug")
    with subprocess.Popen(
        command,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(typed)
        process.stdin.flush()
        answers: dict[Any, Any] = {}
        while 3 not in answers:
            line = json.loads(process.stdout.readline())
            assert line["jsonrpc"] == "2.0"
            answers[line.get("id")] = line
        rest, logged = process.communicate(timeout=PATIENCE)
    assert answers[1]["result"]["serverInfo"]["name"] == "fonds"
    assert answers[2]["error"]
    assert answers[3]["result"]["structuredContent"]["documents"]
    assert rest == ""
    assert "Traceback" not in logged
    assert process.returncode == 0


def test_token_is_asked_for_on_every_request_from_outside() -> None:
    with http_server("--allow-host", "library.example") as (address, _):
        hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert httpx.post(address, json=hello).status_code == 401
        wrong = {"Authorization": f"Bearer {token()[:-1]}"}
        assert httpx.post(address, json=hello, headers=wrong).status_code == 401
        assert httpx.get(address, headers=wrong).status_code == 401
        with connected(_with_token(address)) as agent:
            assert agent.ask("browse_code")["children"]


@asynccontextmanager
async def _with_token(address: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token()}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


def test_other_sites_cannot_speak_through_a_browser() -> None:
    with http_server() as (address, process):
        hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        own = httpx.post(address, json=hello, headers=accept)
        assert own.status_code not in {401, 403, 421}
        rebound = httpx.post(address, json=hello, headers={**accept, "Host": "evil.example"})
        assert rebound.status_code == 421
        other = httpx.post(
            address, json=hello, headers={**accept, "Origin": "https://evil.example"}
        )
        assert other.status_code == 403
        large = httpx.post(address, content=b" " * 2_000_000, headers=accept)
        assert large.status_code in {400, 413}
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_wrong_token_is_refused_on_loopback_too(served: str) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    assert httpx.post(served, json=hello, headers=accept).status_code != 401
    for given in ("Bearer nonsense", f"Bearer {token()}x", f"Basic {token()}"):
        headers = {**accept, "Authorization": given}
        assert httpx.post(served, json=hello, headers=headers).status_code == 401


def test_server_does_not_open_to_others_without_a_token(tmp_path: Path) -> None:
    servers.sqlite_database(tmp_path / "fonds.db")
    fonds = str(servers.serving_command())
    command = [fonds, "--home", str(tmp_path), "mcp", "--http", "--host", "0.0.0.0"]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 2
    assert "fonds token create" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [("--as", "nobody"), ("--as", "maria", "--http")])
def test_user_must_be_known_and_is_not_named_over_http(arguments: tuple[str, ...]) -> None:
    fonds = str(servers.serving_command())
    command = [fonds, "--home", str(small_library()), "mcp", *arguments]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 2
    assert "no such user: 'nobody'" in done.stderr or "--as cannot be combined" in done.stderr


def test_library_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    home = tmp_path / "none"
    done = subprocess.run(
        [str(servers.serving_command()), "--home", str(home), "mcp"],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "fonds init" in done.stderr
    assert done.stdout == ""
    assert not home.exists()
