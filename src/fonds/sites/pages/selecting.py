"""The elements that the selectors of a strategy mean, whatever language they are written in."""

from __future__ import annotations

from typing import Any

from fonds.sites.models import ScrapingStrategy, StrategyType
from fonds.sites.pages import patterns, xpath
from fonds.sites.pages.css import css
from fonds.sites.pages.page import Page


def check(strategy: ScrapingStrategy) -> None:
    """Raise UsageError, saying what is wrong, for a strategy whose expressions cannot be read."""
    for selector in strategy.pdf_link_selectors:
        if strategy.strategy_type is StrategyType.REGEX:
            patterns.pattern(selector)
        else:
            _compile(selector, strategy.strategy_type)
    if strategy.pagination_selector:
        _compile(strategy.pagination_selector, strategy.strategy_type)
    for expression in (strategy.metadata_extraction or {}).values():
        xpath.checked(expression)


def elements(selector: str, page: Page, kind: StrategyType = StrategyType.CSS) -> list[Any]:
    """The elements that a selector means: CSS, or XPath where it is one or is said to be one."""
    if _is_xpath(selector, kind):
        return xpath.select(selector, page.tree)
    return css(selector).select(page.tree)


def _compile(selector: str, kind: StrategyType) -> None:
    if _is_xpath(selector, kind):
        xpath.checked(selector)
    else:
        css(selector)


def _is_xpath(selector: str, kind: StrategyType) -> bool:
    # No CSS selector begins like this, and advisors mix the two.
    return kind is StrategyType.XPATH or selector.lstrip().startswith(("/", "(", "./"))
