"""Finding citations in text: pure, in one pass for each way a citation can begin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from fonds.citations.extract_codes import (
    read_cfr,
    read_connecticut,
    read_dc,
    read_revenue_code,
    read_trailing,
    read_treasury,
    read_usc,
)
from fonds.citations.extract_found import Found, Kind
from fonds.citations.extract_names import (
    read_bill,
    read_laws,
    read_orders,
    read_page,
    read_product,
    read_report,
)
from fonds.citations.patterns import (
    FURNITURE,
    LIST_BEGINS,
    LIST_ENDS,
    LONGEST_LIST,
    NAME_BEGINS,
    NAMED,
    NUMBERED,
    TITLE_BEFORE,
    TRAILING,
)

_LONGEST_NAME: Final = 80
_DATED: Final = re.compile(r"\s*\((?:[A-Z][a-z]{2,8}\.? (?:[0-9]{1,2}, )?)?[0-9]{4}\)\.?\Z")

_PRODUCTS: Final[dict[str, Kind]] = {"crs": "crs", "gao": "gao"}
_PAGES: Final[dict[str, Kind]] = {"stat": "stat", "fr": "fr", "case": "case"}
_AT_POSITION: Final = {
    "law": read_laws,
    "connecticut": read_connecticut,
    "dc": read_dc,
    "revenue": read_revenue_code,
    "treasury": read_treasury,
}


def extract(text: str, *, congress: int | None = None) -> list[Found]:
    """Every citation in a text, in its order, none overlapping another.

    A bill that does not say its Congress is taken to be of `congress`.
    """
    found = [*_numbered(text), *_named(text, congress), *_trailing(text)]
    return list(_apart(text, found))


def canonical_form(name: str) -> str | None:
    """The form of a name that is one whole citation, with or without the year; None for others."""
    if len(name) > _LONGEST_NAME or "://" in name:
        return None
    bare = _DATED.sub("", name.strip())
    found = extract(bare)
    if len(found) != 1 or found[0].raw.rstrip(".") != bare.rstrip("."):
        return None
    (whole,) = found
    # A bill without its Congress, or a place within something, is no document's name.
    incomplete = whole.kind == "bill" and not whole.target[0].isdigit()
    return None if whole.pinpoint or incomplete else whole.target


def _numbered(text: str) -> Iterator[Found]:
    for match in NUMBERED.finditer(text):
        name = match.lastgroup or ""
        if kind := _PAGES.get(name):
            yield from read_page(text, match, kind)
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


def _named(text: str, congress: int | None) -> Iterator[Found]:
    for match in _names(text):
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


def _names(text: str) -> Iterator[re.Match[str]]:
    for begins, offset in NAME_BEGINS:
        for place in begins.finditer(text):
            if match := NAMED.match(text, max(0, place.start() - offset)):
                yield match


def _trailing(text: str) -> Iterator[Found]:
    endings = sorted(match.start() for ending in LIST_ENDS for match in ending.finditer(text))
    looked = 0
    for ending in endings:
        whole: re.Match[str] | None = None
        places = LIST_BEGINS.finditer(text, max(looked, ending - LONGEST_LIST), ending)
        # Nearest first: most of what stands before belongs to other sentences.
        for place in reversed(list(places)):
            match = TRAILING.match(text, place.start())
            if match is None:
                break
            whole = match
        if whole is not None:
            yield from read_trailing(text, whole)
        looked = ending


def _apart(text: str, found: Iterable[Found]) -> Iterator[Found]:
    furniture = FURNITURE.finditer(text)
    mark = next(furniture, None)
    end = 0
    for each in sorted(found, key=lambda one: (one.start, -one.end)):
        while mark is not None and mark.end() <= each.start:
            mark = next(furniture, None)
        if each.start >= end and (mark is None or each.start < mark.start()):
            yield each
            end = each.end
