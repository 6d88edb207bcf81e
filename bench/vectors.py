"""How near do we come to faiss and LanceDB when they find as much as we do?

The same vectors of the same passages: in a library (SQLite), in faiss (IVF, in memory), and in
LanceDB (IVF-PQ, on disk, compared again with whole vectors). Each peer is given the least effort
with which it finds as many of the ten truly nearest as ours does, or the most that is tried; then
all are asked the same questions, in turn.

    FONDS_CORPUS=… python -m bench.vectors [--size 200000] [--questions 200] [--json]
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import faiss
import lancedb
import numpy as np
from bench.figures import Figure, asking, reaching, tell
from bench.search import Asking, Matrix, fill, invented, real
from lancedb.index import IvfPq

from fonds.embed.registry import open_embedder
from fonds.library import open_library

TOP = 10
LEAST_RECALL = 0.98
EFFORTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MEMORY = (
    "faiss holds vectors in memory and nothing else; ours come from the database, where they"
    " change in the transaction of their document, and are filtered there"
)
FILES = "LanceDB reads a few of its clusters; ours reads the signs of all vectors"

Way = Callable[[int], Sequence[int]]


@dataclass(kw_only=True, slots=True)
class Found:
    """What one way found, and how long it took."""

    recalls: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The mean part of the true ten."""
        return float(np.mean(self.recalls))

    def ms(self, part: float) -> float:
        """Milliseconds that this part of all questions stays below."""
        return 1000 * float(np.quantile(self.seconds, part))


class Truth:
    """An exact search of all vectors."""

    def __init__(self, vectors: Matrix, asks: Matrix) -> None:
        self._scores = [vectors @ ask for ask in asks]
        self._tenth = [np.partition(scores, -TOP)[-TOP] - 1e-6 for scores in self._scores]

    def recall(self, number: int, rows: Sequence[int]) -> float:
        """The part of the ten nearest that is among these rows; equally near is as good."""
        near = sum(self._scores[number][row] >= self._tenth[number] for row in rows[:TOP])
        return min(int(near), TOP) / TOP


# Peers ------------------------------------------------------------------------------------


def in_faiss(vectors: Matrix, asks: Matrix) -> Callable[[int], Way]:
    """Inverted lists of whole vectors; effort is how many lists are read."""
    lists = max(1, int(4 * len(vectors) ** 0.5))
    coarse = faiss.IndexFlatIP(vectors.shape[1])
    index = faiss.IndexIVFFlat(coarse, vectors.shape[1], lists, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors[:: max(1, len(vectors) // (40 * lists))])
    index.add(vectors)

    def with_effort(effort: int) -> Way:
        def ask(number: int) -> list[int]:
            index.nprobe = min(effort, lists)
            return list(map(int, index.search(asks[number : number + 1], TOP)[1][0]))

        return ask

    return with_effort


def in_lancedb(folder: Path, vectors: Matrix, asks: Matrix) -> Callable[[int], Way]:
    """Lists of quantized vectors in files; effort is how many, and how many are compared again."""
    database = lancedb.connect(str(folder))
    rows = [{"row": row, "vector": vector} for row, vector in enumerate(vectors)]
    table = database.create_table("passages", rows)
    table.create_index("vector", config=IvfPq(distance_type="dot"))

    def with_effort(effort: int) -> Way:
        def ask(number: int) -> list[int]:
            query = table.search(asks[number]).distance_type("dot").limit(TOP)
            query = query.select(["row", "_distance"]).nprobes(effort).refine_factor(effort)
            return [found["row"] for found in query.to_list()]

        return ask

    return with_effort


def as_good(with_effort: Callable[[int], Way], truth: Truth, asked: int, recall: float) -> Way:
    """The least effort that finds as much, or the most there is."""
    for effort in EFFORTS:
        way = with_effort(effort)
        found = np.mean([truth.recall(number, way(number)) for number in range(asked)])
        if found >= recall:
            break
    return way


# Measuring --------------------------------------------------------------------------------


def ask_all(ways: dict[str, Way], truth: Truth, asked: int) -> dict[str, Found]:
    """Every question in every way, in turn."""
    found = {name: Found() for name in ways}
    for number in range(asked):
        for name, way in ways.items():
            begun = time.perf_counter()
            rows = way(number)
            found[name].seconds.append(time.perf_counter() - begun)
            found[name].recalls.append(truth.recall(number, rows))
    return found


def run(options: Any) -> dict[str, Found]:
    """Fill all, find equal efforts, and ask."""
    corpus = os.environ.get("FONDS_CORPUS")
    make = (lambda *sizes: real(Path(corpus), *sizes)) if corpus else invented
    text = make(options.size, options.questions)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        library = stack.enter_context(open_library(folder / "library"))
        embedder = open_embedder("wordllama", library.settings)
        generation, vectors = fill(library, embedder, text.passages)
        asks = embedder.embed(text.questions, "query").vectors
        asking = Asking(library, generation, text, asks)
        truth = Truth(vectors, asks)

        def ours(number: int) -> list[int]:
            return [row - 1 for row in asking.near(number, TOP)]

        asked = len(text.questions)
        recall = ask_all({"ours": ours}, truth, asked)["ours"].recall
        ways: dict[str, Way] = {
            "ours": ours,
            "faiss": as_good(in_faiss(vectors, asks), truth, asked, recall),
            "LanceDB": as_good(in_lancedb(folder / "lance", vectors, asks), truth, asked, recall),
        }
        return ask_all(ways, truth, asked)


def figures(found: dict[str, Found]) -> Iterator[Figure]:
    """Recall and latency, ours beside each."""
    ours = found["ours"]
    yield reaching("recall@10", round(ours.recall, 4), LEAST_RECALL)
    for peer, why in (("faiss", MEMORY), ("LanceDB", FILES)):
        theirs = found[peer]
        name = f"{peer} at recall {theirs.recall:.3f}"
        for what, part in (("median", 0.5), ("95th percentile", 0.95)):
            yield Figure(
                what=f"ten nearest, {what}, recall {ours.recall:.3f}",
                ours=ours.ms(part),
                theirs=theirs.ms(part),
                unit="ms",
                peer=name,
                better="less",
                remark=why if ours.ms(part) > theirs.ms(part) else "",
            )


def main() -> None:
    """Print the figures; end with 1 if too little is found."""
    parser = asking(__doc__)
    parser.add_argument("--size", type=int, default=200_000)
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    tell(options, list(figures(run(options))))


if __name__ == "__main__":
    main()
