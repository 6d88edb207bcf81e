"""Vectors at two bits a dimension, laid out so that a processor compares many at a time.

A bit more than the sign of each number: on 200,000 real passages, the best 130 by these codes hold
the true best 10, which takes 2,000 by signs alone. What all vectors of a block have in common is
left out of the codes: all texts of one kind look alike to a model, and only the rest tells them
apart. The query keeps four bits; what is found is compared again in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fonds.stores.vector_blocks import BLOCK, NONE_HELD, VectorBlock, marked

# Where the outer two of four equal steps begin, in root mean squares: best for normal numbers.
_STEP: Final = 0.98
_MIDDLE: Final = 1.5
# A centre of few vectors is drawn towards zero by so many: it says little about those to come.
_DOUBT: Final = 16
_QUERY_TOP: Final = 7
_QUERY_WEIGHTS: Final = (1, 2, 4, -8)

Codes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Slab:
    """Some blocks, ready to be compared with."""

    rows: NDArray[np.int64]
    """The number of each row, ascending."""
    absent: NDArray[np.bool_]
    centres: NDArray[np.float32]
    scales: NDArray[np.float32]
    codes: Codes

    @property
    def size(self) -> int:
        """In bytes."""
        parts = (self.rows, self.absent, self.centres, self.scales, self.codes)
        return sum(part.nbytes for part in parts)


def floats(vectors: Sequence[bytes]) -> NDArray[np.float32]:
    """Vectors as they are stored, as one matrix."""
    return np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)


def cosines(vectors: Sequence[bytes], query: bytes) -> list[float]:
    """How near vectors are to another, all of unit length; the same for equal ones anywhere."""
    if not vectors:
        return []
    products = (floats(vectors) * floats([query])).astype(np.float64)
    # Row by row, and not by a product of matrices: its last digits depend on a row's place.
    sums: list[float] = np.add.reduce(products, axis=1).tolist()
    return sums


def with_vectors(
    block: VectorBlock | None, number: int, places: Sequence[int], vectors: Sequence[bytes]
) -> VectorBlock:
    """A block, new or old, with vectors at some of its places."""
    numbers = floats(vectors)
    held = marked(block.held if block else NONE_HELD, places, present=True)
    if block is None:
        width = _width(numbers.shape[1])
        centre = numbers.sum(axis=0) / np.float32(len(numbers) + _DOUBT)
        scales, codes = np.zeros(BLOCK, "<f4"), np.zeros((2 * width, BLOCK), "<u8")
    else:
        centre = np.frombuffer(block.centre, "<f4")
        scales = np.frombuffer(block.scales, "<f4").copy()
        codes = np.frombuffer(block.codes, "<u8").reshape(-1, BLOCK).copy()
    scales[places], codes[:, places] = _coded(numbers - centre)
    return VectorBlock(number, held, centre.tobytes(), scales.tobytes(), codes.tobytes())


def _coded(rests: NDArray[np.float32]) -> tuple[NDArray[np.float32], Codes]:
    squares = np.sum(rests * rests, axis=1)
    step = _STEP * np.sqrt(squares / rests.shape[1])[:, None]
    high = rests > 0
    low = rests > np.where(high, step, -step)
    along = np.sum(rests * (2.0 * high + low - _MIDDLE), axis=1)
    scales = np.divide(squares, along, out=np.zeros_like(squares), where=along > 0)
    return scales.astype(np.float32), np.hstack([_words(high), _words(low)]).T


def slab_of(blocks: Sequence[VectorBlock]) -> Slab:
    """Blocks in the order of their numbers."""
    first = np.array([block.number for block in blocks], np.int64) * BLOCK
    held = np.frombuffer(b"".join(block.held for block in blocks), np.uint8)
    codes = np.frombuffer(b"".join(block.codes for block in blocks), "<u8")
    codes = codes.reshape(len(blocks), -1, BLOCK).swapaxes(0, 1)
    return Slab(
        rows=(first[:, None] + np.arange(BLOCK)).reshape(-1),
        absent=np.unpackbits(held, bitorder="little") == 0,
        centres=floats([block.centre for block in blocks]),
        scales=floats([block.scales for block in blocks]).reshape(-1),
        codes=codes.reshape(len(codes), -1),
    )


class QueryCodes:
    """A query, ready to be compared with codes."""

    def __init__(self, query: bytes) -> None:
        self._query = floats([query])[0]
        self._step = float(np.abs(self._query).max()) / _QUERY_TOP or 1.0
        steps = np.rint(self._query / self._step).astype(np.int8)
        self._planes = [_words(((steps >> bit) & 1).astype(bool)[None])[0] for bit in range(4)]
        self._middle = _MIDDLE * int(steps.sum(dtype=np.int32))

    def scores(self, slab: Slab) -> NDArray[np.float32]:
        """About how near each row is; less than any for rows that are not there."""
        width = len(self._planes[0])
        total = np.full(len(slab.rows), -self._middle, np.float32)
        for words, value in ((slab.codes[:width], 2.0), (slab.codes[width:], 1.0)):
            for plane, weight in zip(self._planes, _QUERY_WEIGHTS, strict=True):
                total += np.float32(value * weight) * _common(words, plane)
        total *= np.float32(self._step) * slab.scales
        total += np.repeat(slab.centres @ self._query, BLOCK)
        total[slab.absent] = -np.inf
        return total


@dataclass(frozen=True, slots=True)
class Ranking:
    """All rows with their scores."""

    rows: NDArray[np.int64]
    """Ascending."""
    scores: NDArray[np.float32]

    def best(self, count: int) -> list[int]:
        """The best rows, best first."""
        count = min(count, len(self.rows))
        if not count:
            return []
        chosen = np.argpartition(-self.scores, count - 1)[:count]
        chosen = chosen[self.scores[chosen] > -np.inf]
        order = np.lexsort((self.rows[chosen], -self.scores[chosen]))
        rows: list[int] = self.rows[chosen[order]].tolist()
        return rows

    def among(self, rows: Sequence[int]) -> Ranking:
        """The same for some rows only."""
        wanted = np.unique(np.asarray(rows, np.int64))
        places = np.searchsorted(self.rows, wanted)
        places = places[places < len(self.rows)]
        places = places[np.isin(self.rows[places], wanted)]
        return Ranking(self.rows[places], self.scores[places])


def ranking(slabs: Sequence[Slab], query: bytes) -> Ranking:
    """All rows of some slabs, by how near they seem to a query."""
    if not slabs:
        return Ranking(np.zeros(0, np.int64), np.zeros(0, np.float32))
    probe = QueryCodes(query)
    return Ranking(
        np.concatenate([slab.rows for slab in slabs]),
        np.concatenate([probe.scores(slab) for slab in slabs]),
    )


def _common(words: Codes, plane: Codes) -> NDArray[np.uint16]:
    """How many bits each row has in common with the query's."""
    both = np.empty(words.shape[1], np.uint64)
    bits = np.empty(len(both), np.uint8)
    count = np.zeros(len(both), np.uint16)
    for of_rows, of_query in zip(words, plane, strict=True):
        np.bitwise_and(of_rows, of_query, out=both)
        np.bitwise_count(both, out=bits)
        count += bits
    return count


def _words(bits: NDArray[np.bool_]) -> Codes:
    packed = np.packbits(bits, axis=1, bitorder="little")
    padded = np.zeros((len(bits), 8 * _width(bits.shape[1])), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8")


def _width(dims: int) -> int:
    return -(-dims // 64)
