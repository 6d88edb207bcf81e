"""What does it cost to run again when nothing has changed, and when one document of a hundred has?

The same documents go through fonds and through LlamaIndex's IngestionPipeline with its docstore
and its cache in files and its vectors in LanceDB; both with the same local model and passages of at
most 512 tokens. Three times each, in turn, opened anew as a nightly job would: all is new, nothing
has changed, a sentence was added to one document of a hundred. Told are seconds, texts that the
model was asked about, and bytes handed to the system to be written.

Ours is durable when it ends, and can be searched by words too; the peer writes docstore and cache
whole each time, without waiting for the disk, and knows vectors only.

    python -m bench.incremental [--documents 5000] [--json]
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import lancedb
from bench.figures import Figure, asking, tell
from bench.load import Prepared, prepare, text_of
from llama_index.core import Document
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from fonds import ids
from fonds.embed.base import Embedder
from fonds.embed.registry import open_embedder
from fonds.library import open_library
from fonds.model import ParsedRecord
from fonds.runs.state import RunRequest
from fonds.settings import Settings

MODEL = "wordllama"
TOKENS = 512
EVERY = 100
PEER = "LlamaIndex IngestionPipeline on LanceDB"
STAGES = ("all new", "nothing changed", "1 % changed")
SMALLER = "no passage of ours crosses a heading, so that there are more of them"
MORE = "ours also writes an index of words, the journal of SQLite and what is known of each version"
ADDED = "\n\nThe comment period is extended by another thirty days."


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Of one run."""

    seconds: float
    embedded: int
    written: int


def cost(run: Callable[[], int]) -> Cost:
    """What a run takes that tells how many texts it embedded."""
    before, begun = _written(), time.perf_counter()
    embedded = run()
    seconds = time.perf_counter() - begun
    return Cost(seconds=seconds, embedded=embedded, written=_written() - before)


def _written() -> int:
    """Bytes that this process has handed to the system."""
    told = Path("/proc/self/io").read_text("ascii")
    return int(told.partition("wchar:")[2].split()[0])


def with_changes(records: Sequence[ParsedRecord]) -> list[ParsedRecord]:
    """One of a hundred has a sentence more."""
    return [record if number % EVERY else _longer(record) for number, record in enumerate(records)]


def _longer(record: ParsedRecord) -> ParsedRecord:
    document = record.document
    assert document is not None
    assert document.body is not None
    assert document.body.normalized is not None
    text = text_of(record) + ADDED
    archived = replace(document.raw, sha256=ids.text_sha256(text), size=len(text))
    normalized = replace(document.body.normalized, markdown=text)
    body = replace(document.body, archived=archived, normalized=normalized)
    return replace(record, document=replace(document, raw=archived, body=body))


# Ours -------------------------------------------------------------------------------------


def ours(home: Path, records: Sequence[ParsedRecord], changed: int) -> int:
    """Load what changed, and embed what waits."""
    with open_library(home, embedder=MODEL) as library:
        report = asyncio.run(library.ingest(Prepared(list(records)), RunRequest()))
        assert report.counts.inserted + report.counts.updated == changed, report
        return library.embed().embedded


# Theirs -----------------------------------------------------------------------------------


class Local(BaseEmbedding):  # type: ignore[misc] # the peer is not type-checked
    """The same model, opened when it is first asked, as ours is."""

    embedded: int = 0

    @cached_property
    def _embedder(self) -> Embedder:
        return open_embedder(MODEL, Settings())

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.embedded += len(texts)
        found: list[list[float]] = self._embedder.embed(texts, "passage").vectors.tolist()
        return found

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embeddings([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Vectors(BasePydanticVectorStore):  # type: ignore[misc] # likewise
    """A table of LanceDB, which gives the pipeline what it asks of a store: to add and delete.

    The published one needs pandas, and deletes by names that LanceDB takes for those of columns.
    """

    stores_text: bool = True
    folder: str

    @property
    def client(self) -> Any:
        """The database."""
        return lancedb.connect(self.folder)

    @property
    def _is_there(self) -> bool:
        return (Path(self.folder) / "passages.lance").exists()

    def add(self, nodes: Sequence[Any], **_: Any) -> list[str]:
        """Add passages with their vectors."""
        rows = [
            {
                "id": node.node_id,
                "document": node.ref_doc_id,
                "vector": node.get_embedding(),
                "text": node.get_content(),
            }
            for node in nodes
        ]
        if rows and self._is_there:
            self.client.open_table("passages").add(rows)
        elif rows:
            self.client.create_table("passages", rows)
        return [row["id"] for row in rows]

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        """Remove the passages of a document."""
        if self._is_there:
            self.client.open_table("passages").delete(f"document = '{ref_doc_id}'")

    def query(self, query: Any, **_: Any) -> Any:
        """Nobody searches here."""
        raise NotImplementedError


def theirs(home: Path, records: Sequence[ParsedRecord]) -> int:
    """Open what there is, run, and write all of it."""
    model = Local(embed_batch_size=256)
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=TOKENS, chunk_overlap=0), model],
        docstore=SimpleDocumentStore(),
        vector_store=Vectors(folder=str(home / "vectors")),
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    if (home / "docstore.json").exists():
        pipeline.load(str(home))
    pipeline.run(documents=[Document(id_=record.key, text=text_of(record)) for record in records])
    pipeline.persist(str(home))
    return model.embedded


# Both -------------------------------------------------------------------------------------


def measure(folder: Path, count: int) -> Iterator[tuple[str, Cost, Cost]]:
    """What each stage costs, ours and theirs."""
    records = prepare(count)
    given = (records, records, with_changes(records))
    changed = (count, 0, len(range(0, count, EVERY)))
    for stage, now, differing in zip(STAGES, given, changed, strict=True):
        one = cost(partial(ours, folder / "ours", now, differing))
        other = cost(partial(theirs, folder / "theirs", now))
        yield stage, one, other


def figures(stage: str, one: Cost, other: Cost) -> Iterator[Figure]:
    """Seconds, texts embedded and megabytes written, of one stage."""
    told: tuple[tuple[str, str, float, float, str], ...] = (
        ("time", "s", one.seconds, other.seconds, ""),
        ("texts embedded", "", one.embedded, other.embedded, SMALLER),
        ("written", "MB", one.written / 1e6, other.written / 1e6, MORE),
    )
    for what, unit, ours, theirs, why in told:
        yield Figure(
            what=f"{what}, {stage}",
            ours=ours,
            theirs=theirs,
            unit=unit,
            peer=PEER,
            better="less",
            remark=why if ours > theirs else "",
        )


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "theirs").mkdir()
        ours(Path(folder) / "warm", prepare(1), 1)
        found = list(measure(Path(folder), options.documents))
    stages: dict[str, Any] = {
        stage: {"ours": asdict(one), "theirs": asdict(other)} for stage, one, other in found
    }
    tell(options, [figure for row in found for figure in figures(*row)], stages=stages)


if __name__ == "__main__":
    main()
