"""The organisation and period of the report behind a link, from the texts around it.

A text is addressed by an XPath expression that is evaluated from the link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from fonds.errors import UsageError
from fonds.sites.pages.listing import PdfList, classes, distinct, has_class
from fonds.sites.pages.outline import column_of, item_of
from fonds.sites.pages.page import Link
from fonds.sites.pages.selectors import source_of, value
from fonds.sites.pages.urls import file_name
from fonds.sites.pages.wording import (
    bare_name,
    has_year,
    is_generic,
    is_heading_of,
    is_organization_like,
    name_score,
    organization_name,
    period_of,
    without_dates,
)

_MAX_COLUMNS: Final = 15
_MAX_PARTS: Final = 25
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
class FieldExpression:
    """An expression for a text that may describe a link."""

    expression: str
    head: str = ""
    """The heading of the column, or the tag and classes of the part."""

    @property
    def is_specific(self) -> bool:
        """Whether it is the link itself or a heading, and not any text near it."""
        return self.expression == "." or self.expression.startswith("preceding::h")


def candidates(elements: Sequence[Any], links: AbstractSet[Any]) -> Iterator[FieldExpression]:
    """The expressions for some links, the nearest first; `links` are all that the page lists."""
    yield FieldExpression(".")
    yield from _columns(elements)
    yield from _parts(elements[min(len(elements) - 1, 1)], links)
    for expression in _AROUND:
        yield FieldExpression(expression)


def _parts(element: Any, links: AbstractSet[Any]) -> Iterator[FieldExpression]:
    """The parts of the item that contains a link, or of the link if it is the whole item."""
    item = item_of(element, links)
    count = 0
    for part in item.iterdescendants():
        if part is element or not isinstance(part.tag, str) or part.tag in _NO_PARTS:
            continue
        if count >= _MAX_PARTS or element in part.iterdescendants():
            continue
        count += 1
        yield FieldExpression(
            _relative_path(element, item, part), " ".join([part.tag, *classes(part)])
        )


def _columns(elements: Sequence[Any]) -> Iterator[FieldExpression]:
    """The cells of a link's row, counted from either end: cells that span rows shift the others."""
    rows = [row for each in elements if (row := _row(each)) is not None]
    if not rows:
        return
    row = max(rows, key=len)
    table = next(row.iterancestors("table"), None)
    heads = [] if table is None else _heads(table)
    width = min(len(list(row.iterchildren("td", "th"))), _MAX_COLUMNS)
    for number in range(1, width + 1):
        head = heads[number - 1] if len(heads) == width else ""
        yield FieldExpression(f"ancestor-or-self::tr[1]/*[{number}]", head)
    for number in range(width):
        head = heads[-1 - number] if len(heads) == width else ""
        yield FieldExpression(f"ancestor-or-self::tr[1]/*[last()-{number}]", head)


def _row(element: Any) -> Any:
    return element if element.tag == "tr" else next(element.iterancestors("tr"), None)


def _heads(table: Any) -> list[str]:
    for row in table.iter("tr"):
        cells = list(row.iterchildren("td", "th"))
        if len(cells) > 1:
            return [" ".join(cell.text_content().split())[:80] for cell in cells]
    return []


def _relative_path(element: Any, item: Any, part: Any) -> str:
    test = part.tag
    names = classes(part)
    if names:
        test += f"[{has_class(names[0])}]"
    if item is element:
        return f"descendant::{test}"
    number = 1 + sum(1 for each in element.iterancestors(item.tag) if item in each.iterancestors())
    return f"ancestor::{item.tag}[{number}]//{test}"


ORGANIZATION: Final = "organization"
PERIOD: Final = "period"
_SAMPLE: Final = 40
"""Links on which expressions are tested."""
_MIN_SCORE: Final = 0.35

