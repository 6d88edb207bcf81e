"""Citations of codes: `42 U.S.C. 1983`, `parts 60 and 61 of title 40, …`, codes of two states.

Lists and ranges give one citation for each number that is printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from fonds.citations import forms
from fonds.citations.forms import CitationMatch, Kind, match_at, normalized_number
from fonds.citations.patterns import (
    ANOTHER_TITLE,
    APPENDIX,
    ASIDE,
    BARE_SUBSECTION,
    CFR_PART,
    CFR_SECTION,
    CHAPTER,
    CLOSED,
    COMPILATION,
    CONNECTICUT_SECTION,
    DC_SECTION,
    ITEM,
    NOT_A_SECTION,
    PART_SIGN,
    SEPARATOR,
    SIGN,
    USC_SECTION,
)

_MAX_ITEMS: Final = 100
_LEADING_DIGITS: Final = re.compile(r"[0-9]+")
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_RANGE: Final = re.compile(
    "([0-9]+[A-Za-z]{0,5})[-\u2010-\u2015\u2212]([0-9]+[A-Za-z]{0,5}(?:-[0-9]+[a-z]?)?)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeShape:
    """The forms of the items of one code, and the readers of their numbers."""

    kind: Kind
    item: re.Pattern[str]
    form: Callable[[str], str]
    follows: Callable[[str, str, bool], bool]
    """Whether the second number may follow the first in a list that is not marked as one; the
    third argument says that no word follows it."""
    has_ranges: bool = False
    """Whether a dash may also be between two numbers: `552-559`."""


def read_list(
    text: str, start: int, first: re.Match[str] | None, shape: CodeShape, *, plural: bool
) -> Iterator[CitationMatch]:
    """The citation whose number is `first`, and those that follow in its list."""
    item = first
    for _ in range(_MAX_ITEMS):
        if item is None:
            return
        yield from cited(text, start, item, shape, plural=plural)
        item = _next(text, item, shape, plural=plural)
        start = item.start() if item else start


def _next(
    text: str, before: re.Match[str], shape: CodeShape, *, plural: bool
) -> re.Match[str] | None:
    position = before.end()
    if text.startswith(" (", position) and (aside := ASIDE.match(text, position)):
        position = aside.end()
    while joined := SEPARATOR.match(text, position):
        if skipped := BARE_SUBSECTION.match(text, joined.end()):
            position = skipped.end()
            continue
        item = shape.item.match(text, joined.end())
        if item is None or NOT_A_SECTION.match(text, item.end()):
            break
        if shape.kind != "cfr" and (joined["sign"] or "")[:1] in {"p", "P"}:
            break
        marked = plural or joined["sign"] is not None or bool(item["pinpoint"].strip())
        closed = CLOSED.match(text, item.end()) is not None
        follows = ascends if "through" in joined[0] else shape.follows
        if not marked and not follows(before["section"], item["section"], closed):
            break
        return item
    return None


def cited(
    text: str,
    start: int,
    item: re.Match[str],
    shape: CodeShape,
    *,
    plural: bool,
    stop: int | None = None,
) -> Iterator[CitationMatch]:
    """The citation from `start` to `stop` with the number `item`; two for the ends of a range."""
    stop = item.end() if stop is None else stop
    ends = _range_ends(item["section"], plural=plural) if shape.has_ranges else None
    if ends is None:
        pinpoint = item["pinpoint"] + item["note"] if item["note"] else item["pinpoint"]
        target = shape.form(item["section"])
        yield match_at(text, start, stop, kind=shape.kind, target=target, pinpoint=pinpoint)
        return
    first, second, width = ends
    middle = item.start("section") + width
    yield match_at(text, start, middle, kind=shape.kind, target=shape.form(first))
    target = shape.form(second)
    yield match_at(
        text, middle + 1, stop, kind=shape.kind, target=target, pinpoint=item["pinpoint"]
    )


def _range_ends(printed: str, *, plural: bool) -> tuple[str, str, int] | None:
    """First and last of `552-559`, and the first's width; None for a number such as `1320a-7b`."""
    match = _RANGE.fullmatch(printed)
    if match is None:
        return None
    first, last = match[1], match[2]
    low, high = leading_number(first), leading_number(last)
    if high > low or (high == low and last != first):
        # `1a-5` is a section; two numbers of one digit, one lettered, are not a range.
        return None if first != str(low) and high < 10 else (first, last, len(first))  # noqa: PLR2004 — one digit
    if plural and first == str(low) and last == str(high) and len(last) < len(first):
        # `1331-32`
        return first, first[: len(first) - len(last)] + last, len(first)
    return None


def leading_number(section: str) -> int:
    """552 of `552a`."""
    match = _LEADING_DIGITS.match(section)
    return int(match[0]) if match else 0


def ascends(before: str, after: str, closed: bool) -> bool:  # noqa: FBT001 — one of three of its kind
    """Whether a section of a statute may follow another without a word that says so."""
    low, high = leading_number(normalized_number(before)), leading_number(normalized_number(after))
    if high < low or before == after:
        return False
    return len(str(high)) == len(str(low)) or (closed and not _YEAR.fullmatch(after))


def always(_before: str, _after: str, _closed: bool) -> bool:  # noqa: FBT001 — see `ascends`
    """For numbers that nothing else looks like."""
    return True


def never(_before: str, _after: str, _closed: bool) -> bool:  # noqa: FBT001 — see `ascends`
    """For numbers that only a word makes part of a list."""
    return False


