"""The advisor that derives a strategy from the structure of a page alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fonds.sites.models import ScrapingStrategy, StrategyType, WebsiteConfiguration
from fonds.sites.page_reading import UnparsedPage, typed
from fonds.sites.pages.css import css
from fonds.sites.pages.listing import Group, PdfList, classes, common_step
from fonds.sites.pages.metadata import Metadata
from fonds.sites.pages.page import Link, WebPage
from fonds.sites.pages.pagination import pagination

_MAX_SELECTORS: Final = 8
_ANY_PDF: Final = 'a[href*=".pdf" i]'
"""For a page that lists nothing itself: other pages of the site may."""
_EMPTY_CONFIDENCE: Final = 0.1
_SINGLE_CONFIDENCE: Final = 0.45


class StructureAdvisor:
    """Finds the links that repeat, and the texts around them, without a request."""

    name = "structure"

    async def advise(self, website: WebsiteConfiguration, page: UnparsedPage) -> ScrapingStrategy:
        """A strategy for a page; its confidence is below 0.3 where the page lists nothing."""
        return typed(ScrapingStrategy, await page.read(proposed_fields, website))


def proposed_fields(page: WebPage, website: WebsiteConfiguration) -> dict[str, Any]:
    """As `propose`, for a reader process: the fields of the strategy."""
    return propose(website, page).model_dump(mode="json")


def propose(website: WebsiteConfiguration, page: WebPage) -> ScrapingStrategy:
    """A strategy for a page that is parsed."""
    listing = PdfList(page)
    selectors = _selectors(listing)
    metadata = Metadata(listing).expressions(listing.links)
    next_page = pagination(listing)
    return ScrapingStrategy(
        website_id=website.id,
        strategy_type=StrategyType.PAGINATION if next_page and selectors else StrategyType.CSS,
        pdf_link_selectors=selectors or [_ANY_PDF],
        pagination_selector=next_page,
        metadata_extraction=metadata or None,
        confidence=_confidence(listing, metadata),
    )


def _confidence(listing: PdfList, metadata: dict[str, str]) -> float:
    links = listing.links
    if not links:
        return _EMPTY_CONFIDENCE
    if len(links) == 1:
        return _SINGLE_CONFIDENCE if listing.has_period(links[0]) else _EMPTY_CONFIDENCE * 2
    main = listing.groups[0]
    fraction = len(main.links) / len(listing.pdfs)
    size = min(1.0, len(main.links) / 6)
    return round(
        0.35 + 0.2 * fraction + 0.15 * size + 0.15 * main.periodic + 0.1 * len(metadata) / 2, 2
    )


def _selectors(listing: PdfList) -> list[str]:
    targets = {link.element for link in listing.links if link.element is not None}
    chosen: list[str] = []
    covered: set[Any] = set()
    for group in listing.groups:
        elements = [link.element for link in group.links if link.element is not None]
        scripts = [link.script for link in group.links if link.element is None]
        if scripts:
            chosen.append(_script_selector(scripts[0]))
        if not elements or covered.issuperset(elements):
            continue
        selector = _selector(group, targets, listing)
        covered.update(css(selector).select(listing.page.tree))
        chosen.append(selector)
    return list(dict.fromkeys(chosen))[:_MAX_SELECTORS]


def _selector(group: Group, targets: set[Any], listing: PdfList) -> str:
    """The shortest path that selects all links of a group and nothing that is not listed."""
    elements = {link.element for link in group.links}
    best, best_strays = _ANY_PDF, len(listing.page.tree)
    for selector in _paths(group.links[0].element, group.links):
        selected = set(css(selector).select(listing.page.tree))
        strays = len(selected - targets)
        if not elements <= selected:
            continue
        if strays == 0:
            return selector
        if strays < best_strays:
            best, best_strays = selector, strays
    return best


def _paths(element: Any, links: Sequence[Link]) -> Iterator[str]:
    """Paths to an element, from short to long, with the common part of the links' addresses."""
    shared = common_step(links) if element.get("href") else None
    narrowing = f'[href*="{shared}" i]' if shared else ""
    path = _simple(element)
    yield (
        f"{_simple(element, all_classes=True)}{narrowing}"
        if classes(element)
        else f"{path}{narrowing}"
    )
    steps: list[str] = []
    for ancestor in element.iterancestors():
        if ancestor.tag in {"html", "body"}:
            break
        steps.insert(0, _simple(ancestor))
        yield f"{' > '.join([*steps, path])}{narrowing}"
        if narrowing:
            yield f"{' > '.join([*steps, path])}"
        anchor = _anchored(ancestor)
        if anchor:
            yield f"{anchor} {path}{narrowing}"
            yield f"{anchor} {' > '.join([*steps[1:], path])}{narrowing}"


def _simple(element: Any, *, all_classes: bool = False) -> str:
    names = [name for name in classes(element) if re.fullmatch(r"[A-Za-z_][\w-]*", name)]
    return ".".join([element.tag, *(names if all_classes else names[:1])])


def _anchored(element: Any) -> str | None:
    name = element.get("id") or ""
    if re.fullmatch(r"[A-Za-z_][A-Za-z_-]*", name):
        return f"#{name}"
    return element.tag if element.tag in {"main", "article"} else None


def _script_selector(script: Any) -> str:
    if script.get("id"):
        return f'script[id="{script.get("id")}"]'
    return f'script[type="{script.get("type")}"]' if script.get("type") else "script:not([src])"
