"""Does every upload end, exactly once, while workers are killed all the time?

Fifty clients upload documents through a real `fonds serve`, while four `fonds worker` processes
work on them; every 0.2 to 2 seconds one of the four is killed with SIGKILL and another started at
once. Then the same files are worked on in peace, in another database. Held against each other:
that every accepted upload ended, once; that passages and vectors are the same; and how often the
model was asked about texts again, which may be one micro-batch for each kill. The model is a
server of ours that keeps count, as the requests of a killed worker are in no database.

    python -m bench.uploads [--documents 2000] [--clients 50] [--workers 4] [--sqlite] [--json]

A worker that has to import everything first would hardly live to see a job on two cores: workers
are forked from a process that has done so, and are in all else what `fonds worker` is.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID

import httpx
from bench.figures import Figure, asking, reaching, tell, within
from bench.worker import WORDS, invented
from sqlalchemy import func, insert, select
from tests.support import servers
from tests.support.libraries.uploads import send, stored, work
from tests.support.upstreams.embedding_endpoint import Asked, EmbeddingEndpoint

from fonds.library import Library, open_library
from fonds.stores.tables import documents, upload_events, upload_jobs, users
from fonds.uploads.states import ENDED
from fonds.uploads.users import create_token

PATIENCE = 3600
DIMS = 64
FONDS = [str(Path(sys.executable).with_name("fonds"))]


@dataclass(frozen=True, kw_only=True)
class File:
    """What a client uploads."""

    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Of the bytes."""
        return hashlib.sha256(self.data).hexdigest()


