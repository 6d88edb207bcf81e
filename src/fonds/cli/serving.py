"""The command that serves the library over HTTP."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from fonds.cli.output import err
from fonds.errors import SettingsError
from fonds.mcp.exposure import is_any, is_exposed, is_loopback
from fonds.uploads.users import has_valid_token

if TYPE_CHECKING:
    import socket

    from fonds.library import Library
    from fonds.settings import Settings

PORT: Final = 8000


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(serve)


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
