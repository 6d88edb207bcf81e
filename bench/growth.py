"""How do time and memory grow when there is ten and a hundred times as much?

A synthetic Federal Register is ingested, ingested again unchanged, given vectors and searched; and
a sharded index is looked up: each at three sizes, each step in a process of its own, whose highest
memory is its alone. Time is the processor's, which others on the machine disturb less. An exponent
is the slope of the line through the logarithms of size and of time (or memory), by least squares:
1 is linear, 0 does not grow at all. What a process needs however little it does is part of it.

    python -m bench.growth [--documents 100] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Final

from bench.curves import Point, curves
from bench.figures import asking, tell
from bench.shards import fill, most_memory, record
from tests.support.upstreams.federal_register import serve_synthetic

from fonds.library import Library, open_library
from fonds.runs.state import RunRequest, RunStatus
from fonds.seams import Seams
from fonds.shards.index import open_index
from fonds.shards.lookup import Lookup
from fonds.stores.blobs import open_blobs

TIMES: Final = (1, 10, 100)
ROWS: Final = 100
"""Of the sharded index, for each document."""
ASKED: Final = 200
REQUEST: Final = RunRequest(mode="backfill", since=date(2019, 1, 7), until=date(2020, 12, 31))
QUESTIONS: Final = (
    "notice of public hearing",
    "adjustment of the benefit schedule",
    "application for a permit to export",
    "records of the supervising authority",
    "standards for testing and reporting",
)
MOST_TIME: Final = {"ingest": 1.1, "ingest again": 1.1, "look up": 0.2}
"""Searching has none: every vector is compared, which grows with their number."""
MOST_MEMORY: Final = 0.1


# Steps, each in a process of its own ------------------------------------------------------


def ingest(library: Library) -> float:
    """All documents; a second time nothing has changed."""
    begun = time.process_time()
    report = asyncio.run(library.ingest("federal_register", REQUEST))
    assert report.status is RunStatus.SUCCESS, report
    return time.process_time() - begun


def embed(library: Library) -> float:
    """A vector for each passage."""
    begun = time.process_time()
    library.embed()
    return time.process_time() - begun


def search(library: Library) -> float:
    """Words and meaning; the first question opens the model and counts for none."""
    library.search(QUESTIONS[0])
    begun = time.process_time()
    for question in QUESTIONS * 4:
        assert library.search(question)
    return (time.process_time() - begun) / (4 * len(QUESTIONS))


STEPS: Final[dict[str, Callable[[Library], float]]] = {
    "ingest": ingest,
    "ingest again": ingest,
    "embed": embed,
    "search": search,
}


def look_up(folder: Path, rows: int) -> float:
    """Some records of an index that another process has filled, not cached."""
    lookup = Lookup(open_index(open_blobs(str(folder), seams=Seams()), "domains"))
    chance = random.Random(7)
    keys = [record(chance.randrange(rows))["domain"] for _ in range(ASKED)]
    begun = time.process_time()
    assert all(lookup.find(key) for key in keys)
    return (time.process_time() - begun) / ASKED


def step(name: str, home: Path, given: str) -> None:
    """Do one of them here, and tell what it took."""
    if name == "fill":
        fill(home, int(given))
        seconds = 0.0
    elif name == "look up":
        seconds = look_up(home, int(given))
    else:
        with open_library(home, hosts=json.loads(given), allow_private=True) as library:
            seconds = STEPS[name](library)
    print(json.dumps([seconds, most_memory()]))


def apart(name: str, home: Path, given: str) -> tuple[float, float]:
    """Seconds and MiB of a step in a process of its own."""
    command = [sys.executable, "-m", "bench.growth", "--step", name, str(home), given]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, mib = json.loads(done.stdout)
    return seconds, mib


# Curves -----------------------------------------------------------------------------------


def measure(folder: Path, documents: int) -> Iterator[Point]:
    """Each step at each size."""
    for size in (documents * times for times in TIMES):
        home = folder / str(size)
        with serve_synthetic(size, words=150) as upstream:
            hosts = json.dumps(upstream.hosts)
            for name in STEPS:
                yield Point(name, size, *apart(name, home, hosts))
        rows, index = size * ROWS, folder / f"index-{size}"
        apart("fill", index, str(rows))
        yield Point("look up", rows, *apart("look up", index, str(rows)))


def main() -> None:
    """Print the figures; end with 1 if something grows faster than it may."""
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=100, help="the smallest of three sizes")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, home, given = options.step
        step(name, Path(home), given)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = curves(list(measure(Path(folder), options.documents)))
    told = [curve.figures(MOST_TIME.get(curve.what), MOST_MEMORY) for curve in found]
    figures = [figure for each in told for figure in each]
    tell(options, figures, curves=[curve.as_json() for curve in found])


if __name__ == "__main__":
    main()
