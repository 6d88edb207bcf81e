"""Commands that serve people, programs and agents, process uploads, and manage tokens."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from fonds.cli.children import child_commands
from fonds.cli.imports import ending_on_ctrl_c
from fonds.cli.output import AsJson, err, out, print_json, print_table, safe, to_json_value
from fonds.cli.process import run_until_stopped, set_up_logging, stoppable
from fonds.cli.session import find_owner
from fonds.errors import SettingsError, UsageError
from fonds.serving import (
    LINK_MINUTES,
    following_websites,
    is_any,
    is_exposed,
    is_loopback,
    require_safe,
)
from fonds.uploads import users
from fonds.uploads.live_workers import is_worker_running
from fonds.uploads.users import has_valid_token

if TYPE_CHECKING:
    import socket
    from datetime import datetime

    from fastapi import FastAPI

    from fonds.api.sessions import LoginLink
    from fonds.cli.session import Session
    from fonds.library import Library
    from fonds.mcp.server import LibraryServer
    from fonds.settings import Settings

PORT: Final = 8000


def serve(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 chooses a free one.")] = PORT,
    login: Annotated[
        bool, typer.Option("--login", help="Require a token for uploads and metrics here too.")
    ] = False,
    worker: Annotated[
        bool | None,
        typer.Option(
            "--worker/--no-worker", help="Also run `fonds worker`; default: only on SQLite."
        ),
    ] = None,
    schedule: Annotated[
        bool,
        typer.Option("--schedule", help="Also run `fonds scheduler`, which asks publishers."),
    ] = False,
) -> None:
    """Serve the library over HTTP: web pages and an API.

    Public documents need no token. Administration needs a login: with the link that is printed on a
    terminal, which works once and for ten minutes, or with a token of `fonds token create`. Uploads
    need one too, except on this machine while no other machine is served. Other machines are served
    only if there is a token. Uploads are processed by a worker, which it runs itself on SQLite, and
    elsewhere by `fonds worker`. Sources are run on schedule only with --schedule.

    \b
    Examples: fonds serve
              fonds serve --port 8080
              fonds serve --no-worker
              fonds serve --schedule
    """
    with ending_on_ctrl_c():
        from fonds.cli.server_start import prepare_or_wait  # noqa: PLC0415 — `token` starts faster
        from fonds.mcp import http  # noqa: PLC0415 — as above
        from fonds.web import site  # noqa: F401, PLC0415 — so that `_prepare` imports nothing

    with ExitStack() as stack:
        listening = stack.enter_context(http.bind_socket(host, port))
        address = _address(listening, host)

        def prepare() -> _PreparedServer:
            return _prepare(context.obj, host, login=login, worker=worker)

        with stoppable(exit_code=0) as stop:
            prepared = prepare_or_wait(prepare, listening, address)
        if prepared is None:
            return
        stack.enter_context(prepared.closing)
        if stop.is_set():
            return
        err.print(f"serving {address}; stop it with Ctrl-C", markup=False)
        _print_login(address, prepared.login_link)
        if not prepared.has_worker:
            err.print("no worker is running: uploads wait until `fonds worker` is started")
        with (
            following_websites(prepared.library),
            child_commands(_child_commands(prepared, schedule=schedule)) as children,
        ):

            def stop_children() -> None:
                for child in children:
                    child.request_stop()

            serving = http.serve(prepared.app, listening, on_stop=stop_children)
            run_until_stopped(serving, exit_code=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class _PreparedServer:
    """An open library with its application: all for whose start the database is needed."""

    library: Library
    closing: ExitStack
    """Closes the library."""
    app: FastAPI
    login_link: LoginLink | None
    runs_worker: bool
    """True if this server runs a worker itself."""
    has_worker: bool
    """True if uploads are processed, by this server or elsewhere."""


def _prepare(session: Session, host: str, *, login: bool, worker: bool | None) -> _PreparedServer:
    from fonds.api.sessions import LoginLink  # noqa: PLC0415 — as in `serve`
    from fonds.web.site import make_site  # noqa: PLC0415 — as above

    with ExitStack() as stack:
        # A server does not wait for its stores: it answers 503, and its clients try again.
        library = stack.enter_context(session.library(outage_seconds=0.0))
        exposed = is_exposed(host, _names(library.settings))
        if exposed and not _has_token(library):
            raise SettingsError(
                "this server would be reachable from other machines, but there is no token yet: "
                "make one with `fonds token create USER`, or leave --host at 127.0.0.1 and "
                "public_url and trusted_proxies empty"
            )
        _copy_log_handlers("uvicorn")
        # A proxy would write the link to its log, so a server for other machines has none.
        link = LoginLink(library.seams.clock) if sys.stdout.isatty() and not exposed else None
        app = make_site(library, is_exposed=exposed, needs_login=login, login_link=link)
        runs_worker = library.database.is_sqlite if worker is None else worker
        with library.database.read() as connection:
            is_running = is_worker_running(connection, library.seams.clock.now())
        app.state.shared.store_monitor.start()
        return _PreparedServer(
            library=library,
            closing=stack.pop_all(),
            app=app,
            login_link=link,
            runs_worker=runs_worker,
            has_worker=runs_worker or is_running,
        )


def _child_commands(prepared: _PreparedServer, *, schedule: bool) -> list[list[str]]:
    """The commands that `fonds serve` also runs."""
    home = ["--home", str(prepared.library.settings.home.absolute())]
    names = [*(["scheduler"] if schedule else []), *(["worker"] if prepared.runs_worker else [])]
    return [[*home, name] for name in names]


def _print_login(address: str, link: LoginLink | None) -> None:
    if link is None:
        err.print("operators log in with a token: `fonds token create NAME --scope admin`")
    else:
        out.print(
            f"to operate the library, open this link; it works once, within {LINK_MINUTES} "
            f"minutes:\n{address}{link.path()}",
            markup=False,
        )


def _names(settings: Settings) -> list[str]:
    """The public name of a server in front of this one, or the addresses of proxies."""
    name = urlsplit(settings.public_url).hostname or ""
    return [name] if name and not is_loopback(name) else list(settings.trusted_proxies)


def _has_token(library: Library) -> bool:
    with library.database.read() as connection:
        return has_valid_token(connection, library.seams.clock.now())


def _address(listening: socket.socket, host: str) -> str:
    name = "127.0.0.1" if is_any(host) else f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def _copy_log_handlers(*names: str) -> None:
    logger = logging.getLogger("fonds")
    for name in names:
        other = logging.getLogger(name)
        other.handlers, other.level = logger.handlers, logger.level


MCP_PORT: Final = 8765

_LEVELS: Final[dict[str, Any]] = {"debug": "DEBUG", "info": "INFO", "error": "ERROR"}


def mcp(
    context: typer.Context,
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on, with --http.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port, with --http; 0 chooses a free one.")
    ] = MCP_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Host name by which clients reach it; repeatable."),
    ] = None,
    as_user: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="USER", help="Include the uploads of this user; not with --http."
        ),
    ] = None,
) -> None:
    """Serve the library to agents over MCP, read-only.

    MCP is the Model Context Protocol. Without --http it uses stdin and stdout, for clients that
    start the server themselves. Over HTTP a client that sends a token of `fonds token create` also
    sees the uploads of its user. Other machines need a token.

    \b
    Examples: fonds mcp
              fonds mcp --as maria
              fonds mcp --http --port 8765
    """
    settings, names = context.obj.settings(), allow_host or []
    if http and as_user is not None:
        raise UsageError(
            "--as cannot be combined with --http: a client's token identifies its user"
        )
    from fonds.mcp.server import (  # noqa: PLC0415 — `token` starts 390 ms faster
        make_server,
        open_for_reading,
    )

    _set_up_logging(settings)
    with open_for_reading(settings) as library:
        if http:
            require_safe(host, names=names, has_token=_has_token(library))
        owner = find_owner(library, as_user)
        level = _LEVELS.get(settings.log_level, "WARNING")
        server = make_server(library, owner=owner, log_level=level)
        with following_websites(library):
            if http:
                _serve_http(server, library, host, port, names)
            else:
                _serve_stdio(server)


def _serve_stdio(server: LibraryServer) -> None:
    # The default handler ends the process at once: a thread blocks on stdin, and Python would wait.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server.run("stdio")


def _serve_http(
    server: LibraryServer, library: Library, host: str, port: int, names: list[str]
) -> None:
    from fonds.mcp import http  # noqa: PLC0415 — `token` starts 410 ms faster

    app = http.make_app(server, http.token_authenticator(library), host=host, names=names)
    with http.bind_socket(host, port) as listening:
        err.print(f"serving {http.address_of(listening, host)}; stop it with Ctrl-C", markup=False)
        run_until_stopped(http.serve(app, listening), exit_code=0)


def _set_up_logging(settings: Settings) -> None:
    """Log to stderr only, since stdout carries the protocol."""
    set_up_logging(settings)
    _copy_log_handlers("mcp", "uvicorn")
    # Without a handler here the package `mcp` would add its own and log every line twice.
    logging.getLogger().addHandler(logging.NullHandler())


def worker(
    context: typer.Context,
    *,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Concurrent jobs of this process.")
    ] = 2,
    drain: Annotated[
        bool, typer.Option("--drain", help="End when no job is left that can be processed now.")
    ] = False,
    commands: Annotated[
        bool, typer.Option(help="Also execute commands of operators while there are no uploads.")
    ] = True,
) -> None:
    """Process uploads, and execute commands of operators.

    An upload is parsed, split into passages, embedded and published. Any number of workers share
    the work; the jobs of a killed one are taken over within half a minute. After SIGTERM or Ctrl-C
    running stages have three seconds to finish; others are repeated later. An idle worker executes
    commands of the admin pages and the API, such as a run of a source, one after another.

    \b
    Examples: fonds worker
              fonds worker --concurrency 4
              fonds worker --drain
              fonds worker --no-commands
    """
    from fonds.operations import dispatcher  # noqa: PLC0415 — `token` starts 220 ms faster
    from fonds.uploads.worker import UploadWorker  # noqa: PLC0415 — as above

    with (
        stoppable(exit_code=0) as stop,
        context.obj.library() as library,
        library.worker_resources(stop=stop) as resources,
    ):
        err.print("working on uploads" if drain else "working on uploads; stop it with Ctrl-C")
        base = UploadWorker(resources, concurrency=concurrency)
        if drain:
            base.drain()
            if commands:
                asyncio.run(dispatcher(library).drain(stop.is_set))
        elif commands:
            commands_dispatcher = dispatcher(library, may_begin=lambda: base.is_idle)
            with ThreadPoolExecutor(1, "fonds-commands") as executor:
                dispatching = executor.submit(
                    lambda: asyncio.run(commands_dispatcher.serve(stop.is_set))
                )
                try:
                    base.run()
                finally:
                    stop.set()
            dispatching.result()
        else:
            base.run()


MAX_TOKEN_DAYS: Final = 36500

token_app = typer.Typer(help="Create, list and revoke API tokens.", no_args_is_help=True)


class TokenScope(StrEnum):
    """The rights of a token."""

    USER = "user"
    ADMIN = "admin"
    SERVICE = "service"


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(serve)
    app.command()(mcp)
    app.command()(worker)
    app.add_typer(token_app, name="token")


@token_app.command()
def create(
    context: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", help="User of the token; created if new.")],
    *,
    label: Annotated[str, typer.Option(help="A label to recognise it by.")] = "",
    scope: Annotated[
        TokenScope,
        typer.Option(help="user: own uploads; admin: administration; service: also updates jobs."),
    ] = TokenScope.USER,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_TOKEN_DAYS, help="Days until it expires; default: never."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it, only this once: the library stores a hash of it.

    \b
    Examples: fonds token create maria
              fonds token create maria --label laptop --days 90
              fonds token create parser --scope service
    """
    with context.obj.library() as library:
        seams = library.seams
        now = seams.clock.now()
        with library.database.write() as connection:
            token, secret = users.create_token(
                connection,
                user=user,
                label=label,
                scope=scope.value,
                now=now,
                rng=seams.rng,
                expires_at=now + timedelta(days=days) if days is not None else None,
            )
    if as_json:
        print_json({**to_json_value(token), "token": secret})
        return
    out.print(secret, markup=False)
    err.print(
        f"{token.user_name} sends it as `Authorization: Bearer fonds_…`; it is not shown again. "
        f"Revoke it with `fonds token revoke {str(token.id)[:8]}`",
        markup=False,
    )


@token_app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List all tokens, without their secrets.

    \b
    Example: fonds token list
    """
    with context.obj.library() as library:
        now = library.seams.clock.now()
        with library.database.read() as connection:
            tokens = users.list_tokens(connection)
    if as_json:
        print_json([{**to_json_value(token), "is_valid": token.is_valid(now)} for token in tokens])
        return
    if not tokens:
        err.print("no tokens; create one with `fonds token create USER`")
        return
    print_table(
        ["id", "user", "scope", "label", "created (UTC)", "expires (UTC)", ""],
        [_row(token, now) for token in tokens],
        prose=["label"],
    )


@token_app.command()
def revoke(
    context: typer.Context,
    token: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="As listed by `fonds token list`, or its first characters."
        ),
    ],
) -> None:
    """Revoke a token at once; the uploads of its user stay.

    \b
    Example: fonds token revoke 4f1c
    """
    with context.obj.library() as library, library.database.write() as connection:
        revoked = users.revoke_token(connection, token, library.seams.clock.now())
    label = f" ({revoked.label})" if revoked.label else ""
    err.print(f"revoked {revoked.id} of {revoked.user_name}{label}", markup=False)


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
