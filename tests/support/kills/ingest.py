"""A process that ingests three sources and may be killed at any durable operation of its choice.

python -m tests.support.kills.ingest HOME HOSTS [KILL_AT]
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import date
from pathlib import Path

from fonds.library import open_library
from fonds.runs.state import RunRequest, RunStatus
from fonds.seams import Seams
from fonds.testing import Saboteur

SINCE, UNTIL = date(2019, 1, 7), date(2019, 1, 18)
BATCH = 16


def main() -> None:
    """Ingest, and say how many durable operations it took."""
    home, hosts = Path(sys.argv[1]), json.loads(sys.argv[2])
    saboteur = Saboteur(kill_at=int(sys.argv[3]) if len(sys.argv) > 3 else None)
    settings = {"hosts": hosts, "allow_private": True, "batch_records": BATCH}
    with open_library(home, seams=Seams(durable=saboteur), **settings) as library:
        for source in ("legislators", "committees", "federal_register"):
            request = RunRequest(mode="backfill", since=SINCE, until=UNTIL)
            report = asyncio.run(library.ingest(source, request))
            if report.status is not RunStatus.SUCCESS:
                sys.exit(f"{source}: {report.error_summary}")
    sys.stdout.write(f"{len(saboteur.operations)}\n")


if __name__ == "__main__":
    main()