def files(count: int) -> list[File]:
    """Markdown, text, web pages and PDFs, some of them broken; no two alike."""
    dice = random.Random(11)
    pdfs = invented(count // 5 + 1, most_pages=2)
    return [_file(number, dice, pdfs) for number in range(count)]


def _file(number: int, dice: random.Random, pdfs: Iterator[bytes]) -> File:
    kind = number % 5
    if number % 95 == 0:
        return File(name=f"{number}.pdf", data=f"%PDF-1.7\n% torn off {number}\n".encode())
    if number % 97 == 0:
        return File(name=f"{number}.md", data=b"***\n" * number)  # without a word
    if kind == 0:
        return File(name=f"{number}.pdf", data=next(pdfs) + f"\n% {number}\n".encode())
    parts = [f"{_words(dice, 60)}." for _ in range(dice.randint(2, 12))]
    if kind == 1:
        body = "".join(f"<h2>Part {place}</h2><p>{part}</p>" for place, part in enumerate(parts))
        page = f"<!doctype html><html><body><h1>Policy {number}</h1>{body}</body></html>"
        return File(name=f"{number}.html", data=page.encode())
    text = f"# Policy {number}\n\n" + "\n\n".join(
        f"## Part {place}\n\n{part}" for place, part in enumerate(parts)
    )
    return File(name=f"{number}.{'txt' if kind == 2 else 'md'}", data=text.encode())


def _words(dice: random.Random, count: int) -> str:
    return " ".join(f"{dice.choice(WORDS)}{dice.randint(0, 400)}" for _ in range(count))


class Workers:
    """Worker processes that are killed and replaced."""

    def __init__(self, home: Path, variables: dict[str, str], count: int) -> None:
        fonds = str(servers.fonds_command())
        self._command = [fonds, "--home", str(home), "worker", "--concurrency", "1"]
        self._variables = variables
        self._processes = [self._start() for _ in range(count)]
        self._dice = random.Random(3)
        self._done = Event()
        self._killer = Thread(target=self._kill_now_and_then)
        self.kills = 0
        self._killer.start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command, env=self._variables, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    def _kill_now_and_then(self) -> None:
        while not self._done.wait(self._dice.uniform(0.2, 2)):
            place = self._dice.randrange(len(self._processes))
            self._processes[place].kill()
            self._processes[place].wait()
            self._processes[place] = self._start()
            self.kills += 1

    def close(self) -> None:
        """End them all."""
        self._done.set()
        self._killer.join()
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait(60)


@contextmanager
def served(home: Path, variables: dict[str, str]) -> Iterator[str]:
    """The address of a server of its own."""
    command = [*FONDS, "--home", str(home), "serve", "--port", "0"]
    process = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if address := re.search(r"http://[\d.]+:\d+", line):
                Thread(target=process.stderr.read, daemon=True).start()
                yield address[0]
                break
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@dataclass(kw_only=True)
class Client:
    """Somebody with a token and files to upload."""

    address: str
    token: str
    files: Sequence[File]
    accepted: list[str] = field(default_factory=list)

    def upload_all(self) -> None:
        """One file after the other; what fails for a moment is asked again."""
        headers = {"Authorization": f"Bearer {self.token}"}
        with (
            httpx.Client(base_url=self.address, headers=headers, timeout=120) as http,
            httpx.Client(base_url=self.address, timeout=120) as store,
        ):
            for file in self.files:
                claim = {"name": file.name, "bytes": len(file.data), "sha256": file.sha256}
                key = {"Idempotency-Key": file.sha256}
                begun = _asked(http, "POST", "/uploads", json=claim, headers=key).json()
                where = begun["upload"]
                _asked(
                    store,
                    where["method"],
                    where["url"],
                    content=file.data,
                    headers=where["headers"],
                )
                path = f"/uploads/{begun['document_id']}/complete"
                _asked(http, "POST", path, headers={"Idempotency-Key": f"{file.sha256}-complete"})
                self.accepted.append(begun["document_id"])


def _asked(http: httpx.Client, method: str, path: str, **request: Any) -> httpx.Response:
    for _ in range(50):
        # A connection that was idle for long is closed by the server, perhaps as we use it.
        with suppress(httpx.TransportError):
            answer = http.request(method, path, **request)
            if answer.status_code < 500 and answer.status_code != 409:
                return answer.raise_for_status()
        time.sleep(0.2)
    raise RuntimeError(f"{path} was asked for in vain")


def main() -> None:
    """Print the figures; end with 1 if anything was lost, doubled or done too often."""
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--sqlite", action="store_true")
    options = parser.parse_args()
    servers.open_run()
    try:
        figures, details = measure(options)
    finally:
        servers.close_run()
    tell(options, figures, **details)


def measure(options: argparse.Namespace) -> tuple[list[Figure], dict[str, Any]]:
    """Upload under fire, then in peace, and compare."""
    wanted = files(options.documents)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = stack.enter_context(EmbeddingEndpoint(dims=DIMS))
        homes = [folder / "fire", folder / "peace"]
        libraries = [_library(stack, home, model, options) for home in homes]
        people = _people(libraries, options.clients)
        begun = time.perf_counter()
        fire = _under_fire(libraries[0], homes[0], people, wanted, options)
        fire.seconds, fire.asked = time.perf_counter() - begun, list(model.requests)
        _say(f"all uploads ended after {fire.seconds:.0f} s and {fire.kills} kills; now in peace")
        model.forget()
        for number, file in enumerate(wanted):
            send(libraries[1], people[number % len(people)][0], file.data, file.name)
        work(libraries[1], concurrency=2)
        return _compared(libraries, len(wanted), fire, model.requests)


@dataclass(kw_only=True)
class Fire:
    """What happened while workers were killed."""

    kills: int
    accepted: int
    seconds: float = 0.0
    asked: Sequence[Asked] = ()


def _say(news: str) -> None:
    print(news, file=sys.stderr, flush=True)


def _library(
    stack: ExitStack, home: Path, model: EmbeddingEndpoint, options: argparse.Namespace
) -> Library:
    on: dict[str, Any] = {"embedder": f"openai:bench?dims={DIMS}", "embed_url": model.url}
    if not options.sqlite:
        server = servers.postgres()
        on["database"] = stack.enter_context(servers.postgres_database(server))
    return stack.enter_context(open_library(home, **on))


def _people(libraries: Sequence[Library], count: int) -> list[tuple[UUID, str]]:
    """The same users in both libraries, with tokens for the first."""
    people = []
    now = libraries[0].seams.clock.now()
    for number in range(count):
        with libraries[0].database.write() as connection:
            token, secret = create_token(
                connection,
                user=f"client-{number}",
                label="bench",
                scope="user",
                now=now,
                rng=libraries[0].seams.rng,
            )
        row = {"id": token.user_id, "name": f"client-{number}", "created_at": now}
        with libraries[1].database.write() as connection:
            connection.execute(insert(users).values(row))
        people.append((token.user_id, secret))
    return people


def _under_fire(
    library: Library,
    home: Path,
    people: Sequence[tuple[UUID, str]],
    wanted: Sequence[File],
    options: argparse.Namespace,
) -> Fire:
    settings = library.settings
    values = {"DATABASE": settings.database, "EMBEDDER": settings.embedder}
    values |= {"EMBED_URL": settings.embed_url or ""}
    variables = os.environ | {f"FONDS_{name}": value for name, value in values.items()}
    with served(home, variables) as address:
        workers = Workers(home, variables, options.workers)
        try:
            clients = [
                Client(address=address, token=secret, files=wanted[number :: len(people)])
                for number, (_, secret) in enumerate(people)
            ]
            with ThreadPoolExecutor(options.clients) as pool:
                for upload in [pool.submit(client.upload_all) for client in clients]:
                    upload.result()
            _say(f"all files were uploaded, after {workers.kills} kills")
            _await_ends(library, len(wanted))
        finally:
            workers.close()
    return Fire(kills=workers.kills, accepted=sum(len(client.accepted) for client in clients))


def _await_ends(library: Library, count: int) -> None:
    ended = select(func.count()).where(upload_jobs.c.status.in_([end.value for end in ENDED]))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with library.database.read() as connection:
            if connection.scalar(ended) == count:
                return
        time.sleep(1)
    raise TimeoutError("some uploads did not end")


def _compared(
    libraries: Sequence[Library], count: int, fire: Fire, in_peace: Sequence[Asked]
) -> tuple[list[Figure], dict[str, Any]]:
    ours, calm = libraries
    event = upload_events.c
    with ours.database.read() as connection:
        statuses = Counter(connection.scalars(select(upload_jobs.c.status)))
        moves = Counter(connection.scalars(select(event.to_status)))
        workers = connection.scalar(
            select(func.count(event.by.distinct())).where(event.to_status == "complete")
        )
        published = connection.scalar(select(func.count()).select_from(documents))
    with calm.database.read() as connection:
        expected = Counter(connection.scalars(select(upload_jobs.c.status)))
    again = _texts(fire.asked) - _texts(in_peace)
    allowed = fire.kills * max(len(asked.texts) for asked in in_peace)
    checks = {
        "the same ends as in peace": statuses == expected,
        "each published once": statuses["complete"] == moves["complete"] == published,
        "the same passages and vectors": stored(ours) == stored(calm),
    }
    condition = f"while workers were killed {fire.kills} times"
    figures = [
        reaching(f"uploads that were accepted, {condition}", fire.accepted, count),
        *(reaching(f"{check}, {condition}", int(holds), 1) for check, holds in checks.items()),
        within(f"texts embedded again, of {_texts(in_peace):,}, {condition}", again, allowed),
    ]
    details = {
        "statuses": dict(statuses),
        "kills": fire.kills,
        "workers_that_ended_a_job": workers,
        "seconds": round(fire.seconds),
        "requests_again": len(fire.asked) - len(in_peace),
    }
    return figures, details


def _texts(asked: Sequence[Asked]) -> int:
    return sum(len(each.texts) for each in asked)


if __name__ == "__main__":
    main()
