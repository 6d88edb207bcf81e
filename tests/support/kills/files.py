"""A process that ingests files on disk and may be killed at any durable operation of its choice.

python -m tests.support.kills.files HOME SOURCE PATH [KILL_AT]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fonds.library import open_library
from fonds.runs.state import RunStatus
from fonds.seams import Seams
from fonds.testing import Saboteur

BATCH = 8


def main() -> None:
    """Ingest, and say how many durable operations it took."""
    home, source, path = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    saboteur = Saboteur(kill_at=int(sys.argv[4]) if len(sys.argv) > 4 else None)
    with open_library(home, seams=Seams(durable=saboteur), batch_records=BATCH) as library:
        report = asyncio.run(library.ingest_files(source, [path]))
        if report.run.status is not RunStatus.SUCCESS:
            sys.exit(f"{source}: {report.run.error_summary}")
    sys.stdout.write(f"{len(saboteur.operations)}\n")


if __name__ == "__main__":
    main()
