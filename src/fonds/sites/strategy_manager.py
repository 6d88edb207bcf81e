"""The strategy of one website: found by asking, tried, used, watched, and replaced in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from fonds.errors import FondsError, SettingsError
from fonds.seams import Clock
from fonds.settings import Settings
from fonds.sites.models import ScrapingStrategy, StrategyState, WebsiteConfiguration
from fonds.sites.pages.page import WebPage
from fonds.sites.strategy import UNSURE, Advisor, Sighting, combined, sight, validated
from fonds.sites.structure_advisor import StructureAdvisor
from fonds.sites.website import read_standing, write_standing
from fonds.stores.database import Database

MOST_QUESTIONS: Final = 20
"""Times that advisors are asked in one crawl of a website."""
POOR: Final = 0.5
"""The share of a strategy's best score below which a page is worth asking about."""
SMALL: Final = 16 * 1024
"""Bytes of a page that is read as quickly as a thread is found for it."""

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread_if_large(size: int, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """What comes of work on so many bytes: in a thread, unless they are few."""
    if size <= SMALL:
        return work(*args, **more)
    return await asyncio.to_thread(work, *args, **more)


class StrategyManager:
    """Reads pages by the strategy that works, and finds another where it does not."""

    def __init__(
        self,
        *,
        website: WebsiteConfiguration,
        advisors: tuple[Advisor, ...],
        database: Database,
        clock: Clock,
    ) -> None:
        self._website = website
        self._advisors = advisors
        self._database = database
        self._clock = clock
        self._standing = read_standing(database, website.id)
        self._questions = 0
        self._one_at_a_time = asyncio.Lock()
        self.advisor = "an earlier crawl" if self._standing else ""
        """Who proposed the strategy in use."""

    @property
    def strategy(self) -> ScrapingStrategy | None:
        """The one in use."""
        return self._standing.strategy if self._standing else None

    @property
    def max_list_pages(self) -> int:
        """Pages of one list that are followed."""
        limit = self.strategy.max_pages if self.strategy else None
        return limit or ScrapingStrategy.model_fields["max_pages"].default

    async def sight(self, page: WebPage, trail: tuple[str, ...]) -> Sighting:
        """What a page holds, by the strategy in use or a better one."""
        async with self._one_at_a_time:
            sighting = await self._seen(page, trail)
            if sighting is None or self._is_poor(sighting):
                sighting = await self._asked(page, trail, sighting)
            await self._note(sighting)
        return sighting

    async def _seen(self, page: WebPage, trail: tuple[str, ...]) -> Sighting | None:
        if self._standing is None:
            return None
        size = len(page.text)
        return await in_thread_if_large(size, sight, self._standing.strategy, page, trail=trail)

    def _is_poor(self, sighting: Sighting) -> bool:
        assert self._standing is not None
        missed = sighting.listed > len(sighting.found)
        worse = missed or sighting.score < POOR * self._standing.best
        return sighting.is_telling and (worse or self._is_unsure)

    @property
    def _is_unsure(self) -> bool:
        """Whether what is in use comes from a page that listed nothing, as first pages often do."""
        return self._standing is not None and self._standing.strategy.confidence < UNSURE

    async def _asked(
        self, page: WebPage, trail: tuple[str, ...], before: Sighting | None
    ) -> Sighting:
        """What advisors make of a page, each tried on it, unless what is in use does better."""
        for advisor in self._advisors if self._questions < MOST_QUESTIONS else ():
            self._questions += 1
            try:
                proposed = await advisor.advise(self._website, page)
            except FondsError:  # the next one may know better
                continue
            standing = await asyncio.to_thread(validated, self._merged(proposed), page)
            if standing.state is StrategyState.FAILED:
                continue
            sighting = await asyncio.to_thread(sight, standing.strategy, page, trail=trail)
            gained = before is None or sighting.score > before.score
            if gained or (self._is_unsure and before and sighting.score == before.score):
                self._standing, self.advisor = standing, advisor.name
                return sighting
        if before is None:
            fallback = StructureAdvisor()
            proposed = await fallback.advise(self._website, page)
            before = await asyncio.to_thread(sight, proposed, page, trail=trail)
        return before

    def _merged(self, proposed: ScrapingStrategy) -> ScrapingStrategy:
        """Pages of a website may be of several kinds; a strategy that has decayed is let go."""
        if self._standing is None or self._standing.state is StrategyState.FAILED:
            return proposed
        if self._is_unsure:
            return proposed
        return combined(self._standing.strategy, proposed)

    async def _note(self, sighting: Sighting) -> None:
        if self._standing is None:
            return
        before, self._standing = self._standing, self._standing.used(sighting)
        changed = (before.strategy, before.state) != (self._standing.strategy, self._standing.state)
        if changed:
            await asyncio.to_thread(
                write_standing, self._database, self._website.id, self._standing, self._clock
            )


def advisors_of(settings: Settings) -> tuple[Advisor, ...]:
    """Those that are asked, in order, by the settings; the last one needs no key."""
    kind, _, model = settings.advisor.partition(":")
    if kind == "structure" and not model:
        return (StructureAdvisor(),)
    if kind == "openai" and model:
        from fonds.sites.llm_advisor import ModelAdvisor  # noqa: PLC0415 — only where a model is asked

        asked = ModelAdvisor(settings.advisor_url, settings.advisor_key, model)
        return (asked, StructureAdvisor())
    raise SettingsError(
        f"advisor cannot be {settings.advisor!r}; possible are structure and openai:MODEL"
    )
