"""What does it cost to run again when nothing has changed?

A synthetic Federal Register is served by a process of its own and backfilled twice. The second run
may only ask conditionally, must write nothing but run history, and is to be ten times as fast.

    python bench/rerun.py [--documents 2000] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.dump import logical_dump
from tests.synthetic import serve_synthetic

from fonds.library import Library, open_library
from fonds.runs.state import RunRequest, Status

AT_LEAST = 10.0
REQUEST = RunRequest(mode="backfill", since=date(2019, 1, 7), until=date(2019, 3, 31))


def backfill(library: Library) -> float:
    """Seconds of one backfill."""
    begun = time.perf_counter()
    report = asyncio.run(library.ingest("federal_register", REQUEST))
    assert report.status is Status.SUCCESS, report
    return time.perf_counter() - begun


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    per_day = options.documents // 50
    with (
        serve_synthetic(options.documents, words=300, per_day=per_day) as upstream,
        tempfile.TemporaryDirectory() as home,
        open_library(home, hosts=upstream.hosts, allow_private=True) as library,
    ):
        first = backfill(library)
        before, asked = logical_dump(library), upstream.counts()
        second = backfill(library)
        again = {name: count - asked[name] for name, count in upstream.counts().items()}
        unchanged = logical_dump(library) == before
    figures = {
        "documents": options.documents,
        "first_s": round(first, 2),
        "second_s": round(second, 2),
        "ratio": round(first / second, 1),
        "at_least": AT_LEAST,
        "requests": again,
        "rows_unchanged": unchanged,
    }
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"first run  {first:7.2f} s")
        print(f"second run {second:7.2f} s, {again}, rows unchanged: {unchanged}")
        print(f"ratio      {figures['ratio']:7} (at least {AT_LEAST})")


if __name__ == "__main__":
    main()
