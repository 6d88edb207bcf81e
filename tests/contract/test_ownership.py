"""Nobody sees what another has uploaded, whichever way they ask; everybody sees their own.

Each face of the library is asked about everything under all the names an upload has. A command, a
tool or a method that is in none of the lists below fails the first tests: decide what it may show,
and add a line.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote
from uuid import UUID, uuid4

import httpx2
import pytest
import structlog
import typer.main
from fastapi.testclient import TestClient
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.support import servers
from tests.support.admin_routes import ADMIN
from tests.support.libraries.owners import PUBLIC, WORDS, Viewer, World, filled, let_in
from tests.support.site_pages import PAGES_WITHOUT_WORDS, walk

from fonds.api.app import make_app
from fonds.cli.main import app, main
from fonds.cli.output import to_json_value
from fonds.errors import FondsError
from fonds.library import Library, open_library
from fonds.mcp.server import make_server
from fonds.search.filters import Filters
from fonds.uploads.users import list_tokens, revoke_token

PATIENCE: Final = 60.0
NEAR: Final = "water in the attic and the garden"
NAME: Final = "@name@"
"""Stands for whatever is asked about."""

# Every path is one line -------------------------------------------------------------------

Method = Callable[[Library, str, UUID | None], Any]

METHODS: Final[Mapping[str, Sequence[Method]]] = {
    "search": [
        lambda library, name, owner: library.search(name, owner=owner, limit=50),
        lambda library, name, owner: library.search(name, owner=owner, mode="lexical"),
        lambda library, name, owner: library.search(name, owner=owner, mode="semantic"),
        lambda library, name, owner: library.search(name, owner=owner, sources=["uploads"]),
        lambda library, name, owner: library.search(f'"cellar" {name}', owner=owner, offset=1),
    ],
    "look": [
        lambda library, name, owner: library.look(name, Filters(owner=owner), limit=50),
        lambda library, name, owner: library.look(
            name, Filters(owner=owner, sources=["uploads"]), mode="lexical"
        ),
    ],
    "search below": [
        lambda library, name, owner: library.search(WORDS, owner=owner, under=name),
        lambda library, name, owner: library.search(WORDS, owner=owner, edition=name),
        lambda library, name, owner: library.search(WORDS, owner=owner, kinds=[name]),
        lambda library, name, owner: library.search(WORDS, owner=owner, organizations=[name]),
    ],
    "document": [lambda library, name, owner: library.document(name, owner=owner)],
    "raw": [lambda library, name, owner: library.raw(library.document(name, owner=owner))],
    "resolve": [
        lambda library, name, owner: library.resolve(name, owner=owner),
        lambda library, name, owner: library.resolve(name, owner=owner, as_of="2026-06-30"),
    ],
    "check_quote": [
        lambda library, name, owner: library.check_quote(name, WORDS, owner=owner),
        lambda library, name, owner: library.check_quote(name, NEAR, owner=owner),
    ],
    "verify": [lambda library, name, owner: library.verify(name, owner=owner)],
    "sample": [lambda library, _name, _owner: library.sample("uploads", 50)],
}
FENCE_MARK: Final = re.compile(r"----- [0-9a-f]{32}")
"""At the beginning of the lines around the words of documents; another one in each answer."""
METHODS_THAT_SHOW_NOTHING: Final = {
    "close",
    "crawl",
    "embed",
    "extract_citations",
    "ingest",
    "ingest_all",
    "reload_websites",
    "reparse",
    "require_source",
    "ingest_code",
    "ingest_files",
    "normalize_queued",
    "renormalize",
    "run",
    "readers",
    "open_context",
    "worker_resources",
}

COMMANDS: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "search": [(NAME, "--json"), (NAME, "--source", "uploads")],
    "show": [(NAME,), (NAME, "--raw")],
    "changes": [("--since", "2000-01-01", "--json"), ("--since", "2000-01-01", "--under", NAME)],
    "cite": [(NAME, "--format", "csl-json")],
    "cites": [(NAME, "--json")],
    "cited-by": [(NAME, "--json")],
    "resolve": [(NAME, "--json")],
    "check-quote": [("--cite", NAME, WORDS), ("--cite", NAME, NEAR)],
    "verify": [(NAME,)],
}
COMMANDS_FOR_NOBODY_IN_PARTICULAR: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "citations": [()],
    "code list": [("--json",)],
    "commands": [(), ("--json",)],
    "doctor": [()],
    "embed": [()],
    "embed-status": [(), ("--json",)],
    "errors": [("federal_register",)],
    "init": [()],
    "logs": [("--source", "federal_register")],
    "metrics": [()],
    "plan embed": [()],
    "prune": [(), ("--json",)],
    "renormalize": [()],
    "schedule": [()],
    "sources": [()],
    "status": [(), ("--source", "federal_register", "--json")],
    "token list": [(), ("--json",)],
}
COMMANDS_THAT_SHOW_NOTHING: Final = {
    "audit": "counts what publishers list",
    "backfill": "counts",
    "bootstrap": "counts",
    "bundle create": "counts and hashes; test_bundles looks into the files",
    "bundle diff": "ids of public documents",
    "bundle load": "counts, and ids of public documents",
    "key create": "keys, which are nobody's documents",
    "key rotate": "keys",
    "key show": "keys",
    "key trust": "keys",
    "pull": "counts, and ids of public documents",
    "reparse": "counts",
    "bundle verify": "ids of public documents",
    "chunk": "a file on the user's own machine",
    "code diff": "sections of codes, which nobody uploads",
    "code ingest": "counts",
    "code plan": "counts",
    "code tree": "headings of codes, which nobody uploads",
    "db backup": "a file that whoever may read the database may make",
    "db copy": "counts",
    "db restore": "a version",
    "db upgrade": "a version",
    "demo": "the bundled upstream",
    "dismiss": "a count",
    "embed forget": "counts",
    "embed migrate": "questions made of public documents",
    "embed rollback": "counts",
    "export": "counts; test_exports looks into the files",
    "mcp": "what its tools show",
    "crawl": "counts, and addresses on public websites",
    "index compile": "counts",
    "index create": "the fields of an index",
    "index divide": "counts",
    "index load": "counts",
    "index lookup": "hosts that sources asked, or records of the user's own",
    "index put": "a key",
    "index query": "what `index lookup` shows",
    "index stats": "counts",
    "index verify": "counts",
    "ingest": "counts of files that the user has",
    "site list": "websites, and counts",
    "site probe": "what a public page lists",
    "site show": "addresses on a public website",
    "site strategy": "selectors",
    "jobs": "what the HTTP API answers to a token",
    "jobs delete": "the id that its user typed",
    "jobs retry": "what the HTTP API answers to a token",
    "normalize": "a file on the user's own machine, or counts",
    "parse": "a file on the user's own machine",
    "run": "counts",
    "scheduler": "counts",
    "selftest": "libraries of its own",
    "serve": "what the HTTP API answers",
    "token create": "a token",
    "token revoke": "a token's id",
    "upload": "what the HTTP API answers to a token",
    "worker": "counts",
}

TOOLS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "search": [
        {"query": NAME, "limit": 50},
        {"query": NAME, "mode": "semantic"},
        {"query": NAME, "sources": ["uploads"], "mode": "lexical"},
    ],
    "search below": [{"query": WORDS, "under": NAME}, {"query": WORDS, "kinds": [NAME]}],
    "get_document": [{"document": NAME}],
    "get_passage": [{"passage": NAME, "around": 5}, {"passage": f"{NAME}#0"}],
    "browse_code": [{"path": NAME}, {}],
    "resolve_citation": [{"citation": NAME}],
    "check_quote": [{"cite": NAME, "text": WORDS}, {"cite": NAME, "text": NEAR}],
    "list_sources": [{}],
}
JOBS: Final = [
    ("GET", "/jobs"),
    ("GET", "/jobs/{document_id}"),
    ("GET", "/jobs/{document_id}/events"),
    ("POST", "/jobs/{document_id}/retry"),
    ("POST", "/uploads/{document_id}/complete"),
    ("DELETE", "/uploads/{document_id}"),
]
ROUTES: Final[Mapping[str, Sequence[str]]] = {
    "GET /api/search": ["/api/search?q=@name@", "/api/search?q=@name@&sources=uploads"],
    "GET /api/documents/{document_id}": ["/api/documents/@name@?text=true"],
    "GET /api/documents/{document_id}/raw": ["/api/documents/@name@/raw"],
    "GET /api/documents/{document_id}/links": [
        "/api/documents/@name@/links",
        "/api/documents/@name@/links?direction=cited-by",
    ],
    "GET /api/documents/{document_id}/editions": ["/api/documents/@name@/editions"],
    "GET /api/codes": ["/api/codes"],
    "GET /api/codes/{path}": ["/api/codes/@name@"],
    "GET /api/cite": ["/api/cite?id=@name@", "/api/cite?id=@name@&style=csl"],
    "GET /api/resolve": ["/api/resolve?citation=@name@"],
    "GET /api/compare": [
        "/api/compare?from=note:1&to=@name@",
        "/api/compare?from=@name@&to=@name@&whole=true",
    ],
    "GET /api/changes": [
        "/api/changes?since=2000-01-01",
        "/api/changes?since=2000-01-01&under=@name@",
    ],
    "GET /feeds/{source}.atom": ["/feeds/uploads.atom", "/feeds/@name@.atom"],
    "GET /feeds/c/{path}.atom": ["/feeds/c/@name@.atom", "/feeds/c/usc/@name@.atom"],
    "GET /llms.txt": ["/llms.txt"],
    **{f"{method} {path}": [path.replace("{document_id}", "@uid@")] for method, path in JOBS},
}
ROUTES_THAT_SHOW_NOTHING: Final = {
    *ADMIN,
    "GET /health",  # whether the stores answer
    "GET /metrics",  # numbers
    "GET /files/{key}",  # what a signed address allows, to whoever was given it
    "PUT /files/{key}",  # likewise
    "POST /jobs/{document_id}/advance",  # for services, which see every job and no document
    "POST /uploads",  # what was announced, to whoever announced it
    "POST /webhooks/llamaparse",  # whether it was believed
}
SHOWING_NO_WORD_OF_A_DOCUMENT: Final = {
    "sample",
    "browse_code",
    "list_sources",
    "cites",
    "GET /api/documents/{document_id}/raw",
    "GET /api/codes",
    "GET /api/codes/{path}",
    "GET /feeds/{source}.atom",
    "GET /feeds/c/{path}.atom",
    "GET /llms.txt",
    *(f"{method} {path}" for method, path in JOBS),
}
"""Not even to its owner: ids, addresses, headings of codes, counts, names of what is cited, what is
public, and jobs, of which these uploads have none."""


# Who asks, and what there is --------------------------------------------------------------


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    home: Path = tmp_path_factory.mktemp("library")
    with ExitStack() as stack:
        given: dict[str, Any] = {"embedder": "hashing"}
        if request.param == "postgres":
            server = request.getfixturevalue("postgres_url")
            given["database"] = stack.enter_context(servers.postgres_database(server))
        else:
            servers.sqlite_database(home / "fonds.db")
        library = stack.enter_context(open_library(home, **given))
        yield filled(library)


# Faces ------------------------------------------------------------------------------------

Shown = tuple[str, str, str]
"""What was asked about, by which path, and everything that came back."""
Ask = Callable[[Viewer, Sequence[str]], Iterator[Shown]]


@dataclass(frozen=True, kw_only=True)
class Face:
    """One way to ask, with what is worth asking there; the slower it is, the less."""

    ask: Ask
    names: Callable[[Viewer], Sequence[str]]


def library_face(world: World) -> Ask:
    def ask(viewer: Viewer, names: Sequence[str]) -> Iterator[Shown]:
        for name in names:
            for path, methods in METHODS.items():
                for method in methods:
                    yield name, path, said(partial(method, world.library, name, viewer.owner))

    return ask


def said(ask: Callable[[], Any]) -> str:
    try:
        return str(to_json_value(ask()))
    except FondsError as error:
        return f"{type(error).__name__}: {error}"


def command_face(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ask:
    monkeypatch.setenv("FONDS_HOME", str(world.library.settings.home))
    monkeypatch.setenv("FONDS_DATABASE", world.library.settings.database_url)
    monkeypatch.setenv("FONDS_EMBEDDER", "hashing")

    def typed(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["fonds", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        structlog.reset_defaults()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return f"{ended.value.code}\n{printed.out}\n{printed.err}"

    def ask(viewer: Viewer, names: Sequence[str]) -> Iterator[Shown]:
        whose = ["--as", viewer.name] if viewer.name else []
        for command, lines in COMMANDS.items():
            for line in lines:
                for name in names:
                    words = [word.replace(NAME, name) for word in line]
                    yield name, command, typed(*command.split(), *whose, *words)
        for command, lines in COMMANDS_FOR_NOBODY_IN_PARTICULAR.items():
            for line in lines if viewer.name is None else ():
                yield "", command, typed(*command.split(), *line)

    return ask


def tool_face(connect: Callable[[Viewer], Any]) -> Ask:
    async def exchange(viewer: Viewer, names: Sequence[str]) -> list[Shown]:
        shown = []
        async with connect(viewer) as client:
            for name in names:
                for path, questions in TOOLS.items():
                    for question in questions:
                        tool = path.partition(" ")[0]
                        result = await client.call_tool(tool, asked_about(question, name))
                        answer = FENCE_MARK.sub("-----", result.model_dump_json())
                        shown.append((name, path, answer))
        return shown

    return lambda viewer, names: iter(asyncio.run(exchange(viewer, names)))


def asked_about(question: Mapping[str, Any], name: str) -> dict[str, Any]:
    def put(value: Any) -> Any:
        if isinstance(value, list):
            return [put(each) for each in value]
        return value.replace(NAME, name) if isinstance(value, str) else value

    return {key: put(value) for key, value in question.items()}


def route_face(world: World) -> Ask:
    def ask(viewer: Viewer, names: Sequence[str]) -> Iterator[Shown]:
        headers = {"Authorization": f"Bearer {viewer.token}"} if viewer.token else {}
        # Where others are served too searches are counted, and here are many.
        app = make_app(world.library, is_exposed=False)
        with TestClient(
            app, base_url="http://127.0.0.1", headers=headers, client=("127.0.0.1", 50_000)
        ) as client:
            for name in names:
                for route, addresses in ROUTES.items():
                    for address in addresses:
                        yield name, route, _asked(client, route, address, name)

    return ask


def _asked(client: TestClient, route: str, address: str, name: str) -> str:
    uid = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", name)
    address = address.replace("@name@", quote(name, safe=":"))
    address = address.replace("@uid@", uid[0] if uid else str(UUID(int=7)))
    answer = client.request(route.partition(" ")[0], address, follow_redirects=False)
    assert answer.status_code < 500
    return f"{answer.status_code} {answer.headers.get('location')} {unquote(answer.text)}"


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[str]:
    """Where the library is served to agents."""
    settings = world.library.settings
    fonds = str(servers.serving_command())
    command = [fonds, "--home", str(settings.home), "mcp", "--http", "--port", "0"]
    variables = {name: value for name, value in os.environ.items() if name[:6] != "FONDS_"}
    variables["FONDS_DATABASE"] = settings.database_url
    with serving(command, variables) as address:
        yield address


@contextmanager
def serving(command: Sequence[str], variables: Mapping[str, str]) -> Iterator[str]:
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"serving (http://\S+);", line)
        assert address is not None, line + process.stderr.read()
        try:
            yield address[1]
        finally:
            process.terminate()
            process.wait(PATIENCE)


@asynccontextmanager
async def with_token(address: str, token: str | None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


OVER_HTTP: Final = pytest.param("tools over http", marks=pytest.mark.long)


@pytest.fixture(params=["library", "commands", "routes", "pages", "tools", OVER_HTTP])
def face(
    request: pytest.FixtureRequest,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Face:
    if request.param == "library":
        return Face(ask=library_face(world), names=lambda _viewer: world.names)
    if request.param == "commands":
        return Face(ask=command_face(world, monkeypatch, capsys), names=world.few_names)
    if request.param == "routes":
        return Face(ask=route_face(world), names=lambda _viewer: world.names)
    if request.param == "pages":
        return Face(
            ask=lambda viewer, names: walk(world.library, viewer.token, names),
            names=world.few_names,
        )
    if request.param == "tools":
        ask = tool_face(lambda viewer: Client(make_server(world.library, owner=viewer.owner)))
        return Face(ask=ask, names=world.few_names)
    address = request.getfixturevalue("served")
    return Face(
        ask=tool_face(lambda viewer: with_token(address, viewer.token)), names=world.few_names
    )


@pytest.fixture(params=["nobody", "anna"])
def viewer(request: pytest.FixtureRequest, world: World) -> Viewer:
    return world.viewers[request.param]


# The walk ---------------------------------------------------------------------------------


def test_every_command_is_decided_upon() -> None:
    decided = [*COMMANDS, *COMMANDS_FOR_NOBODY_IN_PARTICULAR, *COMMANDS_THAT_SHOW_NOTHING]
    assert sorted(decided) == sorted(commands())


def test_every_command_that_shows_documents_can_be_given_a_user() -> None:
    for name in (*COMMANDS, "mcp"):
        assert "--as" in {option for each in commands()[name].params for option in each.opts}


def test_every_tool_is_decided_upon(world: World) -> None:
    async def tools() -> list[str]:
        async with Client(make_server(world.library)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert {path.partition(" ")[0] for path in TOOLS} == set(asyncio.run(tools()))


def test_every_route_is_decided_upon(world: World) -> None:
    paths = make_app(world.library).openapi()["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert {*ROUTES} | ROUTES_THAT_SHOW_NOTHING == routes


def test_every_method_is_decided_upon() -> None:
    methods = {name for name, value in vars(Library).items() if callable(value)}
    public = {name for name in methods if not name.startswith("_")}
    assert {path.partition(" ")[0] for path in METHODS} | METHODS_THAT_SHOW_NOTHING == public


def test_everybody_sees_their_own_and_nobody_what_another_has_uploaded(
    world: World, face: Face, viewer: Viewer
) -> None:
    shown = list(face.ask(viewer, face.names(viewer)))
    for typed, path, answer in shown:
        leaked = [mark for mark in world.foreign_marks(viewer, typed) if mark in answer]
        assert leaked == [], f"{path} {typed!r}: {answer}"
    asked = {path for _, path, _ in shown}
    assert any("About water" in answer for _, _, answer in shown)
    if viewer.name is not None:
        word = world.uploads[viewer.name].word
        # What was typed is often repeated, and shows nothing.
        showing = {
            path
            for typed, path, answer in shown
            if re.search(f"{word}(body|cite)", answer.replace(typed, ""))
        }
        assert showing == asked - SHOWING_NO_WORD_OF_A_DOCUMENT - PAGES_WITHOUT_WORDS


@pytest.mark.parametrize("spelled", ["upload:{}", "upload:{}#0"])
def test_upload_of_another_is_as_one_that_does_not_exist(
    world: World, face: Face, spelled: str
) -> None:
    anna, theirs, missing = world.viewers["anna"], str(world.uploads["bert"].uid), str(uuid4())
    answers = [
        [
            (path, answer.replace(uid, ""))
            for _, path, answer in face.ask(anna, [spelled.format(uid)])
            # Words of a query are looked for, whatever they are; and coverage tells the time.
            if path not in {"search", "look", "list_sources", "GET /api/search", "page /"}
        ]
        for uid in (theirs, missing)
    ]
    assert len(answers[0]) > 5
    assert answers[0] == answers[1]


@pytest.mark.parametrize(("name", "uploads"), [("nobody", None), ("anna", 1), ("bert", 1)])
def test_uploads_of_others_are_not_counted(world: World, name: str, uploads: int | None) -> None:
    async def held() -> dict[str, int]:
        async with Client(make_server(world.library, owner=world.viewers[name].owner)) as client:
            answer = (await client.call_tool("list_sources", {})).structured_content
            assert isinstance(answer, dict)
            return {source["source"]: source["documents"] for source in answer["sources"]}

    counted = asyncio.run(held())
    assert counted["held"] == 1
    assert counted.get("uploads") == uploads


def test_token_of_each_user_shows_the_uploads_of_that_user(world: World, served: str) -> None:
    """One server, asked by all in turn."""
    ask = tool_face(lambda viewer: with_token(served, viewer.token))
    found = {
        name: "".join(answer for _, _, answer in ask(viewer, ["source:uploads water"]))
        for name, viewer in world.viewers.items()
    }
    words = ("alderbody", "birchbody")
    assert [word in found["anna"] for word in words] == [True, False]
    assert [word in found["bert"] for word in words] == [False, True]
    assert [word in found["nobody"] for word in words] == [False, False]


def test_own_upload_is_among_those_that_cite_a_document(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = command_face(world, monkeypatch, capsys)
    shown = {path: answer for _, path, answer in ask(world.viewers["anna"], [PUBLIC])}
    assert "aldertitle" in shown["cited-by"]
    assert '"target": "90 FR 55"' in shown["cites"]
    assert "upload:" not in shown["cites"]


def test_revoked_token_ends_at_once(world: World, served: str) -> None:
    viewer = let_in(world.library, "carla")

    def status() -> int:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {"Authorization": f"Bearer {viewer.token}", "Accept": "application/json"}
        return httpx2.post(served, json=hello, headers=headers).status_code

    assert status() != 401
    with world.library.database.write() as connection:
        (token,) = (each for each in list_tokens(connection) if each.user_name == "carla")
        revoke_token(connection, str(token.id), world.library.seams.clock.now())
    assert status() == 401


def commands() -> dict[str, Any]:
    """Every command by its name, those of groups included."""
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        below = getattr(command, "commands", {})
        waiting += [(f"{name} {part}".strip(), each) for part, each in below.items()]
        is_one = not below or getattr(command, "invoke_without_command", False)
        found |= {name: command} if name and is_one else {}
    return found
