"""How much of two bare processes do two workers of an engine reach?

The bare processes have all items at hand, take the next from a counter they share, and keep their
results: no engine can be faster. What an engine does beside that is to send items and results, to
watch time and memory, and to begin afresh where a reader of PDFs may have remembered something.
A Ray cluster of two processors is shown beside it.

    python -m bench.engine [--pdfs 60] [--texts 20000] [--rounds 5] [--json]
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.chunk import paragraph
from bench.figures import Figure, asking, tell
from ray.cluster_utils import Cluster
from tests.unit.normalize.written_pdf import Said, written

from fonds.embed.registry import PreparedTexts, embed_texts, open_embedder
from fonds.engine.base import Engine
from fonds.engine.opening import open_engine
from fonds.normalize.registry import READER_MODULES, SHOULD_RECYCLE, NormalizerInput, make_text
from fonds.settings import Settings

PROCESSES: Final = 2
BAR: Final = 0.85
EMBEDDER: Final = "wordllama"
AT_ONCE: Final = 256
FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "PDF normalization": make_text,
    "local embedding": embed_texts,
}


def pdfs(count: int) -> list[NormalizerInput]:
    """Invented reports of two to twelve pages."""
    dice = random.Random(1)
    return [
        NormalizerInput(normalizer="pdf_v1", data=written(*_pages(dice)), address=None)
        for _ in range(count)
    ]


def _pages(dice: random.Random) -> Iterator[list[Said]]:
    for number in range(dice.randint(2, 12)):
        text = " ".join(paragraph(dice) for _ in range(12))
        lines = [text[at : at + 90] for at in range(0, min(len(text), 90 * 48), 90)]
        heading = Said(72, 740, f"Part {number + 1}", size=16, bold=True)
        yield [heading, *(Said(72, 715 - 13 * row, line) for row, line in enumerate(lines))]


def batches(count: int) -> list[PreparedTexts]:
    """Invented passages, as many at a time as the embedding queue gives a model."""
    dice = random.Random(2)
    version = open_embedder(EMBEDDER, Settings()).model.version
    texts = [f"{paragraph(dice)} {paragraph(dice)} {paragraph(dice)}" for _ in range(count)]
    return [
        PreparedTexts(
            embedder=EMBEDDER, version=version, texts=texts[at : at + AT_ONCE], purpose="passage"
        )
        for at in range(0, count, AT_ONCE)
    ]


class Bare:
    """Two processes that do nothing but the function."""

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self._next = context.Value("q", 0)
        self._pipes = []
        for _ in range(PROCESSES):
            ours, theirs = context.Pipe()
            given = (theirs, self._next, function, items)
            context.Process(target=bare, args=given, daemon=True).start()
            self._pipes.append(ours)
        self._await_all()

    def seconds(self) -> float:
        """Time for all items."""
        self._next.value = 0
        begun = time.perf_counter()
        for pipe in self._pipes:
            pipe.send("go")
        self._await_all()
        return time.perf_counter() - begun

    def _await_all(self) -> None:
        for pipe in self._pipes:
            pipe.recv()


def bare(
    channel: Connection, place: Any, function: Callable[[Any], Any], items: Sequence[Any]
) -> None:
    """Warm up, then do items whenever told so, until nobody is left to tell."""
    function(items[0])
    while True:
        channel.send("ready")
        try:
            channel.recv()
        except EOFError:
            return
        while (index := _taken(place)) < len(items):
            function(items[index])


def _taken(place: Any) -> int:
    with place.get_lock():
        place.value += 1
        return int(place.value) - 1


def through(engine: Engine, function: Callable[[Any], Any], items: Sequence[Any]) -> float:
    """Time for all items on an engine."""
    begun = time.perf_counter()
    for outcome in engine.run(function, items):
        outcome.unwrap()
    return time.perf_counter() - begun


@contextmanager
def cluster() -> Iterator[str]:
    """A Ray cluster of as many processors, on this machine."""
    node = {"num_cpus": PROCESSES, "include_dashboard": False, "object_store_memory": 200 << 20}
    with TemporaryDirectory() as folder:
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
        Path(folder, "ray").mkdir()  # for its note of the newest cluster here
        nodes: Any = Cluster(initialize_head=True, head_node_args={**node, "temp_dir": folder})
        try:
            yield f"ray:{nodes.address}"
        finally:
            nodes.shutdown()


def measured(
    what: str, items: Sequence[Any], addresses: Sequence[str], rounds: int
) -> dict[str, float]:
    """The best of some rounds for the bare processes and each engine, taken in turns."""
    function = FUNCTIONS[what]
    limits: dict[str, Any] = (
        {"preload": READER_MODULES, "should_recycle": SHOULD_RECYCLE}
        if function is make_text
        else {}
    )
    with ExitStack() as opened:
        by_itself = Bare(function, items)
        runs: dict[str, Callable[[], float]] = {"bare": by_itself.seconds}
        for address in addresses:
            engine = opened.enter_context(open_engine(address, workers=PROCESSES, **limits))
            through(engine, function, items[: 4 * PROCESSES])
            runs[address] = partial(through, engine, function, items)
        taken = [{name: run() for name, run in runs.items()} for _ in range(rounds)]
    return {name: min(each[name] for each in taken) for name in runs}


def main() -> None:
    """Measure both kinds of work on both engines."""
    parser = asking(__doc__)
    parser.add_argument("--pdfs", type=int, default=60)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    work: dict[str, list[Any]] = {
        "PDF normalization": pdfs(options.pdfs),
        "local embedding": batches(options.texts),
    }
    figures = []
    with cluster() as address:
        for what, items in work.items():
            taken = measured(what, items, ("local", address), options.rounds)
            count = options.pdfs if items is work["PDF normalization"] else options.texts
            for name, seconds in taken.items():
                if name != "bare":
                    figures.append(_figure(what, name, count / seconds, count / taken["bare"]))
    tell(options, figures)


def _figure(what: str, address: str, ours: float, theirs: float) -> Figure:
    is_local = address == "local"
    return Figure(
        what=f"{what}, {'local engine' if is_local else 'Ray'}",
        ours=ours,
        theirs=theirs,
        unit="PDFs/s" if what.startswith("PDF") else "texts/s",
        peer="two bare processes",
        better="more",
        least=BAR if is_local else None,
        remark="" if is_local else "items and results pass through the cluster's object store",
    )


if __name__ == "__main__":
    main()
