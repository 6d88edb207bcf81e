"""A process that drains the embedding queue and may be killed, at a commit or whenever.

python -m tests.support.kills.embedding ADDRESS ENDPOINT HOURS [KILL_AT]
"""

from __future__ import annotations

import sys

from fonds.embed.generations import ensure_generation
from fonds.embed.registry import open_embedder
from fonds.embed.worker import drain
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import open_database
from fonds.testing import LaterClock, Saboteur

SPEC = "openai:test?dims=16&price=1"
WORKERS = 2


def main() -> None:
    """Drain, and say how many commits it took."""
    address, endpoint, hours = sys.argv[1:4]
    saboteur = Saboteur(kill_at=int(sys.argv[4]) if len(sys.argv) > 4 else None)
    seams = Seams(durable=saboteur, clock=LaterClock(hours=int(hours)))
    settings = Settings(embed_url=endpoint, allow_private=True)
    database = open_database(address, seams=seams)
    embedder = open_embedder(SPEC, settings)
    generation = ensure_generation(database, seams, embedder, SPEC)
    report = drain(database, seams, embedder, generation, settings=settings, workers=WORKERS)
    if report.waiting or report.failed or report.given_up or report.ended:
        sys.exit(str(report))
    sys.stdout.write(f"{len(saboteur.operations)}\n")


if __name__ == "__main__":
    main()
