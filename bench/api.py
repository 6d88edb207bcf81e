"""How many requests per second does the status of a job serve, compared with a minimal route?

`GET /jobs/{document_id}` finds out who is calling by the token's hash, reads the job, and tells
its status, progress, times and links. The limit is a FastAPI route that does one SELECT of the
same row through the same pool and returns it. Both served by uvicorn from one process, asked
in turn over connections that stay open, by some clients at once.

    python -m bench.api [--rounds 20] [--clients 4] [--json]
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import uvicorn
from bench.figures import Figure, asking, tell
from fastapi import FastAPI
from sqlalchemy import select
from tests.support.libraries.uploads import TEXT, announce

from fonds.api.app import make_app
from fonds.library import open_library
from fonds.stores.tables import upload_jobs
from fonds.uploads.users import create_token

AT_LEAST = 0.4
REQUESTS = 150


def serve(home: str, descriptors: list[int]) -> None:
    """Serve both, each on a socket opened by the parent process."""
    with open_library(home) as library:
        bare = FastAPI()
        job = upload_jobs.c

        @bare.get("/jobs/{document_id}")
        def status(document_id: str) -> dict[str, Any]:
            wanted = select(job.status, job.progress).where(job.document_id == document_id)
            with library.database.read() as connection:
                row = connection.execute(wanted).one()
            return {"status": row.status, "progress": row.progress}

        apps = [bare, make_app(library)]
        servers = [uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none")) for app in apps]
        sockets = [socket.socket(fileno=number) for number in descriptors]

        async def both() -> None:
            pairs = zip(servers, sockets, strict=True)
            await asyncio.gather(*(server.serve([where]) for server, where in pairs))

        asyncio.run(both())


@contextmanager
def served(home: Path) -> Iterator[list[int]]:
    """The ports of the bare route and of ours."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    numbers = [str(one.fileno()) for one in sockets]
    for one in sockets:
        one.set_inheritable(True)
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.api", "--serve", str(home), *numbers], close_fds=False
    )
    try:
        yield [one.getsockname()[1] for one in sockets]
    finally:
        process.terminate()
        process.wait(30)


def ask(port: int, path: str, token: str, count: int) -> None:
    """Some requests, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(count):
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert json.loads(answer.read())["status"] == "uploaded"
    connection.close()


def rate(pool: ThreadPoolExecutor, clients: int, port: int, path: str, token: str) -> float:
    """Requests a second, of some clients at once."""
    begun = time.perf_counter()
    asking = [pool.submit(ask, port, path, token, REQUESTS) for _ in range(clients)]
    for one in asking:
        one.result()
    return clients * REQUESTS / (time.perf_counter() - begun)


def main() -> None:
    """Print the figures; end with 1 if too little is left."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], [int(number) for number in sys.argv[3:]])
        return
    parser = asking(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        token, document = prepared(Path(folder))
        path = f"/jobs/{document}"
        with (
            served(Path(folder)) as ports,
            ThreadPoolExecutor(options.clients) as pool,
        ):
            for port in ports:
                ask(port, path, token, REQUESTS)
            pairs = [
                [rate(pool, options.clients, port, path, token) for port in ports]
                for _ in range(options.rounds)
            ]
    figure = Figure(
        what="status of a job",
        ours=median(ours for _, ours in pairs),
        theirs=median(bare for bare, _ in pairs),
        unit="requests/s",
        peer="a bare FastAPI route with one SELECT",
        better="more",
        least=AT_LEAST,
        remark="ours also finds out who is calling, and tells progress, times and links",
    )
    tell(options, [figure], median_ratio=median(ours / bare for bare, ours in pairs))


def prepared(home: Path) -> tuple[str, str]:
    """A token and the document it may ask for."""
    with open_library(home) as library:
        with library.database.write() as connection:
            token, secret = create_token(
                connection,
                user="client",
                label="bench",
                scope="user",
                now=library.seams.clock.now(),
                rng=library.seams.rng,
            )
        return secret, str(announce(library, token.user_id, TEXT.encode()).document_id)


if __name__ == "__main__":
    main()
