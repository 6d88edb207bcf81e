"""The chunker: packs the sections of a Markdown text into passages under a limit of tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from fonds.chunk.boundaries import (
    PROSE,
    ROWS,
    Ladder,
    MarkdownBlock,
    blocks,
    characters,
    items,
    lines,
    sentences,
)
from fonds.chunk.enumeration import read_enumeration
from fonds.chunk.headings import HeadingOutline, Sections, Span, read_outline
from fonds.chunk.tables import Tables
from fonds.chunk.tokens import TokenCounter, count, count_words
from fonds.errors import SettingsError
from fonds.model import Chunk, NormalizedBody, PageMark

SMALLEST_CAP: Final = 16
"""Holds any four characters, as none has more than four tokens."""

_SURELY_FITTING: Final = 4
# To a token; a longer section seldom fits, and counting it would be wasted.
_MAX_CHARACTERS_PER_TOKEN: Final = 4.5
_ROW_RUNG: Final = 1
_SENTENCE_RUNG: Final = 2
_LINE_RUNG: Final = 3
# Of English prose; the first count in a section replaces it.
_CHARACTERS_OF_A_TOKEN: Final = 4.5
# How much more text to a token than the passage so far the next unit may turn out to have.
_DENSEST: Final = 1.25


class ChunkSpan(NamedTuple):
    """A span and its exact number of tokens."""

    start: int
    end: int
    tokens: int
    enumeration: tuple[str, ...] = ()
    """The labels it starts under, if it is part of a long enumeration."""
    lead_ins: tuple[str, ...] = ()
    """The text that introduces the lists it starts in, caption and header of its table."""


_Unit = tuple[int, int, Ladder, int]
"""Start, end, the splits that apply to it, and how many of them it took to make it."""

_Cut = tuple[int, int, int]
"""Start, end and tokens of a passage in the making."""


@dataclass(frozen=True, slots=True)
class Packer:
    """Cuts sections of one document; every passage holds the cap exactly."""

    markdown: str
    outline: HeadingOutline
    max_tokens: int
    overlap_tokens: int

    def passages(self, start: int, end: int) -> list[ChunkSpan]:
        """The passages of a section in order: itself if it fits, or what packing makes of it."""
        if end - start <= self.max_tokens * _MAX_CHARACTERS_PER_TOKEN:
            tokens = count_words(self.markdown[start:end])
            if tokens is not None and tokens <= self.max_tokens:
                return [ChunkSpan(start, end, tokens)]
        counter = TokenCounter(self.markdown, start, end)
        tokens = counter.count_within(start, end, self.max_tokens)
        if tokens is not None:
            return [ChunkSpan(start, end, tokens)]
        return list(_Packing(self, counter, list(blocks(self.outline, start, end))).passages())


class _Packing:
    """Units of one section on their way into passages."""

    def __init__(self, packer: Packer, counter: TokenCounter, section: list[MarkdownBlock]) -> None:
        self.text = packer.outline.lines
        self.cap = packer.max_tokens
        self.overlap = packer.overlap_tokens
        self.counter = counter
        self.enumeration = read_enumeration(self.text, section)
        self.enumerated = bool(self.enumeration)
        self.tables = Tables(self.text, section)
        self.units: list[_Unit] = []
        for block in section:
            start, end, rows = block
            parts = self.enumeration.parts(block) if self.enumerated else [(start, end)]
            for start, end in parts:
                self._collect(start, end, ROWS if rows else PROSE, 0)
        self.ends = [end for _, end, _, _ in self.units]
        self.levels = self.enumeration.levels([start for start, _, _, _ in self.units])
        self.density = _CHARACTERS_OF_A_TOKEN

    def _collect(self, start: int, end: int, ladder: Ladder, rung: int) -> None:
        if self._fits(start, end):
            self.units.append((start, end, ladder, rung))
            return
        while (spans := self._split(start, end, ladder, rung)) == [(start, end)]:
            rung += 1
        for span in spans:
            self._collect(*span, ladder, rung + 1)

    def _split(self, start: int, end: int, ladder: Ladder, rung: int) -> list[Span]:
        if rung < len(ladder):
            return ladder[rung](self.text, start, end)
        return characters(self.text, start, end, max(_SURELY_FITTING, self.cap // 16))

    def _fits(self, start: int, end: int) -> bool:
        # No text has more tokens than bytes in UTF-8, and no character more than four.
        if (end - start) * 4 <= self.cap:
            return True
        if end - start <= self.cap:
            size = len(self.text[start:end].encode("utf-8", "surrogatepass"))
            if size <= self.cap:
                return True
        return self.counter.count_within(start, end, self.cap) is not None

    def passages(self) -> Iterator[ChunkSpan]:
        first_new = stop = start = end = 0
        while stop < len(self.units):
            lead = self._lead(first_new, stop, start, end) if stop else None
            first_new = stop
            passage, stop = self._filled(first_new, lead)
            if self.enumerated:
                passage, stop = self._cut_back(passage, first_new, stop)
            start, end, tokens = passage
            path = self.enumeration.path(start) if self.enumerated else ()
            lead_ins = self.enumeration.lead_ins(start) if self.enumerated else ()
            yield ChunkSpan(start, end, tokens, path, (*lead_ins, *self.tables.lead_ins(start)))

    def _cut_back(self, passage: _Cut, first_new: int, stop: int) -> tuple[_Cut, int]:
        """The passage up to the shallowest label in its second half, if that is shallower."""
        if stop >= len(self.units):
            return passage, stop
        start, end, _ = passage
        earliest = bisect_left(self.ends, start + (end - start) // 2, first_new) + 1
        levels = self.levels[earliest : stop + 1]
        best = stop - levels[::-1].index(min(levels))
        return (passage, stop) if best == stop else (self._up_to(start, best), best)

    def _filled(self, first: int, lead: _Cut | None) -> tuple[_Cut, int]:
        """A passage that begins with the lead, or else with the first unit, and where it stops."""
        if lead is not None:
            passage, stop = self._fill(lead, first)
            if stop > first:
                return passage, stop
        start = self.units[first][0]
        return self._fill((start, start, 0), first)

    def _fill(self, passage: _Cut, stop: int) -> tuple[_Cut, int]:
        # Counts of pieces do not add up to the count of the whole: an estimate proposes where to
        # stop, and an exact count decides.
        start, end, tokens = passage
        while stop < len(self.units) and self._may_take(end, tokens, stop):
            target = end + int((self.cap - tokens) * self.density)
            proposed = max(stop + 1, bisect_right(self.ends, target, stop))
            _, further, more = self._up_to(start, proposed)
            while more > self.cap and proposed > stop + 1:
                fraction = (self.cap - tokens) / (more - tokens)
                target = end + int((further - end) * fraction)
                proposed = max(stop + 1, bisect_right(self.ends, target, stop, proposed - 1))
                _, further, more = self._up_to(start, proposed)
            if more > self.cap:
                break
            end, tokens, stop = further, more, proposed
        return (start, end, tokens), stop

    def _may_take(self, end: int, tokens: int, stop: int) -> bool:
        """Whether the next unit is worth a count: it is short enough, or the passage is empty."""
        max_length = (self.cap - tokens + 1) * self.density * _DENSEST
        return not tokens or self.ends[stop] - end <= max_length

    def _up_to(self, start: int, stop: int) -> _Cut:
        end = self.ends[stop - 1]
        tokens = self.counter.count(start, end)
        self.density = (end - start) / tokens
        return start, end, tokens

    def _lead(self, first_new: int, first: int, start: int, end: int) -> _Cut | None:
        """The end of the previous passage that is repeated: whole sentences or lines.

        Only text that the previous passage did not repeat itself, so none is in three passages.
        Nothing is before a label: it would be cited as part of what follows.
        """
        if self.enumerated and self.enumeration.begins_item(self.units[first][0]):
            return None
        allowed = self._room_before(self.units[first])
        if not allowed:
            return None
        lead = None
        for sentence_start in self._sentences_backward(self.units[first_new:first]):
            tokens = self.counter.count(sentence_start, end)
            if sentence_start == start or tokens > allowed:
                break
            lead = sentence_start, end, tokens
        return lead

    def _room_before(self, unit: _Unit) -> int:
        room = self.cap - self.counter.count(unit[0], unit[1]) - 1
        return min(self.overlap, max(0, room))

    def _sentences_backward(self, units: list[_Unit]) -> Iterator[int]:
        for unit in reversed(units):
            spans = self._sentences(*unit)
            yield from (start for start, _ in reversed(spans))
            if not spans:
                return

    def _sentences(self, start: int, end: int, ladder: Ladder, rung: int) -> list[Span]:
        text = self.text
        if ladder is ROWS and rung < _ROW_RUNG:
            return lines(text, start, end)
        if ladder is PROSE and rung < _SENTENCE_RUNG:
            return [span for item in items(text, start, end) for span in sentences(text, *item)]
        whole = rung <= (_ROW_RUNG if ladder is ROWS else _LINE_RUNG)
        return [(start, end)] if whole else []


_NAME_LENGTH: Final = 40
_MAX_UNCERTAIN: Final = 20

CHUNKER_NAME: Final = "headings"
CHUNKER_VERSION: Final = "1.1.0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunker:
    """Cuts a body at its headings, and a section that is too long at its natural joints."""

    max_tokens: int = 512
    """No passage has more (cl100k_base)."""
    overlap_tokens: int = 64
    """Repeated at most of the passage before it in the same section."""

    def __post_init__(self) -> None:
        if self.max_tokens < SMALLEST_CAP:
            raise SettingsError(
                f"chunk_tokens is {self.max_tokens}; it must be at least {SMALLEST_CAP}."
            )
        if not 0 <= self.overlap_tokens <= self.max_tokens // 2:
            raise SettingsError(
                f"chunk_overlap is {self.overlap_tokens}; it must lie between 0 and half of "
                f"chunk_tokens ({self.max_tokens // 2})."
            )

    def chunk(self, body: NormalizedBody) -> list[Chunk]:
        """The passages of a body in order; between them they hold all its text."""
        outline = read_outline(body.markdown)
        packer = Packer(body.markdown, outline, self.max_tokens, self.overlap_tokens)
        labels = {heading.offset: heading.section for heading in body.headings}
        page_starts = [mark.offset for mark in body.pages]
        no_page = PageMark(offset=0, page=None)
        chunks: list[Chunk] = []
        for section in Sections(body.markdown, outline, labels):
            for passage in packer.passages(section.start, section.end):
                before = bisect_right(page_starts, passage.start)
                mark = body.pages[before - 1] if before else no_page
                chunks.append(
                    Chunk(
                        ordinal=len(chunks),
                        text=body.markdown[passage.start : passage.end],
                        start=passage.start,
                        end=passage.end,
                        tokens=passage.tokens,
                        heading_path=(*body.above, *section.heading_path),
                        section=section.label,
                        page=mark.page,
                        pdf_page=mark.pdf_page,
                        enumeration=passage.enumeration,
                        lead_ins=passage.lead_ins,
                        uncertain=_uncertain(body, passage.start, passage.end),
                    )
                )
        return chunks


def _uncertain(body: NormalizedBody, start: int, end: int) -> tuple[str, ...]:
    """The uncertain texts within a passage, those first that a wrong letter changes most."""
    first = bisect_right(body.uncertain, start, key=lambda text: text.end)
    last = bisect_left(body.uncertain, end, key=lambda text: text.start)
    texts = [
        body.markdown[max(text.start, start) : min(text.end, end)]
        for text in body.uncertain[first:last]
    ]
    # An amount or a date has digits, and a name has fewer letters than a sentence.
    texts.sort(key=lambda text: (not any(map(str.isdecimal, text)), len(text) > _NAME_LENGTH))
    return tuple(dict.fromkeys(texts))[:_MAX_UNCERTAIN]


def whole_document_chunk(
    title: str, summary: str | None = None, *, is_stopgap: bool = False
) -> Chunk:
    """The one passage of a document without a body: its title and its summary.

    Of a stopgap, which the document's text will replace, `tokens` is only a bound: counting them
    takes the vocabulary, of 50 MiB, and no token is shorter than a byte.
    """
    text = "\n\n".join(part.strip() for part in (title, summary or "") if part.strip())
    tokens = len(text.encode(errors="surrogatepass")) if is_stopgap else count(text)
    return Chunk(ordinal=0, text=text, start=0, end=len(text), tokens=tokens)
