"""Packing a section that is too long into passages under the cap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from fonds.chunk.headings import Outline, Span
from fonds.chunk.tokens import count, count_within
from fonds.chunk.units import PROSE, ROWS, blocks, characters, items, lines, sentences

SMALLEST_CAP: Final = 16
"""Holds any four characters, as none has more than four tokens."""

_SURELY_FITTING: Final = 4
_BYTES_OF_A_CHARACTER: Final = 4
_ROW_RUNG: Final = 1
_SENTENCE_RUNG: Final = 2
_LINE_RUNG: Final = 3
# Of English prose; the first count in a section puts the text's own figure in its place.
_CHARACTERS_OF_A_TOKEN: Final = 4.5
# How much more text to a token than the passage so far the next unit may turn out to have.
_DENSEST: Final = 1.25


class Passage(NamedTuple):
    """A span and its exact number of tokens."""

    start: int
    end: int
    tokens: int


class _Unit(NamedTuple):
    start: int
    end: int
    rows: bool
    rung: int
    """How many of its ladder's splits it took to make it: 0 for a whole block."""


@dataclass(frozen=True, slots=True)
class Packer:
    """Cuts sections of one document; every passage holds the cap exactly."""

    markdown: str
    outline: Outline
    max_tokens: int
    overlap_tokens: int

    def passages(self, start: int, end: int) -> Iterator[Passage]:
        """The passages of a section in order: itself if it fits, or what packing makes of it."""
        tokens = count_within(self.markdown[start:end], self.max_tokens)
        if tokens is not None:
            yield Passage(start, end, tokens)
            return
        units: list[_Unit] = []
        for block in blocks(self.outline, start, end):
            self._collect(units, _Unit(*block, rung=0))
        yield from _Packing(self, units).passages()

    def fits(self, start: int, end: int, limit: int) -> bool:
        """Whether a span is under a limit; short ones are not counted.

        No text has more tokens than bytes in UTF-8.
        """
        if (end - start) * _BYTES_OF_A_CHARACTER <= limit:
            return True
        text = self.markdown[start:end]
        if end - start <= limit and text.isascii():
            return True
        return count_within(text, limit) is not None

    def _collect(self, units: list[_Unit], whole: _Unit) -> None:
        if self.fits(whole.start, whole.end, self.max_tokens):
            units.append(whole)
            return
        for start, end in self._pieces(whole):
            self._collect(units, _Unit(start, end, whole.rows, whole.rung + 1))

    def _pieces(self, unit: _Unit) -> list[Span]:
        ladder = ROWS if unit.rows else PROSE
        if unit.rung < len(ladder):
            return ladder[unit.rung](self.outline.lines, unit.start, unit.end)
        size = max(_SURELY_FITTING, self.max_tokens // 16)
        return characters(self.markdown, unit.start, unit.end, size)


class _Packing:
    """Units of one section on their way into passages."""

    def __init__(self, packer: Packer, units: list[_Unit]) -> None:
        self.packer = packer
        self.units = units
        self.ends = [unit.end for unit in units]
        self.density = _CHARACTERS_OF_A_TOKEN

    def passages(self) -> Iterator[Passage]:
        fresh, stop = 0, 0
        passage = Passage(0, 0, 0)
        while stop < len(self.units):
            lead = self._lead(fresh, stop, passage) if stop else None
            fresh = stop
            passage, stop = self._filled(fresh, lead)
            yield passage

    def _filled(self, first: int, lead: Passage | None) -> tuple[Passage, int]:
        """A passage that begins with the lead, or else with the first unit, and where it stops."""
        if lead is not None:
            passage, stop = self._fill(lead, first)
            if stop > first:
                return passage, stop
        start = self.units[first].start
        return self._fill(Passage(start, start, 0), first)

    def _fill(self, passage: Passage, stop: int) -> tuple[Passage, int]:
        # Counts of pieces do not add up to the count of the whole: an estimate proposes where to
        # stop, and an exact count decides.
        cap = self.packer.max_tokens
        while stop < len(self.units) and self._may_take(passage, stop):
            target = passage.end + int((cap - passage.tokens) * self.density)
            proposed = max(stop + 1, bisect_right(self.ends, target, stop))
            larger = self._up_to(passage, proposed)
            while larger.tokens > cap and proposed > stop + 1:
                share = (cap - passage.tokens) / (larger.tokens - passage.tokens)
                target = passage.end + int((larger.end - passage.end) * share)
                proposed = max(stop + 1, bisect_right(self.ends, target, stop, proposed - 1))
                larger = self._up_to(passage, proposed)
            if larger.tokens > cap:
                break
            passage, stop = larger, proposed
        return passage, stop

    def _may_take(self, passage: Passage, stop: int) -> bool:
        """Whether the next unit is worth a count: it is short enough, or the passage is empty."""
        room = self.packer.max_tokens - passage.tokens
        longest = (room + 1) * self.density * _DENSEST
        return not passage.tokens or self.ends[stop] - passage.end <= longest

    def _up_to(self, passage: Passage, stop: int) -> Passage:
        end = self.ends[stop - 1]
        tokens = count(self.packer.markdown[passage.start : end])
        self.density = (end - passage.start) / tokens
        return Passage(passage.start, end, tokens)

    def _lead(self, fresh: int, first: int, previous: Passage) -> Passage | None:
        """What the passage of the first unit repeats: whole sentences or lines, if they fit.

        Only what the previous passage did not repeat itself is repeated, so that no text stands
        in three.
        """
        allowed = self._room_before(self.units[first])
        lead = None
        for start, _ in self._sentences_backward(self.units[fresh:first]):
            repeated = self.packer.markdown[start : previous.end]
            tokens = count_within(repeated, allowed)
            if start == previous.start or tokens is None:
                break
            lead = Passage(start, previous.end, tokens)
        return lead

    def _room_before(self, unit: _Unit) -> int:
        cap, overlap = self.packer.max_tokens, self.packer.overlap_tokens
        if self.packer.fits(unit.start, unit.end, cap - overlap - 1):
            return overlap
        return max(0, cap - count(self.packer.markdown[unit.start : unit.end]) - 1)

    def _sentences_backward(self, units: list[_Unit]) -> Iterator[Span]:
        for unit in reversed(units):
            pieces = self._sentences(unit)
            yield from reversed(pieces)
            if not pieces:
                return

    def _sentences(self, unit: _Unit) -> list[Span]:
        text, start, end = self.packer.outline.lines, unit.start, unit.end
        if unit.rows and unit.rung < _ROW_RUNG:
            return lines(text, start, end)
        if not unit.rows and unit.rung < _SENTENCE_RUNG:
            return [piece for item in items(text, start, end) for piece in sentences(text, *item)]
        whole = unit.rung <= (_ROW_RUNG if unit.rows else _LINE_RUNG)
        return [(start, end)] if whole else []
