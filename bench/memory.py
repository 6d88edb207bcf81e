"""Does memory grow with the number of documents?

Two processes ingest a synthetic Federal Register, a small one and a large one, over loopback HTTP;
the highest resident memory of each is compared with the limit, and with the other.

    python -m bench.memory [--documents 50000] [--json]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time

from bench.figures import Figure, asking, tell, within
from tests.support.upstreams.federal_register import serve_synthetic

LIMIT_MIB = 400
SMALL = 2_000
CHILD = """
import asyncio, json, resource, sys
from datetime import date
from fonds.library import open_library
from fonds.runs.state import RunRequest
home, hosts = sys.argv[1], json.loads(sys.argv[2])
with open_library(home, hosts=hosts, allow_private=True) as library:
    request = RunRequest(mode="backfill", since=date(2019, 1, 7), until=date(2020, 12, 31))
    report = asyncio.run(library.ingest("federal_register", request))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"status": report.status, "inserted": report.counts.inserted, "peak_mib": peak}))
"""


def ingest(documents: int, words: int) -> dict[str, float]:
    """Peak MiB and seconds of a process that ingests so many documents."""
    per_day = max(200, documents // 400)
    with (
        serve_synthetic(documents, words=words, per_day=per_day) as upstream,
        tempfile.TemporaryDirectory() as home,
    ):
        begun = time.perf_counter()
        child = [sys.executable, "-c", CHILD, home, json.dumps(upstream.hosts)]
        done = subprocess.run(child, check=True, capture_output=True, text=True)
        result = json.loads(done.stdout)
        assert result["status"] == "success", done.stdout
        assert result["inserted"] >= documents, done.stdout
        return {"peak_mib": result["peak_mib"], "seconds": time.perf_counter() - begun}


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--words", type=int, default=150)
    options = parser.parse_args()
    small = ingest(SMALL, options.words)
    large = ingest(options.documents, options.words)
    what = f"peak memory of ingesting {options.documents:,} documents"
    figures = [
        within(what, large["peak_mib"], LIMIT_MIB, "MiB"),
        Figure(
            what=what,
            ours=large["peak_mib"],
            theirs=small["peak_mib"],
            unit="MiB",
            peer=f"ingesting {SMALL:,}",
            better="less",
            remark="the small one does not fill all caches",
        ),
    ]
    tell(options, figures, documents_per_s=round(options.documents / large["seconds"]))


if __name__ == "__main__":
    main()
