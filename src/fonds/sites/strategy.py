"""Using a strategy: what it finds on a page, how well, and when it has had its day."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from pydantic import ValidationError

from fonds.errors import StoreError, UsageError
from fonds.sites.models import (
    ScrapingStrategy,
    StrategyState,
    StrategyType,
    WebsiteConfiguration,
)
from fonds.sites.pages import selectors as patterns
from fonds.sites.pages.listing import PdfList, distinct, is_pdf_link
from fonds.sites.pages.metadata import Metadata
from fonds.sites.pages.page import Link, WebPage, absolute, by_element
from fonds.sites.pages.pagination import further, turns
from fonds.sites.pages.selectors import check, elements
from fonds.sites.pages.wording import is_unwanted

MEMORY: Final = 8
"""Pages over which a strategy is judged."""
ENOUGH: Final = 3
"""Pages that must be bad before a strategy is given up."""
DECAY: Final = 0.5
"""The share of its best score below which it has decayed."""
FEW: Final = 2
"""Links that are too few to be a list."""
UNSURE: Final = 0.3
"""Below this confidence, an advisor is not believed against the page's own structure."""
USABLE: Final = 0.2
"""The score on its sample page that a strategy must reach."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PdfLink:
    """A PDF that a page lists."""

    url: str
    text: str
    organization: str | None
    period: str | None
    """As `2024-Q1`, `2024-H2`, `2024-05` or `2024-annual`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """What a strategy sees on a page."""

    found: tuple[PdfLink, ...]
    next_pages: tuple[str, ...]
    """Where the list goes on."""
    further: tuple[tuple[str, str], ...]
    """Pages of the site worth a visit for more lists, and the texts that lead there; best first."""
    score: float
    """0 to 1: how much of what is listed was found, and how many of its fields were filled."""
    listed: int = 0
    """Links of the page that look like a list of PDFs, whether the strategy found them or not."""

    @property
    def is_telling(self) -> bool:
        """Whether the page says anything about the strategy: an index of years does not."""
        return self.listed > 0 or bool(self.found)


class Advisor(Protocol):
    """Looks at a page and says how its PDFs are found."""

    name: str

    async def advise(self, website: WebsiteConfiguration, page: WebPage) -> ScrapingStrategy:
        """A strategy; its confidence is low where the page lists nothing."""
        ...


def sight(strategy: ScrapingStrategy, page: WebPage, *, trail: tuple[str, ...] = ()) -> Sighting:
    """What a strategy finds on a page; UsageError if it is one that cannot be used at all.

    `trail` holds the texts of the links that led to the page, outermost first.
    """
    listing = PdfList(page)
    links = _kept(_matched(strategy, page), listing, sure=strategy.confidence >= UNSURE)
    metadata = Metadata(listing, trail)
    told = metadata.read(links, _expressions(strategy))
    found = tuple(
        PdfLink(url=link.url, text=link.text, organization=each.organization, period=each.period)
        for link, each in zip(links, told, strict=True)
    )
    ahead = _next_pages(strategy, page)
    on = [] if ahead else turns(listing)
    files = [link.url for link in links]
    more = further(listing, known=[*ahead, *on, *files])
    return Sighting(
        found=found,
        next_pages=tuple(ahead or on),
        further=tuple(more),
        score=_score(found, listing),
        listed=len({link.url for link in listing.links}),
    )


def _expressions(strategy: ScrapingStrategy) -> Mapping[str, str]:
    return strategy.metadata_extraction or {}


def _matched(strategy: ScrapingStrategy, page: WebPage) -> list[Link]:
    links = page.links()
    if strategy.strategy_type is StrategyType.REGEX:
        return _by_patterns(strategy, page, links)
    held = by_element(links)
    matched = [
        link
        for selector in strategy.pdf_link_selectors
        for element in elements(selector, page, strategy.strategy_type)
        for link in _leading(element, held)
    ]
    order = {link.url: place for place, link in reversed(list(enumerate(links)))}
    return sorted(distinct(matched), key=lambda link: order[link.url])


def _leading(element: Any, held: Mapping[Any, list[Link]]) -> Iterator[Link]:
    """The links of an element; of one that is none itself, the PDFs inside it."""
    own = held.get(element, [])
    if element.tag in {"a", "area"} and own:
        yield from own
        return
    yield from (link for link in own if is_pdf_link(link))
    for inner in element.iterdescendants():
        yield from (link for link in held.get(inner, ()) if is_pdf_link(link))


def _by_patterns(strategy: ScrapingStrategy, page: WebPage, links: list[Link]) -> list[Link]:
    known: dict[str, Link] = {}
    for link in links:
        known.setdefault(link.url, link)
    found: dict[str, Link] = {}
    for selector in strategy.pdf_link_selectors:
        for _, address in patterns.matches(selector, page.text):
            url = absolute(address.replace("&amp;", "&").replace("\\/", "/"), page.url)
            if url is not None and url not in found:
                bare = Link(url=url, text="", element=None, kind="script")
                found[url] = known.get(url, bare)
    return list(found.values())


