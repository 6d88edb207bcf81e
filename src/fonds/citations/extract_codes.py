"""Citations of codes: `42 U.S.C. 1983`, `parts 60 and 61 of title 40, …`, codes of two states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Final

from fonds.citations import forms
from fonds.citations.extract_found import Found, found_at
from fonds.citations.extract_lists import Shape, always, ascends, cited, never, read_list
from fonds.citations.patterns import (
    ANOTHER_TITLE,
    APPENDIX,
    CFR_PART,
    CFR_SECTION,
    CHAPTER,
    COMPILATION,
    CONNECTICUT_SECTION,
    DC_SECTION,
    ITEM,
    PART_SIGN,
    SIGN,
    USC_SECTION,
)

LAST_USC_TITLE: Final = 54
LAST_CFR_TITLE: Final = 50
REVENUE_TITLE: Final = 26
_COMPOUND_PARTS_TITLE: Final = 41
"""The title whose parts are numbered `60-1`."""
_REPEALED_REVENUE_CODES: Final = frozenset({"1939", "1954"})
_PLURALS: Final = re.compile(r"§\s*§|s\b|s\.", re.IGNORECASE)

_CONNECTICUT: Final = Shape(
    kind="conn_gen_stat", item=CONNECTICUT_SECTION, form=forms.connecticut_form, follows=always
)
_DC: Final = Shape(kind="dc_code", item=DC_SECTION, form=forms.dc_form, follows=always)


@lru_cache(maxsize=256)
def _usc(title: int) -> Shape:
    form = partial(forms.usc_form, title)
    return Shape(kind="usc", item=USC_SECTION, form=form, follows=ascends, has_ranges=True)


@lru_cache(maxsize=256)
def _usc_appendix(title: int) -> Shape:
    form = partial(forms.usc_appendix_form, title)
    return Shape(kind="usc", item=USC_SECTION, form=form, follows=ascends, has_ranges=True)


@lru_cache(maxsize=256)
def _usc_chapters(title: int) -> Shape:
    form = partial(forms.usc_chapter_form, title)
    return Shape(kind="usc", item=CFR_PART, form=form, follows=never)


@lru_cache(maxsize=256)
def _cfr(title: int) -> Shape:
    form = partial(forms.cfr_form, title)
    return Shape(kind="cfr", item=CFR_SECTION, form=form, follows=always)


@lru_cache(maxsize=256)
def _cfr_parts(title: int) -> Shape:
    form = partial(forms.cfr_part_form, title)
    compound = title == _COMPOUND_PARTS_TITLE
    return Shape(kind="cfr", item=CFR_PART, form=form, follows=never, has_ranges=not compound)


def read_usc(text: str, start: int, position: int, title: int) -> Iterator[Found]:
    """What follows `42 U.S.C.`."""
    if not 1 <= title <= LAST_USC_TITLE:
        return
    sections = list(_read_signed(text, start, position, _usc(title)))
    if sections:
        yield from sections
    elif chapter := CHAPTER.match(text, position):
        target = forms.usc_chapter_form(title, chapter["section"])
        yield found_at(text, start, chapter.end(), kind="usc", target=target)
    elif appendix := APPENDIX.match(text, position):
        yield from _read_appendix(text, start, appendix.end(), title)


def read_cfr(text: str, start: int, position: int, title: int) -> Iterator[Found]:
    """What follows `40 CFR`."""
    if not 1 <= title <= LAST_CFR_TITLE:
        return
    sections = list(_read_signed(text, start, position, _cfr(title)))
    if sections:
        yield from sections
    elif part := PART_SIGN.match(text, position):
        plural, shape = _is_plural(part["sign"]), _cfr_parts(title)
        first = shape.item.match(text, part.end())
        if first is None:
            # `32 CFR part 2002.14` means the section.
            shape = _cfr(title)
            first = shape.item.match(text, part.end())
        yield from read_list(text, start, first, shape, plural=plural)
    else:
        yield from _read_signed(text, start, position, _cfr_parts(title))


def read_revenue_code(text: str, start: int, position: int) -> Iterator[Found]:
    """What follows `I.R.C.`: its sections are those of title 26."""
    yield from _read_signed(text, start, position, _usc(REVENUE_TITLE))


def read_treasury(text: str, start: int, position: int) -> Iterator[Found]:
    """What follows `Treas. Reg.`: its sections are those of 26 CFR."""
    yield from _read_signed(text, start, position, _cfr(REVENUE_TITLE))


def read_connecticut(text: str, start: int, position: int) -> Iterator[Found]:
    """What follows `Conn. Gen. Stat.`."""
    yield from _read_signed(text, start, position, _CONNECTICUT)


def read_dc(text: str, start: int, position: int) -> Iterator[Found]:
    """What follows `D.C. Code`."""
    yield from _read_signed(text, start, position, _DC)


def _read_appendix(text: str, start: int, position: int, title: int) -> Iterator[Found]:
    sections = list(_read_signed(text, start, position, _usc_appendix(title)))
    if sections:
        yield from sections
    else:
        target = forms.usc_appendix_form(title)
        yield found_at(text, start, position, kind="usc", target=target)


def _read_signed(text: str, start: int, position: int, shape: Shape) -> Iterator[Found]:
    sign = SIGN.match(text, position)
    assert sign is not None
    first = shape.item.match(text, sign.end())
    if first is None:
        return
    if shape.item is CFR_PART and COMPILATION.match(text, first.end()):
        return
    plural = sign["sign"] is not None and _is_plural(sign["sign"])
    yield from read_list(text, start, first, shape, plural=plural)


def _is_plural(sign: str) -> bool:
    return bool(_PLURALS.search(sign))


def read_trailing(text: str, match: re.Match[str]) -> Iterator[Found]:
    """The sections of a list whose title or code stands behind it."""
    shape = _trailing_shape(text, match)
    if shape is None:
        return
    start, (begin, end) = match.start(), match.span("list")
    items = list(ITEM.finditer(text, begin, end))
    plural = _is_plural(match["head"])
    for number, piece in enumerate(items):
        last = number == len(items) - 1
        item = shape.item.match(text, piece.start(), end)
        if item is None:
            continue
        stop = match.end() if last else item.end()
        yield from cited(text, start, item, shape, plural=plural, stop=stop)
        start = items[number + 1].start() if not last else stop


def _trailing_shape(text: str, match: re.Match[str]) -> Shape | None:
    head = match["head"].lower()
    if match["title"] is not None:
        return _titled_shape(text, match, head, int(match["title"]))
    if head.startswith(("part", "chapter")):
        return None
    if match["revenue"]:
        return None if match["year"] in _REPEALED_REVENUE_CODES else _usc(REVENUE_TITLE)
    return _CONNECTICUT if match["connecticut"] else _DC


def _titled_shape(text: str, match: re.Match[str], head: str, title: int) -> Shape | None:
    is_cfr = match["of_cfr"] is not None
    if not 1 <= title <= (LAST_CFR_TITLE if is_cfr else LAST_USC_TITLE):
        return None
    if is_cfr:
        return _cfr_parts(title) if head.startswith("part") else _cfr(title)
    if match["of_usc"] is None and ANOTHER_TITLE.match(text, match.end()):
        return None
    if head.startswith("part"):
        return None
    if head.startswith("chapter"):
        return _usc_chapters(title) if match["of_usc"] else None
    return _usc(title)