LAST_USC_TITLE: Final = 54
LAST_CFR_TITLE: Final = 50
REVENUE_TITLE: Final = 26
_COMPOUND_PARTS_TITLE: Final = 41
"""The title whose parts are numbered `60-1`."""
_REPEALED_REVENUE_CODES: Final = frozenset({"1939", "1954"})
_PLURALS: Final = re.compile(r"§\s*§|s\b|s\.", re.IGNORECASE)

_CONNECTICUT: Final = CodeShape(
    kind="conn_gen_stat", item=CONNECTICUT_SECTION, form=forms.connecticut_form, follows=always
)
_DC: Final = CodeShape(kind="dc_code", item=DC_SECTION, form=forms.dc_form, follows=always)


@lru_cache(maxsize=256)
def _usc(title: int) -> CodeShape:
    form = partial(forms.usc_form, title)
    return CodeShape(kind="usc", item=USC_SECTION, form=form, follows=ascends, has_ranges=True)


@lru_cache(maxsize=256)
def _usc_appendix(title: int) -> CodeShape:
    form = partial(forms.usc_appendix_form, title)
    return CodeShape(kind="usc", item=USC_SECTION, form=form, follows=ascends, has_ranges=True)


@lru_cache(maxsize=256)
def _usc_chapters(title: int) -> CodeShape:
    form = partial(forms.usc_chapter_form, title)
    return CodeShape(kind="usc", item=CFR_PART, form=form, follows=never)


@lru_cache(maxsize=256)
def _cfr(title: int) -> CodeShape:
    form = partial(forms.cfr_form, title)
    return CodeShape(kind="cfr", item=CFR_SECTION, form=form, follows=always)


@lru_cache(maxsize=256)
def _cfr_parts(title: int) -> CodeShape:
    form = partial(forms.cfr_part_form, title)
    compound = title == _COMPOUND_PARTS_TITLE
    return CodeShape(kind="cfr", item=CFR_PART, form=form, follows=never, has_ranges=not compound)


def read_usc(text: str, start: int, position: int, title: int) -> Iterator[CitationMatch]:
    """The sections after `42 U.S.C.`."""
    if not 1 <= title <= LAST_USC_TITLE:
        return
    sections = list(_read_signed(text, start, position, _usc(title)))
    if sections:
        yield from sections
    elif chapter := CHAPTER.match(text, position):
        target = forms.usc_chapter_form(title, chapter["section"])
        yield match_at(text, start, chapter.end(), kind="usc", target=target)
    elif appendix := APPENDIX.match(text, position):
        yield from read_appendix(text, start, appendix.end(), title)


def read_cfr(text: str, start: int, position: int, title: int) -> Iterator[CitationMatch]:
    """The sections after `40 CFR`."""
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


def read_revenue_code(text: str, start: int, position: int) -> Iterator[CitationMatch]:
    """The sections after `I.R.C.`: they are those of title 26."""
    yield from _read_signed(text, start, position, _usc(REVENUE_TITLE))


def read_treasury(text: str, start: int, position: int) -> Iterator[CitationMatch]:
    """The sections after `Treas. Reg.`: they are those of 26 CFR."""
    yield from _read_signed(text, start, position, _cfr(REVENUE_TITLE))


def read_connecticut(text: str, start: int, position: int) -> Iterator[CitationMatch]:
    """The sections after `Conn. Gen. Stat.`."""
    yield from _read_signed(text, start, position, _CONNECTICUT)


def read_dc(text: str, start: int, position: int) -> Iterator[CitationMatch]:
    """The sections after `D.C. Code`."""
    yield from _read_signed(text, start, position, _DC)


def read_appendix(text: str, start: int, position: int, title: int) -> Iterator[CitationMatch]:
    """The sections after `50 U.S.C. App.` or `50 App. U.S.C.`, or the whole appendix."""
    if not 1 <= title <= LAST_USC_TITLE:
        return
    sections = list(_read_signed(text, start, position, _usc_appendix(title)))
    if sections:
        yield from sections
    else:
        target = forms.usc_appendix_form(title)
        yield match_at(text, start, position, kind="usc", target=target)


def _read_signed(text: str, start: int, position: int, shape: CodeShape) -> Iterator[CitationMatch]:
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


def read_trailing(text: str, match: re.Match[str]) -> Iterator[CitationMatch]:
    """The sections of a list that precedes its title or code."""
    shape = _trailing_shape(text, match)
    if shape is None:
        return
    start, (begin, end) = match.start(), match.span("list")
    items = list(ITEM.finditer(text, begin, end))
    plural = _is_plural(match["head"])
    for number, listed in enumerate(items):
        last = number == len(items) - 1
        item = shape.item.match(text, listed.start(), end)
        if item is None:
            continue
        stop = match.end() if last else item.end()
        yield from cited(text, start, item, shape, plural=plural, stop=stop)
        start = items[number + 1].start() if not last else stop


def _trailing_shape(text: str, match: re.Match[str]) -> CodeShape | None:
    head = match["head"].lower()
    if match["title"] is not None:
        return _titled_shape(text, match, head, int(match["title"]))
    if head.startswith(("part", "chapter")):
        return None
    if match["revenue"]:
        return None if match["year"] in _REPEALED_REVENUE_CODES else _usc(REVENUE_TITLE)
    return _CONNECTICUT if match["connecticut"] else _DC


def _titled_shape(text: str, match: re.Match[str], head: str, title: int) -> CodeShape | None:
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
