"""How much of the speed of bare reading, cutting, embedding and inserting is left to a worker?

A worker claims each upload, reads its file from the store and checks its hash, makes the text (of
a PDF in a copy of a process), stores it durably, checks it, cuts it, checks the passages, embeds
them in micro-batches with costs and progress, and publishes the document with its full-text and
vector entries; eight moves with their events, each in the transaction of its writes. The limit is
the same normalizer, chunker and model called in one process on the same bytes, and `executemany`
of passages and vectors into plain tables, one transaction a document, as durable as ours. The
limit writes no row for the document, no full-text and no vector index, and has no key.

Some rounds, each with a library of its own, so that no text is known before; in each, both take
the same documents in turn, some at a time. A first document, which starts processes and fills
caches, counts for neither. Beside the time on the wall stands that of processors, of all processes
together, which others on the machine disturb less.

    FONDS_CORPUS=… python bench/worker.py [--documents 40] [--rounds 5] [--json]

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
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


def invented(count: int, *, most_pages: int = 8) -> Iterator[bytes]:
    """PDFs of a few pages of made-up sentences."""
    dice = random.Random(7)
    for _ in range(count):
        yield written(*(_page(dice) for _ in range(dice.randint(min(2, most_pages), most_pages))))


def _page(dice: random.Random) -> list[Said | str]:
    lines = (" ".join(dice.choices(WORDS, k=12)) for _ in range(45))
    return [Said(72, 740 - 15 * row, line) for row, line in enumerate(lines)]


def real(corpus: Path, count: int) -> list[bytes]:
    """PDFs of agencies with text in them, no two with the same.

    Scanned ones are left out: a program outside reads them, for as long in both.
    """
    found = (path.read_bytes() for path in sorted(corpus.rglob("*.pdf")))
    by_text = {_text(data): data for data in found if len(data) < LARGEST}
    by_text.pop(None, None)
    return random.Random(7).sample(list(by_text.values()), min(count, len(by_text)))


def _text(data: bytes) -> str | None:
    try:
        made = get_normalizer("pdf_v1").to_markdown(data)
    except FondsError:
        return None
    return made.markdown if made.markdown.strip() and not made.warnings else None


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds on the wall, and of processors."""

    wall: float
    cpu: float


def _now() -> Took:
    times = [each.cpu_times() for each in psutil.Process().children(recursive=True)]
    others = sum(sum(each[:4]) for each in times)  # their children that have ended too
    return Took(time.perf_counter(), time.process_time() + others)


def _timed(work: Callable[..., object], items: Iterable[tuple[Any, ...]]) -> Took:
    begun = _now()
    for item in items:
        work(*item)
    ended = _now()
    return Took(ended.wall - begun.wall, ended.cpu - begun.cpu)


class Worked:
    """A library with uploads, worked on by one thread."""

    def __init__(self, library: Library, files: Sequence[bytes]) -> None:
        user = make_user(library)
        for number, data in enumerate(files):
            send(library, user, data, f"file-{number}.pdf")
        self._library, self._count = library, len(files)

    def steps(self) -> Iterator[Took]:
        """What each some documents took, but for the first."""
        with self._library.workbench() as bench:
            worker = BaseWorker(bench)
            bench.model()
            worker.work_once()
            for some in pieces(range(1, self._count), STEP):
                yield _timed(worker.work_once, [()] * len(some))

    def check(self) -> None:
        """Prove that every document is there."""
        with self._library.database.read() as connection:
            assert len(connection.execute(documents.select()).all()) == self._count


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

    def steps(self) -> Iterator[Took]:
        """What each some documents took, but for the first."""
        self._take(self._files[0])
        for some in pieces(self._files[1:], STEP):
            yield _timed(self._take, [(data,) for data in some])

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
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    corpus = os.environ.get("FONDS_CORPUS")
    files = real(Path(corpus), options.documents) if corpus else list(invented(40))
    rounds = [measure(files, options.embedder) for _ in range(options.rounds)]
    ratios = [bare.wall / worked.wall for bare, worked in rounds]
    figures = {
        "documents": len(files),
        "worker_ms_per_document": _per(files, [worked.wall for _, worked in rounds]),
        "bare_ms_per_document": _per(files, [bare.wall for bare, _ in rounds]),
        "worker_cpu_ms": _per(files, [worked.cpu for _, worked in rounds]),
        "bare_cpu_ms": _per(files, [bare.cpu for bare, _ in rounds]),
        "ratio": round(median(ratios), 3),
        "worst_ratio": round(min(ratios), 3),
        "best_ratio": round(max(ratios), 3),
        "cpu_ratio": round(median(bare.cpu / worked.cpu for bare, worked in rounds), 3),
        "at_least": AT_LEAST,
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:24} {figure:>12,}")
    sys.exit(figures["ratio"] < AT_LEAST)


def measure(files: Sequence[bytes], embedder: str) -> tuple[Took, Took]:
    """What the same documents took, bare and by a worker."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_library(Path(folder) / "library", embedder=embedder) as library,
    ):
        limit, ours = Bare(Path(folder), embedder, files), Worked(library, files)
        pairs = list(zip(limit.steps(), ours.steps(), strict=True))
        ours.check()
    bare, worked = zip(*pairs, strict=True)
    return _sum(bare), _sum(worked)


def _sum(took: Iterable[Took]) -> Took:
    walls, cpus = zip(*((each.wall, each.cpu) for each in took), strict=True)
    return Took(sum(walls), sum(cpus))


def _per(files: Sequence[bytes], seconds: Iterable[float]) -> float:
    return round(1000 * median(seconds) / (len(files) - 1), 1)


if __name__ == "__main__":
    main()
