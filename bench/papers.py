"""Are questions about one's own papers answered?

Insurance papers of the corpus are put into a library, as their uploads would be. Sixty questions,
written by hand before any ranking was chosen for them, are asked over all papers and inside the
right one. A passage is right if it is of the right paper and holds the answering words. At most
half of the content words of a question stand in an answering passage; `--check` lists those of
each. Beside ours, bm25s with stemming ranks the same passages.

    FONDS_CORPUS=… python -m bench.papers [--model M] [--check] [--misses] [--json]
"""

from __future__ import annotations

import json
import os
import re
import tarfile
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Final

import bm25s
import snowballstemmer
from bench.figures import Figure, asking, reaching, tell

from fonds import ids
from fonds.chunk.chunker import Chunker
from fonds.embed.worker import embed_waiting
from fonds.library import Library, open_library
from fonds.model import Archived, Document, NormalizedBody
from fonds.normalize.registry import NormalizerInput, make_text, sniff
from fonds.results import RetrievalResult
from fonds.runs.normalization import passages_of_text
from fonds.search.query import STOP_WORDS, stem, words_of
from fonds.search.retrieve import PER_DOCUMENT
from fonds.stores.documents import DocumentWrite, write_documents
from fonds.stores.passages import Passages

QUESTIONS: Final = Path(__file__).parent / "questions" / "insurance.jsonl"
FOLDERS: Final = ("ins-text", "ins-scan")
TOP: Final = 5
OVER_ALL, INSIDE = 0.8, 0.9
MAX_SHARED: Final = 0.5
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
# Words with which people ask, and which answer nothing.
_ASKING: Final = STOP_WORDS | frozenset(
    re.findall(
        r"\w+",
        "about after again all also am any because before between but could each ever get got he "
        "her here him his if just like long many me more most much my myself no off one only other "
        "our out over own s she so some soon still t than then through up us we where why you your",
    )
)

