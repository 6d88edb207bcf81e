"""Does search find what people judged to be the answer?

The passages of ObliQA (rules of a financial centre) are put into a real library, each with the
headings above it, and its questions are asked in all the ways there are. Printed for each way:
nDCG@10, recall@10, recall@100 and MRR@10 over all questions; and for the default the difference
to words alone, question by question, with its bootstrap interval. Constants were chosen on the
development questions (`--split dev`), never on these.

    FONDS_CORPUS=… python bench/retrieval.py [--split test] [--questions N] [--model M] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import column, func, select, table

from fonds import ids
from fonds.embed.current import embed_waiting
from fonds.library import Library, open_library
from fonds.model import Archived, Chunk, Document
from fonds.search.query import read_query
from fonds.stores.batches import pieces
from fonds.stores.documents import Writing, write_documents
from fonds.stores.passages import Passages
from fonds.stores.tables import document_chunk_buffer, documents

AIM = 0.72
TOP, DEEP = 10, 100
HEADING_WORDS = 15
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Ask = Callable[[str], list[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A passage of the benchmark, with what stands above it."""

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
class Figures:
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

    for piece in pieces(passages):
        with library.database.write() as connection:
            fulltext = library.database.fulltext
            writings = [_writing(passage) for passage in piece]
            write_documents(connection, fulltext, writings, NOW, derive=derive)


def _writing(passage: Passage) -> Writing:
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
    return Writing(
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


def measured(ask: Ask, questions: Sequence[Judged]) -> Figures:
    """Ask all questions, and compare with what people judged."""
    figures = Figures()
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--split", choices=("test", "dev"), default="test")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--model", default="wordllama", help="what `fonds embed` would take")
    parser.add_argument("--json", action="store_true")
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
            "FTS5 alone": bare_fts5(library),
            "words (--mode lexical)": lambda text: _asked(library, text, "lexical"),
            f"{options.model} alone (--mode semantic)": lambda text: _asked(
                library, text, "semantic"
            ),
            "both (default)": lambda text: _asked(library, text, None),
        }
        figures = {name: measured(ask, questions) for name, ask in ways.items()}
    _print(figures, len(passages), len(questions), options)


def _asked(library: Library, text: str, mode: Any) -> list[str]:
    return [hit.id for hit in library.search(text, mode=mode, limit=DEEP)]


def _print(figures: Mapping[str, Figures], passages: int, questions: int, options: Any) -> None:
    means = {name: each.means() for name, each in figures.items()}
    *_, words, _, both = figures.values()
    difference = interval(both.ndcg, words.ndcg)
    if options.json:
        print(json.dumps({"figures": means, "default_less_words": difference}))
    else:
        print(f"{questions:,} {options.split} questions, {passages:,} passages, {options.model}")
        columns = list(next(iter(means.values())))
        print(f"{'':36}" + "".join(f"{name:>12}" for name in columns))
        for name, row in means.items():
            print(f"{name:36}" + "".join(f"{row[each]:12}" for each in columns))
        print(f"default less words, nDCG@10: {difference[0]:+} to {difference[1]:+} (95 %)")
    found = means["both (default)"]["ndcg@10"]
    if difference[0] <= 0:
        sys.exit("the default is not better than words alone")
    if found < AIM:
        sys.exit(f"the default reaches {found}, the aim is {AIM}")


if __name__ == "__main__":
    main()
