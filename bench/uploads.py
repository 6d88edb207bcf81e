"""Does every upload end, exactly once, while workers are killed all the time?

Fifty clients upload documents through a real `fonds serve`, while four `fonds worker` processes
work on them and one of the four is killed with SIGKILL every 0.2 to 2 seconds and started again.
Then the same files are worked on in peace, in another database. Held against each other: that
every accepted upload ended, once; that passages and vectors are the same; and how many texts the
model was asked for more than once, which may be one micro-batch for each kill.

    python bench/uploads.py [--documents 2000] [--clients 50] [--workers 4] [--sqlite] [--json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID

import httpx
from sqlalchemy import func, insert, select

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.worker import WORDS, invented
from tests import servers
from tests.uploading import send, stored, work

from fonds.embed.batches import MAX_TEXTS
from fonds.library import Library, open_library
from fonds.stores.tables import (
    documents,
    embedding_batches,
    upload_events,
    upload_jobs,
    users,
)
from fonds.uploads.states import ENDED
from fonds.uploads.users import create_token

PATIENCE = 3600
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
    pdfs = invented(count // 5 + 1)
    return [_file(number, dice, pdfs) for number in range(count)]


def _file(number: int, dice: random.Random, pdfs: Iterator[bytes]) -> File:
    kind = number % 5
    if kind == 0:
        return File(name=f"{number}.pdf", data=next(pdfs) + f"\n% {number}\n".encode())
    parts = [f"{_words(dice, 60)}." for _ in range(dice.randint(3, 30))]
    if number % 97 == 0:
        return File(name=f"{number}.md", data=f"<!-- {number} -->\n".encode())  # without a word
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
        self._command = [*FONDS, "--home", str(home), "worker", "--concurrency", "1"]
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
        with httpx.Client(base_url=self.address, headers=headers, timeout=120) as http:
            for file in self.files:
                claim = {"name": file.name, "bytes": len(file.data), "sha256": file.sha256}
                begun = self._asked(http, "/uploads", claim, file.sha256)
                where = begun["upload"]
                put = httpx.request(
                    where["method"],
                    httpx.URL(self.address).join(where["url"]),
                    content=file.data,
                    headers=where["headers"],
                    timeout=120,
                )
                put.raise_for_status()
                path = f"/uploads/{begun['document_id']}/complete"
                self._asked(http, path, None, f"{file.sha256}-complete")
                self.accepted.append(begun["document_id"])

    def _asked(self, http: httpx.Client, path: str, body: Any, key: str) -> Any:
        for _ in range(50):
            answer = http.post(path, json=body, headers={"Idempotency-Key": key})
            if answer.status_code < 500 and answer.status_code != 409:
                answer.raise_for_status()
                return answer.json()
            time.sleep(0.2)
        raise RuntimeError(f"{path}: {answer.status_code} {answer.text}")


def main() -> None:
    """Print the figures; end with 1 if anything was lost, doubled or done too often."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    servers.open_run()
    try:
        figures = measure(options)
    finally:
        servers.close_run()
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:24} {figure!s:>24}")
    sys.exit(not figures["holds"])


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Upload under fire, then in peace, and compare."""
    wanted = files(options.documents)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        homes = [folder / "fire", folder / "peace"]
        libraries = [stack.enter_context(_library(stack, home, options)) for home in homes]
        people = _people(libraries, options.clients)
        begun = time.perf_counter()
        kills, accepted = _under_fire(libraries[0], homes[0], people, wanted, options)
        taken = time.perf_counter() - begun
        for number, file in enumerate(wanted):
            send(libraries[1], people[number % len(people)][0], file.data, file.name)
        work(libraries[1], concurrency=2)
        return _compared(libraries, len(wanted), accepted, kills, taken)


def _library(stack: ExitStack, home: Path, options: argparse.Namespace) -> Any:
    if options.sqlite:
        return open_library(home)
    address = stack.enter_context(servers.postgres_database(servers.postgres()))
    return open_library(home, database=address)


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
                chance=libraries[0].seams.chance,
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
) -> tuple[int, int]:
    variables = {**os.environ, "FONDS_DATABASE": library.settings.database}
    workers = Workers(home, variables, options.workers)
    try:
        with served(home, variables) as address, ThreadPoolExecutor(options.clients) as pool:
            clients = [
                Client(address=address, token=secret, files=wanted[number :: len(people)])
                for number, (_, secret) in enumerate(people)
            ]
            for upload in [pool.submit(client.upload_all) for client in clients]:
                upload.result()
            _await_ends(library, len(wanted))
    finally:
        workers.close()
    return workers.kills, sum(len(client.accepted) for client in clients)


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
    libraries: Sequence[Library], count: int, accepted: int, kills: int, taken: float
) -> dict[str, Any]:
    fire, peace = libraries
    with fire.database.read() as connection:
        statuses = Counter(connection.scalars(select(upload_jobs.c.status)))
        completed = connection.scalar(
            select(func.count()).where(upload_events.c.to_status == "complete")
        )
        published = connection.scalar(select(func.count()).select_from(documents))
    with peace.database.read() as connection:
        calm = Counter(connection.scalars(select(upload_jobs.c.status)))
    again = _asked_texts(fire) - _asked_texts(peace)
    is_same = stored(fire) == stored(peace)
    once = statuses["complete"] == completed == published
    return {
        "documents": count,
        "accepted": accepted,
        "statuses": dict(statuses),
        "statuses_in_peace": dict(calm),
        "kills": kills,
        "seconds": round(taken),
        "same_passages_and_vectors": is_same,
        "each_published_once": once,
        "texts_asked_again": again,
        "most_allowed": kills * MAX_TEXTS,
        "holds": is_same
        and once
        and statuses == calm
        and accepted == count
        and again <= kills * MAX_TEXTS,
    }


def _asked_texts(library: Library) -> int:
    with library.database.read() as connection:
        return connection.scalar(select(func.sum(embedding_batches.c.texts))) or 0


if __name__ == "__main__":
    main()