Ranking = Callable[[str], Sequence["Passage"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question, and where its answer stands."""

    question: str
    document: str
    """The name of the file."""
    pages: Sequence[int]
    """The pages of the PDF on which the answer stands, counted from 1."""
    answer: str
    """A few of the answering words."""

    @property
    def content(self) -> set[str]:
        """The stems of its content words."""
        return {stem(word) for word in words_of(self.question) if word not in _ASKING}


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A passage of a paper."""

    document: str
    text: str

    def answers(self, question: Question) -> bool:
        """Whether it is of the right paper, and holds the answering words."""
        return self.document == question.document and _plain(question.answer) in _plain(self.text)

    def shared(self, question: Question) -> set[str]:
        """The content words of a question that stand in it."""
        return question.content & {stem(word) for word in words_of(self.text)}


@cache
def _plain(text: str) -> str:
    """Letters and digits alone, one space apart, so that marks of tables do not matter."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).lower())
    return f" {' '.join(words)} "


def read_questions() -> list[Question]:
    """All questions."""
    lines = QUESTIONS.read_text("utf-8").splitlines()
    return [Question(**json.loads(line)) for line in lines]


def read_papers() -> Iterator[tuple[str, NormalizedBody]]:
    """The name and the text of each paper."""
    archive = Path(os.environ["FONDS_CORPUS"]) / "documents.tar.xz"
    with tarfile.open(archive) as files:
        for member in files:
            path = Path(member.name)
            opened = files.extractfile(member) if path.parent.name in FOLDERS else None
            if opened is not None:
                data = opened.read()
                work = NormalizerInput(normalizer=sniff(data), data=data, address=None)
                yield path.name, make_text(work)


def store(library: Library, papers: Sequence[tuple[str, NormalizedBody]]) -> list[Passage]:
    """Put the papers into a library as documents, and return their passages."""
    made = {
        f"paper:{name}": passages_of_text(f"paper:{name}", name, None, text, Chunker())
        for name, text in papers
    }

    def derive(document: Document) -> Passages:
        return made[document.id]

    with library.database.write() as connection:
        writes = [_write(name) for name, _ in papers]
        write_documents(connection, library.database.fulltext, writes, NOW, derive=derive)
    return [
        Passage(document=each.title, text=chunk.text)
        for each in made.values()
        for chunk in each.chunks
    ]


def _write(name: str) -> DocumentWrite:
    document = Document(
        id=f"paper:{name}",
        source="uploads",
        kind="upload",
        title=name,
        source_url="https://papers.example/",
        source_org="Upload",
        citation_string=name,
        raw=Archived(url=name, key=name, sha256="0" * 64, size=1, retrieved_at=NOW),
    )
    return DocumentWrite(
        document=document,
        content_sha256=ids.text_sha256(name),
        body_text_sha256=None,
        recipe="bench",
        task_key="bench",
    )


def by_bm25s(passages: Sequence[Passage]) -> Ranking:
    """The ranking of bm25s with Snowball's English stemmer and its own stop words."""
    stems = snowballstemmer.stemmer("english").stemWords
    words = partial(bm25s.tokenize, stopwords="en", stemmer=stems, show_progress=False)
    index = bm25s.BM25()
    index.index(words([passage.text for passage in passages]), show_progress=False)
    top = min(TOP, len(passages))

    def rank(question: str) -> list[Passage]:
        found, _ = index.retrieve(words([question]), k=top, show_progress=False)
        return [passages[row] for row in found[0]]

    return rank


def hits(
    questions: Sequence[Question], ranking: Callable[[Question], Ranking], top: int = TOP
) -> list[bool]:
    """Whether the answer of each question is in the first passages."""
    return [
        any(passage.answers(each) for passage in ranking(each)(each.question)[:top])
        for each in questions
    ]


def check(questions: Sequence[Question], passages: Sequence[Passage]) -> list[str]:
    """What is wrong with the questions: an answer that no passage holds, or too many words."""
    problems = []
    for each in questions:
        answering = [passage for passage in passages if passage.answers(each)]
        if not answering:
            problems.append(f"no passage of {each.document} holds {each.answer!r}")
        for passage in answering:
            shared = passage.shared(each)
            if len(shared) > MAX_SHARED * len(each.content):
                count = f"{len(shared)} of {len(each.content)}"
                problems.append(f"{count} words are in the passage: {each.question} {shared}")
    return problems


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("--model", default="wordllama", help="what `fonds embed` would take")
    parser.add_argument("--check", action="store_true", help="only check the questions")
    parser.add_argument("--misses", action="store_true", help="list questions without an answer")
    options = parser.parse_args()
    questions, papers = read_questions(), list(read_papers())
    with (
        tempfile.TemporaryDirectory() as home,
        open_library(home, embedder=options.model) as library,
    ):
        passages = store(library, papers)
        problems = check(questions, passages)
        if options.check:
            print("\n".join(problems) or "all questions are as they should be")
            raise SystemExit(bool(problems))
        embed_waiting(library.database, library.seams, library.settings)
        found = _found(library, questions, passages)
    if options.misses:
        _print_misses(questions, found)
    rates = {name: sum(each) / len(each) for name, each in found.items()}
    tell(options, list(figures(rates)), passages=len(passages), rates=rates, problems=problems)


def _found(
    library: Library, questions: Sequence[Question], passages: Sequence[Passage]
) -> dict[str, list[bool]]:
    own = {
        name: [p for p in passages if p.document == name] for name in {p.document for p in passages}
    }
    bm25s_inside = {name: by_bm25s(each) for name, each in own.items()}
    bm25s_over_all = by_bm25s(passages)

    def flat(question: str) -> list[Passage]:
        """Passage after passage, as the page of results is read."""
        return [passage for hit in library.search(question) for passage in _shown(hit, own)]

    def nested(question: str) -> list[Passage]:
        """All that the first documents show."""
        return [
            passage for hit in library.search(question, limit=TOP) for passage in _shown(hit, own)
        ]

    def inside(question: Question) -> Ranking:
        name = f"paper:{question.document}"
        return lambda text: [
            passage
            for hit in library.search(text, document=name, limit=TOP)
            for passage in _shown(hit, own)
        ]

    return {
        "ours": hits(questions, lambda _: flat),
        "ours, documents": hits(questions, lambda _: nested, top=TOP * PER_DOCUMENT),
        "ours inside": hits(questions, inside),
        "bm25s": hits(questions, lambda _: bm25s_over_all),
        "bm25s inside": hits(questions, lambda each: bm25s_inside[each.document]),
    }


def _shown(hit: RetrievalResult, own: Mapping[str, Sequence[Passage]]) -> list[Passage]:
    assert hit.citation.locator is not None
    numbers = [each.passage for each in hit.passages] or [hit.citation.locator.passage or 0]
    return [own[hit.citation.title][number] for number in numbers]


def _print_misses(questions: Sequence[Question], found: Mapping[str, Sequence[bool]]) -> None:
    for name, each in found.items():
        print(f"{name}:")
        for question, hit in zip(questions, each, strict=True):
            if not hit:
                print(f"  {question.question} ({question.document}, page {question.pages})")


def figures(rates: Mapping[str, float]) -> Iterator[Figure]:
    """The rates, beside what is promised and beside bm25s."""
    yield reaching("answer among the first 5 passages of all papers", rates["ours"], OVER_ALL)
    yield reaching("answer in the first 5 papers, as shown", rates["ours, documents"], OVER_ALL)
    yield reaching("answer among the first 5 passages of its paper", rates["ours inside"], INSIDE)
    for name, where in (("", "all papers"), (" inside", "its paper")):
        yield Figure(
            what=f"answer among the first 5 passages of {where}",
            ours=rates[f"ours{name}"],
            theirs=rates[f"bm25s{name}"],
            unit="",
            peer="bm25s",
            better="more",
        )


if __name__ == "__main__":
    main()
