"""How long does a whole code take, with a budget and without?

A code of 50,000 sections in 56 titles, a file for each section, is made of the real sections of
`codes/usc-frag` by repeating and renumbering them; some are as long as 1.6 MB. It is ingested by
`fonds code ingest`, and again unchanged. The processor's seconds are those of all processes of the
command. Nothing is kept of the code or the library unless a folder is given.

    FONDS_CORPUS=… python -m bench.whole_code [--sections 50000] [--budget worker]
        [--postgresql URL] [--folder DIR] [--json]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
from bench.figures import Figure, asking, tell, within

ARCHIVE = "codes/usc-frag"
COMMAND = Path(sys.executable).with_name("fonds")
SECTIONS = 50_000
TITLES = 56
LARGEST = dict(
    zip(
        (42, 10, 16, 26, 22, 15, 7, 20, 25, 12, 49, 18, 50, 19, 38, 5, 33, 46, 43, 28, 21),
        (80, 40, 40, 30, 25, 24, 23, 18, 16, 15, 14, 13, 13, 12, 12, 11, 11, 11, 10, 9, 8),
        strict=True,
    )
)
"""Hundreds of sections of the largest titles, of 50,000; the others have equally many."""
LONG = {10: 700_000, 15: 900_000, 16: 800_000, 19: 1_000_000, 26: 1_600_000, 42: 1_500_000}
"""Bytes of the longest section of a title."""
MINUTES = {"": 5.0, "worker": 12.0}
SUBREQUESTS, MEMORY_MIB = 1000, 128
_IDENTIFIER = re.compile(rb'identifier="(/us/usc/t\w+/s[^"/]+)"')
_NUMBER = re.compile(rb"<num\b.*?</num>", re.DOTALL)
_BODY = re.compile(rb"</heading>(.*)</section>", re.DOTALL)


# Making it --------------------------------------------------------------------------------


def write_code(folder: Path, sections: int) -> None:
    """Write a code of so many sections."""
    with real_sections() as originals:
        for title in range(1, TITLES + 1):
            write_title(folder / str(title), title, _size(title, sections), originals)


def _size(title: int, sections: int) -> int:
    rest = (SECTIONS / 100 - sum(LARGEST.values())) / (TITLES - len(LARGEST))
    return max(1, round(100 * LARGEST.get(title, rest) * sections / SECTIONS))


def write_title(folder: Path, title: int, sections: int, originals: list[bytes]) -> None:
    """Write the sections of a title, numbered from 1."""
    folder.mkdir(parents=True)
    for number in range(1, sections + 1):
        section = originals[(number * 7 + title) % len(originals)]
        if number == sections // 2 and title in LONG:
            section = _lengthened(max(originals, key=len), LONG[title])
        (folder / f"{number}.xml").write_bytes(renumbered(section, title, number))


def renumbered(section: bytes, title: int, number: int) -> bytes:
    """A section under another title and number."""
    match = _IDENTIFIER.search(section)
    assert match is not None, section[:200]
    identifier = f"/us/usc/t{title}/s{number}".encode()
    section = re.sub(re.escape(match[1]) + rb'(?=["/])', identifier, section)
    return _NUMBER.sub(f'<num value="{number}">§ {number}.</num>'.encode(), section, count=1)


def _lengthened(section: bytes, size: int) -> bytes:
    """A section whose text is repeated until it has about so many bytes."""
    match = _BODY.search(section)
    assert match is not None, section[:200]
    more = match[1] * ((size - len(section)) // len(match[1]))
    rest = size - len(section) - len(more)
    if rest > 0:
        paragraph = b"<p>" + b"Every such State shall submit a plan to the Secretary. " * (
            rest // 55
        )
        more += b"<continuation>" + paragraph + b"</p></continuation>"
    return section[: match.end(1)] + more + section[match.end(1) :]


@contextmanager
def real_sections() -> Iterator[list[bytes]]:
    """The sections of the corpus, unpacked if they are not."""
    corpus = Path(os.environ["FONDS_CORPUS"])
    with tempfile.TemporaryDirectory() as target:
        folder = corpus / ARCHIVE
        if not folder.is_dir():
            subprocess.run([corpus / "unpack", target, ARCHIVE], check=True)
            folder = Path(target) / ARCHIVE
        files = sorted(folder.rglob("*.xml"))
        sections = [file.read_bytes() for file in files]
        yield [section for section in sections if _IDENTIFIER.search(section)]


# Ingesting it -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What one command took."""

    seconds: float
    processor: float
    """Seconds of all its processes."""
    process_mib: float
    """The highest resident size of any of its processes."""
    sections: int
    inserted: int
    invocations: int
    subrequests: int
    """The most of any invocation."""
    peak_mib: float
    """The highest of any invocation."""
    errors: tuple[str, ...]


