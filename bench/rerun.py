"""What does it cost to run again when nothing has changed?

A synthetic Federal Register is served by a process of its own and backfilled twice. The second run
may only ask conditionally, must write nothing but run history, and is to be ten times as fast.

    python -m bench.rerun [--documents 2000] [--json]
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from datetime import date

from bench.figures import Figure, asking, tell, within
from tests.support.upstreams.federal_register import serve_synthetic

from fonds.library import Library, open_library
from fonds.runs.state import RunRequest, RunStatus
from fonds.selftest.state import rows_of

AT_LEAST = 10.0
REQUEST = RunRequest(mode="backfill", since=date(2019, 1, 7), until=date(2019, 3, 31))


def backfill(library: Library) -> float:
    """Seconds of one backfill."""
    begun = time.perf_counter()
    report = asyncio.run(library.ingest("federal_register", REQUEST))
    assert report.status is RunStatus.SUCCESS, report
    return time.perf_counter() - begun


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    options = parser.parse_args()
    per_day = options.documents // 50
    with (
        serve_synthetic(options.documents, words=300, per_day=per_day) as upstream,
        tempfile.TemporaryDirectory() as home,
        open_library(home, hosts=upstream.hosts, allow_private=True) as library,
    ):
        first = backfill(library)
        before, asked = rows_of(library), upstream.counts()
        second = backfill(library)
        again = {name: count - asked[name] for name, count in upstream.counts().items()}
        after = rows_of(library)
        changed = sum(after[table] != rows for table, rows in before.items())
    figures = [
        Figure(
            what="running again, nothing changed",
            ours=second,
            theirs=first,
            unit="s",
            peer="the first run",
            better="less",
            least=AT_LEAST,
        ),
        within("tables that the second run changed", changed, 0),
    ]
    tell(options, figures, requests=again)


if __name__ == "__main__":
    main()
