"""Does every invocation keep to its budget, however large the code is?

A synthetic title of 130 MB with 100,000 sections in one file, and one of 5,000 sections that are
a page each, served on loopback, are ingested by `fonds code ingest` with the default budget: with
invocations in the command's own process as long as there is room, and with each in a process of
its own. Beside the peaks that invocations report stands the highest that the system saw of any
process of the command, the one that only hands out work included.

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
MODES = {"as it comes": (), "a process each": ("--invocation-process",)}
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
    mode: str
    nodes: int
    invocations: int
    subrequests: int
    """The most of any invocation."""
    peak_mib: float
    """The highest of any invocation."""
    process_mib: float
    """The highest of any process of the command, as the system saw it."""
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


def ingest(upstream: Upstream, mode: str) -> Spent:
    """Run the command once, in a library of its own."""
    chosen = ["--from", upstream.given, "--version", "2024", "--json", *MODES[mode]]
    with tempfile.TemporaryDirectory() as home:
        begun = time.perf_counter()
        command = [COMMAND, "--home", home, "code", "ingest", upstream.code, *chosen]
        told, process_mib = run(command)
        seconds = time.perf_counter() - begun
    (unit,) = told["units"]
    assert unit["error"] is None, unit["error"]
    assert not unit["failures"], unit["failures"]
    assert unit["inserted"] == unit["nodes"], unit
    invocations = unit["invocations"]
    return Spent(
        what=upstream.what,
        mode=mode,
        nodes=unit["nodes"],
        invocations=len(invocations),
        subrequests=max(one["subrequests"] for one in invocations),
        peak_mib=max(one["peak_mib"] for one in invocations),
        process_mib=process_mib,
        seconds=round(seconds, 1),
    )


def run(command: list[Any]) -> tuple[Any, float]:
    """What a command answers, and the highest memory of it and of all processes it waited for."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **OPEN}) as child:
        assert child.stdout is not None
        answer = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert answer, f"the command said nothing and ended with {child.returncode}"
    return json.loads(answer), round(usage.ru_maxrss / 1024, 1)


# Telling ----------------------------------------------------------------------------------


def figures(spent: Spent) -> Iterator[Figure]:
    """What no invocation may pass."""
    where = f"{spent.what}, {spent.mode}"
    told = f"{spent.invocations} invocations; {spent.process_mib:.0f} MiB in any process"
    yield within(f"sub-requests, {where}", spent.subrequests, LIMITS.subrequests)
    yield within(f"memory, {where}", spent.peak_mib, LIMITS.memory_mib, "MiB", told)


def main() -> None:
    """Print the figures; fail if an invocation passed a limit."""
    parser = asking(__doc__)
    parser.add_argument("--small", action="store_true", help="a small part of the work")
    options = parser.parse_args()
    sizes = (SMALL_SECTIONS, SMALL_PAGES) if options.small else (SECTIONS, PAGES)
    found: list[Spent] = []
    for made in (monolithic(sizes[0]), fragmented(sizes[1])):
        with made as upstream:
            found += [ingest(upstream, mode) for mode in MODES]
    told = [figure for one in found for figure in figures(one)]
    tell(options, told, runs=[asdict(one) for one in found])


if __name__ == "__main__":
    main()
