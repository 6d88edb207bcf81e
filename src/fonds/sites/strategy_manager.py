"""The strategy of one website: proposed by an advisor, tested, used, scored, and replaced."""

from __future__ import annotations

import asyncio
from typing import Final

from fonds.errors import EngineError, FondsError, SettingsError
from fonds.seams import Clock
from fonds.settings import Settings
from fonds.sites.llm_advisor import ModelAdvisor
from fonds.sites.models import ScrapingStrategy, StrategyState, WebsiteConfiguration
from fonds.sites.page_reading import UnparsedPage, typed
from fonds.sites.strategy import (
    MIN_CONFIDENCE,
    Advisor,
    PageMatch,
    StrategyHealth,
    combined,
    match_fields,
    validated_fields,
)
from fonds.sites.structure_advisor import StructureAdvisor
from fonds.sites.website import read_health, write_health
from fonds.stores.database import Database

MAX_PROPOSALS: Final = 20
"""Proposals that advisors make in one crawl of a website."""
MIN_RELATIVE_SCORE: Final = 0.5
"""The part of a strategy's best score below which advisors are consulted on a page."""
MAX_SLOW_PAGES: Final = 3
"""Pages that a strategy may make unreadable before another is looked for."""


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
        self._slow_pages = 0
        self._lock = asyncio.Lock()
        self.advisor = "an earlier crawl" if self._health else ""
        """The name of the advisor that proposed the strategy in use."""

    @property
    def strategy(self) -> ScrapingStrategy | None:
        """The strategy in use."""
        return self._health.strategy if self._health else None

    @property
    def likely_list_pages(self) -> int:
        """The length of a list that the strategy expects; lists that bring PDFs may be longer."""
        limit = self.strategy.max_pages if self.strategy else None
        return limit or ScrapingStrategy.model_fields["max_pages"].default

    async def match(self, page: UnparsedPage, trail: tuple[str, ...]) -> PageMatch:
        """The matches on a page of the strategy in use or a better one."""
        strategy = self.strategy
        match = await self._match_current(page, trail)  # several pages at a time
        async with self._lock:
            if self.strategy is not strategy:
                match = await self._match_current(page, trail)
            if match is None or self._is_poor(match):
                match = await self._match_proposed(page, trail, match)
            await self._record(match)
        return match

    async def _match_current(self, page: UnparsedPage, trail: tuple[str, ...]) -> PageMatch | None:
        strategy = self.strategy
        if strategy is None:
            return None
        try:
            return await _match(page, strategy, trail)
        except EngineError:
            # By the structure alone, unless the cause is the page, which is an error again.
            match = await self._match_structure(page, trail)
        self._slow_pages += 1
        if self._slow_pages == MAX_SLOW_PAGES and self.strategy is strategy:
            self._health = None
        return match

    async def _match_structure(self, page: UnparsedPage, trail: tuple[str, ...]) -> PageMatch:
        return await _match(page, await StructureAdvisor().advise(self._website, page), trail)

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
        self, page: UnparsedPage, trail: tuple[str, ...], previous: PageMatch | None
    ) -> PageMatch:
        """The matches of the first strategy that advisors propose and that is better."""
        for advisor in self._advisors if self._proposals < MAX_PROPOSALS else ():
            self._proposals += 1
            try:
                proposed = await advisor.advise(self._website, page)
                fields = await page.read(validated_fields, self._merged(proposed), trail)
            except FondsError:  # the next advisor may succeed
                continue
            if fields["health"] is None:
                continue
            health = typed(StrategyHealth, fields["health"])
            match = typed(PageMatch, fields["match"])
            is_better = previous is None or match.score > previous.score
            if is_better or (self._is_unsure and previous and match.score == previous.score):
                self._health, self.advisor = health, advisor.name
                return match
        return previous or await self._match_structure(page, trail)

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


async def _match(
    page: UnparsedPage, strategy: ScrapingStrategy, trail: tuple[str, ...]
) -> PageMatch:
    return typed(PageMatch, await page.read(match_fields, strategy, trail))


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
