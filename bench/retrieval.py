"""Does search find what people judged to be the answer?

The passages of ObliQA (rules of a financial centre) are put into a real library, each with the
headings above it, and its questions are asked in all the ways there are. Printed for each way:
nDCG@10, recall@10, recall@100 and MRR@10 over all questions; and for the default the difference
to words alone, question by question, with its bootstrap interval. Constants were chosen on the
development questions (`--split dev`), never on these. FTS5, tantivy and bm25s are asked beside it,
each as it comes, with stemming where it has any.

    FONDS_CORPUS=… python -m bench.retrieval [--split test] [--questions N] [--model M] [--json]
"""

from __future__ import annotations

import json
import math
import os
import random
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import bm25s
import snowballstemmer
import tantivy
from bench.figures import Figure, asking, reaching, tell
from sqlalchemy import column, func, select, table

from fonds import ids
from fonds.embed.worker import embed_waiting
from fonds.library import Library, open_library
from fonds.model import Archived, Chunk, Document
from fonds.search.query import read_query
from fonds.stores.documents import DocumentWrite, write_documents
from fonds.stores.passages import Passages
from fonds.stores.sqlite import batched
from fonds.stores.tables import document_chunk_buffer, documents

AIM = 0.72
TOP, DEEP = 10, 100
HEADING_WORDS = 15
NOW = datetime(2026, 1, 1, tzinfo=UTC)

DEFAULT, WORDS, MEANING = "words and meaning", "words alone", "meaning alone"

