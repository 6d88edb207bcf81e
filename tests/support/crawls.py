"""A crawl of the zoo's sites, and what it left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from fonds.library import Library, crawl_part, open_library
from fonds.runs.state import RunReport
from fonds.sites.cluster import PartOrder
from fonds.sites.models import CrawlMetadata, read_configuration, read_metadata
from fonds.sites.session import CrawlLimits, Plan
from fonds.sites.strategy_manager import advisors_of
from fonds.sites.tables import site_addresses
from tests.zoo import Zoo

HASTY: Final = {"allow_private": True, "rate_factor": 0.0, "retries": 3, "retry_wait": 0.01}
"""Settings of a crawl on this machine that need not be polite."""


@contextmanager
def crawler(home: Path, **settings: Any) -> Iterator[Library]:
    """A library that may crawl this machine."""
    with open_library(home / "library", **{**HASTY, **settings}) as library:
        yield library


def plan_for(library: Library, zoo: Zoo, output: str | Path, **options: Any) -> Plan:
    """A crawl of all sites that are served."""
    told = json.dumps(zoo.configuration()).encode()
    return Plan(
        websites=read_configuration(told, path="sites.json").websites,
        output=str(output),
        config_path="sites.json",
        advisors=options.pop("advisors", advisors_of(library.settings)),
        **{"limits": CrawlLimits(parallelism=8, max_pages=200), **options},
    )


def crawl(library: Library, zoo: Zoo, output: str | Path, **options: Any) -> list[RunReport]:
    """Crawl all sites that are served."""
    return asyncio.run(library.crawl(plan_for(library, zoo, output, **options)))


def told(output: Path) -> CrawlMetadata:
    """What a crawl says it did."""
    return read_metadata((output / "metadata.json").read_bytes(), path="metadata.json")


def seen(library: Library, kind: str = "pdf") -> dict[str, list[Any]]:
    """The addresses that were seen, by website."""
    query = select(site_addresses).where(site_addresses.c.kind == kind)
    found: dict[str, list[Any]] = {}
    with library.database.read() as connection:
        for row in connection.execute(query):
            found.setdefault(row.website_id, []).append(row)
    return found


def downloads(zoo: Zoo, sites: Sequence[str] = ()) -> Counter[str]:
    """How often each address was served whole, by site and path."""
    served = [one for one in zoo.requests if one.status == 200]
    return Counter(f"{one.site} {one.path}" for one in served if not sites or one.site in sites)


def crawl_part_and_die(order: PartOrder) -> list[RunReport]:
    """Crawl a part in a process that is lost before or after, if a website is named so."""
    names = {website.id for website in order.plan.websites}
    if "dies-at-once" in names:
        os.kill(os.getpid(), signal.SIGKILL)
    reports = crawl_part(order)
    if "dies-late" in names:
        os.kill(os.getpid(), signal.SIGKILL)
    if "dies-with-its-node" in names:
        _lose_the_node(order.settings.home / "lost")
    return reports


def _lose_the_node(mark: Path) -> None:
    """Kill, once, the process that the cluster started: it gives the item to another."""
    if not mark.exists():
        mark.touch()
        worker = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="ascii")
        os.kill(int(worker.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(60)
