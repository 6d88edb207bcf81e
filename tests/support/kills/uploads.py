"""A worker on uploads that may be killed, at a durable operation of its choice or whenever.

python -m tests.support.kills.uploads HOME DATABASE
    [--hours H] [--kill-at N] [--pace SECONDS] [--run]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from fonds.cli.process import stoppable
from fonds.embed.base import Embedded, Purpose
from fonds.embed.client import EmbeddingClient
from fonds.embed.hashing import HashingEmbedder
from fonds.embed.worker import ensure_current
from fonds.library import open_library
from fonds.seams import Seams
from fonds.testing import LaterClock, Saboteur
from fonds.uploads.resources import SearchModel
from fonds.uploads.worker import UploadWorker

SETTINGS: Final[Mapping[str, Any]] = {
    "embedder": "hashing:32",
    "chunk_tokens": 32,
    "chunk_overlap": 4,
}
BATCH_TOKENS: Final = 100
LEASE: Final = timedelta(seconds=5)
ASKED: Final = "asked"
"""A file in the library's home: how many texts each request to the model had, line by line."""


class Noted:
    """A model in small batches that keeps a note of what it was asked for, also when killed."""

    is_remote = False

    def __init__(self, notes: Path, pace: float = 0.0) -> None:
        self._inner = HashingEmbedder(32)
        self.model = replace(self._inner.model, batch_tokens=BATCH_TOKENS)
        self._notes, self._pace = notes, pace

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of some texts, after a while."""
        file = os.open(self._notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{len(texts)}\n".encode())
        os.close(file)
        time.sleep(self._pace)
        return self._inner.embed(texts, purpose)


def work(home: Path, seams: Seams, *, database: str, pace: float = 0.0, runs: bool = False) -> None:
    """Work on uploads until there is nothing more to do, or until told to stop."""
    with (
        stoppable() as stop,
        open_library(home, seams=seams, database=database, **SETTINGS) as library,
        library.worker_resources(stop=stop) as resources,
    ):
        generation = ensure_current(library.database, seams, library.settings)
        client = EmbeddingClient(Noted(home / ASKED, pace), seams, library.settings, stop=stop)
        resources._model = SearchModel(generation=generation, client=client)
        worker = UploadWorker(resources, concurrency=2 if runs else 1, lease=LEASE, poll=0.02)
        worker.run() if runs else worker.drain()


def main() -> None:
    """Work as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("database")
    parser.add_argument("--hours", type=int, default=0)
    parser.add_argument("--kill-at", type=int)
    parser.add_argument("--pace", type=float, default=0.0)
    parser.add_argument("--run", action="store_true")
    asked = parser.parse_args()
    seams = Seams(durable=Saboteur(kill_at=asked.kill_at), clock=LaterClock(hours=asked.hours))
    work(asked.home, seams, database=asked.database, pace=asked.pace, runs=asked.run)


if __name__ == "__main__":
    main()
