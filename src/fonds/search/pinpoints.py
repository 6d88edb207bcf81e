"""The place in a text that a pinpoint leads to: subsections, a section of an act, a page; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fonds.chunk.enumeration import read_enumeration
from fonds.chunk.headings import Outline, Sections, read_outline
from fonds.chunk.units import blocks

_LABEL: Final = re.compile(r"\([0-9A-Za-z]{1,7}\)")
_LABELS: Final = re.compile(r"(?:§ (?P<section>[\w.-]+))?(?P<labels>(?:\([0-9A-Za-z]{1,7}\))*)")
_PAGE: Final = re.compile(r"[0-9][0-9,]*")
_LAST_NUMBER: Final = re.compile(r"([0-9]+)\D*\Z")
_NUMBER: Final = re.compile(r"[0-9][\w.-]*")
_UNMARKED: Final = str.maketrans("", "", "*_")


class Place(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int
    reached: str
    """The pinpoint, as far as the text marks it: `(a)(10)` of `(a)(10)(A)`."""


def locate(text: str, body_map: Mapping[str, Any], pinpoint: str) -> Place | None:
    """Where a pinpoint leads, or the nearest place around it; None where nothing marks it."""
    plain = pinpoint.translate(_UNMARKED)
    if plain[:1].isdigit():
        page = _PAGE.match(plain)
        assert page is not None
        return page_place(text, body_map, page[0].replace(",", ""))
    named = _LABELS.match(plain)
    assert named is not None
    labels = _LABEL.findall(named["labels"])
    if not named["section"]:
        return _labelled(text, 0, len(text), labels)
    section = _section(text, body_map, named["section"])
    if section is None or not labels:
        return section
    below = _labelled(text, section.start, section.end, labels)
    return below._replace(reached=f"{section.reached}{below.reached}") if below else section


def page_place(text: str, body_map: Mapping[str, Any], page: str) -> Place | None:
    """The text of a page of the print edition; `140 STAT. 13` is page 13."""
    marks = body_map.get("pages", ())
    for index, (offset, label) in enumerate(marks):
        number = _LAST_NUMBER.search(label)
        if number is not None and number[1] == page:
            end = marks[index + 1][0] if index + 1 < len(marks) else len(text)
            return Place(offset, end, page)
    return None


def _section(text: str, body_map: Mapping[str, Any], wanted: str) -> Place | None:
    """A section by the number in its label: `SEC. 2` for `2`."""
    marks = body_map.get("sections", ())
    for index, (offset, label) in enumerate(marks):
        number = _NUMBER.search(label)
        if number is not None and number[0].rstrip(".") == wanted.rstrip("."):
            end = marks[index + 1][0] if index + 1 < len(marks) else len(text)
            return Place(offset, end, f"§ {wanted}")
    return None


def _labelled(text: str, low: int, high: int, labels: Sequence[str]) -> Place | None:
    """The first paragraphs below all the labels, or else below as many of them as there are."""
    wanted = tuple(labels)
    paragraphs = list(_paragraphs(text, low, high)) if wanted else []
    for depth in range(len(wanted), 0, -1):
        below = (path[:depth] == wanted[:depth] for _, _, path in paragraphs)
        first = next((place for place, is_below in enumerate(below) if is_below), None)
        if first is None:
            continue
        last = first
        while last + 1 < len(paragraphs) and paragraphs[last + 1][2][:depth] == wanted[:depth]:
            last += 1
        return Place(paragraphs[first][0], paragraphs[last][1], "".join(wanted[:depth]))
    return None


def _paragraphs(text: str, low: int, high: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Every paragraph of a stretch with the labels it stands under."""
    outline = read_outline(text)
    for section in Sections(text, outline, {}):
        if section.end > low and section.start < high:
            yield from _enumerated(outline, max(section.start, low), min(section.end, high))


def _enumerated(
    outline: Outline, start: int, end: int
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    parts = list(blocks(outline, start, end))
    enumeration = read_enumeration(outline.lines, parts)
    for block in parts:
        for begin, stop in enumeration.parts(block):
            yield begin, stop, enumeration.path(begin)
