"""Strategies: applied to a page, scored, and marked as failed when they no longer fit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Protocol

from pydantic import ValidationError

from fonds.errors import StoreError, UsageError
from fonds.sites.models import (
    ScrapingStrategy,
    StrategyState,
    StrategyType,
    WebsiteConfiguration,
)
from fonds.sites.page_reading import UnparsedPage
from fonds.sites.pages import selectors as patterns
from fonds.sites.pages.listing import PdfList, distinct, is_pdf_link
from fonds.sites.pages.metadata import LinkMetadata, Metadata
from fonds.sites.pages.page import Link, WebPage, absolute, by_element
from fonds.sites.pages.pagination import further, list_pages
from fonds.sites.pages.selectors import check, elements
from fonds.sites.pages.wording import is_unwanted

SCORED_PAGES: Final = 8
"""The last pages whose scores are stored with a strategy."""
MAX_BAD_PAGES: Final = 3
"""Bad pages in a row after which a strategy has failed."""
MIN_RELATIVE_SCORE: Final = 0.5
"""The part of its best score below which a page is bad."""
MAX_UNLISTED: Final = 2
"""Links that are too few to be a list."""
MIN_CONFIDENCE: Final = 0.3
"""Below this confidence, the structure of the page decides and not the strategy."""
MIN_SCORE: Final = 0.2
"""The score on its sample page that a strategy must reach."""
MAX_SELECTORS: Final = 12
"""Selectors of a strategy that was combined from several."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PdfLink:
    """A PDF that a page lists."""

    url: str
    text: str
    organization: str | None
    period: str | None
    """As `2024-Q1`, `2024-H2`, `2024-05` or `2024-annual`."""
    guesses: tuple[str, ...] = ()
    """Which of `organization` and `period` are guesses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageMatch:
    """The PDFs and further pages that a strategy matches on a page."""

    pdfs: tuple[PdfLink, ...]
    next_pages: tuple[str, ...]
    """The pages on which the list continues."""
    further: tuple[tuple[str, str], ...]
    """Further pages of the site that may have lists, and the texts of their links; best first."""
    score: float
    """0 to 1: how many of the listed PDFs it matched, and how many of their fields it filled."""
    listed: int = 0
    """Links of the page that look like a list of PDFs, whether the strategy matched them or not."""

    @property
    def is_conclusive(self) -> bool:
        """Whether the page says something about the strategy: an index of years does not."""
        return self.listed > 0 or bool(self.pdfs)


class Advisor(Protocol):
    """Proposes a strategy for a page."""

    name: str

    async def advise(self, website: WebsiteConfiguration, page: UnparsedPage) -> ScrapingStrategy:
        """A strategy; its confidence is low where the page lists nothing."""
        ...


def match_page(
    strategy: ScrapingStrategy, page: WebPage, *, trail: tuple[str, ...] = ()
) -> PageMatch:
    """Apply a strategy to a page; UsageError if its selectors are invalid.

    `trail` are the texts of the links that led to the page, outermost first.
    """
    listing = PdfList(page)
    is_sure = strategy.confidence >= MIN_CONFIDENCE
    links = _filtered(_matched(strategy, page), listing, is_sure=is_sure)
    fields = Metadata(listing, trail).read(links, strategy.metadata_extraction or {})
    pdfs = tuple(
        PdfLink(
            url=link.url,
            text=link.text,
            organization=each.organization,
            period=each.period,
            guesses=each.guesses if is_sure else _present(each),
        )
        for link, each in zip(links, fields, strict=True)
    )
    next_pages = _next_pages(strategy, page) or list_pages(listing)
    files = [link.url for link in links]
    return PageMatch(
        pdfs=pdfs,
        next_pages=tuple(next_pages),
        further=tuple(further(listing, exclude=[*next_pages, *files])),
        score=_score(pdfs, listing),
        listed=len({link.url for link in listing.links}),
    )


def _present(fields: LinkMetadata) -> tuple[str, ...]:
    """All fields of a link that have a value."""
    return tuple(name for name in ("organization", "period") if getattr(fields, name))


def match_fields(
    page: WebPage, strategy: ScrapingStrategy, trail: tuple[str, ...]
) -> dict[str, Any]:
    """As `match_page`, for a reader process: the fields of the match."""
    return asdict(match_page(strategy, page, trail=trail))


def _matched(strategy: ScrapingStrategy, page: WebPage) -> list[Link]:
    links = page.links()
    if strategy.strategy_type is StrategyType.REGEX:
        return _by_patterns(strategy, page, links)
    links_by_element = by_element(links)
    matched = [
        link
        for selector in strategy.pdf_link_selectors
        for element in elements(selector, page, strategy.strategy_type)
        for link in _links_of(element, links_by_element)
    ]
    order = {link.url: position for position, link in reversed(list(enumerate(links)))}
    return sorted(distinct(matched), key=lambda link: order[link.url])


def _links_of(element: Any, links_by_element: Mapping[Any, list[Link]]) -> Iterator[Link]:
    """The links of an element; of one that is not a link, the PDFs inside it."""
    own = links_by_element.get(element, [])
    if element.tag in {"a", "area"} and own:
        yield from own
        return
    yield from (link for link in own if is_pdf_link(link))
    for inner in element.iterdescendants():
        yield from (link for link in links_by_element.get(inner, ()) if is_pdf_link(link))


def _by_patterns(strategy: ScrapingStrategy, page: WebPage, links: list[Link]) -> list[Link]:
    by_url: dict[str, Link] = {}
    for link in links:
        by_url.setdefault(link.url, link)
    matched: dict[str, Link] = {}
    for selector in strategy.pdf_link_selectors:
        for _, address in patterns.matches(selector, page.text):
            url = absolute(address.replace("&amp;", "&").replace("\\/", "/"), page.url)
            if url is not None and url not in matched:
                bare = Link(url=url, text="", element=None, kind="script")
                matched[url] = by_url.get(url, bare)
    return list(matched.values())


def _filtered(links: list[Link], listing: PdfList, *, is_sure: bool) -> list[Link]:
    """The links without those next to lists: policies, help, and margins if there is content."""
    listed = {link.url for link in listing.links}
    if not is_sure:
        return [link for link in links if link.url in listed]
    candidates = [link for link in links if not is_unwanted(link.text)]
    if not candidates and len(links) > MAX_UNLISTED:
        candidates = links
    candidates = [link for link in candidates if listing.is_content(link)] or candidates
    # A link that looks like a PDF and that the page's structure separates from its list is not
    # part of it; the strategy meant those that do not look like one.
    in_list = [link for link in candidates if link.url in listed or not is_pdf_link(link)]
    return in_list or candidates


def _next_pages(strategy: ScrapingStrategy, page: WebPage) -> list[str]:
    if not strategy.pagination_selector:
        return []
    kind = strategy.strategy_type
    if kind is StrategyType.REGEX:
        kind = StrategyType.CSS
    links_by_element = by_element(page.links())
    urls: dict[str, None] = {}
    for element in elements(strategy.pagination_selector, page, kind):
        for inner in (element, *element.iterdescendants()):
            links = links_by_element.get(inner, ())
            urls |= dict.fromkeys(link.url for link in links if not is_pdf_link(link))
    return [url for url in urls if url != page.url]


def _score(pdfs: tuple[PdfLink, ...], listing: PdfList) -> float:
    listed = {link.url for link in listing.links}
    if not pdfs:
        return 0.0
    urls = {pdf.url for pdf in pdfs}
    covered = len(urls & listed) / len(listed) if listed else 1.0
    exact = len(urls & listed) / len(urls) if listed else 0.5
    with_name = sum(pdf.organization is not None for pdf in pdfs) / len(pdfs)
    with_date = sum(pdf.period is not None for pdf in pdfs) / len(pdfs)
    return round(covered * (0.5 + 0.5 * exact) * (0.6 + 0.2 * with_name + 0.2 * with_date), 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class StrategyHealth:
    """A strategy, its state, and its scores on the last pages."""

    strategy: ScrapingStrategy
    state: StrategyState = StrategyState.CREATED
    best: float = 0.0
    """The score of its sample page, or a better one since."""
    scores: tuple[float, ...] = field(default=())
    """Of the last pages that list PDFs at all."""

    def used(self, match: PageMatch) -> StrategyHealth:
        """The health after one more page; a page that lists nothing changes nothing."""
        if not match.is_conclusive:
            return self
        after = replace(
            self,
            scores=(*self.scores, match.score)[-SCORED_PAGES:],
            best=max(self.best, match.score),
        )
        if after.decayed:
            return replace(after, state=StrategyState.FAILED)
        active = self.state is not StrategyState.FAILED and match.pdfs
        return replace(after, state=StrategyState.ACTIVE) if active else after

    @property
    def decayed(self) -> bool:
        """Whether the scores of the last pages that list PDFs are much worse than before."""
        last = self.scores[-MAX_BAD_PAGES:]
        return len(last) == MAX_BAD_PAGES and max(last) < MIN_RELATIVE_SCORE * self.best

    def to_json(self) -> str:
        """The form in which the database stores it."""
        fields = {
            "strategy": self.strategy.model_dump(mode="json"),
            "state": self.state,
            "best": self.best,
            "scores": self.scores,
        }
        return json.dumps(fields, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> StrategyHealth:
        """The stored health; StoreError if it cannot be read."""
        try:
            fields = json.loads(text)
            return cls(
                strategy=ScrapingStrategy.model_validate(fields["strategy"]),
                state=StrategyState(fields["state"]),
                best=float(fields["best"]),
                scores=tuple(float(score) for score in fields["scores"]),
            )
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            raise StoreError(f"The stored strategy cannot be read: {error}") from None


def validated(strategy: ScrapingStrategy, page: WebPage) -> StrategyHealth:
    """The health of a strategy after a test on its sample page: validated, or failed.

    A strategy that matches nothing on a page without PDFs has not failed.
    """
    try:
        check(strategy)
        match = match_page(strategy, page)
    except UsageError:
        return StrategyHealth(strategy=strategy, state=StrategyState.FAILED)
    if not match.is_conclusive:
        return StrategyHealth(strategy=strategy)
    good = match.score >= MIN_SCORE
    state = StrategyState.VALIDATED if good else StrategyState.FAILED
    return StrategyHealth(strategy=strategy, state=state, best=match.score, scores=(match.score,))


def validated_fields(
    page: WebPage, strategy: ScrapingStrategy, trail: tuple[str, ...]
) -> dict[str, Any]:
    """As `validated`, for a reader process: the fields of health and match, unless it failed."""
    health = validated(strategy, page)
    if health.state is StrategyState.FAILED:
        return {"health": None, "match": None}
    health_fields = json.loads(health.to_json())
    return {"health": health_fields, "match": match_fields(page, strategy, trail)}


def combined(old: ScrapingStrategy, new: ScrapingStrategy) -> ScrapingStrategy:
    """A strategy with the selectors of both, for sites whose pages are of several kinds."""
    if old.strategy_type is not new.strategy_type:
        return new
    selectors = list(dict.fromkeys([*new.pdf_link_selectors, *old.pdf_link_selectors]))
    return new.model_copy(
        update={
            "pdf_link_selectors": selectors[:MAX_SELECTORS],
            "pagination_selector": new.pagination_selector or old.pagination_selector,
            "metadata_extraction": (old.metadata_extraction or {}) | (new.metadata_extraction or {})
            or None,
        }
    )
