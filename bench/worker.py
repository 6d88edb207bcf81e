"""How much of the speed of bare reading, cutting, embedding and inserting is left to a worker?

A worker claims each upload, reads its file from the store and checks its hash, makes the text (of
a PDF in a copy of a process), stores it durably, checks it, cuts it, checks the passages, embeds
them in micro-batches with costs and progress, and publishes the document with its full-text and
vector entries; eight moves with their events, each in the transaction of its writes. The limit is
the same normalizer, chunker and model called in one process on the same bytes, and `executemany`
of the same rows that a search needs, in tables like ours: the document, its passages, their words,
vectors and entries in the index over vectors; one transaction a document, as durable as ours. There
is also a limit that cannot be searched: only passages and vectors, in tables without a key.

Some rounds, each with a library of its own, so that no text is known before; in each, all take the
same documents in turn, some at a time. A first document, which starts processes and fills caches,
counts for none. The wall time is given together with the CPU time of all
processes, which others on the machine disturb less.

    FONDS_CORPUS=… python -m bench.worker [--documents 1000] [--rounds 5] [--json]

Real PDFs are what people upload; without FONDS_CORPUS, PDFs are written for the purpose.
"""

from __future__ import annotations

import json
import os
import random
import tarfile
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import psutil
import pysqlite3.dbapi2 as sqlite
from bench.figures import Figure, asking, tell
from tests.support.libraries.uploads import make_user, send
from tests.unit.normalize.written_pdf import Said, written

from fonds import ids
from fonds.chunk.chunker import Chunker
from fonds.embed.base import pack_vectors
from fonds.embed.registry import open_embedder
from fonds.errors import FondsError
from fonds.library import Library, open_library
from fonds.model import Chunk, NormalizedBody
from fonds.normalize.registry import get_normalizer
from fonds.settings import Settings
from fonds.stores.documents import body_map
from fonds.stores.fulltext import visible_text, with_bigrams
from fonds.stores.passages import chunk_meta
from fonds.stores.sqlite import batched
from fonds.stores.sqlite_vectors import SqliteVectors
from fonds.stores.tables import documents
from fonds.stores.vector_buffer import StoredVector
from fonds.stores.vectors import Generation
from fonds.uploads.worker import UploadWorker

AT_LEAST = 0.5
"""Of the speed of one transaction a document: a worker commits each of six steps."""
STEP = 10
LARGEST = 400_000
PDFS = "sites/pdf.tar.xz"
"""In the folder of real documents."""
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
    with tarfile.open(corpus / PDFS) as archive:
        members = sorted((each for each in archive if each.isfile()), key=lambda each: each.name)
        files = [archive.extractfile(each) for each in members if each.size < LARGEST]
        by_text = {_text(data): data for file in files if file and (data := file.read())}
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
        with self._library.worker_resources() as resources:
            worker = UploadWorker(resources)
            resources.model()
            worker.work_once()
            for some in batched(range(1, self._count), STEP):
                yield _timed(worker.work_once, [()] * len(some))

    def check(self) -> None:
        """Prove that every document is there."""
        with self._library.database.read() as connection:
            assert len(connection.execute(documents.select()).all()) == self._count


class Bare:
    """The same work without anything around it, into tables without a key."""

    def __init__(self, file: Path, embedder: str, files: Sequence[bytes]) -> None:
        self._connection = sqlite.connect(file, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._embedder = open_embedder(embedder, Settings())
        self._chunker = Chunker()
        self._files = files
        self._prepare()

    def _prepare(self) -> None:
        self._connection.execute("CREATE TABLE passages (d TEXT, n INTEGER, h TEXT, t TEXT)")
        self._connection.execute("CREATE TABLE vectors (d TEXT, n INTEGER, x BLOB, s TEXT)")

    def steps(self) -> Iterator[Took]:
        """What each some documents took, but for the first."""
        self._take(self._files[0])
        for some in batched(self._files[1:], STEP):
            yield _timed(self._take, [(data,) for data in some])

    def _take(self, data: bytes) -> None:
        text = get_normalizer("pdf_v1").to_markdown(data)
        chunks = self._chunker.chunk(text)
        model = self._embedder.model
        made: list[StoredVector] = []
        for batch in batched([visible_text(chunk.text) for chunk in chunks], 256):
            vectors = self._embedder.embed(batch, "passage").vectors
            made += pack_vectors(vectors, len(batch), model.dims)
        self._connection.execute("BEGIN IMMEDIATE")
        self._insert(text, chunks, made)
        self._connection.execute("COMMIT")

    def _insert(
        self, _text: NormalizedBody, chunks: Sequence[Chunk], made: Sequence[StoredVector]
    ) -> None:
        rows = [("d" * 36, chunk.ordinal, "h" * 64, chunk.text) for chunk in chunks]
        self._connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)
        vectors = [("d" * 36, ordinal, each.data, each.sha) for ordinal, each in enumerate(made)]
        self._connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", vectors)


