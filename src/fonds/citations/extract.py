"""Finding citations in text: pure, in one pass for each way in which a citation can begin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Final

from fonds.citations.extract_codes import (
    read_appendix,
    read_cfr,
    read_connecticut,
    read_dc,
    read_revenue_code,
    read_trailing,
    read_treasury,
    read_usc,
)
from fonds.citations.extract_numbers import (
    read_bill,
    read_laws,
    read_orders,
    read_page,
    read_product,
    read_record,
    read_report,
)
from fonds.citations.forms import CitationMatch, Kind, may_be_citation
from fonds.citations.patterns import (
    LARGE_TITLES,
    LED,
    LIST_BEGINS,
    MAX_LIST_LENGTH,
    NAME_CANDIDATES,
    NAME_CITATION,
    NUMBER_CANDIDATES,
    NUMBERED,
    PAGE_MARKS,
    SMALL_LAWS,
    SMALL_ORDERS,
    SMALL_STATUTES,
    TITLE_BEFORE,
    TITLES,
    TRAILING,
    outline,
)

_DATED: Final = re.compile(r"\s*\((?:[A-Z][a-z]{2,8}\.? (?:[0-9]{1,2}, )?)?[0-9]{4}\)\.?\Z")

_NEAR: Final = 80
_OVERLAP: Final = 20
"""The number of characters after a position that `LIST_BEGINS` may read."""
_JOINT: Final = 16
_JOINTS: Final = (",", "and", "or", "&", "to", "through", "-", "\u2013", "\u2014")
"""The characters between two halves of a list."""
_AFTER_THE: Final = frozenset({b"e ", b"e?", b"  ", b"> ", b"? ", b"??"})
_CODES: Final = frozenset({b"nt", b"is", b".H", b"on", b"H "})
"""Before, and in, the outline of the name of a code that a list of sections may belong to."""
_BEFORE_A_TITLE: Final = frozenset({b"f ", b"f?", b", ", b",?", b"  ", b"> ", b"? ", b"??"})

_PRODUCTS: Final[dict[str, Kind]] = {"crs": "crs", "gao": "gao"}
_PAGES: Final[dict[str, Kind]] = {"stat": "stat", "fr": "fr", "case": "case"}
_AT_POSITION: Final = {
    "law": read_laws,
    "connecticut": read_connecticut,
    "dc": read_dc,
    "revenue": read_revenue_code,
    "treasury": read_treasury,
}


def extract(text: str, *, congress: int | None = None) -> list[CitationMatch]:
    """Every citation in a text, in its order, none overlapping another.

    A bill that does not say its Congress is taken to be of `congress`.
    """
    ascii_text = outline(text)
    ends: list[int] = []
    matches = [*_numbered(text, ascii_text), *_by_name(text, ascii_text, congress, ends)]
    matches += _trailing(text, ascii_text, ends)
    matches.sort(key=itemgetter(1), reverse=True)
    matches.sort(key=itemgetter(0))
    return list(_separate(text, matches))


def canonical_form(name: str) -> str | None:
    """The form of a name that is one whole citation, with or without the year; None for others."""
    if not may_be_citation(name):
        return None
    bare = _DATED.sub("", name.strip())
    matches = extract(bare)
    if len(matches) != 1 or matches[0].raw.rstrip(".") != bare.rstrip("."):
        return None
    (whole,) = matches
    # A bill without its Congress, or a pinpoint, does not name a document.
    incomplete = whole.kind == "bill" and not whole.target[0].isdigit()
    return None if whole.pinpoint or incomplete else whole.target


def _numbered(text: str, ascii_text: bytes) -> Iterator[CitationMatch]:
    for candidate in NUMBER_CANDIDATES.finditer(ascii_text):
        match = NUMBERED.match(text, candidate.start())
        if match is None:
            continue
        name = match.lastgroup or ""
        if kind := _PAGES.get(name):
            yield from read_page(text, match, kind)
        elif name == "record":
            yield from read_record(text, match)
        elif name == "appendix_usc":
            yield from read_appendix(text, _start(text, match), match.end(), int(match["volume"]))
        else:
            reader = read_usc if name.endswith("usc") else read_cfr
            yield from reader(text, _start(text, match), match.end(), int(match["volume"]))


def _start(text: str, match: re.Match[str]) -> int:
    """`Title 42, United States Code, section 1983` begins with its word."""
    start = match.start()
    if match["comma"] is None:
        return start
    before = TITLE_BEFORE.search(text, max(0, start - len("Title ")), start)
    return before.start() if before else start


def _by_name(
    text: str, ascii_text: bytes, congress: int | None, ends: list[int]
) -> Iterator[CitationMatch]:
    for start in _name_starts(ascii_text):
        if (
            ascii_text[start - 2 : start] in _AFTER_THE
            and ascii_text[start + 1 : start + 3] in _CODES
        ):
            ends.append(start)
        match = NAME_CITATION.match(text, start)
        if match is None:
            continue
        name = match.lastgroup or ""
        if name == "bill":
            yield from read_bill(text, match, congress)
        elif name == "report":
            yield from read_report(text, match)
        elif name == "order":
            yield from read_orders(text, match)
        elif kind := _PRODUCTS.get(name):
            yield from read_product(text, match, kind)
        else:
            yield from _AT_POSITION[name](text, match.start(), match.end())


def _name_starts(ascii_text: bytes) -> Iterator[int]:
    for match in NAME_CANDIDATES.finditer(ascii_text):
        yield match.start()
    for small in (SMALL_LAWS, SMALL_ORDERS):
        for match in small.finditer(ascii_text):
            yield max(0, match.start() - 1)


def _trailing(text: str, ascii_text: bytes, ends: list[int]) -> Iterator[CitationMatch]:
    for title in TITLES.finditer(ascii_text):
        start = title.start()
        if ascii_text[start - 3 : start - 1] in _BEFORE_A_TITLE:
            ends.append(start)
        if title["list"] and (led := LED.match(text, max(0, start - 1))):
            yield from read_trailing(text, led)
    for pattern in (LARGE_TITLES, SMALL_STATUTES):
        ends.extend(ending.start() for ending in pattern.finditer(ascii_text))
    looked = 0
    for end in sorted(ends):
        whole: re.Match[str] | None = None
        for list_start in _list_starts(text, max(looked, end - MAX_LIST_LENGTH), end):
            match = TRAILING.match(text, list_start)
            if match is None:
                break
            whole = match
            if (
                not text[max(0, list_start - _JOINT) : list_start]
                .rstrip(" \n\u00a0*_")
                .endswith(_JOINTS)
            ):
                break
        if whole is not None:
            yield from read_trailing(text, whole)
        looked = end


def _list_starts(text: str, low: int, end: int) -> Iterator[int]:
    """Nearest first: most of the text before a citation belongs to other sentences."""
    near = max(low, end - _NEAR)
    yield from reversed([match.start() for match in LIST_BEGINS.finditer(text, near, end)])
    if near > low:
        far = LIST_BEGINS.finditer(text, low, near + _OVERLAP)
        yield from reversed([match.start() for match in far if match.start() < near])


def _separate(text: str, matches: Iterable[CitationMatch]) -> Iterator[CitationMatch]:
    marks = PAGE_MARKS.finditer(text)
    mark = next(marks, None)
    end = 0
    for each in matches:
        while mark is not None and mark.end() <= each.start:
            mark = next(marks, None)
        if each.start >= end and (mark is None or each.start < mark.start()):
            yield each
            end = each.end
