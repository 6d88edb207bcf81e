"""The words of a Markdown text, and what only stands between them."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Final, NamedTuple

# Signs that open a line (headings, quotations) are the normalizer's, not the legislator's: an
# edition that nests its notes one level deeper has changed no word.
_LINE_SIGNS: Final = r"^[ \t]*(?:(?:>|\#{1,6}(?=\s|\Z))[ \t]*)+"
# Japanese and Chinese set no spaces, so that each character counts as a word.
_IDEOGRAPHS: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS: Final = rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]+"
_WORD: Final = re.compile(_WORDS)
_TOKEN: Final = re.compile(rf"(?P<signs>{_LINE_SIGNS})|{_WORDS}", re.MULTILINE)
# With the empty lines after it, also those of a quotation.
_PARAGRAPH: Final = re.compile(r"[^\n]*\n(?:[> \t]*\n)*|[^\n]+")
_SOFT_HYPHEN: Final = "\u00ad"

SIGNS: Final = re.compile(_LINE_SIGNS, re.MULTILINE)
"""What a line may open with before its first word."""


class Span(NamedTuple):
    """A stretch of a text."""

    start: int
    stop: int


class Words(NamedTuple):
    """The words of a stretch."""

    keys: list[str]
    """As they are compared: a soft hyphen makes no difference."""
    spans: list[Span]
    """Where they stand."""


def essence(text: str) -> str:
    """The words alone: equal for two texts that differ in nothing worth showing."""
    words = " ".join(_WORD.findall(SIGNS.sub("", text)))
    return " ".join(words.replace(_SOFT_HYPHEN, "").split()) if _SOFT_HYPHEN in words else words


def fragment_essence(text: str, *, opens_line: bool) -> str:
    """The essence of a text that may begin within a line, where `>` and `#` are words."""
    return essence(text) if opens_line else essence(f". {text}")[2:]


def ends_at_line_start(text: str, *, opens_line: bool) -> bool:
    """Whether no word stands between the last line break and the end of the text."""
    _, broken, last = text.rpartition("\n")
    is_blank = not last.strip(" \t") or SIGNS.fullmatch(last) is not None
    return is_blank and (opens_line or bool(broken))


def words_of(text: str, within: Span) -> Words:
    """The words of a stretch that begins with a line or a word."""
    found = Words([], [])
    # Not up to its end: a sign before a word that stands right behind it is one no longer.
    for match in takewhile(lambda m: m.start() < within.stop, _TOKEN.finditer(text, within.start)):
        key = "" if match.lastgroup else match[0].replace(_SOFT_HYPHEN, "")
        if key:
            found.keys.append(key)
            found.spans.append(Span(*match.span()))
    return found


def paragraphs_of(text: str) -> list[Span]:
    """The lines of a text, each with the empty ones after it."""
    return [Span(*match.span()) for match in _PARAGRAPH.finditer(text)]


def separators_of(text: str) -> tuple[str, str]:
    """What stands before the first word and after the last; all of it where there is none."""
    first = next((token for token in _TOKEN.finditer(text) if not token.lastgroup), None)
    if first is None:
        return text, text
    end = len(text.rstrip())
    while signs := SIGNS.fullmatch(text, text.rfind("\n", 0, end) + 1, end):
        end = len(text[: signs.start()].rstrip())
    return text[: first.start()], text[end:]


def end_of_first(text: str, count: int) -> int:
    """Where so many first words end."""
    end = 0
    for number, token in enumerate(_TOKEN.finditer(text)):
        if number == count:
            break
        end = token.end()
    return end


def start_of_last(text: str, count: int) -> int:
    """Where so many last words begin; fewer if they are very long."""
    last = list(_TOKEN.finditer(text, max(0, len(text) - 200 * count)))[-count:]
    return last[0].start() if last else len(text)
