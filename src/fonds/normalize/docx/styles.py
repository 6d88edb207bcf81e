"""What the styles of a Word file say about paragraphs: headings, numbers, emphasis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from fonds.normalize.docx.parts import W

_HEADING: Final = re.compile(r"heading ([1-9])", re.IGNORECASE)
_BODY_TEXT: Final = 9
_DEEPEST: Final = 6
_LONGEST_CHAIN: Final = 20
_OFF: Final = frozenset({"0", "false", "off", "none"})


def value(element: Any, *path: str) -> str | None:
    """The `w:val` of a descendant; each step goes to the first child of that name."""
    for name in path:
        element = element.find(f"{W}{name}") if element is not None else None
    return None if element is None else str(element.get(f"{W}val", ""))


def is_on(properties: Any, name: str) -> bool:
    """Whether a property that is on or off is there and on."""
    said = value(properties, name)
    return said is not None and said.lower() not in _OFF


def number(text: str | None) -> int | None:
    """A whole number of at most six digits."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 6 else None  # noqa: PLR2004 — no list or table of a document comes near a million


@dataclass(frozen=True, slots=True)
class Numbered:
    """To which list a paragraph belongs, and how deep in it."""

    list_id: str
    level: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Style:
    """A style together with those it stands on."""

    heading: int | None
    list_id: str | None
    level: int | None
    emphasis: tuple[str, ...]


class Styles:
    """The styles of one file."""

    def __init__(self, root: Any) -> None:
        self._elements: dict[str, Any] = {}
        for style in () if root is None else root.iterchildren(f"{W}style"):
            self._elements.setdefault(style.get(f"{W}styleId", ""), style)
        self._known: dict[str, _Style] = {}

    def heading_level(self, paragraph: Any) -> int | None:
        """1 to 6 for a heading, by the paragraph's own word or that of its style."""
        own = value(paragraph, "pPr", "outlineLvl")
        if own is not None:
            return _level(own)
        return self._style(value(paragraph, "pPr", "pStyle")).heading

    def numbered(self, paragraph: Any) -> Numbered | None:
        """The list a paragraph belongs to, by its own word or that of its style."""
        own = paragraph.find(f"{W}pPr/{W}numPr")
        style = self._style(value(paragraph, "pPr", "pStyle"))
        list_id, level = value(own, "numId"), number(value(own, "ilvl"))
        if list_id is None:
            list_id = style.list_id
            level = style.level if level is None else level
        # Number 0 takes a paragraph out of the list of its style.
        return None if list_id in {None, "0"} else Numbered(str(list_id), level)

    def list_of(self, style_id: str) -> str | None:
        """The list that a style of lists stands for."""
        return self._style(style_id).list_id

    def emphasis(self, run: Any) -> tuple[str, ...]:
        """Which of `b` and `i` the style of a run switches on."""
        return self._style(value(run, "rPr", "rStyle")).emphasis

    def _style(self, style_id: str | None) -> _Style:
        style_id = style_id or ""
        if style_id not in self._known:
            self._known[style_id] = self._read(style_id)
        return self._known[style_id]

    def _read(self, style_id: str) -> _Style:
        chain = list(self._chain(style_id))
        listed = [one for one in chain if value(one, "pPr", "numPr", "numId") is not None]
        levels = [number(value(one, "pPr", "numPr", "ilvl")) for one in chain]
        runs = [one.find(f"{W}rPr") for one in chain]
        return _Style(
            heading=_heading(chain) if chain else _undefined_heading(style_id),
            list_id=value(listed[0], "pPr", "numPr", "numId") if listed else None,
            level=next((level for level in levels if level is not None), None),
            emphasis=tuple(name for name in ("b", "i") if any(is_on(one, name) for one in runs)),
        )

    def _chain(self, style_id: str) -> Iterator[Any]:
        # Styles of a broken file may stand on themselves.
        for _ in range(_LONGEST_CHAIN):
            style = self._elements.get(style_id)
            if style is None:
                return
            yield style
            style_id = value(style, "basedOn") or ""


def _heading(chain: list[Any]) -> int | None:
    for style in chain:
        name = value(style, "name") or ""
        if found := _HEADING.fullmatch(name):
            return min(int(found[1]), _DEEPEST)
        if name.lower() == "title":
            return 1
        outline = value(style, "pPr", "outlineLvl")
        if outline is not None:
            return _level(outline)
    return None


def _undefined_heading(style_id: str) -> int | None:
    # Files of some programs name styles that they never define.
    found = re.fullmatch(r"Heading([1-9])", style_id)
    return min(int(found[1]), _DEEPEST) if found else None


def _level(outline: str) -> int | None:
    level = number(outline)
    return None if level is None or level >= _BODY_TEXT else min(level + 1, _DEEPEST)
