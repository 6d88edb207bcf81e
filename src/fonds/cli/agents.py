"""The command that serves agents."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fonds.cli.lines import set_up_logging
from fonds.cli.output import err
from fonds.cli.session import owner_named
from fonds.errors import UsageError
from fonds.mcp.exposure import require_safe
from fonds.uploads.users import has_valid_token

if TYPE_CHECKING:
    from fonds.library import Library
    from fonds.mcp.server import LibraryServer
    from fonds.settings import Settings

MCP_PORT: Final = 8765

_LEVELS: Final[dict[str, Any]] = {"debug": "DEBUG", "info": "INFO", "error": "ERROR"}


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(mcp)


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
    from fonds.mcp.opening import open_for_reading  # noqa: PLC0415 — no other command needs it
    from fonds.mcp.server import make_server  # noqa: PLC0415 — likewise

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


def _has_token(library: Library) -> bool:
    with library.database.read() as connection:
        return has_valid_token(connection, library.seams.clock.now())


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
