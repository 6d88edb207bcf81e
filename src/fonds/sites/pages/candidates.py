"""Places around a link that may say whose report it is, or of when, as XPath seen from the link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from fonds.sites.pages.listing import classes, has_class
from fonds.sites.pages.outline import item_of

_MOST_COLUMNS: Final = 15
_MOST_PARTS: Final = 25
_NO_PARTS: Final = frozenset({"script", "br", "img", "tr", "td", "input"})

_AROUND: Final = (
    "preceding-sibling::text()[1]",
    "preceding-sibling::*[1]",
    "../preceding-sibling::*[1]",
    "ancestor::dd[1]/preceding-sibling::dt[1]",
    "ancestor::details[1]/summary",
    "ancestor::fieldset[1]/legend",
    "ancestor::table[1]/caption",
    "ancestor::table[1]//tr[1]/*[$column]",
    "ancestor::table[1]//tr[1]",
    "ancestor::tr[1]/preceding-sibling::tr[count(td|th)=1][1]",
    "(ancestor::tr[1]|ancestor::tr[1]/preceding-sibling::tr)[*[@rowspan]][last()]/*[@rowspan][1]",
    "ancestor::li[1]/text()[normalize-space()][1]",
    "ancestor::ul[1]/preceding-sibling::*[1]",
    "ancestor::li[2]/text()[normalize-space()][1]",
    "ancestor::li[2]/*[not(self::ul or self::ol)][1]",
    "ancestor::li[3]/text()[normalize-space()][1]",
    "ancestor::li[3]/*[not(self::ul or self::ol)][1]",
    "preceding::h6[1]",
    "preceding::h5[1]",
    "preceding::h4[1]",
    "preceding::h3[1]",
    "preceding::h2[1]",
    "preceding::*[self::strong or self::b][1]",
    "preceding::button[1]",
    "preceding::h1[1]",
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An expression that may tell something of a link."""

    expression: str
    head: str = ""
    """What heads the column, or names the part."""

    @property
    def is_telling(self) -> bool:
        """Whether it is the link itself or a heading, and not just what happens to be near."""
        return self.expression == "." or self.expression.startswith("preceding::h")


def candidates(elements: Sequence[Any], links: AbstractSet[Any]) -> Iterator[Candidate]:
    """The places around some links, the nearest first; `links` are all that the page lists."""
    yield Candidate(".")
    yield from _columns(elements)
    yield from _parts(elements[min(len(elements) - 1, 1)], links)
    for expression in _AROUND:
        yield Candidate(expression)


def _parts(element: Any, links: AbstractSet[Any]) -> Iterator[Candidate]:
    """The parts of the item that a link stands in, or of the link where it is all of the item."""
    item = item_of(element, links)
    found = 0
    for part in item.iterdescendants():
        if part is element or not isinstance(part.tag, str) or part.tag in _NO_PARTS:
            continue
        if found >= _MOST_PARTS or element in part.iterdescendants():
            continue
        found += 1
        yield Candidate(_seen_from(element, item, part), " ".join([part.tag, *classes(part)]))


def _columns(elements: Sequence[Any]) -> Iterator[Candidate]:
    """The cells of a link's row, counted from either end: cells that span rows shift the others."""
    rows = [row for each in elements if (row := _row(each)) is not None]
    if not rows:
        return
    row = max(rows, key=len)
    table = next(row.iterancestors("table"), None)
    heads = [] if table is None else _heads(table)
    width = min(len(list(row.iterchildren("td", "th"))), _MOST_COLUMNS)
    for number in range(1, width + 1):
        head = heads[number - 1] if len(heads) == width else ""
        yield Candidate(f"ancestor-or-self::tr[1]/*[{number}]", head)
    for number in range(width):
        head = heads[-1 - number] if len(heads) == width else ""
        yield Candidate(f"ancestor-or-self::tr[1]/*[last()-{number}]", head)


def _row(element: Any) -> Any:
    return element if element.tag == "tr" else next(element.iterancestors("tr"), None)


def _heads(table: Any) -> list[str]:
    for row in table.iter("tr"):
        cells = list(row.iterchildren("td", "th"))
        if len(cells) > 1:
            return [" ".join(cell.text_content().split())[:80] for cell in cells]
    return []


def _seen_from(element: Any, item: Any, part: Any) -> str:
    test = part.tag
    names = classes(part)
    if names:
        test += f"[{has_class(names[0])}]"
    if item is element:
        return f"descendant::{test}"
    number = 1 + sum(1 for each in element.iterancestors(item.tag) if item in each.iterancestors())
    return f"ancestor::{item.tag}[{number}]//{test}"
