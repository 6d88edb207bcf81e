"""A server on loopback for the demo's hosts; the first part of a path is the host."""

from __future__ import annotations

import argparse
import logging
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import format_datetime
from http import HTTPStatus
from typing import Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response as HttpResponse
from starlette.routing import Route

from fonds.demo.bundle import bundled_sites
from fonds.demo.http import Handler, Request, Response, not_found, with_conditions
from fonds.errors import UsageError

_LOG: Final = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.001


@dataclass(slots=True)
class HostCounts:
    """The number of requests to a host."""

    total: int = 0
    conditional: int = 0
    """Requests with a tag or a date of the copy that the client has."""
    not_modified: int = 0
    """Responses with status 304."""


class DemoUpstream:
    """Serves hosts on loopback between `with` and the end of the block.

    `sites` has a handler for each host; by default the bundled ones are served.
    """

    def __init__(self, sites: Mapping[str, Handler] | None = None, *, port: int = 0) -> None:
        self._sites = bundled_sites() if sites is None else dict(sites)
        self._requested_port = port
        self._socket: socket.socket | None = None
        self._cleanup = ExitStack()
        self.counts: defaultdict[str, HostCounts] = defaultdict(HostCounts)
        """By host."""

    def __enter__(self) -> Self:
        self._socket = self._cleanup.enter_context(self._bind_socket())
        # Handlers keep state without locks, so they run on the event loop and not in threads.
        routes = [Route("/{path:path}", self._respond, methods=["GET"])]
        config = uvicorn.Config(
            Starlette(routes=routes),
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([self._socket],), name="demo-upstream")
        thread.start()
        self._cleanup.callback(thread.join)
        self._cleanup.callback(setattr, server, "should_exit", True)
        while not server.started and thread.is_alive():
            time.sleep(_POLL_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def _bind_socket(self) -> socket.socket:
        try:
            return socket.create_server(("127.0.0.1", self._requested_port))
        except OSError as error:
            raise UsageError(
                f"Port {self._requested_port} of 127.0.0.1 cannot be used: {error.strerror}. "
                "Choose another one, or 0 for any that is free."
            ) from error

    @property
    def address(self) -> str:
        """The base address, without a slash at its end."""
        assert self._socket is not None, "the server runs only inside its with block"
        port: int = self._socket.getsockname()[1]
        return f"http://127.0.0.1:{port}"

    @property
    def hosts(self) -> dict[str, str]:
        """The address that replaces each host: the value of the setting `hosts`."""
        return {host: f"{self.address}/{host}" for host in self._sites}

    @property
    def hosts_variable(self) -> str:
        """The same as one text, for the variable FONDS_HOSTS."""
        return ",".join(f"{host}={base}" for host, base in self.hosts.items())

    async def _respond(self, request: HttpRequest) -> HttpResponse:
        path, query = request.scope["raw_path"], request.scope["query_string"]
        target = (path + b"?" + query if query else path).decode("latin-1")
        try:
            response = self._dispatch(Request(request.method, target, dict(request.headers)))
        except Exception:  # noqa: BLE001 — uvicorn would close the connection after it
            _LOG.exception("the handler failed at %s", target)
            response = Response(status=HTTPStatus.INTERNAL_SERVER_ERROR)
        content = b"" if response.status == HTTPStatus.NOT_MODIFIED else response.body
        return HttpResponse(content, response.status, _headers(response))

    def _dispatch(self, request: Request) -> Response:
        host, slash, rest = request.target.removeprefix("/").partition("/")
        site = self._sites.get(host)
        if site is None:
            return not_found(f"hosts served here: {', '.join(self._sites)}\n")
        response = with_conditions(request, site(replace(request, target=slash + rest)))
        counts = self.counts[host]
        counts.total += 1
        counts.conditional += request.conditional
        counts.not_modified += response.status == HTTPStatus.NOT_MODIFIED
        return response


def _headers(response: Response) -> dict[str, str]:
    headers = dict(response.headers)
    if response.status in {HTTPStatus.OK, HTTPStatus.NOT_MODIFIED}:
        headers["ETag"] = response.etag
        if response.modified is not None:
            modified = format_datetime(response.modified.astimezone(UTC), usegmt=True)
            headers["Last-Modified"] = modified
    if response.status != HTTPStatus.NOT_MODIFIED:
        headers["Content-Type"] = response.media_type
    return headers


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the bundled upstream in the foreground until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m fonds.demo.server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any that is free")
    options = parser.parse_args(arguments)
    serve_until_interrupted(DemoUpstream(port=options.port))


def serve_until_interrupted(upstream: DemoUpstream) -> None:
    """Serve, and print the variable with which other processes reach the server."""
    with upstream:
        print(f"FONDS_HOSTS={upstream.hosts_variable}", flush=True)  # noqa: T201 — its whole output
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
