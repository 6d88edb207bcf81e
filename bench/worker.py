"""How much of the speed of bare reading, cutting, embedding and inserting is left to a worker?

A worker claims each upload, reads its file from the store and checks its hash, makes the text (of
a PDF in a copy of a process), stores it, checks it, cuts it, checks the passages, embeds them in
micro-batches with costs and progress, and publishes the document with its full-text and vector
entries; eight moves with their events, each in the transaction of its writes. The limit is the
same normalizer, chunker and model called in one process on the same bytes, and `executemany` of
passages and vectors into plain tables without any key or index, one transaction a document, as
durable as ours. Both in turn, some documents at a time, each with a model of its own.

    FONDS_CORPUS=… python bench/worker.py [--documents 200] [--json]

Real PDFs are what people upload; without FONDS_CORPUS, PDFs are written for the purpose.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import pysqlite3.dbapi2 as sqlite

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.unit.normalize.written_pdf import Said, written
from tests.uploading import make_user, send

from fonds.chunk.splitter import Chunker
from fonds.embed.packing import packed
from fonds.embed.registry import open_embedder
from fonds.errors import FondsError
from fonds.library import Library, open_library
from fonds.normalize.registry import get_normalizer
from fonds.settings import Settings
from fonds.stores.batches import pieces
from fonds.stores.fulltext import as_seen
from fonds.stores.tables import documents
from fonds.uploads.worker import BaseWorker

AT_LEAST = 0.7
STEP = 10
LARGEST = 400_000
WORDS = [
    "board",
    "permit",
    "record",
    "water",
    "policy",
    "insurer",
    "claim",
    "damage",
    "notice",
    "order",
    "office",
    "member",
]


def invented(count: int) -> Iterator[bytes]:
    """PDFs of a few pages of made-up sentences."""
    dice = random.Random(7)
    for _ in range(count):
        yield written(*(_page(dice) for _ in range(dice.randint(2, 8))))


def _page(dice: random.Random) -> list[Said | str]:
    lines = (" ".join(dice.choices(WORDS, k=12)) for _ in range(45))
    return [Said(72, 740 - 15 * row, line) for row, line in enumerate(lines)]


def real(corpus: Path, count: int) -> Iterator[bytes]:
    """PDFs of agencies with text in them, each with a comment of its own, so that none is known.

    Scanned ones are left out: a program outside reads them, for as long in both.
    """
    found = [path.read_bytes() for path in sorted(corpus.rglob("*.pdf"))]
    readable = [data for data in found if len(data) < LARGEST and _is_readable(data)]
    for number in range(count):
        yield readable[number % len(readable)] + f"\n% {number}\n".encode()


def _is_readable(data: bytes) -> bool:
    try:
        return not get_normalizer("pdf_v1").to_markdown(data).warnings
    except FondsError:
        return False


class Worked:
    """A library with uploads, worked on by one thread."""

    def __init__(self, library: Library, files: Sequence[bytes]) -> None:
        user = make_user(library)
        for number, data in enumerate(files):
            send(library, user, data, f"file-{number}.pdf")
        self._library = library

    def steps(self) -> Iterator[float]:
        """Seconds for each some documents."""
        with self._library.workbench() as bench:
            worker = BaseWorker(bench)
            bench.model()
            while True:
                begun = time.perf_counter()
                worked = [worker.work_once() for _ in range(STEP)]
                if not all(worked):
                    return
                yield time.perf_counter() - begun

    def close(self, expected: int) -> None:
        """Prove that every document is there."""
        with self._library.database.read() as connection:
            assert len(connection.execute(documents.select()).all()) == expected


class Bare:
    """The same work without anything around it."""

    def __init__(self, folder: Path, embedder: str, files: Sequence[bytes]) -> None:
        self._connection = sqlite.connect(folder / "bare.db", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE passages (d TEXT, n INTEGER, h TEXT, t TEXT)")
        self._connection.execute("CREATE TABLE vectors (d TEXT, n INTEGER, x BLOB, s TEXT)")
        self._embedder = open_embedder(embedder, Settings())
        self._chunker = Chunker()
        self._files = files

    def steps(self) -> Iterator[float]:
        """Seconds for each some documents."""
        for files in pieces(self._files, STEP):
            begun = time.perf_counter()
            for data in files:
                self._take(data)
            yield time.perf_counter() - begun

    def _take(self, data: bytes) -> None:
        chunks = self._chunker.chunk(get_normalizer("pdf_v1").to_markdown(data))
        model = self._embedder.model
        made = []
        for batch in pieces([as_seen(chunk.text) for chunk in chunks], 256):
            vectors = self._embedder.embed(batch, "passage").vectors
            made += packed(vectors, len(batch), model.dims)
        self._connection.execute("BEGIN IMMEDIATE")
        rows = [("d" * 36, chunk.ordinal, "h" * 64, chunk.text) for chunk in chunks]
        self._connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)
        found = [("d" * 36, place, vector.data, vector.sha) for place, vector in enumerate(made)]
        self._connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", found)
        self._connection.execute("COMMIT")


def main() -> None:
    """Print the figures; end with 1 if too little is left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    count = options.documents // STEP * STEP
    corpus = os.environ.get("FONDS_CORPUS")
    files = list(real(Path(corpus), count) if corpus else invented(count))
    with (
        tempfile.TemporaryDirectory() as folder,
        open_library(Path(folder) / "library", embedder=options.embedder) as library,
    ):
        limit = Bare(Path(folder), options.embedder, files)
        ours = Worked(library, files)
        pairs = list(zip(limit.steps(), ours.steps(), strict=False))
        ours.close(len(files))
    bare, worked = map(sum, zip(*pairs, strict=True))
    figures = {
        "documents": len(files),
        "worker_documents_per_s": round(len(files) / worked, 1),
        "bare_documents_per_s": round(len(files) / bare, 1),
        "ratio": round(bare / worked, 3),
        "median_ratio": round(median(one / other for one, other in pairs), 3),
        "at_least": AT_LEAST,
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:24} {figure:>12,}")
    sys.exit(figures["median_ratio"] < AT_LEAST)


if __name__ == "__main__":
    main()
