"""Packing a section that is too long into passages under the cap."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from fonds.chunk.enumeration import read_enumeration
from fonds.chunk.headings import Outline, Span
from fonds.chunk.tokens import Tally, count_within
from fonds.chunk.units import PROSE, ROWS, Block, blocks, characters, items, lines, sentences

SMALLEST_CAP: Final = 16
"""Holds any four characters, as none has more than four tokens."""

_SURELY_FITTING: Final = 4
# To a token; a longer section hardly ever fits, and counting it only to learn that is a waste.
_MOST_CHARACTERS: Final = 6
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
    enumeration: tuple[str, ...] = ()
    """The labels it starts under, if it is part of a long enumeration."""
    lead_ins: tuple[str, ...] = ()
    """What introduces the lists it starts in."""


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
        if end - start <= self.max_tokens * _MOST_CHARACTERS:
            tokens = count_within(self.markdown[start:end], self.max_tokens)
            if tokens is not None:
                yield Passage(start, end, tokens)
                return
        tally = Tally(self.markdown, start, end)
        tokens = tally.count(start, end)
        if tokens <= self.max_tokens:
            yield Passage(start, end, tokens)
            return
        yield from _Packing(self, tally, list(blocks(self.outline, start, end))).passages()


class _Packing:
    """Units of one section on their way into passages."""

    def __init__(self, packer: Packer, tally: Tally, section: list[Block]) -> None:
        self.text = packer.outline.lines
        self.cap = packer.max_tokens
        self.overlap = packer.overlap_tokens
        self.tally = tally
        self.enumeration = read_enumeration(self.text, section)
        self.enumerated = bool(self.enumeration)
        self.units: list[_Unit] = []
        for block in section:
            parts = self.enumeration.parts(block) if self.enumerated else [block[:2]]
            for start, end in parts:
                self._collect(_Unit(start, end, block.rows, rung=0))
        self.ends = [unit.end for unit in self.units]
        self.levels = [self.enumeration.level(unit.start) for unit in self.units]
        self.density = _CHARACTERS_OF_A_TOKEN

    def _collect(self, whole: _Unit) -> None:
        if self._fits(whole.start, whole.end, self.cap):
            self.units.append(whole)
            return
        for start, end in self._pieces(whole):
            self._collect(_Unit(start, end, whole.rows, whole.rung + 1))

    def _pieces(self, unit: _Unit) -> list[Span]:
        ladder = ROWS if unit.rows else PROSE
        if unit.rung < len(ladder):
            return ladder[unit.rung](self.text, unit.start, unit.end)
        size = max(_SURELY_FITTING, self.cap // 16)
        return characters(self.text, unit.start, unit.end, size)

    def _fits(self, start: int, end: int, limit: int) -> bool:
        # No text has more tokens than bytes in UTF-8.
        if end - start <= limit:
            size = len(self.text[start:end].encode(errors="surrogatepass"))
            if size <= limit:
                return True
        return self.tally.count(start, end) <= limit

    def passages(self) -> Iterator[Passage]:
        fresh, stop = 0, 0
        passage = Passage(0, 0, 0)
        while stop < len(self.units):
            lead = self._lead(fresh, stop, passage) if stop else None
            fresh = stop
            passage, stop = self._filled(fresh, lead)
            if self.enumerated:
                passage, stop = self._cut_back(passage, fresh, stop)
                place = passage.start
                yield passage._replace(
                    enumeration=self.enumeration.path(place),
                    lead_ins=self.enumeration.lead_ins(place),
                )
            else:
                yield passage

    def _cut_back(self, passage: Passage, fresh: int, stop: int) -> tuple[Passage, int]:
        """The passage up to the shallowest label in its second half, if that is shallower."""
        if stop >= len(self.units):
            return passage, stop
        half = passage.start + (passage.end - passage.start) // 2
        earliest = bisect_left(self.ends, half, fresh) + 1
        levels = self.levels[earliest : stop + 1]
        best = stop - levels[::-1].index(min(levels))
        return (passage, stop) if best == stop else (self._up_to(passage, best), best)

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
        cap = self.cap
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
        room = self.cap - passage.tokens
        longest = (room + 1) * self.density * _DENSEST
        return not passage.tokens or self.ends[stop] - passage.end <= longest

    def _up_to(self, passage: Passage, stop: int) -> Passage:
        end = self.ends[stop - 1]
        tokens = self.tally.count(passage.start, end)
        self.density = (end - passage.start) / tokens
        return Passage(passage.start, end, tokens)

    def _lead(self, fresh: int, first: int, previous: Passage) -> Passage | None:
        """What the passage of the first unit repeats: whole sentences or lines, if they fit.

        Only what the previous passage did not repeat itself is repeated, so that no text stands
        in three. Nothing is before a label: it would be cited as part of what follows.
        """
        if self.enumerated and self.enumeration.begins_item(self.units[first].start):
            return None
        allowed = self._room_before(self.units[first])
        lead = None
        for start, _ in self._sentences_backward(self.units[fresh:first]):
            tokens = self.tally.count(start, previous.end)
            if start == previous.start or tokens > allowed:
                break
            lead = Passage(start, previous.end, tokens)
        return lead

    def _room_before(self, unit: _Unit) -> int:
        room = self.cap - self.tally.count(unit.start, unit.end) - 1
        return min(self.overlap, max(0, room))

    def _sentences_backward(self, units: list[_Unit]) -> Iterator[Span]:
        for unit in reversed(units):
            pieces = self._sentences(unit)
            yield from reversed(pieces)
            if not pieces:
                return

    def _sentences(self, unit: _Unit) -> list[Span]:
        text, start, end = self.text, unit.start, unit.end
        if unit.rows and unit.rung < _ROW_RUNG:
            return lines(text, start, end)
        if not unit.rows and unit.rung < _SENTENCE_RUNG:
            return [piece for item in items(text, start, end) for piece in sentences(text, *item)]
        whole = unit.rung <= (_ROW_RUNG if unit.rows else _LINE_RUNG)
        return [(start, end)] if whole else []
