"""Marks in the text of a page, which become a list beside the finished text."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from typing import Final

from fonds.model import NormalizedBody, UncertainText

_OPEN: Final = 0xE800
"""The first of a hundred private characters, which tell the confidence in percent."""
_CLOSE: Final = "\ue8ff"
_MARK: Final = re.compile("[\ue800-\ue8ff]")
_MARKED: Final = re.compile("([\ue800-\ue863])([^\ue8ff]*)\ue8ff")


def uncertain(text: str, confidence: float) -> str:
    """The text between marks, and a space before it outside of them."""
    words = text.lstrip()
    opening = chr(_OPEN + max(0, min(99, int(confidence * 100))))
    return f"{text[: len(text) - len(words)]}{opening}{words}{_CLOSE}"


def without_marks(body: NormalizedBody) -> NormalizedBody:
    """The body without marks, and its list of the uncertain texts between them."""
    marks = [match.start() for match in _MARK.finditer(body.markdown)]
    if not marks:
        return body

    def moved(offset: int) -> int:
        return offset - bisect_left(marks, offset)

    return replace(
        body,
        markdown=_MARK.sub("", body.markdown),
        headings=tuple(
            replace(heading, text=_MARK.sub("", heading.text), offset=moved(heading.offset))
            for heading in body.headings
        ),
        pages=tuple(replace(mark, offset=moved(mark.offset)) for mark in body.pages),
        artifacts=tuple(replace(part, offset=moved(part.offset)) for part in body.artifacts),
        uncertain=tuple(
            UncertainText(
                start=moved(match.start()),
                end=moved(match.end()),
                confidence=(ord(match[1]) - _OPEN) / 100,
            )
            for match in _MARKED.finditer(body.markdown)
            if match[2]
        ),
    )
