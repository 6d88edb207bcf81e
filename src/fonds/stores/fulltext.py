"""Full text over passages: what both databases index, and in which form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sqlalchemy import ColumnElement, Connection, Select

from fonds.stores.batches import PARAMETERS, pieces
from fonds.stores.tables import document_chunk_buffer

# What the indexes rank by, to find passages worth a closer look. BM25's weights multiply the count
# of a word, which makes a count of one reach as far as it does with a k1 of 0.65.
TITLE_WEIGHT: Final = 4.0
HEADINGS_WEIGHT: Final = 0.5
TEXT_WEIGHT: Final = 1.85

SPARE: Final = 4
"""How many times as many are looked at without regard to `eligible`, before it is asked for in the
search itself: nearly every search lets nearly everything pass, and that is far quicker."""

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
    ) -> list[int]:
        """The best passages for any of the terms among the rows of the query `eligible`.

        Best first, as well as the index can tell; never fewer than `limit` if so many are eligible.
        """
        ...

    def frequencies(self, connection: Connection, terms: Sequence[str]) -> dict[str, int]:
        """In how many passages each term stands."""
        ...

    def passages(self, connection: Connection) -> int:
        """How many passages there are, about."""
        ...

    def holding(self, phrases: Sequence[str], excluded: Sequence[str]) -> list[ColumnElement[bool]]:
        """Conditions on `document_chunk_buffer`: all of the phrases, and none of the excluded."""
        ...


def first_passing(
    connection: Connection, rows: Sequence[int], eligible: Select[Any], limit: int
) -> list[int]:
    """The first `limit` of some rows of `document_chunk_buffer` that are eligible."""
    passing: list[int] = []
    for piece in pieces(rows, min(PARAMETERS, limit + limit // 4)):
        among = eligible.where(document_chunk_buffer.c.id.in_(piece))
        found = set(connection.scalars(among))
        passing += [row for row in piece if row in found]
        if len(passing) >= limit:
            break
    return passing[:limit]


def headings_of(title: str, locator: Mapping[str, Any]) -> str:
    """What stands above a passage, less its document's title, which is indexed for itself."""
    headings = [heading for heading in locator["heading_path"] if heading != title]
    return "\n".join([*headings, *locator.get("lead_ins", ())])


def as_seen(text: str) -> str:
    """The text as a reader sees it: no comments, and no soft hyphens, which cut words in two."""
    if "\xad" in text:
        text = text.replace("\xad", "")
    return _COMMENT.sub(" ", text) if "<!--" in text else text


def is_cjk(character: str) -> bool:
    """Whether it is of a script that is written without spaces."""
    return _CJK.match(character) is not None


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
