"""An upstream for `FakeSource`, and a library that asks it."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from sqlalchemy import text
from tests.support import servers
from tests.support.upstreams.misbehaving import MisbehavingServer, Response

from fonds.library import Library, open_library
from fonds.runs.locks import SourceLock
from fonds.runs.state import RunReport, RunRequest
from fonds.schema import ensure_plugin_tables
from fonds.seams import Seams
from fonds.testing import FAKE_HOST, FakeSource, note

FAST = {"retries": 2, "retry_wait": 0.001, "retry_wait_max": 0.002, "timeout": 1.0}


class NoteOffice:
    """Serves notes; each can be replaced, withdrawn, or made to fail like a route of the server."""

    def __init__(self, server: MisbehavingServer, count: int) -> None:
        self.server = server
        self.notes = {number: note(number) for number in range(1, count + 1)}
        self.publish()

    def publish(self) -> None:
        entries = [{"number": n, "title": note["title"]} for n, note in self.notes.items()]
        self._serve("/list.json", {"notes": entries})
        self._serve("/census.json", {"numbers": list(self.notes)})
        for number, content in self.notes.items():
            self._serve(f"/notes/{number}.json", content)

    def change(self, number: int, **changes: Any) -> None:
        self.notes[number] = note(number, **changes)
        self.publish()

    def withdraw(self, *numbers: int) -> None:
        for number in numbers:
            del self.notes[number]
            self.server.remove(f"/notes/{number}.json")
        self.publish()

    def break_note(self, number: int, body: bytes, content_type: str = "application/json") -> None:
        self.server.serve(f"/notes/{number}.json", body, content_type)

    def redirect_note(self, number: int, to: str) -> None:
        """Let a note be answered by one of the server's misbehaving routes."""
        target = self.server.url(to)
        self.server.route(f"/notes/{number}.json", redirect_to(target))

    def _serve(self, path: str, value: Any) -> None:
        self.server.serve(path, json.dumps(value).encode(), "application/json")


def redirect_to(target: str) -> Any:
    return lambda _request: Response(b"", status=302, headers={"Location": target})


@contextmanager
def note_library(
    home: Path, server: MisbehavingServer, *, seams: Seams | None = None, **settings: Any
) -> Iterator[Library]:
    """A library whose fake source asks the given server."""
    hosts = {FAKE_HOST: server.url("").rstrip("/")}
    given = {"hosts": hosts, "allow_private": True, **FAST, **settings}
    file = home / "fonds.db"
    if not settings.get("database") and not file.exists():
        home.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(servers.sqlite_template(), file)
    with open_library(home, seams=seams, **given) as library:
        ensure_plugin_tables(library.database, "fake", FakeSource().info.tables)
        yield library


def ingest(library: Library, source: FakeSource | None = None, **request: Any) -> RunReport:
    """One run of the fake source."""
    return asyncio.run(library.ingest(source or FakeSource(), RunRequest(**request)))


@contextmanager
def renewed(lock: SourceLock) -> Iterator[None]:
    """Renew a lock as a run does, so that nobody takes its process for dead."""
    is_over = Event()

    def renew() -> None:
        while not is_over.wait(0.2):
            lock.renew()

    with ThreadPoolExecutor(1) as thread:
        renewal = thread.submit(renew)
        try:
            yield
        finally:
            is_over.set()
    renewal.result()


def rows(library: Library, query: str) -> list[dict[str, Any]]:
    """What a plain SQL query gives."""
    with library.database.read() as connection:
        return [row._asdict() for row in connection.execute(text(query))]