class Findable(Bare):
    """The same, into a library's own tables, so that the documents can be found."""

    def _prepare(self) -> None:
        self._index = SqliteVectors()
        self._generation = Generation(
            id=1,
            name=self._embedder.model.name,
            version=self._embedder.model.version,
            embedder="",
            dims=self._embedder.model.dims,
            price=0.0,
        )
        self._index.create(self._plain, self._generation)
        self._row = 0

    @property
    def _plain(self) -> Any:
        return _Plain(self._connection)

    def _insert(
        self, text: NormalizedBody, chunks: Sequence[Chunk], made: Sequence[StoredVector]
    ) -> None:
        document, now = str(uuid4()), "2026-03-10T12:00:00.000Z"
        numbers = range(self._row + 1, self._row + 1 + len(chunks))
        self._row += len(chunks)
        keys = [str(uuid4()) for _ in chunks]
        insert = self._connection.executemany
        row = dict.fromkeys(DOCUMENT, "-") | {"id": document, "uid": document}
        row |= {"body_text": text.markdown, "body_map": json.dumps(body_map(text))}
        insert(_into("documents", DOCUMENT), [tuple(row.values())])
        insert(
            _into("document_chunk_buffer", PASSAGE),
            [
                (row, key, document, *_columns_of(chunk), now)
                for row, key, chunk in zip(numbers, keys, chunks, strict=True)
            ],
        )
        model = (self._generation.name, self._generation.version)
        insert(
            _into("document_vector_buffer", VECTOR),
            [
                (document, key, *model, one.data, one.sha, now)
                for key, one in zip(keys, made, strict=True)
            ],
        )
        insert(
            _into("chunk_index", ("rowid", "title", "headings", "text")),
            [
                (
                    row,
                    "file.pdf",
                    "\n".join(chunk.heading_path),
                    with_bigrams(visible_text(chunk.text)),
                )
                for row, chunk in zip(numbers, chunks, strict=True)
            ],
        )
        vectors = [(row, one.data) for row, one in zip(numbers, made, strict=True)]
        self._index.add(self._plain, self._generation, vectors)


DOCUMENT = (
    "id",
    "uid",
    "source",
    "kind",
    "title",
    "source_url",
    "source_org",
    "retrieved_at",
    "raw_path",
    "raw_sha256",
    "citation_string",
    "content_sha256",
    "recipe",
    "task_key",
    "updated_at",
    "body_text",
    "body_map",
)
PASSAGE = (
    "id",
    "chunk_id",
    "document_id",
    "chunk_ord",
    "chunker_name",
    "chunker_version",
    "chunk_sha",
    "text",
    "meta",
    "created_at",
)
VECTOR = (
    "document_id",
    "chunk_id",
    "embed_model",
    "embed_version",
    "vector",
    "vector_sha",
    "created_at",
)


@dataclass(frozen=True, slots=True)
class _Plain:
    """A driver's connection, as the index over vectors wants to use it."""

    connection: Any

    def exec_driver_sql(self, statement: str, parameters: tuple[Any, ...] = ()) -> Any:
        """Run a statement."""
        return self.connection.execute(statement, parameters)


def _columns_of(chunk: Chunk) -> tuple[Any, ...]:
    meta = json.dumps(chunk_meta(chunk))
    return (chunk.ordinal, "-", "-", ids.chunk_sha(chunk.text), chunk.text, meta)


def _into(table: str, columns: Sequence[str]) -> str:
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"


def main() -> None:
    """Print the figures; end with 1 if too little is left."""
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--embedder", default="wordllama")
    options = parser.parse_args()
    corpus = os.environ.get("FONDS_CORPUS")
    files = real(Path(corpus), options.documents) if corpus else list(invented(40))
    rounds = [measure(files, options.embedder, number) for number in range(options.rounds)]
    bare, plain, worked = zip(*rounds, strict=True)
    figures = [
        _figure(files, "an upload worked on", worked, "the same without a worker", bare),
        _figure(files, "an upload worked on", worked, "the same, not to be searched", plain),
    ]
    tell(options, figures, documents=len(files), ratios=_ratios(bare, worked))


def _figure(
    files: Sequence[bytes], what: str, ours: Sequence[Took], peer: str, theirs: Sequence[Took]
) -> Figure:
    """Milliseconds a document; the first of the limits is the one with a bar."""
    return Figure(
        what=what,
        ours=_per(files, [one.wall for one in ours]),
        theirs=_per(files, [one.wall for one in theirs]),
        unit="ms",
        peer=peer,
        better="less",
        least=None if "not to be" in peer else AT_LEAST,
        remark="a worker also claims, checks, keeps costs, and tells of eight moves durably",
    )


def _ratios(bare: Sequence[Took], worked: Sequence[Took]) -> dict[str, list[float]]:
    """Of each round, on the wall and of processors."""
    pairs = list(zip(bare, worked, strict=True))
    return {
        "wall": [round(one.wall / other.wall, 3) for one, other in pairs],
        "cpu": [round(one.cpu / other.cpu, 3) for one, other in pairs],
    }


def measure(files: Sequence[bytes], embedder: str, turn: int) -> list[Took]:
    """What the same documents took: bare, bare and not to be searched, and by a worker."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_library(Path(folder) / "empty"),
        open_library(Path(folder) / "library", embedder=embedder) as library,
    ):
        worked = Worked(library, files)
        bare = Findable(Path(folder) / "empty" / "fonds.db", embedder, files)
        plain = Bare(Path(folder) / "plain.db", embedder, files)
        runs = deque([bare.steps(), plain.steps(), worked.steps()])
        runs.rotate(turn)  # who comes first finds caches cold that all share
        took = deque(zip(*zip(*runs, strict=True), strict=True))
        took.rotate(-turn)
        worked.check()
    return [_sum(each) for each in took]


def _sum(took: Iterable[Took]) -> Took:
    walls, cpus = zip(*((each.wall, each.cpu) for each in took), strict=True)
    return Took(sum(walls), sum(cpus))


def _per(files: Sequence[bytes], seconds: Iterable[float]) -> float:
    return round(1000 * median(seconds) / (len(files) - 1), 1)


if __name__ == "__main__":
    main()
