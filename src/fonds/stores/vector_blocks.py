"""Codes of vectors as SQLite keeps them: in blocks of rows that stand together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from hashlib import blake2b
from typing import Final

BLOCK: Final = 256
"""Rows of a block: its number is their number divided by this, their place what remains."""
NONE_HELD: Final = bytes(BLOCK // 8)


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """What is known of some rows, each part as bytes."""

    number: int
    held: bytes
    """A bit for each row that is there."""
    centre: bytes
    """What is taken from each vector before it is coded."""
    scales: bytes
    """How long each coded rest is in truth."""
    codes: bytes
    """By word, those of the high bits first, and row."""

    @property
    def is_empty(self) -> bool:
        """Whether no row is left."""
        return self.held == NONE_HELD

    @property
    def stamp(self) -> int:
        """A hash of the content; equal stamps, equal content."""
        digest = blake2b(b"".join(astuple(self)[1:]), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    def without(self, places: Iterable[int]) -> VectorBlock:
        """The same, but for the rows at some places."""
        return replace(self, held=marked(self.held, places, present=False))


def by_block(rows: Iterable[int]) -> dict[int, list[int]]:
    """The blocks of rows, with their places in them."""
    blocks: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        blocks[row // BLOCK].append(row % BLOCK)
    return blocks


def marked(held: bytes, places: Iterable[int], *, present: bool) -> bytes:
    """A bit for each row that is there, after some have come or gone."""
    marks = bytearray(held)
    for place in places:
        bit = 1 << place % 8
        marks[place // 8] = marks[place // 8] | bit if present else marks[place // 8] & ~bit
    return bytes(marks)