def _kept(links: list[Link], listing: PdfList, *, sure: bool) -> list[Link]:
    """Without what stands beside lists: policies, help, and margins where there is matter too."""
    listed = {link.url for link in listing.links}
    if not sure:
        return [link for link in links if link.url in listed]
    wanted = [link for link in links if not is_unwanted(link.text)]
    if not wanted and len(links) > FEW:
        wanted = links
    chosen = [link for link in wanted if listing.is_matter(link)] or wanted
    # A link that looks like a PDF and that the page's structure sets apart from its list is no
    # part of it; what does not look like one was meant by whoever wrote the strategy.
    kept = [link for link in chosen if link.url in listed or not is_pdf_link(link)]
    return kept or chosen


def _next_pages(strategy: ScrapingStrategy, page: WebPage) -> list[str]:
    if not strategy.pagination_selector:
        return []
    kind = strategy.strategy_type
    if kind is StrategyType.REGEX:
        kind = StrategyType.CSS
    held = by_element(page.links())
    urls: dict[str, None] = {}
    for element in elements(strategy.pagination_selector, page, kind):
        for each in (element, *element.iterdescendants()):
            urls |= dict.fromkeys(link.url for link in held.get(each, ()) if not is_pdf_link(link))
    return [url for url in urls if url != page.url]


def _score(found: tuple[PdfLink, ...], listing: PdfList) -> float:
    listed = {link.url for link in listing.links}
    if not found:
        return 0.0
    urls = {each.url for each in found}
    covered = len(urls & listed) / len(listed) if listed else 1.0
    exact = len(urls & listed) / len(urls) if listed else 0.5
    named = sum(each.organization is not None for each in found) / len(found)
    dated = sum(each.period is not None for each in found) / len(found)
    return round(covered * (0.5 + 0.5 * exact) * (0.6 + 0.2 * named + 0.2 * dated), 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class StrategyHealth:
    """A strategy, how far it has come and how it did on the pages it was last used on."""

    strategy: ScrapingStrategy
    state: StrategyState = StrategyState.CREATED
    best: float = 0.0
    """The score of its sample page, or a better one since."""
    scores: tuple[float, ...] = field(default=())
    """Of the last pages that list PDFs at all."""

    def used(self, sighting: Sighting) -> StrategyHealth:
        """The standing after one more page; pages that list nothing say nothing."""
        if not sighting.is_telling:
            return self
        after = replace(
            self,
            scores=(*self.scores, sighting.score)[-MEMORY:],
            best=max(self.best, sighting.score),
        )
        if after.decayed:
            return replace(after, state=StrategyState.FAILED)
        active = self.state is not StrategyState.FAILED and sighting.found
        return replace(after, state=StrategyState.ACTIVE) if active else after

    @property
    def decayed(self) -> bool:
        """Whether the last pages that list PDFs went much worse than it did before."""
        last = self.scores[-ENOUGH:]
        return len(last) == ENOUGH and max(last) < DECAY * self.best

    def to_json(self) -> str:
        """As the database keeps it."""
        told = {
            "strategy": self.strategy.model_dump(mode="json"),
            "state": self.state,
            "best": self.best,
            "scores": self.scores,
        }
        return json.dumps(told, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> StrategyHealth:
        """As it was; StoreError if it is none."""
        try:
            told = json.loads(text)
            return cls(
                strategy=ScrapingStrategy.model_validate(told["strategy"]),
                state=StrategyState(told["state"]),
                best=float(told["best"]),
                scores=tuple(float(score) for score in told["scores"]),
            )
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            raise StoreError(f"a stored strategy cannot be read: {error}") from None


def validated(strategy: ScrapingStrategy, page: WebPage) -> StrategyHealth:
    """The standing of a strategy after a try on its sample page: Validated, or Failed.

    One that finds nothing on a page without PDFs has not failed: there was nothing to find.
    """
    try:
        check(strategy)
        sighting = sight(strategy, page)
    except UsageError:
        return StrategyHealth(strategy=strategy, state=StrategyState.FAILED)
    if not sighting.is_telling:
        return StrategyHealth(strategy=strategy)
    good = sighting.score >= USABLE
    state = StrategyState.VALIDATED if good else StrategyState.FAILED
    return StrategyHealth(
        strategy=strategy, state=state, best=sighting.score, scores=(sighting.score,)
    )


def combined(old: ScrapingStrategy, new: ScrapingStrategy, *, most: int = 12) -> ScrapingStrategy:
    """One strategy that finds what either finds, for sites whose pages are of several kinds."""
    if old.strategy_type is not new.strategy_type:
        return new
    selectors = list(dict.fromkeys([*new.pdf_link_selectors, *old.pdf_link_selectors]))[:most]
    return new.model_copy(
        update={
            "pdf_link_selectors": selectors,
            "pagination_selector": new.pagination_selector or old.pagination_selector,
            "metadata_extraction": (old.metadata_extraction or {}) | (new.metadata_extraction or {})
            or None,
        }
    )
