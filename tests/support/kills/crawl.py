"""A process that crawls one website and may be killed at a durable operation of its choice.

python -m tests.support.kills.crawl HOME ADDRESS OUTPUT [KILL_AT]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

from tests.support.crawls import crawler

from fonds.runs.state import RunStatus
from fonds.seams import Seams
from fonds.sites.models import WebsiteConfiguration
from fonds.sites.output import METADATA, open_output
from fonds.sites.session import CrawlLimits, Plan
from fonds.sites.strategy_manager import advisors_of
from fonds.testing import Saboteur

AT_ONCE: Final = 4


def main() -> None:
    """Crawl, or go on with what was begun, and say how many durable operations it took."""
    home, address, output = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    saboteur = Saboteur(kill_at=int(sys.argv[4]) if len(sys.argv) > 4 else None)
    seams = Seams(durable=saboteur)
    begun = open_output(output, seams=Seams()).read(METADATA) is not None
    with crawler(home, seams=seams, batch_records=50) as library:
        plan = Plan(
            websites=[WebsiteConfiguration(id="registry", name="Registry", base_url=address)],
            output=output,
            config_path="sites.json",
            advisors=advisors_of(library.settings),
            limits=CrawlLimits(parallelism=AT_ONCE),
            resume=begun,
        )
        for report in asyncio.run(library.crawl(plan)):
            if report.status is not RunStatus.SUCCESS:
                sys.exit(f"{report.source}: {report.error_summary}")
    sys.stdout.write(f"{len(saboteur.operations)}\n")


if __name__ == "__main__":
    main()
