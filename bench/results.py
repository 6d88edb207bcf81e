"""The results of all benches: stored as JSON, printed as a table, written to the docs."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Self

import psutil
import pysqlite3.dbapi2 as sqlite
from bench.curves import Curve, in_a_word
from bench.figures import HEADINGS, Figure, figure_of, number

PEERS: Final = (
    "bm25s",
    "boto3",
    "duckdb",
    "eyecite",
    "faiss-cpu",
    "fastapi",
    "lancedb",
    "llama-index-core",
    "lxml",
    "markdownify",
    "obstore",
    "pdf-oxide",
    "scrapy",
    "semantic-text-splitter",
    "sqlite-vec",
    "tantivy",
)
"""Packages that are compared or used; their versions belong to the figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Where it was measured."""

    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    sqlite: str
    peers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What one bench found, when, and how long it took."""

    bench: str
    question: str
    date: str
    sizes: str
    seconds: float
    figures: Sequence[Figure]
    curves: Sequence[Curve] = ()
    """Of a bench that measures growth."""

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Self:
        """From the JSON it was written as."""
        values = {each.name: row[each.name] for each in fields(cls)}
        values["figures"] = tuple(map(figure_of, row["figures"]))
        values["curves"] = tuple(map(Curve.read, row["curves"]))
        return cls(**values)

    def as_json(self) -> dict[str, Any]:
        """With ratios, for readers who do not compute."""
        figures = [figure.as_json() for figure in self.figures]
        curves = [curve.as_json() for curve in self.curves]
        return {**asdict(self), "figures": figures, "curves": curves}


@dataclass(kw_only=True, slots=True)
class Results:
    """Of all benches on one machine."""

    machine: Machine
    results: list[Result] = field(default_factory=list)

    @classmethod
    def read(cls, file: Path) -> Self:
        """As a file has them."""
        found = json.loads(file.read_text("utf-8"))
        results = [Result.read(row) for row in found["results"]]
        return cls(machine=Machine(**found["machine"]), results=results)

    def write(self, file: Path) -> None:
        """Write the file atomically."""
        report = {
            "machine": asdict(self.machine),
            "results": [result.as_json() for result in self.results],
        }
        new = file.with_suffix(".new")
        new.write_text(f"{json.dumps(report, indent=1, ensure_ascii=False)}\n", "utf-8")
        new.replace(file)

    def put(self, result: Result, order: Sequence[str]) -> None:
        """Replace the previous result of the same bench."""
        by_bench = {each.bench: each for each in self.results} | {result.bench: result}
        self.results = [by_bench[name] for name in order if name in by_bench]


def this_machine() -> Machine:
    """Describe this machine."""
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(psutil.virtual_memory().total / 2**30),
        system=platform.system(),
        python=platform.python_version(),
        sqlite=sqlite.sqlite_version,
        peers=dict(_versions()),
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _versions() -> Iterator[tuple[str, str]]:
    for name in PEERS:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            print(f"{name} is not installed: pip install -e '.[dev,bench]'", file=sys.stderr)


# A page -----------------------------------------------------------------------------------

INTRODUCTION: Final = """# Benchmarks

<!-- Written by `python -m bench --page` from bench/results.json. Do not edit. -->

What fonds does beside what others do, or beside the least that it could cost: bare inserts, a bare
parser, a promised limit. Both sides of a row were measured in one run, on the same data, in turn.
`make bench` measures all of it again; `python -m bench.NAME` measures one, with sizes of your own.
`normalize`, `fidelity`, `codes` and `retrieval` read only real documents, which are not a part
of fonds, and are left out where there are none: `bench/__main__.py` says where they are looked for.

*Ratio* says how many times better or worse ours is, whichever of more and less is better, or which
part of a limit it takes. *Bar* is what it has to reach; *holds* says whether it did.
"""
ABSENT: Final = """## What is not here

docling, because it fetches its models from a hub when it is first used, and these benches run
without a network. Clusters of several machines: the figures are those of the one named above.
"""


def page(found: Results) -> str:
    """The figures, the machine and the dates, as Markdown."""
    parts = [
        INTRODUCTION,
        "\n".join(_machine(found)),
        "\n".join(_table(found.results)),
        "\n".join(_lost(found.results)),
        "\n".join(_curves(found.results)),
        "\n".join(_asked(found.results)),
        ABSENT,
    ]
    return "\n".join(part for part in parts if part)


def _machine(found: Results) -> Iterator[str]:
    machine = found.machine
    days = sorted({result.date for result in found.results})
    peers = ", ".join(f"{name} {number}" for name, number in machine.peers.items())
    yield "## The machine and the date\n"
    yield f"{' to '.join(dict.fromkeys([days[0], days[-1]]))}: {machine.processor},"
    yield f"{machine.cores} cores, {machine.memory_gib} GiB of memory, {machine.system},"
    yield f"Python {machine.python}, SQLite {machine.sqlite}.\n"
    yield f"Peers: {peers}.\n"


def _table(results: Iterable[Result]) -> Iterator[str]:
    yield "## Figures\n"
    yield _row(("bench", *HEADINGS))
    yield _row(["---"] * (len(HEADINGS) + 1))
    for result in results:
        yield from (_row((f"`{result.bench}`", *figure.cells)) for figure in result.figures)
    yield ""


def _lost(results: Iterable[Result]) -> Iterator[str]:
    yield "## Where ours is worse, and why\n"
    pairs = ((result, figure) for result in results for figure in result.figures)
    for result, figure in pairs:
        if figure.ratio < 1:
            report = f"{figure.what}: {figure.cells[4]}, beside {figure.peer}"
            yield f"- `{result.bench}`: {': '.join(filter(None, (report, figure.remark)))}."
    yield ""


def _curves(results: Iterable[Result]) -> Iterator[str]:
    curves = [curve for result in results for curve in result.curves]
    if not curves:
        return
    yield "## Growth\n"
    yield "Exponents are fitted to the logarithms by least squares: 1 is linear, 0 is constant.\n"
    yield _row(("what", "sizes", "seconds", "exponent", "MiB", "exponent", "time grows"))
    yield _row(["---"] * 7)
    for curve in curves:
        many = (curve.sizes, curve.seconds, curve.mib)
        sizes, seconds, mib = (", ".join(map(number, each)) for each in many)
        time, memory = map(number, (curve.time_exponent, curve.memory_exponent))
        word = in_a_word(curve.time_exponent)
        yield _row((curve.what, sizes, seconds, time, mib, memory, word))
    yield ""


def _asked(results: Iterable[Result]) -> Iterator[str]:
    yield "## What was asked, and of how much\n"
    yield _row(("bench", "question", "sizes", "seconds", "date"))
    yield _row(["---"] * 5)
    for each in results:
        taken = number(each.seconds)
        yield _row((f"`{each.bench}`", each.question, each.sizes, taken, each.date))
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
