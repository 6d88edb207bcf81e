"""Small websites, made by hand after real ones, that list reports each in its own way.

with serve() as zoo:
    for site in zoo.sites:
        ... crawl zoo.start(site) ...
        verdict = judge(site, zoo.base(site), found)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.zoo import (
    accordions,
    encodings,
    hidden,
    hostile,
    japanese,
    lists,
    paging,
    prefectures,
    serving,
    tables,
    traps,
)
from tests.zoo.judging import Finding, Verdict, judge, same_organization, total
from tests.zoo.serving import Seen, Zoo
from tests.zoo.site import Answer, Ask, Truth, ZooSite, pdf

__all__ = [
    "SITES",
    "Answer",
    "Ask",
    "Finding",
    "Seen",
    "Truth",
    "Verdict",
    "Zoo",
    "ZooSite",
    "judge",
    "pdf",
    "same_organization",
    "serve",
    "total",
]

SITES: tuple[ZooSite, ...] = (
    *lists.SITES,
    *tables.SITES,
    *accordions.SITES,
    *japanese.SITES,
    *prefectures.SITES,
    *encodings.SITES,
    *paging.SITES,
    *hidden.SITES,
    *hostile.SITES,
    *traps.SITES,
)


@contextmanager
def serve(sites: Sequence[ZooSite] = SITES) -> Iterator[Zoo]:
    """Each site on a loopback port of its own, until the block ends."""
    with serving.serve(sites) as zoo:
        yield zoo