_ORGANIZATION_KEYS: Final = re.compile(
    r".*(?:party|organi[sz]ation|committee|candidate|filer|entity|group|partei|parti|partido|団体|政党).*|name|nom|nombre",
    re.IGNORECASE,
)
_PERIOD_KEYS: Final = re.compile(
    r".*(?:period|year|quarter|jahr|exercice|ejercicio|年).*", re.IGNORECASE
)
_UPLOADED: Final = re.compile(
    r"/(?:uploads?|files?|media|assets|attachments?)/\d{4}/\d{1,2}/", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkMetadata:
    """The organisation and period of one link."""

    organization: str | None
    period: str | None
    guesses: tuple[str, ...] = ()
    """Which of them are from texts that are not of this link alone."""


class Metadata:
    """Reads organisations and periods of the links of one page."""

    def __init__(self, listing: PdfList, trail: tuple[str, ...] = ()) -> None:
        self._listing = listing
        self._trail = trail
        self._title = listing.page.title()
        self._pdfs = {link.element: link.url for link in listing.pdfs if link.element is not None}
        self._values: dict[tuple[str, Any], str] = {}

    def expressions(self, links: Sequence[Link]) -> dict[str, str]:
        """The expressions for organisation and period of some links, if they are clear."""
        chosen = {
            ORGANIZATION: self._best(links, self._as_name),
            PERIOD: self._best(links, self._as_period),
        }
        return {name: expression for name, expression in chosen.items() if expression}

    def _best(
        self, links: Sequence[Link], score: Callable[[FieldExpression, Sequence[Link]], float]
    ) -> str | None:
        sample = [link for link in distinct(links) if link.element is not None][:_SAMPLE]
        if not sample:
            return None
        elements = [link.element for link in sample]
        best, best_score = None, 0.0
        for candidate in candidates(elements, self._listing.others):
            if (candidate_score := score(candidate, sample)) > best_score:
                best, best_score = candidate.expression, candidate_score
        return best if best_score >= _MIN_SCORE else None

    def read(self, links: Sequence[Link], expressions: Mapping[str, str]) -> list[LinkMetadata]:
        """Organisation and period of each link, by expressions or else by the texts around it."""
        names = self._expressed_names(links, expressions.get(ORGANIZATION))
        missing = [link for link, name in zip(links, names, strict=True) if name is None]
        guessed: dict[int, str | None] = {}
        if missing:
            guessed = self._guessed_names(missing)
        return [
            self._metadata(link, name, guessed.get(id(link)), expressions.get(PERIOD))
            for link, name in zip(links, names, strict=True)
        ]

    def _metadata(
        self, link: Link, name: str | None, guess: str | None, expression: str | None
    ) -> LinkMetadata:
        period, is_near = self._period(link, expression)
        guesses = {ORGANIZATION: name is None and guess is not None}
        guesses[PERIOD] = period is not None and not is_near
        return LinkMetadata(
            organization=name or guess,
            period=period,
            guesses=tuple(field for field, is_guess in guesses.items() if is_guess),
        )

    # Organisations ------------------------------------------------------------------------

    def _expressed_name(self, link: Link, expression: str | None) -> str | None:
        if link.element is None:
            return _field(link, _ORGANIZATION_KEYS) or organization_name(link.text)
        return organization_name(self._value(expression, link)) if expression else None

    def _expressed_names(self, links: Sequence[Link], expression: str | None) -> list[str | None]:
        names = [self._expressed_name(link, expression) for link in links]
        if expression and sum(name is not None for name in names) * 2 >= len(names):
            # At the position of names, "Annual Report Party" is one too.
            return [
                name
                or (bare_name(self._value(expression, link)) if link.element is not None else None)
                for link, name in zip(links, names, strict=True)
            ]
        return names

    def _guessed_names(self, links: Sequence[Link]) -> dict[int, str | None]:
        expression = self._best(links, self._as_name)
        above = self._from_above()
        names = self._expressed_names(links, expression)
        return {id(link): name or above for link, name in zip(links, names, strict=True)}

    def _from_above(self) -> str | None:
        """The organisation that a page is about: by its heading, or the links to it."""
        page = self._listing.page
        headings = [
            name
            for each in page.tree.iter("h1")
            if (name := organization_name(each.text_content()))
        ]
        title = organization_name(re.split(r"\s[|–—-]\s", self._title)[0])
        from_trail = [name for text in reversed(self._trail) if (name := organization_name(text))]
        for name in (*headings, *from_trail, *([title] if title else [])):
            if is_organization_like(name):
                return name
        return next((name for name in (*from_trail, *headings) if not is_generic(name)), None)

    def _as_name(self, candidate: FieldExpression, links: Sequence[Link]) -> float:
        texts = [self._value(candidate.expression, link) for link in links]
        names = [name for text in texts if (name := organization_name(text))]
        if not names:
            return 0.0
        distinct_names = set(names)
        mean_score = sum(map(name_score, distinct_names)) / len(distinct_names)
        fill = len(names) / len(links)
        score = fill * mean_score * _variety(len(distinct_names), len(links))
        if is_heading_of(candidate.head, ORGANIZATION):
            score *= 1.5
        elif len(distinct_names) == 1 and not candidate.is_specific and mean_score < 1:
            # The text next to a single link may be anything.
            score *= 0.5
        elif is_heading_of(candidate.head, "other") or is_heading_of(candidate.head, "date"):
            score *= 0.4
        long = sum(len(text) for text in texts) / len(texts)
        return score - min(0.3, max(0.0, long - 60) / 1000)

    # Periods ------------------------------------------------------------------------------

    def _as_period(self, candidate: FieldExpression, links: Sequence[Link]) -> float:
        texts = [self._value(candidate.expression, link) for link in links]
        periods = [period for text in texts if (period := period_of(without_dates(text)))]
        if not periods:
            return 0.0
        fill = len(periods) / len(links)
        fine = sum(not period.endswith("annual") for period in periods) / len(links)
        score = fill + 0.2 * fine
        if is_heading_of(candidate.head, PERIOD):
            score += 0.4
        elif is_heading_of(candidate.head, "date"):
            score *= 0.3
        long = sum(len(text) for text in texts) / len(texts)
        return score - min(0.3, long / 500)

    def _period(self, link: Link, expression: str | None) -> tuple[str | None, bool]:
        """The period of a link, and whether it is from the texts around it."""
        near = [link.text]
        if link.element is None:
            near = [
                _field(link, _PERIOD_KEYS, clean=False) or "",
                link.text,
                " ".join(link.fields.values()),
            ]
            headings: list[str] = []
        else:
            expressed = self._value(expression, link) if expression else ""
            item_text = self._listing.item_text(link)
            if has_year(link.text) or has_year(file_name(link.url)):
                expressed = "" if self._is_of_neighbour(expression, link) else expressed
                item_text = self._without_neighbours(item_text, link)
            near = [expressed, link.text, item_text]
            headings = [
                without_dates(text) for text in self._listing.outline.headings(link.element)
            ]
        close = period_of(*near, *headings)
        if close is not None:
            return close, True
        folder = _UPLOADED.sub(
            "/", link.url.partition("//")[2].partition("/")[2].rpartition("/")[0]
        )
        far = [
            file_name(link.url),
            *reversed(self._trail),
            without_dates(self._title),
        ]
        return period_of(*near, *headings, *far, folder), False

    def _is_of_neighbour(self, expression: str | None, link: Link) -> bool:
        """True if an expression reads an element with the links to other PDFs."""
        source = source_of(expression, link.element) if expression else None
        return source is not None and next(self._neighbours(source, link), None) is not None

    def _without_neighbours(self, text: str, link: Link) -> str:
        """The text of a link's item without the texts of other links in it."""
        item = item_of(link.element, self._listing.others)
        for other in self._neighbours(item, link):
            text = text.replace(" ".join(other.text_content().split()), " ", 1)
        return text

    def _neighbours(self, source: Any, link: Link) -> Iterator[Any]:
        """The elements in another one that link to other PDFs."""
        for element in source.iter():
            if self._pdfs.get(element, link.url) != link.url:
                yield element

    def _value(self, expression: str | None, link: Link) -> str:
        if not expression:
            return ""
        key = (expression, link.element)
        if key not in self._values:
            try:
                column = column_of(link.element) if "$column" in expression else 1
                text = value(expression, link.element, column=column)
            except UsageError:
                text = ""
            self._values[key] = link.text if expression == "." and not text else text
        return self._values[key]


def _field(link: Link, keys: re.Pattern[str], *, clean: bool = True) -> str | None:
    for name, text in link.fields.items():
        if keys.fullmatch(name) and text:
            result = organization_name(text) if clean else text
            if result:
                return result
    return None


def _variety(distinct: int, links: int) -> float:
    if distinct == 1:
        return 0.45 if links <= 2 else 0.3  # noqa: PLR2004 — of two links, both may be one body's
    return 0.5 + 0.5 * min(1.0, distinct / max(2, links / 2))
