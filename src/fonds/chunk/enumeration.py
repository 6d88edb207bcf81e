"""The tree of a section's enumerated paragraphs, read from the sequence of their labels."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from fonds.chunk.headings import Span
from fonds.chunk.inline import plain_text
from fonds.chunk.labels import STEP, Label, Labelled, Reading, read_labels
from fonds.chunk.units import Block, sentences, trim

INSIDE_A_PARAGRAPH: Final = 1_000
"""Deeper than any level at which a paragraph begins."""

_JOINT: Final = re.compile(
    r"\n(?:[ \t]*+(?:>[ \t]*+)++\n)++"
    r"|\n(?=[ \t]*+(?:>[ \t]*+)*+(?:[-*+•]|\d{1,9}[.)])[ \t])"
)
# Source credits, notes of the editor and headings set in bold follow an enumeration without
# being part of its last item; `[Reserved]` and footnotes do not.
_AFTERWORD: Final = re.compile(r"\((?:[A-Z][a-z]+\.? )|\[(?!\^|Reserved)|\*\*|History\b")
_TERM: Final = re.compile(r"\*(?!\*)[^*\n]{1,200}\*(?!\*)")
_QUOTE_MARKS: Final = re.compile(r"(?:^|\n)[ \t>]*")
_LONGEST_LEAD_IN: Final = 200
_LOOK_AHEAD: Final = 80
_LOOK_BACK: Final = 600
_FEWEST: Final = 2
# No publisher goes deeper; a text that seems to is a jumble of lists.
_DEEPEST: Final = 12
_INTRODUCING: Final = (":", "—", "：")
_NO_LABELS: Final = Labelled(0, (), ())
_A_TERM: Final = "term"
_A_PREAMBLE: Final = "preamble"


class Item(NamedTuple):
    """A labelled paragraph, a defined term or the words before a list, and what it stands in."""

    label: str
    """Empty if it has none."""
    kind: str
    value: int
    quote: int
    lead_in: Span
    parent: Item | None
    depth: int


class Mark(NamedTuple):
    """The start of a paragraph."""

    start: int
    item: Item | None
    """The innermost one it belongs to."""
    parent: Item | None
    """What encloses it; its own items are left out if it begins with a label."""
    level: int
    """How deep a cut before it goes; the smaller the better."""
    labelled: bool


class _Paragraph(NamedTuple):
    start: int
    end: int
    head: Labelled


class _Option(NamedTuple):
    below: Item | None
    reading: Reading
    opens: bool


class Enumeration:
    """Where the paragraphs of a section begin and what enumerated path each stands in."""

    def __init__(self, text: str, marks: list[Mark]) -> None:
        self._text = text
        self._marks = marks
        self._starts = [mark.start for mark in marks]
        self._lead_ins: dict[Span, str] = {}
        self._levels = {mark.start: mark.level for mark in marks}

    def __bool__(self) -> bool:
        """Whether there are labels enough to be a list."""
        return sum(mark.labelled for mark in self._marks) >= _FEWEST

    def parts(self, block: Block) -> list[Span]:
        """A block cut where its paragraphs begin."""
        first, last = (bisect_right(self._starts, edge) for edge in block[:2])
        if first == last:
            return [block[:2]]
        edges = [block.start, *self._starts[first:last], block.end]
        return [span for edge in pairwise(edges) for span in trim(self._text, *edge)]

    def level(self, position: int) -> int:
        """How deep a cut before this position goes."""
        return self._levels.get(position, INSIDE_A_PARAGRAPH)

    def begins_item(self, position: int) -> bool:
        """Whether a labelled paragraph begins exactly here."""
        mark = self._mark(position)
        return mark is not None and mark.start == position and mark.labelled

    def path(self, position: int) -> tuple[str, ...]:
        """The labels this position stands under, outermost first."""
        mark = self._mark(position)
        return tuple(item.label for item in _ancestry(mark.item) if item.label) if mark else ()

    def lead_ins(self, position: int) -> tuple[str, ...]:
        """What introduces the lists this position stands in, outermost first."""
        mark = self._mark(position)
        if mark is None:
            return ()
        around = mark.parent if mark.start == position else mark.item
        found = (self._lead_in(item.lead_in) for item in _ancestry(around))
        return tuple(filter(None, found))

    def _lead_in(self, span: Span) -> str:
        if span not in self._lead_ins:
            self._lead_ins[span] = _lead_in(self._text, *span)
        return self._lead_ins[span]

    def _mark(self, position: int) -> Mark | None:
        index = bisect_right(self._starts, position)
        return self._marks[index - 1] if index else None


def _ancestry(item: Item | None) -> list[Item]:
    return list(_up(item))[::-1]


def _lead_in(text: str, start: int, end: int) -> str:
    """The paragraph that introduces a list, or its last sentence, or the start of that."""
    whole = _plain(text[start : min(end, start + _LOOK_BACK)])
    if end - start > _LOOK_BACK or len(whole) > _LONGEST_LEAD_IN:
        near = max(start, end - _LOOK_BACK)
        *before, last = sentences(text, near, end)
        if before and text[last[0]].isupper() and text[near:end].endswith(_INTRODUCING):
            whole = _plain(text[slice(*last)])
    if len(whole) <= _LONGEST_LEAD_IN:
        return whole
    return f"{whole[:_LONGEST_LEAD_IN].rpartition(' ')[0] or whole[:_LONGEST_LEAD_IN]}…"


def _plain(markdown: str) -> str:
    return " ".join(plain_text(_QUOTE_MARKS.sub(" ", markdown)).split())


def read_enumeration(text: str, blocks: list[Block]) -> Enumeration:
    """The enumeration of one section, given its blocks."""
    reader = _Reader(text, list(_paragraphs(text, blocks)))
    if sum(bool(paragraph.head.labels) for paragraph in reader.paragraphs) >= _FEWEST:
        for index in range(len(reader.paragraphs)):
            reader.take(index)
    return Enumeration(text, reader.marks)


def _paragraphs(text: str, blocks: list[Block]) -> Iterator[_Paragraph]:
    for block in blocks:
        if block.rows:
            yield _Paragraph(block.start, block.end, _NO_LABELS)
            continue
        start = block.start
        for joint in _JOINT.finditer(text, block.start, block.end):
            if joint.end() < block.end:
                yield _Paragraph(start, joint.start(), read_labels(text, start, joint.start()))
                start = joint.end()
        yield _Paragraph(start, block.end, read_labels(text, start, block.end))


class _Reader:
    """Paragraphs on their way into the tree; the open item is the innermost one so far."""

    def __init__(self, text: str, paragraphs: list[_Paragraph]) -> None:
        self.text = text
        self.paragraphs = paragraphs
        self.marks: list[Mark] = []
        self.open: Item | None = None
        self.begun = False

    def take(self, index: int) -> None:
        paragraph = self.paragraphs[index]
        while self.open is not None and self.open.quote > paragraph.head.quote:
            self.open = self.open.parent
        outer: tuple[Item | None, int] | None = None
        if paragraph.head.behind_heading:
            below = self._around_term()
            outer = below, 2 * _depth(below)
            self.open = _unlabelled(paragraph, _A_TERM, below)
        for place, label in enumerate(paragraph.head.labels):
            option = self._choose(index, place, label)
            if option is None:
                break
            outer = outer or (option.below, 2 * _depth(option.below) + option.opens)
            self.open = self._item(paragraph, place, option)
        if outer is None:
            self._take_unlabelled(index)
        else:
            self.begun = True
            self.marks.append(Mark(paragraph.start, self.open, *outer, labelled=True))

    def _item(self, paragraph: _Paragraph, place: int, option: _Option) -> Item:
        written = paragraph.head.labels[place].text
        around = next((item for item in _up(option.below) if item.label), None)
        quoted = around is not None and around.quote < paragraph.head.quote
        return Item(
            # A quoted provision has a numbering of its own.
            label=f"“{written}" if quoted else written,
            kind=option.reading.kind,
            value=option.reading.value,
            quote=paragraph.head.quote,
            lead_in=paragraph.head.spans[place],
            parent=option.below,
            depth=_depth(option.below) + 1,
        )

    def _take_unlabelled(self, index: int) -> None:
        paragraph = self.paragraphs[index]
        if _AFTERWORD.match(self.text, paragraph.start):
            self.open = None
        elif not paragraph.head.quote and _TERM.match(self.text, paragraph.start):
            self._enter_unlabelled(paragraph, _A_TERM, self._around_term())
            return
        elif not self.begun and self._introduces(paragraph):
            self._enter_unlabelled(paragraph, _A_PREAMBLE, None)
            return
        item = self._continued(index)
        self.marks.append(Mark(paragraph.start, item, item, 2 * _depth(item) + 1, labelled=False))

    def _continued(self, index: int) -> Item | None:
        """What a paragraph without a label belongs to.

        Flush text after the last item of a list speaks of the whole list; only what is announced,
        such as a formula, or quoted surely belongs to the item.
        """
        item = self.open
        head = self.paragraphs[index].head
        if item is None or not item.label or item.quote < head.quote or head is _NO_LABELS:
            return item
        return item if self._introduces(self.paragraphs[index - 1]) else item.parent

    def _around_term(self) -> Item | None:
        return next((item.parent for item in _up(self.open) if item.kind == _A_TERM), self.open)

    def _enter_unlabelled(self, paragraph: _Paragraph, kind: str, below: Item | None) -> None:
        self.open = _unlabelled(paragraph, kind, below)
        level = 2 * _depth(below)
        self.marks.append(Mark(paragraph.start, self.open, below, level, labelled=False))

    def _introduces(self, paragraph: _Paragraph) -> bool:
        words = self.text[paragraph.start : paragraph.end].rstrip(" *_")
        return words.endswith(_INTRODUCING)

    def _choose(self, index: int, place: int, label: Label) -> _Option | None:
        """What the label means here: the next of an open list, or the first of one within."""
        if (following := self._continuing(index, label)) is not None:
            return following
        options = self._options(index, label)
        if len(options) > 1:
            return self._foretold(index, place, label, options) or self._likelier(
                index, place, options
            )
        if options or not label.sure:
            return options[0] if options else None
        return self._irregular(label, self.paragraphs[index].head.quote)

    def _continuing(self, index: int, label: Label) -> _Option | None:
        """The plain case: a label with one meaning that is next in the innermost such list."""
        reading, *others = label.readings
        if others or reading.value == STEP:
            return None
        item, quote = self.open, self.paragraphs[index].head.quote
        while item is not None and item.quote == quote:
            if item.kind == reading.kind:
                continues = 0 < reading.value - item.value <= STEP
                return _Option(item.parent, reading, opens=False) if continues else None
            item = item.parent
        return None

    def _options(self, index: int, label: Label) -> list[_Option]:
        """Innermost first."""
        own = list(self._own(self.paragraphs[index].head.quote))
        first = [reading for reading in label.readings if reading.value == STEP]
        options = [_Option(self.open, r, opens=True) for r in first if self._may_open(r.kind, own)]
        options += [
            _Option(item.parent, reading, opens=False)
            for item in own
            for reading in label.readings
            if reading.kind == item.kind and 0 < reading.value - item.value <= STEP
        ]
        return options or [self._again(index, reading, own) for reading in first[:1]]

    @staticmethod
    def _may_open(kind: str, own: list[Item]) -> bool:
        """No list stands in a list of its kind, unless words without a label come between."""
        for item in own:
            if not item.label:
                return True
            if item.kind == kind:
                return False
        return True

    def _again(self, index: int, first: Reading, own: list[Item]) -> _Option:
        """A second list of the same kind: within the innermost item, or after the first list."""
        former = next(item for item in own if item.kind == first.kind)
        before = self.paragraphs[index - 1]
        if former is not self.open and before.head.labels and _depth(self.open) < _DEEPEST:
            return _Option(self.open, first, opens=True)
        below = former.parent
        if not before.head.labels and self._introduces(before):
            if below is not None and below.kind == _A_PREAMBLE:
                below = below.parent
            below = _unlabelled(before, _A_PREAMBLE, below)
        return _Option(below, first, opens=True)

    def _own(self, quote: int) -> Iterator[Item]:
        """Open items of the same quotation, innermost first."""
        item = self.open
        while item is not None and item.quote == quote:
            yield item
            item = item.parent

    def _foretold(
        self, index: int, place: int, label: Label, options: list[_Option]
    ) -> _Option | None:
        """The option whose successor comes first among the labels that follow.

        `(i)` after `(h)(1)` is a letter if `(j)` follows, and a numeral if `(ii)` does; but if
        another `(i)` comes before `(ii)`, that one is the numeral.
        """
        successors = {
            Reading(option.reading.kind, option.reading.value + STEP): option
            for option in reversed(options)
        }
        for following in self._following(index, place):
            if following.text == label.text:
                return next((option for option in options if not option.opens), None)
            for reading in following.readings:
                if reading in successors:
                    return successors[reading]
        return None

    def _following(self, index: int, place: int) -> Iterator[Label]:
        quote = self.paragraphs[index].head.quote
        yield from self.paragraphs[index].head.labels[place + 1 :]
        for paragraph in self.paragraphs[index + 1 : index + _LOOK_AHEAD]:
            if paragraph.head.quote < quote:
                return
            if paragraph.head.quote == quote:
                yield from paragraph.head.labels

    def _likelier(self, index: int, place: int, options: list[_Option]) -> _Option:
        introduced = place > 0 or (index > 0 and self._introduces(self.paragraphs[index - 1]))
        return next((option for option in options if option.opens == introduced), options[0])

    def _irregular(self, label: Label, quote: int) -> _Option | None:
        """Repealed and reserved labels leave gaps; a quoted amendment begins anywhere."""
        for item in self._own(quote):
            for reading in label.readings:
                if reading.kind == item.kind:
                    return _Option(item.parent, reading, opens=False)
        return _Option(self.open, label.readings[0], opens=True)


def _unlabelled(paragraph: _Paragraph, kind: str, below: Item | None) -> Item:
    span = (paragraph.start, paragraph.end)
    return Item("", kind, 0, paragraph.head.quote, span, below, _depth(below) + 1)


def _up(item: Item | None) -> Iterator[Item]:
    while item is not None:
        yield item
        item = item.parent


def _depth(item: Item | None) -> int:
    return item.depth if item else 0
