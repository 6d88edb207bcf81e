"""The command that serves the library over HTTP.

The command that serves agents.

The command that takes uploads forward.

Commands about API tokens: who may use the library from elsewhere, and as whom.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from fonds.cli.output import AsJson, err, out, plain, print_json, print_table, safe
from fonds.cli.process import set_up_logging, stoppable
from fonds.cli.session import owner_named
from fonds.errors import SettingsError, UsageError
from fonds.serving import is_any, is_exposed, is_loopback, require_safe
from fonds.uploads import users
from fonds.uploads.users import has_valid_token

if TYPE_CHECKING:
    import socket
    from datetime import datetime

    from fonds.library import Library
    from fonds.mcp.server import LibraryServer
    from fonds.settings import Settings

PORT: Final = 8000


def serve(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")
    ] = PORT,
    login: Annotated[
        bool, typer.Option("--login", help="Ask for a token on this machine too.")
    ] = False,
) -> None:
    """Serve the library over HTTP: pages for people, and an API for programs.

    What is public everybody may read. For uploads and for operating the library a token of
    `fonds token create` is needed, except by whoever sits at this machine while nobody else is
    served. Other machines are served only if there is a token. Uploads are worked on by
    `fonds worker`.

    \b
    Examples: fonds serve
              fonds serve --port 8080
    """
    from fonds.mcp.http import listen  # noqa: PLC0415 — no other command needs it
    from fonds.mcp.http import serve as serve_app  # noqa: PLC0415 — likewise
    from fonds.web.site import make_site  # noqa: PLC0415 — likewise

    with context.obj.library() as library:
        exposed = is_exposed(host, _names(library.settings))
        if exposed and not _has_token(library):
            raise SettingsError(
                "this server could be reached from other machines, and nobody has a token yet: "
                "make one with `fonds token create USER`, or leave --host at 127.0.0.1 and "
                "public_url empty"
            )
        _log_as_we_do()
        app = make_site(library, is_exposed=exposed, needs_login=login)
        with listen(host, port) as listening:
            said = f"serving {_address(listening, host)}; stop it with Ctrl-C"
            err.print(said, markup=False)
            asyncio.run(serve_app(app, listening))


def _names(settings: Settings) -> list[str]:
    """Under which name others reach it, by another server in front of this one."""
    name = urlsplit(settings.public_url).hostname or ""
    return [name] if name and not is_loopback(name) else []


def _has_token(library: Library) -> bool:
    with library.database.read() as connection:
        return has_valid_token(connection, library.seams.clock.now())


def _address(listening: socket.socket, host: str) -> str:
    name = "127.0.0.1" if is_any(host) else f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def _log_as_we_do() -> None:
    ours, theirs = logging.getLogger("fonds"), logging.getLogger("uvicorn")
    theirs.handlers, theirs.level = ours.handlers, ours.level


MCP_PORT: Final = 8765

_LEVELS: Final[dict[str, Any]] = {"debug": "DEBUG", "info": "INFO", "error": "ERROR"}


def mcp(
    context: typer.Context,
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen at, with --http.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port, with --http; 0 takes any that is free.")
    ] = MCP_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name it is reached by from outside; repeatable."),
    ] = None,
    as_user: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="USER", help="Show this user's uploads, too; not with --http."
        ),
    ] = None,
) -> None:
    """Serve the library to agents over the Model Context Protocol; nothing is written.

    Without --http the protocol is spoken on stdin and stdout, as clients expect that start it
    themselves. Over HTTP a client that sends a token of `fonds token create` sees the uploads of
    its user, too. Other machines are served only with one.

    \b
    Examples: fonds mcp
              fonds mcp --as maria
              fonds mcp --http --port 8765
    """
    settings, names = context.obj.settings(), allow_host or []
    if http and as_user is not None:
        raise UsageError("over HTTP the token of a client says who it is: leave --as away")
    from fonds.mcp.server import (  # noqa: PLC0415 — only this command serves agents
        make_server,
        open_for_reading,
    )

    _set_up_logging(settings)
    with open_for_reading(settings) as library:
        if http:
            require_safe(host, names=names, has_token=_has_token(library))
        owner = owner_named(library, as_user)
        level = _LEVELS.get(settings.log_level, "WARNING")
        server = make_server(library, owner=owner, log_level=level)
        if http:
            _serve_http(server, library, host, port, names)
        else:
            _serve_stdio(server)


def _serve_stdio(server: LibraryServer) -> None:
    # A thread waits for stdin, and Python waits for the thread; there is nothing to be tidied up.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server.run("stdio")


def _serve_http(
    server: LibraryServer, library: Library, host: str, port: int, names: list[str]
) -> None:
    from fonds.mcp import http  # noqa: PLC0415 — only needed for HTTP

    app = http.make_app(server, http.by_token(library), host=host, names=names)
    with http.listen(host, port) as listening:
        err.print(f"serving {http.address_of(listening, host)}; stop it with Ctrl-C", markup=False)
        asyncio.run(http.serve(app, listening))


def _set_up_logging(settings: Settings) -> None:
    """Everything to stderr: under stdio, stdout carries the protocol alone."""
    set_up_logging(settings)
    ours = logging.getLogger("fonds")
    for name in ("mcp", "uvicorn"):
        other = logging.getLogger(name)
        other.handlers, other.level = ours.handlers, ours.level
    # The protocol's package would log everything once more.
    logging.getLogger().addHandler(logging.NullHandler())


def worker(
    context: typer.Context,
    *,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Jobs worked on at once by this process.")
    ] = 2,
    drain: Annotated[
        bool, typer.Option("--drain", help="End when nothing is left that can be done now.")
    ] = False,
    commands: Annotated[
        bool, typer.Option(help="Also do what operators ask for, while no upload is under way.")
    ] = True,
) -> None:
    """Take uploads forward: parse, cut, embed, publish; and do what operators ask for.

    Any number of workers share the work; one that is killed is replaced by the others within half
    a minute. SIGTERM or Ctrl-C lets the stages under way end. A worker that is idle takes up
    commands of the admin pages and the API, such as a run of a source, one after the other.

    \b
    Examples: fonds worker
              fonds worker --concurrency 4
              fonds worker --drain
              fonds worker --no-commands
    """
    from fonds.operations import dispatcher  # noqa: PLC0415 — likewise
    from fonds.uploads.worker import BaseWorker  # noqa: PLC0415 — other commands need none of it

    with (
        stoppable() as stop,
        context.obj.library() as library,
        library.worker_resources(stop=stop) as resources,
    ):
        err.print("working on uploads; Ctrl-C ends it" if not drain else "working on uploads")
        base = BaseWorker(resources, concurrency=concurrency)
        if drain:
            base.drain()
            if commands:
                asyncio.run(dispatcher(library).drain(stop.is_set))
        elif commands:
            asked = dispatcher(library, may_begin=lambda: base.is_idle)
            with ThreadPoolExecutor(1, "fonds-commands") as beside:
                done = beside.submit(lambda: asyncio.run(asked.serve(stop.is_set)))
                try:
                    base.run()
                finally:
                    stop.set()
            done.result()
        else:
            base.run()


LONGEST: Final = 36500
"""Days a token may be good for; without a limit it is good until it is revoked."""

token_app = typer.Typer(
    help="API tokens: who may use the library from elsewhere.", no_args_is_help=True
)


class TokenScope(StrEnum):
    """What a token is good for."""

    USER = "user"
    ADMIN = "admin"
    SERVICE = "service"


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(serve)
    app.command()(mcp)
    app.command()(worker)
    app.add_typer(token_app, name="token")


@token_app.command()
def create(
    context: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose it is; made if new.")],
    *,
    label: Annotated[str, typer.Option(help="What it is for, to know it again.")] = "",
    scope: Annotated[
        TokenScope,
        typer.Option(help="user: own uploads; admin: oversight; service: moves jobs, too."),
    ] = TokenScope.USER,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=LONGEST, help="Good for so long; default: until it is revoked."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token for a user and print it, this once: only a hash of it is kept.

    \b
    Examples: fonds token create maria
              fonds token create maria --label laptop --days 90
              fonds token create parser --scope service
    """
    with context.obj.library() as library:
        now, chance = library.seams.clock.now(), library.seams.chance
        with library.database.write() as connection:
            token, secret = users.create_token(
                connection,
                user=user,
                label=label,
                scope=scope.value,
                now=now,
                chance=chance,
                expires_at=now + timedelta(days=days) if days is not None else None,
            )
    if as_json:
        print_json({**plain(token), "token": secret})
        return
    out.print(secret, markup=False)
    err.print(
        f"{token.user_name} sends it as `Authorization: Bearer fonds_…`; it is shown only this "
        f"once, and `fonds token revoke {str(token.id)[:8]}` ends it",
        markup=False,
    )