def ingest(given: Path, home: Path, options: list[str]) -> Spent:
    """Run the command once."""
    command = [COMMAND, "--home", home, "code", "ingest", "usc", "--from", given, "--json"]
    started = time.perf_counter()
    with subprocess.Popen(
        [*map(str, command), "--version", "119-36", *options], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        with processor_seconds(process.pid) as used:
            output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    report: dict[str, Any] = json.loads(output)
    units = report["units"]
    invocations = [one for unit in units for one in unit["invocations"]]
    errors = [f"{unit['id']}: {unit['error']}" for unit in units if unit["error"]]
    errors += [": ".join(failure) for unit in units for failure in unit["failures"]]
    return Spent(
        seconds=round(time.perf_counter() - started, 1),
        processor=round(sum(used.values()), 1),
        process_mib=round(usage.ru_maxrss / 1024, 1),
        sections=sum(unit["shards"] for unit in units),
        inserted=sum(unit["inserted"] for unit in units),
        invocations=len(invocations),
        subrequests=max((one["subrequests"] for one in invocations), default=0),
        peak_mib=max((one["peak_mib"] for one in invocations), default=0),
        errors=tuple(errors),
    )


@contextmanager
def processor_seconds(pid: int) -> Iterator[dict[int, float]]:
    """The processor's seconds of a process and of all below it, as seen ten times a second.

    Processes that are killed leave none to those that wait for them.
    """
    used: dict[int, float] = {}
    done = Event()

    def look() -> None:
        while not done.wait(0.1):
            with suppress(psutil.NoSuchProcess):
                parent = psutil.Process(pid)
                for process in (parent, *parent.children(recursive=True)):
                    with suppress(psutil.NoSuchProcess):
                        times = process.cpu_times()
                        used[process.pid] = times.user + times.system

    thread = Thread(target=look)
    thread.start()
    try:
        yield used
    finally:
        done.set()
        thread.join()


def figures(sections: int, budget: str, first: Spent, again: Spent) -> Iterator[Figure]:
    """Its figures beside what was promised for 50,000 sections."""
    limit = MINUTES.get(budget, MINUTES["worker"]) * 60 * sections / SECTIONS
    remark = f"{first.processor} processor seconds, {first.invocations} invocations"
    yield within("first time", first.seconds, round(limit, 1), "s", remark)
    yield within("sections that failed", len(first.errors), 0)
    yield within("rows of a second time", again.inserted, 0)
    remark = f"{again.processor} processor seconds, {again.invocations} invocations"
    yield Figure(
        what="second time",
        ours=again.seconds,
        theirs=first.seconds,
        unit="s",
        peer="the first time",
        better="less",
        remark=remark,
    )
    if budget == "worker":
        yield within("sub-requests", max(first.subrequests, again.subrequests), SUBREQUESTS)
        yield within("memory", max(first.peak_mib, again.peak_mib), MEMORY_MIB, "MiB")


def main() -> None:
    """Print the figures; fail if one is above its bar."""
    parser = asking(__doc__)
    parser.add_argument("--sections", type=int, default=SECTIONS)
    parser.add_argument("--budget", default="", help="worker, or figures of one's own")
    parser.add_argument("--postgresql", default="", help="an empty database, instead of SQLite")
    parser.add_argument("--folder", type=Path, help="where the code and the library are kept")
    options = parser.parse_args()
    if options.postgresql:
        os.environ["FONDS_DATABASE"] = options.postgresql
    chosen = ["--budget", options.budget] if options.budget else []
    keeper = nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory()
    with keeper as folder:
        given = Path(folder) / "code"
        if not given.is_dir():
            write_code(given, options.sections)
        home = Path(tempfile.mkdtemp(prefix="home-", dir=folder))
        first, again = ingest(given, home, chosen), ingest(given, home, chosen)
    told = list(figures(options.sections, options.budget, first, again))
    for error in first.errors[:20]:
        print(error, file=sys.stderr)
    tell(options, told, first=asdict(first), again=asdict(again))


if __name__ == "__main__":
    main()
