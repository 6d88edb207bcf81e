"""Stand-ins for publishers, all on one loopback port: the first part of a path is the host."""

from __future__ import annotations

import argparse
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from types import TracebackType
from typing import Self

from fonds.demo.bundle import bundled_sites
from fonds.demo.http import Handler, LoopbackServer, Request, Response, conditioned, not_found


@dataclass(slots=True)
class HostCounts:
    """How often a host was asked."""

    total: int = 0
    conditional: int = 0
    """Requests that named what the client already had."""
    not_modified: int = 0
    """Of these, the ones answered with 304."""


class DemoUpstream:
    """Serves hosts on loopback between `with` and the end of the block.

    `sites` gives each host and what answers for it; left out, the bundled ones are served.
    """

    def __init__(self, sites: Mapping[str, Handler] | None = None, *, port: int = 0) -> None:
        self._sites = bundled_sites() if sites is None else dict(sites)
        self._server = LoopbackServer(self._answer, port=port)
        self.counts: defaultdict[str, HostCounts] = defaultdict(HostCounts)
        """By host."""

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.__exit__(kind, error, trace)

    @property
    def address(self) -> str:
        """The base address, without a slash at its end."""
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def hosts(self) -> dict[str, str]:
        """Where each host is stood in for: the value of the setting `hosts`."""
        return {host: f"{self.address}/{host}" for host in self._sites}

    @property
    def hosts_variable(self) -> str:
        """The same as one text, for the variable FONDS_HOSTS."""
        return ",".join(f"{host}={base}" for host, base in self.hosts.items())

    def _answer(self, request: Request) -> Response:
        host, slash, rest = request.target.removeprefix("/").partition("/")
        site = self._sites.get(host)
        if site is None:
            return not_found(f"hosts served here: {', '.join(self._sites)}\n")
        response = conditioned(request, site(replace(request, target=slash + rest)))
        self._count(self.counts[host], request, response)
        return response

    def _count(self, counts: HostCounts, request: Request, response: Response) -> None:
        counts.total += 1
        counts.conditional += request.conditional
        counts.not_modified += response.status == HTTPStatus.NOT_MODIFIED


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the bundled upstream in the foreground until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m fonds.demo.server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any that is free")
    parser.add_argument("--times", type=int, default=1, help="of each notice and report, copies")
    given = parser.parse_args(arguments)
    with DemoUpstream(bundled_sites(given.times), port=given.port) as upstream:
        print(f"FONDS_HOSTS={upstream.hosts_variable}", flush=True)  # noqa: T201 — its whole output
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
