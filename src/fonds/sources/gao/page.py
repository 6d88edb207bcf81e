"""What only the page of a product says: its dates, topics, Fast Facts and recommendations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.sources.families.html_pages import by_class, canonical_address, read_page, text_of

PRODUCT: Final = re.compile(r"/products/([A-Za-z0-9][A-Za-z0-9.-]*)/?(?:[?#].*)?$")
_DATE: Final = r"\s*:?\s*([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2}),\s+(\d{4})"
_PUBLISHED: Final = re.compile(rf"(?<!Publicly )Published{_DATE}")
_RELEASED: Final = re.compile(rf"Released{_DATE}")
_TOPICS: Final = ("views-field-field-topic", "views-field-field-subject-term")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recommendation:
    """One line of the table of recommendations."""

    agency: str | None
    recommendation: str
    status: str | None
    comments: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ProductPage:
    """The facts of one product page."""

    product: str
    address: str
    title: str | None
    published: date | None
    publicly_released: date | None
    fast_facts: str | None
    topics: tuple[str, ...]
    recommendations: tuple[Recommendation, ...]


def read_product_page(data: bytes) -> ProductPage:
    """The facts of a product page; any other page is refused."""
    root = read_page(data)
    address = canonical_address(root) or ""
    named = PRODUCT.search(address)
    if named is None:
        raise WrongContentError("an HTML page that is no page of a GAO product")
    heading = next(root.iter("h1"), None)
    info = text_of(next(by_class(root, "block-post-title-info"), None)) or ""
    return ProductPage(
        product=named[1].upper(),
        address=address,
        title=text_of(heading),
        published=_printed_day(_PUBLISHED.search(info)),
        publicly_released=_printed_day(_RELEASED.search(info)),
        fast_facts=text_of(next(by_class(root, "field--name-field-fast-facts-description"), None)),
        topics=tuple(dict.fromkeys(_topics(root))),
        recommendations=tuple(_recommendations(root)),
    )


def _printed_day(found: re.Match[str] | None) -> date | None:
    if found is None:
        return None
    try:
        return datetime.strptime(" ".join(found.groups()), "%b %d %Y").date()  # noqa: DTZ007 — a day
    except ValueError:
        return None


def _topics(root: Any) -> Iterator[str]:
    for name in _TOPICS:
        for field in by_class(root, name):
            for topic in field.iter("a", "span"):
                if (words := text_of(topic)) and not len(topic):
                    yield words


def _recommendations(root: Any) -> Iterator[Recommendation]:
    for section in by_class(root, "js-endpoint-recommendations"):
        for row in section.iter("tr"):
            cells = list(row.iter("td"))
            # A heading row has no such cell; a row that spans the table is a remark.
            if len(cells) > 1 and (recommendation := text_of(cells[1])):
                status, *comments = _status(cells[2:]) or [None]
                yield Recommendation(
                    agency=text_of(cells[0]),
                    recommendation=recommendation,
                    status=status,
                    comments=" ".join(filter(None, comments)) or None,
                )


def _status(cells: list[Any]) -> list[str | None]:
    """The state of a recommendation, then GAO's remarks: blocks of a cell, or the cell itself."""
    blocks = [block for cell in cells for block in (list(cell) or [cell])]
    return [text_of(block) for block in blocks]
