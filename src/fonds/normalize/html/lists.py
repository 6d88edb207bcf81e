"""The labels of ordered lists, as a browser shows them."""

from __future__ import annotations

import re
from typing import Any, Final

_STYLE: Final = re.compile(r"list-style(?:-type)?\s*:\s*([\w-]+)")
_STYLES: Final = {
    "lower-alpha": "a",
    "lower-latin": "a",
    "upper-alpha": "A",
    "upper-latin": "A",
    "lower-roman": "i",
    "upper-roman": "I",
    "decimal": "1",
    "none": "",
}
_KINDS: Final = frozenset("aAiI1")
_ROMAN: Final = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
)
_ROMAN_LIMIT: Final = 4000
_NEAR: Final = 5


class Numbering:
    """Counts the items of one `ol`."""

    def __init__(self, element: Any) -> None:
        self._kind = _kind(element, "1")
        self._step = -1 if element.get("reversed") is not None else 1
        first = len(element.findall("li")) if self._step < 0 else 1
        start = _number(element.get("start"))
        self._next = first if start is None else start
        self._expected: int | None = None

    def label(self, item: Any) -> tuple[str, bool]:
        """The item's label, and whether a renderer that counts would arrive at it too."""
        value = _number(item.get("value"))
        number = self._next if value is None else value
        self._next = number + self._step
        kind = _kind(item, self._kind)
        counted = kind == "1" and number >= 0 and self._expected in (None, number)
        self._expected = number + 1
        return (f"{_written(number, kind)}." if kind else ""), counted


def own_label(item: Any, label: str) -> bool:
    """Whether the item's text already begins with its label: `(a) …` as item `a.`."""
    bare = re.escape(label.rstrip("."))
    start = _first_text(item)
    return re.match(rf"\(?{bare}[.)]", start, re.IGNORECASE) is not None


def _first_text(item: Any) -> str:
    for _ in range(_NEAR):
        text = (item.text or "").strip()
        if text or not len(item):
            return str(text[:16])
        item = item[0]
    return ""


def _kind(element: Any, default: str) -> str:
    if (kind := element.get("type")) in _KINDS:
        return str(kind)
    style = _STYLE.search(element.get("style") or "")
    return _STYLES.get(style[1], default) if style else default


def _number(value: str | None) -> int | None:
    match = re.match(r"\s*([+-]?\d{1,9})(?!\d)", value or "")
    return int(match[1]) if match else None


def _written(number: int, kind: str) -> str:
    if kind == "1" or number < 1:
        return str(number)
    if kind in "iI":
        written = _roman(number) if number < _ROMAN_LIMIT else str(number)
    else:
        written = _alphabetic(number)
    return written.upper() if kind.isupper() else written


def _alphabetic(number: int) -> str:
    letters = ""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def _roman(number: int) -> str:
    written = ""
    for value, sign in _ROMAN:
        count, number = divmod(number, value)
        written += sign * count
    return written
