"""Run all benches, one after the other, each in a process of its own, and tell what they found.

    python -m bench                        sizes that take a quarter of an hour together
    python -m bench --full                 the sizes that each bench has by itself
    python -m bench --only load search     some of them; what is known of the others is kept
    python -m bench --page                 write docs/reference/benchmarks.md from what is known

What they find is kept in bench/results.json, or in the file that --keep names. Ends with 1 if a
bench failed or missed a bar. Those that read nothing but real documents are left out unless
FONDS_CORPUS names a folder of them.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.curves import Curve
from bench.figures import figure_of, table
from bench.results import Result, Results, page, this_machine

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / "bench" / "results.json"
PAGE: Final = ROOT / "docs" / "reference" / "benchmarks.md"
CORPUS: Final = "FONDS_CORPUS"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """A bench, and what it is given."""

    name: str
    quick: str
    """The sizes that make it end soon; its own are those it has without any."""
    needs_corpus: bool = False
    """Whether it reads nothing but real documents, in the folder that FONDS_CORPUS names."""

    @property
    def question(self) -> str:
        """Its first line; the module is not imported, for its peers may not be installed."""
        source = (ROOT / "bench" / f"{self.name}.py").read_text("utf-8")
        return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]

    @property
    def can_run(self) -> bool:
        """Whether what it reads is there."""
        return not self.needs_corpus or CORPUS in os.environ


BENCHES: Final = (
    Bench(name="start", quick="--rounds 7"),
    Bench(name="crawl", quick="--rounds 1"),
    Bench(name="normalize", quick="--files 20", needs_corpus=True),
    Bench(name="fidelity", quick="--files 20", needs_corpus=True),
    Bench(name="tables", quick="--files 6", needs_corpus=True),
    Bench(name="chunk", quick="--size 500000"),
    Bench(name="citations", quick="--size 300000 --edges 100000 --repeats 3"),
    Bench(name="load", quick="--rounds 2"),
    Bench(name="codes", quick="--rounds 1", needs_corpus=True),
    Bench(name="whole_code", quick="--sections 1000", needs_corpus=True),
    Bench(name="budget", quick="--small"),
    Bench(name="memory", quick="--documents 5000 --words 60"),
    Bench(name="rerun", quick="--documents 500"),
    Bench(name="incremental", quick="--documents 1000"),
    Bench(name="embed", quick="--passages 4000"),
    Bench(name="search", quick="--size 20000 --questions 30"),
    Bench(name="vectors", quick="--size 20000 --questions 50"),
    Bench(name="retrieval", quick="--questions 300", needs_corpus=True),
    Bench(name="papers", quick="", needs_corpus=True),
    Bench(name="shards", quick="--rows 100000 --items 10000"),
    Bench(name="objects", quick="--objects 500"),
    Bench(name="api", quick="--rounds 5"),
    Bench(name="web", quick="--documents 500 --rounds 2"),
    Bench(name="readers", quick="--seconds 30"),
    Bench(name="worker", quick="--documents 30 --rounds 2"),
    Bench(name="uploads", quick="--documents 100 --clients 10"),
    Bench(name="exchange", quick="--documents 2000 --rounds 1"),
    Bench(name="engine", quick="--pdfs 20 --texts 4000 --rounds 2"),
    Bench(name="growth", quick="--documents 50"),
)


def main() -> None:
    """Run, keep, tell."""
    options = _options()
    if options.page:
        PAGE.write_text(page(Results.read(options.keep)), "utf-8")
        return
    chosen = [bench for bench in BENCHES if bench.name in options.only or not options.only]
    found, ran, troubles = _known(options.keep), [], []
    for number, bench in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {bench.name}: {bench.question}", flush=True)
        if not bench.can_run:
            print(f"    left out: {CORPUS} names no folder of real documents", flush=True)
            continue
        try:
            result = run(bench, is_full=options.full)
        except BenchFailedError as trouble:
            troubles.append(f"{bench.name}: {trouble}")
            print(f"    failed: {trouble}", flush=True)
            continue
        ran.append(result)
        found.put(result, [each.name for each in BENCHES])
        found.write(options.keep)
        print(f"    {result.seconds:.0f} s", flush=True)
    sys.exit(tell(ran, troubles))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="each bench's own sizes")
    names = [bench.name for bench in BENCHES]
    parser.add_argument("--only", nargs="+", choices=names, default=(), metavar="NAME")
    parser.add_argument("--keep", type=Path, default=KEPT, metavar="FILE", help="of results")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


def _known(file: Path) -> Results:
    """What was found on this machine before; figures of two machines are not to be compared."""
    machine = this_machine()
    if file.exists() and (before := Results.read(file)).machine == machine:
        return before
    return Results(machine=machine)


class BenchFailedError(Exception):
    """A bench that printed no figures."""


def run(bench: Bench, *, is_full: bool) -> Result:
    """What a bench tells."""
    sizes = [] if is_full else bench.quick.split()
    begun = time.perf_counter()
    command = [sys.executable, "-m", f"bench.{bench.name}", *sizes, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    try:
        report = json.loads(done.stdout.splitlines()[-1])  # logs precede it
        figures = [figure_of(row) for row in report["figures"]]
    except (ValueError, KeyError, TypeError, IndexError):
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise BenchFailedError(f"ended with {done.returncode}: {''.join(last)}") from None
    return Result(
        bench=bench.name,
        question=bench.question,
        date=datetime.now(UTC).date().isoformat(),
        sizes=report["sizes"],
        seconds=round(seconds, 1),
        figures=figures,
        curves=[Curve.read(row) for row in report.get("curves", ())],
    )


def tell(results: Sequence[Result], troubles: Sequence[str]) -> bool:
    """One table of all figures; whether anything failed or missed its bar."""
    pairs = [(result.bench, figure) for result in results for figure in result.figures]
    print(f"\n{table([figure for _, figure in pairs], [name for name, _ in pairs])}\n")
    missed = [
        f"{name}: {figure.what} misses its bar" for name, figure in pairs if figure.holds is False
    ]
    print("\n".join([*missed, *troubles]))
    return bool(missed or troubles)


if __name__ == "__main__":
    main()
