"""Markdown files as they are, with a map of their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fonds.errors import NoTextError
from fonds.model import BodyFormat, Heading, NormalizedBody
from fonds.normalize.encodings import decode, without_controls
from fonds.normalize.html import refuse_other_files
from fonds.normalize.html.walker import section_label
from fonds.normalize.markdown import visible_text

_HASHED: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)[ \t]*(.*)")
_CLOSING: Final = re.compile(r"(?:^|(?<=\s))#+$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*")
# Lines that a rule below them makes no heading: code, quotations, tables, HTML, items, rules.
_NO_PARAGRAPH: Final = re.compile(
    r" {4}|\s*\t| {0,3}(?:[>|<]|[-+*](?:\s|$)|\d{1,9}[.)]\s)|[-*_\s]*$"
)


def headings_of(markdown: str) -> tuple[Heading, ...]:
    """The headings in order, by the rules of CommonMark; an underlined one if it is one line.

    An underlined heading's offset is that of its text.
    """
    return tuple(
        Heading(
            level=level, text=(text := visible_text(heading)), offset=offset, section=_label(text)
        )
        for level, heading, offset in _headings(markdown)
    )


def _label(text: str) -> str | None:
    return section_label(text[:200])


def _headings(markdown: str) -> Iterator[tuple[int, str, int]]:
    fence = ""
    above: list[tuple[int, str]] = []
    """The lines of the paragraph so far."""
    for offset, line in _lines(markdown):
        if fence:
            if _closes(line, fence):
                fence = ""
        elif opened := _FENCE.match(line):
            fence, above = opened[1], []
        elif hashed := _HASHED.fullmatch(line):
            above = []
            heading = _CLOSING.sub("", hashed[2].rstrip())
            yield len(hashed[1]), heading.strip(), offset + hashed.start(1)
        elif len(above) == 1 and (rule := _UNDERLINE.fullmatch(line)) and _can_head(above[0][1]):
            start, text = above.pop()
            level = 1 if rule[1][0] == "=" else 2
            yield level, text.strip(), start + len(text) - len(text.lstrip())
        else:
            above = [*above, (offset, line)][-2:] if line.strip() else []


def _lines(markdown: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start <= len(markdown):
        end = markdown.find("\n", start)
        end = len(markdown) if end < 0 else end
        yield start, markdown[start:end]
        start = end + 1


def _can_head(line: str) -> bool:
    return _NO_PARAGRAPH.match(line) is None


def _closes(line: str, fence: str) -> bool:
    match = re.match(rf" {{0,3}}({re.escape(fence[0])}{{{len(fence)},}})[ \t]*$", line)
    return match is not None


_LINE_END: Final = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """The normalizer `markdown_v1`."""

    name: str = "markdown_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "text"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The same Markdown, HTML in it included; only line ends and invisible signs change."""
        del source_hint
        if not data.strip():
            raise NoTextError("the file is empty")
        refuse_other_files(data, "Markdown")
        decoded = decode(data)
        text, removed = without_controls(_LINE_END.sub("\n", decoded.text))
        if not any(character.isalnum() for character in text):
            raise NoTextError("the file contains no text")
        return NormalizedBody(
            markdown=text,
            headings=headings_of(text),
            warnings=(*decoded.warnings, *removed),
        )
