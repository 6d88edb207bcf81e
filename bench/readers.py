"""Does a server stay quick while a hundred clients have a hostile file verified?

A page of HTML whose one tag has many attributes takes minutes to read. Four such pages are stored
as public documents, and a hundred requests at once, from twenty-five addresses, ask the server to
verify them; each is followed by another a second later. Meanwhile a client asks for `/health` and
`/` once a second. The memory of the server and of each reader process is looked at ten times a
second; that of a reader may be what an idle one has, and the limit of one reading.

    python -m bench.readers [--seconds 60] [--requests 100] [--attributes 300000] [--json]
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread
from typing import Any, Final

import psutil
import uvicorn
from bench.figures import asking, tell, within
from sqlalchemy import update
from tests.support.libraries.uploads import make_user, send, work

from fonds import ids
from fonds.library import Library, open_library
from fonds.settings import Settings
from fonds.stores.tables import documents
from fonds.web.site import make_site

ADDRESSES: Final = 25
DOCUMENTS: Final = 4
SERVER_MIB: Final = 600
READER_MIB: Final = Settings.read_memory_mib + 200
"""The limit of a reading, and what the libraries take that a reader loads before."""
MIB: Final = 1 << 20


def prepare(home: Path, attributes: int) -> list[str]:
    """Public documents whose archived bytes are hostile; their ids."""
    names = b" ".join(b"a%d=1" % number for number in range(attributes))
    with open_library(home, embedder="hashing:32") as library:
        user, found = make_user(library), []
        for number in range(DOCUMENTS):
            job = send(library, user, b"<p>Page %d.</p>" % number, f"{number}.html")
            work(library)
            found.append(ids.upload_id(job.document_id))
            replace_bytes(library, found[-1], b"<p %s>page %d</p>" % (names, number))
    return found


def replace_bytes(library: Library, document_id: str, data: bytes) -> None:
    """Replace the archived bytes of a text, with their hashes, and make the document public."""
    table = documents.c
    sha256 = hashlib.sha256(data).hexdigest()
    key = f"corpus/bench/{sha256}.html"
    library.blobs.put(key, data)
    with library.database.write() as connection:
        connection.execute(
            update(documents)
            .where(table.id == document_id)
            .values(
                raw_path=key,
                raw_sha256=sha256,
                body_raw_path=key,
                body_raw_sha256=sha256,
                owner=None,
            )
        )


def serve(home: str, descriptor: int) -> None:
    """Serve the library on a socket opened by the parent process."""
    with open_library(home, embedder="hashing:32") as library:
        config = uvicorn.Config(make_site(library, is_exposed=True), log_config=None, ws="none")
        asyncio.run(uvicorn.Server(config).serve([socket.socket(fileno=descriptor)]))


@contextmanager
def served(home: Path) -> Iterator[tuple[psutil.Process, int]]:
    """The server's process, and its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        listening.set_inheritable(True)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.readers"),
                *("--serve", str(home), str(listening.fileno())),
            ],
            close_fds=False,
        )
        try:
            yield psutil.Process(process.pid), listening.getsockname()[1]
        finally:
            process.terminate()
            process.wait(60)


def get(port: int, path: str, address: str) -> tuple[int, float]:
    """The status of a page for a client at this address, and the seconds it took."""
    begun = time.perf_counter()
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=120, source_address=(address, 0)
    )
    with suppress(OSError, http.client.HTTPException):
        connection.request("GET", path, headers={"Accept": "application/json"})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status, time.perf_counter() - begun
    return 0, time.perf_counter() - begun


class MemoryWatch(Thread):
    """The most memory that the server and any of its readers has needed, in MiB."""

    def __init__(self, server: psutil.Process, ended: Event) -> None:
        super().__init__()
        self._process = server
        self._ended = ended
        self.server = self.reader = 0.0
        self.readers = 0

    def run(self) -> None:
        """Look until the attack has ended."""
        while not self._ended.wait(0.1):
            with suppress(psutil.Error):
                self.server = max(self.server, self._process.memory_info().rss / MIB)
                self.readers = max(self.readers, len(self._process.children()))
                for child in self._process.children(recursive=True):
                    self.reader = max(self.reader, child.memory_info().rss / MIB)


def attack(port: int, names: Sequence[str], number: int, until: float) -> Counter[int]:
    """The statuses that one client meets, which asks again whenever it is answered."""
    statuses: Counter[int] = Counter()
    path = f"/verify/{names[number % len(names)]}"
    while time.monotonic() < until:
        status, seconds = get(port, path, f"127.0.1.{number % ADDRESSES + 1}")
        statuses[status] += 1
        time.sleep(max(0.0, 1 - seconds))  # a client that is refused waits a second
    return statuses


def measure(port: int, names: Sequence[str], requests: int, seconds: float) -> dict[str, Any]:
    """The seconds of the other pages, and the statuses of the attack."""
    until = time.monotonic() + seconds
    taken: dict[str, list[float]] = {"/health": [], "/": []}
    with ThreadPoolExecutor(requests) as threads:
        attacks = [threads.submit(attack, port, names, n, until) for n in range(requests)]
        while time.monotonic() < until:
            begun = time.monotonic()
            for page, times in taken.items():
                status, needed = get(port, page, "127.0.2.1")
                assert status == 200, (page, status)
                times.append(needed)
            time.sleep(max(0.0, begun + 1 - time.monotonic()))
        statuses: Counter[int] = sum((each.result() for each in attacks), Counter())
    return {"taken": taken, "statuses": dict(statuses)}


def main() -> None:
    """Print the figures; end with 1 if one is above its limit."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
        return
    parser = asking(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--attributes", type=int, default=300_000)
    options = parser.parse_args()
    ended = Event()
    with tempfile.TemporaryDirectory() as folder:
        names = prepare(Path(folder), options.attributes)
        with served(Path(folder)) as (server, port):
            for _ in range(5):
                get(port, "/", "127.0.2.1")
            watch = MemoryWatch(server, ended)
            watch.start()
            found = measure(port, names, options.requests, options.seconds)
            ended.set()
            watch.join()
    figures = [
        within(f"{page}, 95th percentile", quantiles(times, n=20)[-1], 1.0, "s")
        for page, times in found["taken"].items()
    ]
    figures += [
        within("memory of the server", watch.server, SERVER_MIB, "MiB"),
        within("memory of a reader", watch.reader, READER_MIB, "MiB"),
        within("reader processes", watch.readers, 2),
    ]
    tell(options, figures, statuses=found["statuses"])


if __name__ == "__main__":
    main()
