"""How much of the speed of the bare model and bare inserts is left when the queue is drained?

The drain claims documents, reads their passages, looks for equal texts, checks, normalizes and
hashes the vectors, stores them in the buffer and in the index, and keeps costs. The limit is the
same model called with the same texts, which are in memory, and `executemany` of equally large
rows, with the vector and its hash, into a plain table without any key, 256 a transaction, as
durable as ours. Both in one process, on one disk, some thousand passages in turn, so that a busy
machine is as busy for both; each with a model of its own, which knows no word beforehand. Real
text is what counts. Invented text has so few words that the default model knows all of them soon,
and leaves nearly nothing but the inserts.

    FONDS_CORPUS=… python -m bench.embed [--passages 20000] [--text invented] [--workers 1]
                                           [--embedder wordllama] [--json]
"""

from __future__ import annotations

import os
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pysqlite3.dbapi2 as sqlite
from bench.figures import Figure, asking, tell
from bench.search import real
from tests.support.libraries.passages import problems, put

from fonds.embed.base import Embedder
from fonds.embed.batches import MAX_TEXTS
from fonds.embed.generations import ensure_generation
from fonds.embed.registry import open_embedder
from fonds.embed.worker import drain
from fonds.schema import upgrade
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database, open_database
from fonds.stores.sqlite import batched
from fonds.stores.vector_buffer import vector_sha

AT_LEAST = 0.7
PER_DOCUMENT = 10
STEP = 2000
WORDS = 150
"""About 200 tokens."""
WORDLIST = """
    the of and to in that for act air apply area bank base bill board border budget build care case
    charge claim clean cost count court cover credit custom duty earn effect elect employ export
    farm file find fish form fund grant ground guard harbor health hear help hold house import
    income inform issue join judge labor land law lead letter level limit list load market measure
    meet member mine notice number object offer office order part pay permit person place plan
    plant point power process program public rate reason record region report request rule safe
"""
STEMS = WORDLIST.split()
ENDINGS = ("s", "ed", "ing", "er", "ment", "able", "less", "ful", "hood", "ward")


def invented(count: int) -> list[str]:
    """Passages of made-up words, some of them frequent, most of them rare; the same each time."""
    dice = random.Random(5)
    compounds = (f"{one}{other}" for one in STEMS for other in STEMS)
    vocabulary = [*STEMS, *(stem + ending for ending in ENDINGS for stem in STEMS), *compounds]
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    return [" ".join(dice.choices(vocabulary, weights, k=WORDS)) for _ in range(count)]


def read(count: int) -> list[str]:
    """Passages of about the same length from statutes, bills and registers."""
    found = real(Path(os.environ["FONDS_CORPUS"]), 20_000 + 2 * count, 1).passages
    return [text for text in found if len(text.split()) > WORDS // 2][:count]


def load(database: Database, texts: Sequence[str]) -> None:
    """Write documents of ten passages each, as a load does."""
    for number, batch in enumerate(batched(texts, 500 * PER_DOCUMENT)):
        parts = batched(batch, PER_DOCUMENT)
        put(database, {f"bench:{number}-{place}": part for place, part in enumerate(parts)})


class Drain:
    """A library whose queue is drained step by step."""

    def __init__(
        self, folder: Path, embedder: Embedder, texts: Sequence[str], workers: int
    ) -> None:
        self._database = open_database(f"sqlite:///{folder}/fonds.db", seams=Seams())
        upgrade(self._database)
        load(self._database, texts)
        self._generation = ensure_generation(self._database, Seams(), embedder, "bench")
        self._embedder = embedder
        self._workers = workers

    def step(self) -> float:
        """Seconds to give the passages of the next documents their vectors."""
        begun = time.perf_counter()
        report = drain(
            self._database,
            Seams(),
            self._embedder,
            self._generation,
            settings=Settings(),
            workers=self._workers,
            limit=STEP // PER_DOCUMENT,
        )
        taken = time.perf_counter() - begun
        assert (report.embedded, report.failed, report.ended) == (STEP, 0, None)
        return taken

    def close(self) -> None:
        """Prove that every passage has its vector."""
        assert problems(self._database, self._generation) == []
        self._database.close()


class Bare:
    """The model and a plain table."""

    def __init__(self, folder: Path, embedder: Embedder, texts: Sequence[str]) -> None:
        self._connection = sqlite.connect(folder / "bare.db", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE TABLE plain (d TEXT, c TEXT, m TEXT, v TEXT, x BLOB, s TEXT, t TEXT)"
        )
        self._embedder = embedder
        self._steps = batched(texts, STEP)

    def step(self) -> float:
        """Seconds for the model, and for rows of the same size."""
        texts, model = next(self._steps), self._embedder.model
        begun = time.perf_counter()
        for batch in batched(texts, MAX_TEXTS):
            vectors = self._embedder.embed(batch, "passage").vectors
            names = ("d" * 36, "c" * 36, model.name, model.version)
            datas = [vector.tobytes() for vector in vectors]
            rows = [(*names, data, vector_sha(data), "t" * 24) for data in datas]
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO plain VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        return time.perf_counter() - begun


def main() -> None:
    """Print the figures; end with 1 if too little is left."""
    parser = asking(__doc__)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--embedder", default="wordllama")
    known = "real" if "FONDS_CORPUS" in os.environ else "invented"
    parser.add_argument("--text", choices=("real", "invented"), default=known)
    options = parser.parse_args()
    count = options.passages // STEP * STEP
    texts = read(count) if options.text == "real" else invented(count)
    embedders = [open_embedder(options.embedder, Settings()) for _ in range(2)]
    tokens = open_embedder(options.embedder, Settings()).embed(texts[:STEP], "passage").tokens
    with tempfile.TemporaryDirectory() as folder:
        limit = Bare(Path(folder), embedders[0], texts)
        ours = Drain(Path(folder), embedders[1], texts, options.workers)
        pairs = [(limit.step(), ours.step()) for _ in range(len(texts) // STEP)]
        ours.close()
    bare, drained = map(sum, zip(*pairs, strict=True))
    figure = Figure(
        what=f"draining the queue, {options.embedder}, {options.text} text",
        ours=len(texts) / drained,
        theirs=len(texts) / bare,
        unit="passages/s",
        peer="the bare model and bare inserts",
        better="more",
        least=AT_LEAST,
        remark="ours also claims, looks for equal texts, checks, indexes and keeps costs",
    )
    tell(
        options,
        [figure],
        tokens_a_passage=tokens // STEP,
        median_ratio=median(one / other for one, other in pairs),
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


if __name__ == "__main__":
    main()
