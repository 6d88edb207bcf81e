"""How long does a search over 200,000 passages take, and does it find what is there?

A library is filled with invented text, and with real one where FONDS_CORPUS names it, and is asked
by words, by vectors, by both, and with a filter that lets one document of a hundred pass. It is
compared with the bare parts on the same data: FTS5, sqlite-vec and faiss, or pgvector; and with two
that search words only: tantivy, in its files, and bm25s, in memory. The nearest passages are
compared with an exact search of all vectors.

    FONDS_CORPUS=… python -m bench.search [--size 200000] [--questions 100] [--postgres] [--json]
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import sys
import tarfile
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

import bm25s
import faiss
import numpy as np
import pysqlite3.dbapi2 as sqlite
import sqlite_vec
import tantivy
from bench.figures import Figure, asking, reaching, tell, within
from numpy.typing import NDArray
from sqlalchemy import text
from tests.support import servers

from fonds import ids
from fonds.embed.base import Embedder
from fonds.embed.generations import ensure_generation
from fonds.embed.registry import open_embedder
from fonds.library import Library, open_library
from fonds.model import Chunk
from fonds.search.filters import Filters, eligible
from fonds.search.query import read_query
from fonds.stores.database import insert_many
from fonds.stores.passages import Passages, add_passages
from fonds.stores.sqlite import batched
from fonds.stores.tables import document_vector_buffer, documents
from fonds.stores.vectors import Generation

PER_DOCUMENT = 20
AT_ONCE = 100
"""Documents written in one transaction."""
RARE = 100
"""One document of so many passes the filter."""
DEEP = 100
MOST_RATIO = 1.3
LEAST_RECALL = 0.98
WHOLE = "it returns numbers; ours returns documents, citations and the matching words"
NOW = datetime(2026, 3, 4, tzinfo=UTC)

VOCABULARY = 30_000
TOPICS = 400
WORDS_OF_PASSAGE = 90
TAG = re.compile(rb"<[^>]*>")

Matrix = NDArray[np.float32]
Way = Callable[[int], Sequence[int] | None]


@dataclass(kw_only=True, slots=True)
class Text:
    """What a library is filled with and asked."""

    name: str
    passages: list[str]
    questions: list[str]


@dataclass(kw_only=True, slots=True)
class Taken:
    """How long one way of asking took, and how much of the truth it found."""

    seconds: list[float] = field(default_factory=list)
    found: list[float] = field(default_factory=list)

    def at(self, part: float) -> float:
        """Milliseconds."""
        return round(1000 * float(np.quantile(self.seconds, part)), 1)

    @property
    def recall(self) -> float | None:
        """Of the ten nearest, for what looks for them."""
        return round(float(np.mean(self.found)), 4) if self.found else None


# Texts ------------------------------------------------------------------------------------


def invented(size: int, questions: int) -> Text:
    """Words as often as in any language: half of them everybody's, half of one topic."""
    chance = np.random.default_rng(11)
    syllables = [f"{a}{b}" for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]
    words = np.array(
        ["".join(chance.choice(syllables, chance.integers(2, 5))) for _ in range(VOCABULARY)]
    )
    shares = 1.0 / np.arange(1, VOCABULARY + 1)
    until = np.cumsum(shares / shares.sum())

    def some(count: int, topic: int) -> str:
        ranks = np.searchsorted(until, chance.random(count))
        ranks[::2] = (ranks[::2] * 7919 + topic * 104_729) % VOCABULARY
        return " ".join(words[ranks])

    topics = chance.integers(0, TOPICS, size // PER_DOCUMENT + 1)
    passages = [some(WORDS_OF_PASSAGE, topics[n // PER_DOCUMENT]) for n in range(size)]
    asked = [some(10, int(chance.integers(0, TOPICS))) for _ in range(questions)]
    return Text(name="invented", passages=passages, questions=asked)


def real(archives: Path, size: int, questions: int) -> Text:
    """Regulations and questions about them first, then statutes, bills, registers as they come."""
    texts: dict[str, None] = {}
    asked: list[str] = []
    for name, data in _files(archives / "retrieval" / "obliqa.tar.xz"):
        if "StructuredRegulatoryDocuments" in name:
            texts |= dict.fromkeys(each["Passage"].strip() for each in json.loads(data))
        elif name.endswith("ObliQA_dev.json"):
            asked = [each["Question"] for each in json.loads(data)]
    folders = (*sorted((archives / "codes").iterdir()), *sorted((archives / "federal").iterdir()))
    files = chain.from_iterable(_files(path) for path in folders if path.name.endswith(".tar.xz"))
    for name, data in files:
        if len(texts) > size:
            break
        if name.lower().endswith((".xml", ".htm", ".html", ".txt")):
            words = html.unescape(TAG.sub(b" ", data).decode(errors="replace")).split()
            texts |= dict.fromkeys(map(" ".join, batched(words, WORDS_OF_PASSAGE)))
    passages = [passage for passage in texts if passage][:size]
    return Text(name="real", passages=passages, questions=asked[:: len(asked) // questions])


def _files(archive: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as files:
        for member in files:
            if member.isfile() and (opened := files.extractfile(member)) is not None:
                yield member.name, opened.read()


# A library --------------------------------------------------------------------------------


def fill(
    library: Library, embedder: Embedder, passages: Sequence[str]
) -> tuple[Generation, Matrix]:
    """Documents of some passages each with their vectors; the rows are numbered from 1."""
    generation = ensure_generation(library.database, library.seams, embedder, "wordllama")
    vectors = np.zeros((len(passages), generation.dims), np.float32)
    numbered, done = enumerate(batched(passages, PER_DOCUMENT)), 0
    while some := [(number, _passages(number, own)) for number, own in islice(numbered, AT_ONCE)]:
        rows = [row for _, own in some for row in own.rows(NOW)]
        texts = batched([row["text"] for row in rows], 256)
        made = np.concatenate([embedder.embed(part, "passage").vectors for part in texts])
        stored = [vector.tobytes() for vector in made]
        with library.database.write() as connection:
            insert_many(connection, documents, [_document(number) for number, _ in some])
            add_passages(connection, library.database.fulltext, [own for _, own in some], NOW)
            held = [_vector(generation, *each) for each in zip(rows, stored, strict=True)]
            insert_many(connection, document_vector_buffer, held)
            library.database.vectors.add(connection, generation, list(enumerate(stored, done + 1)))
        vectors[done : done + len(made)] = made
        done += len(made)
    return generation, vectors


def _passages(number: int, texts: Sequence[str]) -> Passages:
    return Passages(
        document_uid=ids.document_uid(f"bench:{number}"),
        title=f"Document {number}",
        chunks=[
            Chunk(
                ordinal=ordinal,
                text=own,
                start=0,
                end=len(own),
                tokens=len(own) // 4 + 1,
                heading_path=(f"Part {ordinal}",),
            )
            for ordinal, own in enumerate(texts)
        ],
        chunker_name="bench",
        chunker_version="1",
    )


def _document(number: int) -> dict[str, Any]:
    return {
        "id": f"bench:{number}",
        "uid": ids.document_uid(f"bench:{number}"),
        "source": "common" if number % RARE else "rare",
        "kind": "rule",
        "title": f"Document {number}",
        "source_url": f"https://register.example/{number}",
        "source_org": "Agency",
        "published_at": "2026-03-04",
        "retrieved_at": NOW,
        "raw_path": f"corpus/bench/{number}",
        "raw_sha256": "0" * 64,
        "citation_string": f"Document No. {number}.",
        "content_sha256": "0" * 64,
        "recipe": "bench",
        "updated_at": NOW,
    }


def _vector(generation: Generation, row: dict[str, Any], data: bytes) -> dict[str, Any]:
    return {
        "document_id": row["document_id"],
        "chunk_id": row["chunk_id"],
        "embed_model": generation.name,
        "embed_version": generation.version,
        "vector": data,
        "vector_sha": sha256(b64encode(data)).hexdigest(),
        "created_at": NOW,
    }


# Ways of asking ---------------------------------------------------------------------------


class Asking:
    """One library with its questions, and every way to ask them."""

    def __init__(self, library: Library, generation: Generation, asked: Text, asks: Matrix) -> None:
        self.library = library
        self.generation = generation
        self.questions = asked.questions
        self.asks = asks

    def ways(self) -> dict[str, Way]:
        """What the library itself does."""
        return {
            "lexical": self._searching(mode="lexical"),
            "semantic": self._searching(mode="semantic"),
            "hybrid": self._searching(mode="hybrid"),
            "lexical, 1 %": self._searching(mode="lexical", sources=["rare"]),
            "semantic, 1 %": self._searching(mode="semantic", sources=["rare"]),
            "hybrid, 1 %": self._searching(mode="hybrid", sources=["rare"]),
            "vector stage, best 10": lambda n: self.near(n, 10),
            "vector stage, best 100": lambda n: self.near(n, DEEP),
        }

    def _searching(self, **how: Any) -> Way:
        def search(number: int) -> None:
            self.library.search(self.questions[number], **how)

        return search

    def near(self, number: int, limit: int) -> list[int]:
        """The rows whose vectors are nearest to a question's, numbered from 1."""
        database, query = self.library.database, self.asks[number].tobytes()
        with database.read() as connection:
            passing = eligible(connection, Filters(), self.library.sources)
            near = database.vectors.search(connection, self.generation, query, passing, limit)
        return [each.row for each in near]

    def missing(self, rare: int) -> int:
        """How many of the documents that pass the filter a search for all of them lacks."""
        how: dict[str, Any] = {"sources": ["rare"], "limit": min(rare + 10, 1000)}
        few = self.questions[:5]
        return max(
            abs(rare - len(self.library.search(question, mode=mode, **how)))
            for question in few
            for mode in ("semantic", "hybrid")
        )


@contextmanager
def bare_sqlite(folder: Path, asking: Asking, vectors: Matrix) -> Iterator[dict[str, Way]]:
    """FTS5 on the library's own index; sqlite-vec and faiss on the same vectors."""
    words = sqlite.connect(str(folder / "fonds.db"))
    near = sqlite.connect(str(folder / "near.db"), isolation_level=None)
    near.enable_load_extension(True)
    sqlite_vec.load(near)
    dims = vectors.shape[1]
    near.execute("PRAGMA journal_mode = WAL")
    near.execute(f"CREATE VIRTUAL TABLE bits USING vec0(v bit[{dims}])")
    near.execute(f"CREATE VIRTUAL TABLE floats USING vec0(v float[{dims}])")
    near.execute("BEGIN")
    rows = [(row, vector.tobytes()) for row, vector in enumerate(vectors, 1)]
    near.executemany("INSERT INTO bits (rowid, v) VALUES (?, vec_quantize_binary(?))", rows)
    near.executemany("INSERT INTO floats (rowid, v) VALUES (?, ?)", rows)
    near.execute("COMMIT")
    lists = int(4 * len(vectors) ** 0.5)
    coarse = faiss.IndexFlatIP(dims)
    inverted = faiss.IndexIVFFlat(coarse, dims, lists, faiss.METRIC_INNER_PRODUCT)
    inverted.train(vectors[:: max(1, len(vectors) // (40 * lists))])
    inverted.add(vectors)
    inverted.nprobe = max(1, lists // 32)

    def fts5(number: int) -> None:
        terms = " OR ".join(
            f'"{term}"' for term in read_query(asking.questions[number]).search_terms
        )
        query = "SELECT rowid FROM chunk_index WHERE chunk_index MATCH ? ORDER BY rank LIMIT ?"
        words.execute(query, (terms, DEEP)).fetchall()

    def bits(number: int) -> list[int]:
        query = "SELECT rowid FROM bits WHERE v MATCH vec_quantize_binary(?) AND k = ?"
        asked = asking.asks[number]
        found = [row for (row,) in near.execute(query, (asked.tobytes(), DEEP))]
        marks = ",".join("?" * len(found))
        again = f"SELECT rowid, v FROM floats WHERE rowid IN ({marks})"
        full = {row: np.frombuffer(v, np.float32) @ asked for row, v in near.execute(again, found)}
        return sorted(full, key=lambda row: -full[row])

    def floats(number: int) -> list[int]:
        query = "SELECT rowid FROM floats WHERE v MATCH ? AND k = ?"
        return [row for (row,) in near.execute(query, (asking.asks[number].tobytes(), DEEP))]

    def ivf(number: int) -> list[int]:
        return [
            int(row) + 1 for row in inverted.search(asking.asks[number : number + 1], DEEP)[1][0]
        ]

    yield {
        "bare FTS5": fts5,
        f"bare sqlite-vec, bits, {DEEP} compared again": bits,
        "bare sqlite-vec, floats": floats,
        f"bare faiss IVF{lists}, {inverted.nprobe} probed": ivf,
    }
    words.close()
    near.close()


@contextmanager
def bare_postgres(asking: Asking) -> Iterator[dict[str, Way]]:
    """The full-text and the HNSW index of the library, asked directly."""
    name = asking.generation.table

    def tsvector(number: int) -> None:
        terms = " OR ".join(
            f'"{term}"' for term in read_query(asking.questions[number]).search_terms
        )
        query = (
            "SELECT id FROM chunk_index, websearch_to_tsquery('english', :terms) AS q"
            " WHERE words @@ q ORDER BY ts_rank(words, q) DESC LIMIT :count"
        )
        with asking.library.database.read() as connection:
            connection.execute(text(query), {"terms": terms, "count": DEEP}).all()

    def hnsw(number: int) -> list[int]:
        query = (
            f"SELECT id FROM {name} JOIN {name}_points USING (sha)"
            " ORDER BY embedding <#> CAST(:v AS vector) LIMIT 10"
        )
        asked = str(asking.asks[number].tolist())
        with asking.library.database.read() as connection:
            return list(connection.scalars(text(query), {"v": asked}))

    yield {"bare tsvector": tsvector, "bare pgvector, ef_search 40": hnsw}


def other_words(folder: Path, asking: Asking, passages: Sequence[str]) -> dict[str, Way]:
    """Searchers that know nothing but words, on the same passages."""
    fields = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem")
    (folder / "tantivy").mkdir()
    index = tantivy.Index(fields.build(), path=str(folder / "tantivy"))
    writer = index.writer(num_threads=1)
    for passage in passages:
        writer.add_document(tantivy.Document(text=[passage]))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    words = partial(bm25s.tokenize, stopwords="en", show_progress=False)
    memory = bm25s.BM25()
    memory.index(words(list(passages)), show_progress=False)

    def in_files(number: int) -> None:
        terms = " ".join(read_query(asking.questions[number]).search_terms)
        searcher.search(index.parse_query_lenient(terms, ["text"])[0], DEEP)

    def in_memory(number: int) -> None:
        memory.retrieve(words([asking.questions[number]]), k=DEEP, show_progress=False)

    return {"tantivy": in_files, "bm25s": in_memory}


# Measuring --------------------------------------------------------------------------------


def measure(ways: dict[str, Way], asks: Matrix, vectors: Matrix) -> dict[str, Taken]:
    """Every question asked in every way, one after the other, so that all share the weather."""
    figures = {name: Taken() for name in ways}
    for way in ways.values():
        way(0)
    for number, ask in enumerate(asks):
        exact = vectors @ ask
        tenth = np.partition(exact, -10)[-10] - 1e-6
        for name, way in ways.items():
            begun = time.perf_counter()
            rows = way(number)
            figures[name].seconds.append(time.perf_counter() - begun)
            if rows is not None:
                hits = sum(exact[row - 1] >= tenth for row in rows[:10])
                figures[name].found.append(min(hits, 10) / 10)
    return figures


def deep_recall(asking: Asking, vectors: Matrix) -> float:
    """The part of the true best hundred that the vector stage finds."""
    found = []
    for number, ask in enumerate(asking.asks[:50]):
        exact = vectors @ ask
        last = np.partition(exact, -DEEP)[-DEEP] - 1e-6
        rows = asking.ways()["vector stage, best 100"](number) or ()
        found.append(sum(exact[row - 1] >= last for row in rows) / DEEP)
    return round(float(np.mean(found)), 4)


def run(asked: Text, address: str) -> dict[str, Any]:
    """All figures for one text on one database."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        library = stack.enter_context(open_library(folder, database=address))
        embedder = open_embedder("wordllama", library.settings)
        begun = time.perf_counter()
        generation, vectors = fill(library, embedder, asked.passages)
        filled = time.perf_counter() - begun
        if not library.database.is_sqlite:
            with library.database.write() as connection:
                connection.execute(text("ANALYZE"))
        asks = embedder.embed(asked.questions, "query").vectors
        asking = Asking(library, generation, asked, asks)
        bare = bare_postgres(asking) if address else bare_sqlite(folder, asking, vectors)
        ways = asking.ways() | stack.enter_context(bare)
        ways |= other_words(folder, asking, asked.passages)
        figures = measure(ways, asks, vectors)
        rare = -(-len(asked.passages) // (PER_DOCUMENT * RARE))
        return {
            "text": asked.name,
            "database": "postgresql" if address else "sqlite",
            "passages": len(vectors),
            "passages_per_s": round(len(vectors) / filled),
            "ways": {
                name: {"p50_ms": each.at(0.5), "p95_ms": each.at(0.95), "recall@10": each.recall}
                for name, each in figures.items()
            },
            "recall@100": deep_recall(asking, vectors),
            "filtered_missing": asking.missing(rare),
        }


def figures(found: dict[str, Any]) -> Iterator[Figure]:
    """Each way beside its bare part, and beside others."""
    where = f"{found['text']} text, {found['database']}"
    ways = found["ways"]
    recall = ways["vector stage, best 10"]["recall@10"]
    bare = next(name for name in ways if name.startswith(("bare FTS5", "bare tsvector")))
    for peer in (bare, "tantivy", "bm25s"):
        yield Figure(
            what=f"search by words, median, {where}",
            ours=ways["lexical"]["p50_ms"],
            theirs=ways[peer]["p50_ms"],
            unit="ms",
            peer=peer,
            better="less",
            remark="" if peer == bare else WHOLE,
        )
    yield Figure(
        what=f"search by words and meaning, 95th percentile, {where}",
        ours=ways["hybrid"]["p95_ms"],
        theirs=ways["lexical"]["p95_ms"] + ways["semantic"]["p95_ms"],
        unit="ms",
        peer="by words and by meaning, one after the other",
        better="less",
        least=1 / MOST_RATIO,
    )
    yield reaching(f"recall@10 of the vector stage, {where}", recall, LEAST_RECALL)
    yield within(f"results missing under a filter of 1 %, {where}", found["filtered_missing"], 0)


def show(found: dict[str, Any]) -> None:
    """A table."""
    where = f"{found['database']}, {found['text']} text"
    speed = f"{found['passages']:,} passages, {found['passages_per_s']:,}/s"
    print(f"{where}: {speed} written, words and vectors indexed")
    print(f"{'':<44} {'p50 ms':>8} {'p95 ms':>8} {'recall@10':>10}")
    for name, each in found["ways"].items():
        recall = "" if each["recall@10"] is None else each["recall@10"]
        print(f"{name:<44} {each['p50_ms']:>8} {each['p95_ms']:>8} {recall:>10}")
    print(f"recall@100 of the vector stage {found['recall@100']}")


def texts_of(options: argparse.Namespace) -> Iterator[Text]:
    """One after the other, as each takes its room."""
    corpus = os.environ.get("FONDS_CORPUS")
    if options.text != "real":
        yield invented(options.size, options.questions)
    if options.text != "invented" and corpus:
        yield real(Path(corpus), options.size, options.questions)
    elif options.text != "invented":
        print("real text left out: set FONDS_CORPUS", file=sys.stderr)


@contextmanager
def address_of(*, postgres: bool) -> Iterator[str]:
    """An empty PostgreSQL of its own, or nothing for SQLite."""
    if not postgres:
        yield ""
        return
    servers.open_run()
    try:
        with servers.postgres_database(servers.postgres()) as url:
            yield url
    finally:
        servers.close_run()


def main() -> None:
    """Print the figures; fail where a bar is missed."""
    parser = asking(__doc__)
    parser.add_argument("--size", type=int, default=200_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--text", choices=["invented", "real"])
    options = parser.parse_args()
    runs = []
    for asked in texts_of(options):
        with address_of(postgres=options.postgres) as address:
            runs.append(run(asked, address))
        if not options.json:
            show(runs[-1])
    tell(options, [figure for found in runs for figure in figures(found)], runs=runs)


if __name__ == "__main__":
    main()
