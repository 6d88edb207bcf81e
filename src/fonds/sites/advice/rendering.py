"""A page's tree as a few thousand tokens: enough to see how it lists things, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from fonds.chunk.tokens import count
from fonds.sites.pages.listing import step
from fonds.sites.pages.page import Page, folded

_SKIPPED: Final = frozenset(
    {"style", "svg", "noscript", "head", "path", "br", "hr", "wbr", "template"}
)
_SHOWN: Final = (
    "href",
    "data-href",
    "data-url",
    "onclick",
    "rel",
    "role",
    "aria-label",
    "rowspan",
    "name",
    "src",
)
_DEEPEST: Final = 60


@dataclass(frozen=True, slots=True)
class _Grain:
    """How finely a page is told."""

    samples: int
    """Of siblings that look alike, so many are shown."""
    text: int
    """Characters of a text."""
    attribute: int


_GRAINS: Final = (_Grain(4, 90, 120), _Grain(3, 60, 80), _Grain(2, 40, 60), _Grain(1, 25, 40))


def rendered(page: Page, *, tokens: int) -> str:
    """The page in at most so many tokens: as finely as fits, or its beginning."""
    lines: list[str] = []
    for grain in _GRAINS:
        lines = list(_lines(page.tree, grain))
        if count("\n".join(lines)) <= tokens:
            return "\n".join(lines)
    return _cut(lines, tokens)


def _cut(lines: list[str], tokens: int) -> str:
    end = "… the rest is left out"
    fits, too_many = 0, len(lines)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if count("\n".join([*lines[:middle], end])) <= tokens:
            fits = middle
        else:
            too_many = middle
    return "\n".join([*lines[:fits], end])


def _lines(root: Any, grain: _Grain) -> Iterator[str]:
    """Without recursion: pages are nested as deeply as their writers like."""
    waiting: list[tuple[Any, int] | str] = [(root, 0)]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield here
            continue
        element, depth = here
        yield " " * depth + _told(element, grain)
        if element.tag != "script" and depth < _DEEPEST:
            waiting += reversed(list(_children(element, depth + 1, grain)))


def _children(element: Any, depth: int, grain: _Grain) -> Iterator[tuple[Any, int] | str]:
    met: dict[str, int] = {}
    left_out: dict[str, int] = {}
    for child in element.iterchildren():
        if not isinstance(child.tag, str) or child.tag in _SKIPPED or _is_code(child):
            continue
        kind = step(child)
        met[kind] = met.get(kind, 0) + 1
        if met[kind] <= grain.samples:
            yield child, depth
        else:
            left_out[kind] = left_out.get(kind, 0) + 1
    for kind, number in left_out.items():
        yield f"{' ' * depth}… {number} more like this: {kind[:60]}"


def _is_code(element: Any) -> bool:
    return element.tag == "script" and ".pdf" not in (element.text or "").lower()


def _told(element: Any, grain: _Grain) -> str:
    name = str(element.tag)
    if element.get("id"):
        name += f"#{element.get('id')[:40]}"
    name += "".join(f".{each[:40]}" for each in (element.get("class") or "").split()[:4])
    for attribute in _SHOWN:
        if value := element.get(attribute):
            name += f' [{attribute}="{folded(value)[: grain.attribute]}"]'
    length = grain.text * 5 if element.tag == "script" else grain.text
    text = folded(element.text or "")[:length]
    tail = folded(element.tail or "")[: grain.text]
    return name + (f" {text!r}" if text else "") + (f" … {tail!r}" if tail else "")
