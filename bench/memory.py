"""Does memory grow with the number of documents?

Two processes ingest a synthetic Federal Register, a small one and a large one, over loopback HTTP;
the highest resident memory of each is compared with the limit, and with the other.

    python bench/memory.py [--documents 50000] [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.synthetic import serve_synthetic

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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--words", type=int, default=150)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    small = ingest(SMALL, options.words)
    large = ingest(options.documents, options.words)
    figures = {
        "documents": options.documents,
        "small_peak_mib": round(small["peak_mib"]),
        "large_peak_mib": round(large["peak_mib"]),
        "growth": round(large["peak_mib"] / small["peak_mib"], 2),
        "limit_mib": LIMIT_MIB,
        "documents_per_s": round(options.documents / large["seconds"]),
    }
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"{SMALL:>8,} documents: {figures['small_peak_mib']:>5} MiB")
        print(f"{options.documents:>8,} documents: {figures['large_peak_mib']:>5} MiB", end="")
        print(f"  (limit {LIMIT_MIB}; {figures['growth']} × the small one)")
        print(f"{figures['documents_per_s']:>8,} documents a second, fetching included")


if __name__ == "__main__":
    main()