Ask = Callable[[str], list[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A passage of the benchmark, with its headings."""

    key: str
    headings: tuple[str, ...]
    lead_ins: tuple[str, ...]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A question, and the passages that answer it."""

    text: str
    answers: frozenset[str]


@dataclass(kw_only=True, slots=True)
class Found:
    """What one way of asking finds."""

    ndcg: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    deep: list[float] = field(default_factory=list)
    mrr: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def means(self) -> dict[str, float]:
        """The means over all questions."""
        names = {"ndcg@10": self.ndcg, "recall@10": self.recall, "recall@100": self.deep}
        found = {name: round(_mean(values), 4) for name, values in names.items()}
        per_question = round(1000 * self.seconds / len(self.ndcg), 1)
        return {**found, "mrr@10": round(_mean(self.mrr), 4), "ms": per_question}


def read_benchmark(split: str) -> tuple[list[Passage], list[Judged]]:
    """Passages and questions, from the archive."""
    archive = Path(os.environ["FONDS_CORPUS"]) / "retrieval" / "obliqa.tar.xz"
    with tarfile.open(archive) as files:
        read = {
            Path(member.name).name: json.load(opened)
            for member in files
            if member.name.endswith(".json")
            and ("StructuredRegulatoryDocuments" in member.name or f"_{split}." in member.name)
            and (opened := files.extractfile(member)) is not None
        }
    questions = [
        Judged(text=each["Question"], answers=frozenset(map(_key, each["Passages"])))
        for each in read.pop(f"ObliQA_{split}.json")
    ]
    passages = [each for name in sorted(read) for each in _passages(read[name])]
    return list({each.key: each for each in reversed(passages)}.values()), questions


def _key(passage: Mapping[str, Any]) -> str:
    return f"obliqa:{passage['DocumentID']}/{passage['PassageID']}"


def _passages(document: Sequence[Mapping[str, Any]]) -> Iterator[Passage]:
    texts = {each["PassageID"].rstrip("."): each["Passage"].strip() for each in document}
    for each in document:
        above = [texts[name] for name in _above(each["PassageID"]) if texts.get(name)]
        introduces = [text for text in above if text.endswith((":", "—", "-"))]
        names = [text for text in above if len(text.split()) <= HEADING_WORDS]
        yield Passage(
            key=_key(each),
            headings=tuple(text for text in names if text not in introduces),
            lead_ins=tuple(text.splitlines()[0] for text in introduces),
            text=each["Passage"],
        )


def _above(number: str) -> list[str]:
    """`1`, `1.2` and `1.2.Guidance` for `1.2.Guidance.3.`"""
    parts = number.rstrip(".").split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def shelve(library: Library, passages: Sequence[Passage]) -> None:
    """Put each passage into the library as a document of its own, as loading does."""
    by_id = {passage.key: passage for passage in passages}

    def derive(document: Document) -> Passages:
        passage = by_id[document.id]
        chunk = Chunk(
            ordinal=0,
            text=passage.text,
            start=0,
            end=len(passage.text),
            tokens=len(passage.text) // 4 + 1,
            heading_path=passage.headings,
            lead_ins=passage.lead_ins,
        )
        return Passages(
            document_uid=ids.document_uid(document.id),
            title=document.title,
            chunks=[chunk],
            chunker_name="bench",
            chunker_version="1",
        )

    for batch in batched(passages):
        with library.database.write() as connection:
            fulltext = library.database.fulltext
            writings = [_writing(passage) for passage in batch]
            write_documents(connection, fulltext, writings, NOW, derive=derive)


def _writing(passage: Passage) -> DocumentWrite:
    raw = Archived(url="obliqa", key="obliqa", sha256="0" * 64, size=1, retrieved_at=NOW)
    document = Document(
        id=passage.key,
        source="obliqa",
        kind="passage",
        title="",
        source_url="https://obliqa.example/",
        source_org="ObliQA",
        citation_string=passage.key,
        raw=raw,
    )
    return DocumentWrite(
        document=document,
        content_sha256=ids.text_sha256(passage.text),
        body_text_sha256=None,
        recipe="bench",
        task_key="bench",
    )


def bare_fts5(library: Library) -> Ask:
    """FTS5 as it comes: its own ranking, any of the words."""
    index = table("chunk_index", column("rowid"), column("chunk_index"))

    def ask(question: str) -> list[str]:
        words = " OR ".join(f'"{term}"' for term in read_query(question).terms)
        chunk = document_chunk_buffer.c
        best = (
            select(documents.c.id)
            .select_from(index)
            .join(document_chunk_buffer, chunk.id == index.c.rowid)
            .join(documents, documents.c.uid == chunk.document_id)
            .where(index.c.chunk_index.op("MATCH")(words))
            .order_by(func.bm25(index.c.chunk_index, 0.0, 0.0, 1.0), index.c.rowid)
        )
        with library.database.read() as connection:
            return list(connection.scalars(best.limit(DEEP)))

    return ask


def bare_tantivy(passages: Sequence[Passage]) -> Ask:
    """Tantivy with its English stemmer, any of the words."""
    fields = tantivy.SchemaBuilder().add_text_field("key", stored=True)
    fields = fields.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(fields.build())
    writer = index.writer(num_threads=1)
    for passage in passages:
        writer.add_document(tantivy.Document(key=[passage.key], text=[passage.text]))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def ask(question: str) -> list[str]:
        words = " ".join(read_query(question).terms)
        found = searcher.search(index.parse_query_lenient(words, ["text"])[0], DEEP)
        return [searcher.doc(address)["key"][0] for _, address in found.hits]

    return ask


def bare_bm25s(passages: Sequence[Passage]) -> Ask:
    """bm25s with Snowball's English stemmer and its own stop words."""
    stem = snowballstemmer.stemmer("english").stemWords
    words = partial(bm25s.tokenize, stopwords="en", stemmer=stem, show_progress=False)
    index = bm25s.BM25()
    index.index(words([passage.text for passage in passages]), show_progress=False)

    def ask(question: str) -> list[str]:
        found, _ = index.retrieve(words([question]), k=DEEP, show_progress=False)
        return [passages[row].key for row in found[0]]

    return ask


def measured(ask: Ask, questions: Sequence[Judged]) -> Found:
    """Ask all questions, and compare with what people judged."""
    figures = Found()
    for question in questions:
        begun = time.perf_counter()
        found = ask(question.text)
        figures.seconds += time.perf_counter() - begun
        hits = [key in question.answers for key in found]
        figures.ndcg.append(_ndcg(hits[:TOP], len(question.answers)))
        figures.recall.append(sum(hits[:TOP]) / len(question.answers))
        figures.deep.append(sum(hits[:DEEP]) / len(question.answers))
        figures.mrr.append(next((1 / rank for rank, hit in enumerate(hits[:TOP], 1) if hit), 0.0))
    return figures


def _ndcg(hits: Sequence[bool], answers: int) -> float:
    gained = sum(1 / math.log2(rank + 1) for rank, hit in enumerate(hits, 1) if hit)
    return gained / sum(1 / math.log2(rank + 1) for rank in range(1, min(answers, TOP) + 1))


def interval(one: Sequence[float], other: Sequence[float], rounds: int = 2000) -> list[float]:
    """The 95 % bootstrap interval of the mean difference, question by question."""
    differences = [first - second for first, second in zip(one, other, strict=True)]
    dice = random.Random(7)
    means = sorted(_mean(dice.choices(differences, k=len(differences))) for _ in range(rounds))
    return [round(means[int(rounds * part)], 4) for part in (0.025, 0.975)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    """Print the table."""
    parser = asking(__doc__)
    parser.add_argument("--split", choices=("test", "dev"), default="test")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--model", default="wordllama", help="what `fonds embed` would take")
    options = parser.parse_args()
    passages, questions = read_benchmark(options.split)
    if options.questions:
        questions = random.Random(7).sample(questions, options.questions)
    with (
        tempfile.TemporaryDirectory() as home,
        open_library(home, embedder=options.model) as library,
    ):
        shelve(library, passages)
        embed_waiting(library.database, library.seams, library.settings)
        ways: dict[str, Ask] = {
            "FTS5": bare_fts5(library),
            "tantivy": bare_tantivy(passages),
            "bm25s": bare_bm25s(passages),
            WORDS: lambda text: _asked(library, text, "lexical"),
            MEANING: lambda text: _asked(library, text, "semantic"),
            DEFAULT: lambda text: _asked(library, text, None),
        }
        found = {name: measured(ask, questions) for name, ask in ways.items()}
    if not options.json:
        show(found)
    difference = interval(found[DEFAULT].ndcg, found[WORDS].ndcg)
    means = {name: each.means() for name, each in found.items()}
    tell(
        options,
        list(figures(means, difference)),
        passages=len(passages),
        ways=means,
        default_less_words=difference,
    )


def _asked(library: Library, text: str, mode: Any) -> list[str]:
    return [hit.id for hit in library.search(text, mode=mode, limit=DEEP)]


def figures(
    means: Mapping[str, Mapping[str, float]], difference: Sequence[float]
) -> Iterator[Figure]:
    """How well the answers are ranked, by the default and by words alone."""
    ndcg = {name: each["ndcg@10"] for name, each in means.items()}
    yield reaching("nDCG@10 of the default", ndcg[DEFAULT], AIM)
    for peer in (WORDS, MEANING):
        yield _better("nDCG@10 of the default", ndcg[DEFAULT], peer, ndcg[peer])
    for peer in ("FTS5", "tantivy", "bm25s"):
        yield _better("nDCG@10 of words alone", ndcg[WORDS], peer, ndcg[peer])
    yield reaching("default less words, lower end of 95 %", difference[0], 0)


def _better(what: str, ours: float, peer: str, theirs: float) -> Figure:
    return Figure(what=what, ours=ours, theirs=theirs, unit="", peer=peer, better="more")


def show(found: Mapping[str, Found]) -> None:
    """All means, for people."""
    means = {name: each.means() for name, each in found.items()}
    columns = list(means[DEFAULT])
    print(f"{'':28}" + "".join(f"{name:>12}" for name in columns))
    for name, row in means.items():
        print(f"{name:28}" + "".join(f"{row[each]:12}" for each in columns))


if __name__ == "__main__":
    main()