@token_app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List all tokens, without what they say.

    \b
    Example: fonds token list
    """
    with context.obj.library() as library:
        now = library.seams.clock.now()
        with library.database.read() as connection:
            tokens = users.list_tokens(connection)
    if as_json:
        print_json([{**plain(token), "is_valid": token.is_valid(now)} for token in tokens])
        return
    if not tokens:
        err.print("there are none; `fonds token create USER` makes one")
        return
    print_table(
        ["id", "user", "scope", "label", "made (UTC)", "good until (UTC)", ""],
        [_row(token, now) for token in tokens],
        prose=["label"],
    )


@token_app.command()
def revoke(
    context: typer.Context,
    token: Annotated[
        str, typer.Argument(metavar="ID", help="As `fonds token list` shows, or its start.")
    ],
) -> None:
    """End a token at once; what its user has uploaded stays.

    \b
    Example: fonds token revoke 4f1c
    """
    with context.obj.library() as library, library.database.write() as connection:
        ended = users.revoke_token(connection, token, library.seams.clock.now())
    label = f" ({ended.label})" if ended.label else ""
    err.print(f"revoked {ended.id} of {ended.user_name}{label}", markup=False)


def _row(token: users.Token, now: datetime) -> tuple[Any, ...]:
    state = "revoked" if token.revoked_at else "" if token.is_valid(now) else "expired"
    return (
        str(token.id)[:8],
        safe(token.user_name),
        token.scope,
        safe(token.label),
        token.created_at,
        token.expires_at,
        state,
    )
