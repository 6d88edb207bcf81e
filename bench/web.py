"""What do pages cost beside what they show?

One process serves the site and three bare routes, each of which does only what a page cannot do
without; both are asked in turn over connections that stay open.

- The search page at 20 clients, its 95th percentile beside that of a route that does the same
  search and gives back ids.
- The page of a document with a text of a megabyte, rendered before, beside a route that reads a
  file of as many bytes and sends it.
- A level of a code's tree with 60,000 nodes beside the same level of one with 600.

    python -m bench.web [--documents 2000] [--clients 20] [--rounds 5] [--json]
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import quote_plus

import uvicorn
from bench.figures import Figure, asking, tell
from fastapi import FastAPI
from starlette.responses import Response
from tests.support.libraries.documents import hold
from tests.support.upstreams.federal_register import serve_synthetic

from fonds.library import Library, open_library
from fonds.runs.state import RunRequest, RunStatus
from fonds.stores.database import insert_many
from fonds.stores.tables import code_units, nodes
from fonds.web.site import make_site

RENDERED = "a page is looked up, rendered and sent with its citations and links"
COMPARED = (
    ("search page, 95th percentile", "a route that searches and gives ids", 1.5, RENDERED),
    ("page of a megabyte", "a route that reads and sends as many bytes", 3.0, RENDERED),
    ("level of a tree of 60,000 nodes", "the same of 600 nodes", 1.5, ""),
)
"""What, beside what, how many times as long it may take, and what for."""
REQUESTS = 30
REQUEST = RunRequest(mode="backfill", since=date(2019, 1, 7), until=date(2019, 3, 31))
LONG = "site:bench/long"
QUESTIONS = (
    "notice of public hearing",
    "air quality standards for particles",
    "annual report to the agency",
    "rule on wages and hours",
    "rivers and harbors",
)


# A library --------------------------------------------------------------------------------


def prepare(home: Path, count: int) -> None:
    """Documents with vectors, one long text, and two trees."""
    with (
        serve_synthetic(count, words=500, per_day=count // 50) as upstream,
        open_library(home, hosts=upstream.hosts, allow_private=True) as library,
    ):
        report = asyncio.run(library.ingest("federal_register", REQUEST))
        assert report.status is RunStatus.SUCCESS, report
        library.embed()
        hold(library, LONG, long_text(), title="A long text")
        for version, sections in (("small", 10), ("large", 1000)):
            plant(library, version, sections)


def long_text() -> str:
    """A megabyte in chapters and paragraphs."""
    paragraph = "The Administrator shall publish each year what was found, and what it cost. " * 8
    chapters = (
        f"Chapter {number}\n\n" + "\n\n".join([paragraph.strip()] * 20) for number in range(85)
    )
    return "\n\n".join(chapters)


def plant(library: Library, version: str, sections: int) -> None:
    """A code of 60 titles, each with so many sections in its one chapter."""
    root = f"usc/{version}/root"
    units = [f"{root}/title-{number}" for number in range(60)]
    now = library.seams.clock.now()
    with library.database.write() as connection:
        insert_many(connection, code_units, [unit_row(unit, version, now) for unit in units])
        insert_many(connection, nodes, [row for unit in units for row in rows(unit, sections)])


def unit_row(unit: str, version: str, now: Any) -> dict[str, Any]:
    """An edition's unit, complete."""
    name = unit.rpartition("/")[2]
    zeros = dict.fromkeys(("nodes", "shards", "bytes"), 0)
    return {
        "id": unit,
        "source": "usc",
        "version": version,
        "unit": name,
        "label": name,
        "plan_key": unit,
        "input_sha256": "0" * 64,
        "state": "complete",
        "is_newest": False,
        "planned_at": now,
        **zeros,
    }


def rows(unit: str, sections: int) -> Iterator[dict[str, Any]]:
    """The nodes of a unit, in reading order."""
    chapter = f"{unit}/chapter-1"
    names = [unit, chapter, *(f"{chapter}/section-{number}" for number in range(sections))]
    for position, name in enumerate(names):
        yield {
            "id": name,
            "parent": name.rpartition("/")[0],
            "source": "usc",
            "version": unit.split("/")[1],
            "kind": name.rpartition("/")[2].partition("-")[0],
            "label": name.rpartition("/")[2],
            "path": name.partition("/root/")[2],
            "body_ref": "pack#0+1" if "section" in name else None,
            "unit": unit,
            "position": position,
            "created_at": 0,
        }


