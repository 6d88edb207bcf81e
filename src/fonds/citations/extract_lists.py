"""Lists and ranges of sections: one citation for each number that is printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from fonds.citations.extract_found import Found, Kind, found_at
from fonds.citations.forms import plain_number
from fonds.citations.patterns import ASIDE, BARE_SUBSECTION, CLOSED, NOT_A_SECTION, SEPARATOR

_MOST_ITEMS: Final = 100
_LEADING_DIGITS: Final = re.compile(r"[0-9]+")
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_RANGE: Final = re.compile(
    "([0-9]+[A-Za-z]{0,5})[-\u2010-\u2015\u2212]([0-9]+[A-Za-z]{0,5}(?:-[0-9]+[a-z]?)?)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What the items of one code look like, and what they are called."""

    kind: Kind
    item: re.Pattern[str]
    form: Callable[[str], str]
    follows: Callable[[str, str, bool], bool]
    """Whether the second number may follow the first in a list that is not marked as one; the
    third argument says that no word stands behind it."""
    has_ranges: bool = False
    """Whether a dash may also stand between two numbers: `552-559`."""


def read_list(
    text: str, start: int, first: re.Match[str] | None, shape: Shape, *, plural: bool
) -> Iterator[Found]:
    """The citation whose number is `first`, and those that follow in its list."""
    item = first
    for _ in range(_MOST_ITEMS):
        if item is None:
            return
        yield from cited(text, start, item, shape, plural=plural)
        item = _next(text, item, shape, plural=plural)
        start = item.start() if item else start


def _next(text: str, before: re.Match[str], shape: Shape, *, plural: bool) -> re.Match[str] | None:
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
    shape: Shape,
    *,
    plural: bool,
    stop: int | None = None,
) -> Iterator[Found]:
    """The citation from `start` to `stop` with the number `item`; two for the ends of a range."""
    stop = item.end() if stop is None else stop
    ends = _range_ends(item["section"], plural=plural) if shape.has_ranges else None
    if ends is None:
        pinpoint = item["pinpoint"] + item["note"] if item["note"] else item["pinpoint"]
        target = shape.form(item["section"])
        yield found_at(text, start, stop, kind=shape.kind, target=target, pinpoint=pinpoint)
        return
    first, second, width = ends
    middle = item.start("section") + width
    yield found_at(text, start, middle, kind=shape.kind, target=shape.form(first))
    target = shape.form(second)
    yield found_at(
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
        # `1a-5` is a section; two numbers of one digit, one lettered, are no range.
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
    low, high = leading_number(plain_number(before)), leading_number(plain_number(after))
    if high < low or before == after:
        return False
    return len(str(high)) == len(str(low)) or (closed and not _YEAR.fullmatch(after))


def always(_before: str, _after: str, _closed: bool) -> bool:  # noqa: FBT001 — see `ascends`
    """For numbers that nothing else looks like."""
    return True


def never(_before: str, _after: str, _closed: bool) -> bool:  # noqa: FBT001 — see `ascends`
    """For numbers that only a word makes part of a list."""
    return False
