"""Blocks of vector codes, in which SQLite stores the vectors of consecutive rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from hashlib import blake2b
from typing import Final

BLOCK: Final = 256
"""Rows of a block; block number and offset are quotient and remainder of a row number."""
NO_ROWS: Final = bytes(BLOCK // 8)


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """The codes of some rows, each part as bytes."""

    number: int
    present: bytes
    """A bit for each row, set if it has a vector."""
    centre: bytes
    """The mean that is subtracted from each vector before it is coded."""
    scales: bytes
    """The true length of each coded difference."""
    codes: bytes
    """By word and row, words of high bits first."""

    @property
    def is_empty(self) -> bool:
        """True if no row has a vector."""
        return self.present == NO_ROWS

    @property
    def content_hash(self) -> int:
        """A hash of the content, stored in the column `stamp`."""
        digest = blake2b(b"".join(astuple(self)[1:]), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    def without(self, offsets: Iterable[int]) -> VectorBlock:
        """The block without the rows at some offsets."""
        return replace(self, present=marked(self.present, offsets, present=False))


def by_block(rows: Iterable[int]) -> dict[int, list[int]]:
    """The numbers of the blocks of rows, each with their offsets in it."""
    blocks: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        blocks[row // BLOCK].append(row % BLOCK)
    return blocks


def marked(bits: bytes, offsets: Iterable[int], *, present: bool) -> bytes:
    """The bits of `VectorBlock.present`, after some rows were added or removed."""
    marks = bytearray(bits)
    for offset in offsets:
        bit = 1 << offset % 8
        marks[offset // 8] = marks[offset // 8] | bit if present else marks[offset // 8] & ~bit
    return bytes(marks)
