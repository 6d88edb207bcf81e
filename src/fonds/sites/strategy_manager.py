"""The strategy of one website: proposed by an advisor, tested, used, scored, and replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from fonds.errors import FondsError, SettingsError
from fonds.seams import Clock
from fonds.settings import Settings
from fonds.sites.llm_advisor import ModelAdvisor
from fonds.sites.models import ScrapingStrategy, StrategyState, WebsiteConfiguration
from fonds.sites.pages.page import WebPage
from fonds.sites.strategy import MIN_CONFIDENCE, Advisor, PageMatch, combined, match_page, validated
from fonds.sites.structure_advisor import StructureAdvisor
from fonds.sites.website import read_health, write_health
from fonds.stores.database import Database

MAX_PROPOSALS: Final = 20
"""Proposals that advisors make in one crawl of a website."""
MIN_RELATIVE_SCORE: Final = 0.5
"""The part of a strategy's best score below which advisors are consulted on a page."""
THREAD_THRESHOLD: Final = 16 * 1024
"""Bytes of a page above which it is read in a thread; handing over a smaller one takes longer."""

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread_if_large(
    size: int, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Do something with so many bytes: in a thread, unless they are few."""
    if size <= THREAD_THRESHOLD:
        return act(*args, **kwargs)
    return await asyncio.to_thread(act, *args, **kwargs)


class StrategyManager:
    """Reads pages by the strategy in use, and finds another for pages on which it fails."""

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
        self._health = read_health(database, website.id)
        self._proposals = 0
        self._lock = asyncio.Lock()
        self.advisor = "an earlier crawl" if self._health else ""
        """The name of the advisor that proposed the strategy in use."""

    @property
    def strategy(self) -> ScrapingStrategy | None:
        """The strategy in use."""
        return self._health.strategy if self._health else None

    @property
    def max_list_pages(self) -> int:
        """Pages of one list that are followed."""
        limit = self.strategy.max_pages if self.strategy else None
        return limit or ScrapingStrategy.model_fields["max_pages"].default

    async def match(self, page: WebPage, trail: tuple[str, ...]) -> PageMatch:
        """The matches on a page of the strategy in use or a better one."""
        async with self._lock:
            match = await self._match_current(page, trail)
            if match is None or self._is_poor(match):
                match = await self._match_proposed(page, trail, match)
            await self._record(match)
        return match

    async def _match_current(self, page: WebPage, trail: tuple[str, ...]) -> PageMatch | None:
        if self._health is None:
            return None
        size = len(page.text)
        return await in_thread_if_large(size, match_page, self._health.strategy, page, trail=trail)

    def _is_poor(self, match: PageMatch) -> bool:
        assert self._health is not None
        is_incomplete = match.listed > len(match.pdfs)
        is_worse = match.score < MIN_RELATIVE_SCORE * self._health.best
        return match.is_conclusive and (is_incomplete or is_worse or self._is_unsure)

    @property
    def _is_unsure(self) -> bool:
        """Whether the strategy is from a page that listed nothing, as first pages often are."""
        return self._health is not None and self._health.strategy.confidence < MIN_CONFIDENCE

    async def _match_proposed(
        self, page: WebPage, trail: tuple[str, ...], previous: PageMatch | None
    ) -> PageMatch:
        """The matches of the first strategy that advisors propose and that is better."""
        for advisor in self._advisors if self._proposals < MAX_PROPOSALS else ():
            self._proposals += 1
            try:
                proposed = await advisor.advise(self._website, page)
            except FondsError:  # the next advisor may succeed
                continue
            health = await asyncio.to_thread(validated, self._merged(proposed), page)
            if health.state is StrategyState.FAILED:
                continue
            match = await asyncio.to_thread(match_page, health.strategy, page, trail=trail)
            is_better = previous is None or match.score > previous.score
            if is_better or (self._is_unsure and previous and match.score == previous.score):
                self._health, self.advisor = health, advisor.name
                return match
        if previous is None:
            fallback = StructureAdvisor()
            proposed = await fallback.advise(self._website, page)
            previous = await asyncio.to_thread(match_page, proposed, page, trail=trail)
        return previous

    def _merged(self, proposed: ScrapingStrategy) -> ScrapingStrategy:
        """A proposal, combined with the strategy in use unless that has failed."""
        if self._health is None or self._health.state is StrategyState.FAILED:
            return proposed
        if self._is_unsure:
            return proposed
        return combined(self._health.strategy, proposed)

    async def _record(self, match: PageMatch) -> None:
        if self._health is None:
            return
        before, self._health = self._health, self._health.used(match)
        changed = (before.strategy, before.state) != (self._health.strategy, self._health.state)
        if changed:
            await asyncio.to_thread(
                write_health, self._database, self._website.id, self._health, self._clock
            )


def advisors_of(settings: Settings) -> tuple[Advisor, ...]:
    """The advisors of the settings, in order; the last one needs no key."""
    kind, _, model = settings.advisor.partition(":")
    if kind == "structure" and not model:
        return (StructureAdvisor(),)
    if kind == "openai" and model:
        model_advisor = ModelAdvisor(settings.advisor_url, settings.advisor_key, model)
        return (model_advisor, StructureAdvisor())
    raise SettingsError(
        f"The setting advisor cannot be {settings.advisor!r}. Set it to structure or openai:MODEL."
    )
