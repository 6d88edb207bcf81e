"""The headings of a Markdown text, their visible text, and the spans between them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Final, NamedTuple

_MARKUP: Final = re.compile(r"[\\`*_~\[&]")
_TOKEN: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<entity>&#?\w{1,31};)"
    r"|(?P<run>\*+|_+|~~)"
    r"|(?P<ticks>`+)"
)
_LINK: Final = re.compile(r"(?<!\\)!?\[([^\[\]]*)\]\([^()\s]*(?: +\"[^\"]*\")?\)")
# A heading that long is a paragraph marked by mistake; its markup is left as it is.
_MAX_HEADING_LENGTH: Final = 4000


class _Opener(NamedTuple):
    chunk: int
    width: int


def text_only(markdown: str) -> str:
    """A line of Markdown without emphasis, code marks, link targets, escapes and entities."""
    if len(markdown) > _MAX_HEADING_LENGTH or not _MARKUP.search(markdown):
        return markdown
    return _HeadingReader(_LINK.sub(r"\1", markdown)).read()


class _HeadingReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[str] = []
        self.openers: dict[str, list[_Opener]] = defaultdict(list)

    def read(self) -> str:
        position = 0
        while token := _TOKEN.search(self.text, position):
            self.parts.append(self.text[position : token.start()])
            position = self._take(token)
        self.parts.append(self.text[position:])
        return "".join(self.parts)

    def _take(self, token: re.Match[str]) -> int:
        if token["ticks"]:
            return self._take_code(token)
        if token["run"]:
            self._take_run(token)
        else:
            self.parts.append(token["escaped"] or unescape(token["entity"]))
        return token.end()

    def _take_code(self, token: re.Match[str]) -> int:
        ticks = token["ticks"]
        closing = self.text.find(ticks, token.end())
        if closing < 0:
            self.parts.append(ticks)
            return token.end()
        self.parts.append(self.text[token.end() : closing].strip())
        return closing + len(ticks)

    def _take_run(self, token: re.Match[str]) -> None:
        mark, width = token["run"][0], len(token["run"])
        opens, closes = self._flanks(token)
        openers = self.openers[mark]
        while closes and width and openers:
            opener = openers.pop()
            used = min(width, opener.width)
            width -= used
            left = opener.width - used
            self.parts[opener.chunk] = mark * left
            if left:
                openers.append(_Opener(opener.chunk, left))
        self.parts.append(mark * width)
        if opens and width:
            openers.append(_Opener(len(self.parts) - 1, width))

    def _flanks(self, token: re.Match[str]) -> tuple[bool, bool]:
        before = self.text[token.start() - 1 : token.start()]
        after = self.text[token.end() : token.end() + 1]
        opens, closes = bool(after.strip()), bool(before.strip())
        if token["run"][0] == "_":
            # Identifiers such as body_raw_path keep their underscores.
            opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
        return opens, closes


Span = tuple[int, int]

# Begins with a literal newline and one look at the next character: the regex engine then skips
# from line to line without trying every position.
_CANDIDATE: Final = re.compile(
    r"\n {0,3}(?=[#`~=-])(?:"
    r"(?P<hashes>#{1,6})(?=[ \t\n]|\Z)"
    r"|(?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})"
    r"|(?P<underline>=+|-+)[ \t]*(?=\n|\Z))"
)
_NO_PARAGRAPH: Final = re.compile(r" {4}|\s*\t| {0,3}(?:[>|<]|[-+*](?:\s|$)|\d{1,9}[.)]\s)")
_ONLY_RULE: Final = re.compile(r"[-*_\s]*")


class HeadingLine(NamedTuple):
    """A heading and the characters it takes up."""

    level: int
    start: int
    """The start of its line."""
    end: int
    """The start of the line after it."""
    text_start: int
    text_end: int
    offset: int
    """Of the first `#`, or of the text above an underline."""


@dataclass(frozen=True, slots=True)
class HeadingOutline:
    """The positions of headings and fenced blocks in a Markdown text."""

    lines: str
    """The text with every line ending turned into `\\n`, offsets unchanged."""
    headings: list[HeadingLine] = field(default_factory=list)
    fences: list[Span] = field(default_factory=list)


class HeadingSection(NamedTuple):
    """Text below one heading up to the next, never blank, with the headings above it."""

    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    label: str | None = None


def read_outline(markdown: str) -> HeadingOutline:
    """Find headings and fenced blocks in one pass, by the rules of CommonMark.

    An underlined (setext) heading counts if its text is a single line: plain-text sources draw
    rules below whole paragraphs, which must not vanish into a heading.
    """
    # A blank for the carriage return of a pair keeps every offset where it was.
    lines = markdown
    if "\r" in markdown:
        lines = markdown.replace("\r\n", " \n").replace("\r", "\n")
    outline = HeadingOutline(lines)
    _scan(outline)
    return outline


def _scan(outline: HeadingOutline) -> None:
    # The newline put in front lets the first line be found like any other: every position in
    # `text` is one more than in the document.
    text = f"\n{outline.lines}"
    position = taken = 0
    while match := _CANDIDATE.search(text, position):
        if match.lastgroup == "hashes":
            line = _hashed(text, match)
        elif match.lastgroup == "fence":
            position = taken = _fence_end(text, match)
            outline.fences.append((match.start(), taken))
            continue
        elif (underlined := _underlined(text, match, taken)) is None:
            position = match.end()
            continue
        else:
            line = underlined
        outline.headings.append(line)
        position = taken = line.end


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _hashed(text: str, match: re.Match[str]) -> HeadingLine:
    hashes_start, hashes_end = match.span("hashes")
    end = _line_end(text, hashes_end)
    content = text[hashes_end:end].rstrip()
    if content.endswith("#"):
        unclosed = content.rstrip("#")
        if not unclosed or unclosed[-1].isspace():
            content = unclosed.rstrip()
    text_end = hashes_end + len(content)
    text_start = text_end - len(content.lstrip())
    return HeadingLine(
        level=hashes_end - hashes_start,
        start=match.start(),
        end=min(end, len(text) - 1),
        text_start=text_start - 1,
        text_end=text_end - 1,
        offset=hashes_start - 1,
    )


def _fence_end(text: str, match: re.Match[str]) -> int:
    fence = match["fence"]
    closing = re.compile(rf"\n {{0,3}}{re.escape(fence)}{re.escape(fence[0])}*[ \t]*(?=\n|\Z)")
    closed = closing.search(text, _line_end(text, match.end()))
    return min(closed.end(), len(text) - 1) if closed else len(text) - 1


def _underlined(text: str, match: re.Match[str], taken: int) -> HeadingLine | None:
    above = text.rfind("\n", taken, match.start())
    if above < 0:
        return None
    content = text[above + 1 : match.start()]
    if not content.strip() or _NO_PARAGRAPH.match(content) or _ONLY_RULE.fullmatch(content):
        return None
    if above > taken and text[text.rfind("\n", taken, above) + 1 : above].strip():
        return None
    text_start = match.start() - len(content.lstrip())
    return HeadingLine(
        level=1 if match["underline"][0] == "=" else 2,
        start=above,
        end=min(match.end(), len(text) - 1),
        text_start=text_start - 1,
        text_end=text_start + len(content.strip()) - 1,
        offset=text_start - 1,
    )


def _line_text(markdown: str, line: HeadingLine) -> str:
    return text_only(markdown[line.text_start : line.text_end])


@dataclass(slots=True)
class _OpenHeading:
    line: HeadingLine
    heading_path: tuple[str, ...]
    label: str | None
    yielded_before: int


class Sections:
    """The sections of a Markdown text in order.

    Iterating gives every span between headings that is not blank, and the text of each heading
    that is not above any of them.
    """

    def __init__(
        self, markdown: str, outline: HeadingOutline, labels: Mapping[int, str | None] | None = None
    ) -> None:
        self._markdown = markdown
        self._outline = outline
        self._labels = labels or {}
        self._open: list[_OpenHeading] = []
        self._yielded = 0

    def __iter__(self) -> Iterator[HeadingSection]:
        """The sections, each once."""
        headings = self._outline.headings
        start, *ends = *(line.start for line in headings), len(self._markdown)
        yield from self._text(0, start)
        for line, end in zip(headings, ends, strict=True):
            yield from self._close(line.level)
            self._enter(line)
            yield from self._text(line.end, end)
        yield from self._close(0)

    def _enter(self, line: HeadingLine) -> None:
        text = _line_text(self._markdown, line)
        path: tuple[str, ...] = ()
        label = self._labels.get(line.offset)
        if self._open:
            path = self._open[-1].heading_path
            label = label or self._open[-1].label
        if text:
            path = (*path, text)
        self._open.append(_OpenHeading(line, path, label, self._yielded))

    def _close(self, level: int) -> list[HeadingSection]:
        sections: list[HeadingSection] = []
        while self._open and self._open[-1].line.level >= level:
            if self._open[-1].yielded_before == self._yielded:
                line = self._open[-1].line
                sections += self._text(line.text_start, line.text_end)
            self._open.pop()
        return sections

    def _text(self, start: int, end: int) -> list[HeadingSection]:
        stripped = self._markdown[start:end].lstrip()
        if not stripped:
            return []
        start = end - len(stripped)
        end = start + len(stripped.rstrip())
        self._yielded += 1
        if not self._open:
            return [HeadingSection(start, end)]
        return [HeadingSection(start, end, self._open[-1].heading_path, self._open[-1].label)]
