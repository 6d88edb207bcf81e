"""Does every invocation keep to its budget, however large the code is?

A synthetic title of 130 MB with 100,000 sections in one file, and one of 5,000 sections that are
a page each, served on loopback, are ingested by `fonds code ingest --budget worker`.

    python -m bench.budget [--small] [--json]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure, asking, tell, within
from tests.support.upstreams.codes import FolderServer, write_dc_code, write_usc_title

from fonds.codes.budget import Budget

LIMITS = Budget()
SECTIONS, PAGES = 100_000, 5_000
SMALL_SECTIONS, SMALL_PAGES = 2_000, 200
WORDS = 96
"""Of a section; with its markup it has 1,300 bytes."""
COMMAND = Path(sys.executable).with_name("fonds")
OPEN = {"FONDS_RATE_FACTOR": "0", "FONDS_ALLOW_PRIVATE": "1"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Upstream:
    """A code to be ingested."""

    code: str
    given: str
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What ingesting it took."""

    what: str
    nodes: int
    invocations: int
    subrequests: int
    """The most of any invocation."""
    peak_mib: float
    """The highest of any invocation."""
    seconds: float


# Upstreams --------------------------------------------------------------------------------


@contextmanager
def monolithic(sections: int) -> Iterator[Upstream]:
    """A title in one file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "usc91.xml"
        write_usc_title(file, sections=sections, words=WORDS)
        size = file.stat().st_size / 1e6
        what = f"one file of {size:.0f} MB, {sections:,} sections"
        yield Upstream(code="usc", given=str(file), what=what)


@contextmanager
def fragmented(pages: int) -> Iterator[Upstream]:
    """A title whose sections are pages of their own."""
    with tempfile.TemporaryDirectory() as folder:
        write_dc_code(Path(folder), {"1": pages})
        with FolderServer(Path(folder)) as server:
            yield Upstream(code="dc", given=server.address, what=f"{pages:,} pages")


# Ingesting --------------------------------------------------------------------------------


def ingest(upstream: Upstream) -> Spent:
    """Run the command once, in a library of its own."""
    chosen = ["--from", upstream.given, "--version", "2024", "--json", "--budget", "worker"]
    with tempfile.TemporaryDirectory() as home:
        begun = time.perf_counter()
        command = [COMMAND, "--home", home, "code", "ingest", upstream.code, *chosen]
        told = run(command)
        seconds = time.perf_counter() - begun
    (unit,) = told["units"]
    assert unit["error"] is None, unit["error"]
    assert not unit["failures"], unit["failures"]
    assert unit["inserted"] == unit["nodes"], unit
    invocations = unit["invocations"]
    return Spent(
        what=upstream.what,
        nodes=unit["nodes"],
        invocations=len(invocations),
        subrequests=max(one["subrequests"] for one in invocations),
        peak_mib=max(one["peak_mib"] for one in invocations),
        seconds=round(seconds, 1),
    )


def run(command: list[Any]) -> Any:
    """What a command answers."""
    done = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, **OPEN}, check=False)
    assert done.stdout, f"the command said nothing and ended with {done.returncode}"
    return json.loads(done.stdout)


# Telling ----------------------------------------------------------------------------------


def figures(spent: Spent) -> Iterator[Figure]:
    """What no invocation may pass."""
    told = f"{spent.invocations} invocations"
    yield within(f"sub-requests, {spent.what}", spent.subrequests, LIMITS.subrequests)
    yield within(f"memory, {spent.what}", spent.peak_mib, LIMITS.memory_mib, "MiB", told)


def main() -> None:
    """Print the figures; fail if an invocation passed a limit."""
    parser = asking(__doc__)
    parser.add_argument("--small", action="store_true", help="a small part of the work")
    options = parser.parse_args()
    sizes = (SMALL_SECTIONS, SMALL_PAGES) if options.small else (SECTIONS, PAGES)
    found: list[Spent] = []
    for made in (monolithic(sizes[0]), fragmented(sizes[1])):
        with made as upstream:
            found.append(ingest(upstream))
    told = [figure for one in found for figure in figures(one)]
    tell(options, told, runs=[asdict(one) for one in found])


if __name__ == "__main__":
    main()
