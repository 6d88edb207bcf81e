"""Full text over passages: what both databases index, and in which form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sqlalchemy import Connection

TITLE_WEIGHT: Final = 4.0
HEADINGS_WEIGHT: Final = 2.0
TEXT_WEIGHT: Final = 1.0

# Han, kana and hangul are written without spaces: neither tokenizer finds words in them. Every
# two neighbours become one term, in the index and in the query alike.
_CJK: Final = re.compile(
    "[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexEntry:
    """The words of one passage."""

    row: int
    """`document_chunk_buffer.id`"""
    title: str
    headings: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A passage that holds words of the query; higher scores are better."""

    row: int
    score: float
    """How well the document fits by this passage, its title included."""
    passage_score: float
    """How well the passage fits by itself: a title is the same for all of them."""


class FullText(Protocol):
    """One full-text index over all passages, written in the transaction of the passages."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Make passages findable."""
        ...

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Forget passages."""
        ...

    def allocate(self, connection: Connection, count: int) -> Iterable[int]:
        """Fresh row numbers for passages about to be inserted."""
        ...

    def search(
        self, connection: Connection, terms: Sequence[str], eligible: Any, limit: int
    ) -> list[Match]:
        """The best passages for any of the terms among the rows of the query `eligible`."""
        ...


def as_seen(text: str) -> str:
    """The text as a reader sees it: no comments, and no soft hyphens, which cut words in two."""
    if "\xad" in text:
        text = text.replace("\xad", "")
    return _COMMENT.sub(" ", text) if "<!--" in text else text


def with_bigrams(text: str) -> str:
    """The text with every run of CJK characters spelled as its overlapping pairs."""
    if text.isascii():
        return text
    return _CJK.sub(_pairs, text)


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    if len(characters) == 1:
        return f" {characters} "
    pairs = (characters[i : i + 2] for i in range(len(characters) - 1))
    return f" {' '.join(pairs)} "