# Both sides -------------------------------------------------------------------------------


def bare(library: Library, size: int) -> FastAPI:
    """Routes that do what a page cannot do without."""
    app = FastAPI()
    file = library.settings.home / "same-size"
    file.write_bytes(b"x" * size)

    @app.get("/")
    def search(q: str) -> list[str]:
        return [hit.id for hit in library.search(q, limit=11)]

    @app.get("/file")
    def read() -> Response:
        return Response(file.read_bytes(), media_type="text/html")

    return app


def serve(home: str, size: int, descriptors: Sequence[int]) -> None:
    """Serve both, each on a socket opened by the parent process."""
    with open_library(home) as library:
        apps = [bare(library, size), make_site(library, is_exposed=False)]
        servers = [uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none")) for app in apps]
        sockets = [socket.socket(fileno=number) for number in descriptors]

        async def both() -> None:
            pairs = zip(servers, sockets, strict=True)
            await asyncio.gather(*(server.serve([where]) for server, where in pairs))

        asyncio.run(both())


@contextmanager
def served(home: Path, size: int) -> Iterator[list[int]]:
    """The ports of the bare routes and of the site."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    numbers = [str(one.fileno()) for one in sockets]
    for one in sockets:
        one.set_inheritable(True)
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.web", "--serve", str(home), str(size), *numbers],
        close_fds=False,
    )
    try:
        yield [one.getsockname()[1] for one in sockets]
    finally:
        process.terminate()
        process.wait(30)


def ask(port: int, paths: Sequence[str], count: int) -> list[float]:
    """Seconds of some requests, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    taken = []
    for number in range(count):
        begun = time.perf_counter()
        connection.request("GET", paths[number % len(paths)], headers={"Accept": "text/html"})
        answer = connection.getresponse()
        body = answer.read()
        taken.append(time.perf_counter() - begun)
        assert answer.status == 200, body[:500]
    connection.close()
    return taken


def at_once(clients: int, port: int, paths: Sequence[str]) -> list[float]:
    """Seconds of the requests of all clients."""
    with ThreadPoolExecutor(clients) as pool:
        asking = [pool.submit(ask, port, paths, REQUESTS) for _ in range(clients)]
        return [seconds for one in asking for seconds in one.result()]


# Figures ----------------------------------------------------------------------------------


def compared(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Medians of what two sides took, in milliseconds."""
    return median(one) * 1000, median(other) * 1000


def measure(
    ports: Sequence[int], clients: int, rounds: int
) -> tuple[list[tuple[float, float]], ...]:
    """Milliseconds of each round, ours and theirs, in turn, so that a busy machine slows both."""
    plain, site = ports
    searches = [f"/?q={quote_plus(question)}" for question in QUESTIONS]
    trees = {
        version: [f"/c/usc/{version}", f"/c/usc/{version}/root/title-7"]
        for version in ("small", "large")
    }
    page = f"/d/{LONG}"
    for port, paths in ((plain, searches), (site, [*searches, page, *trees["large"]])):
        ask(port, paths, 2 * len(paths))
    found: tuple[list[tuple[float, float]], ...] = ([], [], [])
    for _ in range(rounds):
        bare_95, page_95 = (
            quantiles(at_once(clients, port, searches), n=20)[-1] for port in (plain, site)
        )
        found[0].append((page_95 * 1000, bare_95 * 1000))
        found[1].append(compared(ask(site, [page], REQUESTS), ask(plain, ["/file"], REQUESTS)))
        found[2].append(
            compared(ask(site, trees["large"], REQUESTS), ask(site, trees["small"], REQUESTS))
        )
    return found


def main() -> None:
    """Print the figures; end with 1 if one is above its limit."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]), [int(number) for number in sys.argv[4:]])
        return
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options.documents)
        with served(Path(folder), len(long_text())) as ports:
            found = measure(ports, options.clients, options.rounds)
    figures = [
        Figure(
            what=what,
            ours=median(one for one, _ in pairs),
            theirs=median(other for _, other in pairs),
            unit="ms",
            peer=peer,
            better="less",
            least=1 / at_most,
            remark=why,
        )
        for (what, peer, at_most, why), pairs in zip(COMPARED, found, strict=True)
    ]
    tell(options, figures)


if __name__ == "__main__":
    main()
