"""The tree of a section's enumerated paragraphs, read from the sequence of their labels.

Labels of statutes are ambiguous: `(i)` may follow `(h)` or begin a list of Roman numbers.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from fonds.chunk.boundaries import MarkdownBlock, sentences, trim
from fonds.chunk.headings import Span, text_only

STEP: Final = 100
"""From one value to the next; `1a` and `b-1`, put in later, lie between."""

_NUMERAL: Final = r"\d{1,3}[a-z]{0,2}|[a-z]{1,5}|[A-Z]{1,5}"
_KANJI: Final = "一二三四五六七八九十百"
_IROHA: Final = "イロハニホヘトチリヌルヲワカヨタレソツネナラム"
_LABEL: Final = re.compile(
    r"(?:"
    rf"(?P<round>[(（](?:{_NUMERAL})(?:[-–]\d{{1,2}})?[)）])"
    # The fifth and sixth level of federal regulations repeat the second and third in italics.
    rf"|(?P<italic>\(\*(?:{_NUMERAL})\*\))"
    r"|(?P<half>(?:\d{1,3}|[a-z]{1,4})\))(?=\s)"
    r"|(?P<dot>(?:\d{1,3}[a-z]?|[A-Za-z]|[ivx]{2,5}|[IVX]{2,5})\\?\.)(?=[\s*(]|\Z)"
    r"|(?P<degree>\d{1,3}°)(?=\s)"
    # `Section 6(o) of the Act is amended` begins a sentence and labels nothing.
    r"|(?P<word>(?:Article|Artikel|Art\.|Section|Sec\.|Rule|§)\s\d{1,4}[a-z]?)"
    r"(?=[.:—*\u2003](?!\d)|\s*\Z)"
    rf"|(?P<article>第[{_KANJI}〇千\d]{{1,6}}[条項号])(?=[\s　の])"
    rf"|(?P<bare>[{_KANJI}]{{1,4}}|[{_IROHA}]|[０-９]{{1,3}})(?=[\s　])"
    r")(?:\*\*?|__?)?[ \t\u2003　]?"
)
_OPENING: Final = re.compile(
    r"(?P<quote>(?:[ \t]*>)*)[ \t\u2003]*(?:[-+*•][ \t]+)?[ \t\u2003]*[“”‘\"\[]{0,2}(?:\*\*?|__?)?"
)
# `(b) *Transfer*—(1) *Definition.* (i) …`: a list often begins behind its own heading.
_RUN_IN: Final = re.compile(r"(\*\*?)[^*\n]{1,200}\1[ \t]?[.:—–-]{0,3}[ \t]?")
_ROMAN: Final = re.compile(r"(?=.)(?:c?x[cl]|l?x{0,3})(?:i[xv]|v?i{0,3})")
_ROMAN_DIGITS: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_LETTERS: Final = 26
_UNMARKED: Final = str.maketrans("", "", "\\*")


class LabelReading(NamedTuple):
    """One thing a label may mean: the second of some kind of numbers."""

    kind: str
    value: int


class Label(NamedTuple):
    """A label as it is written."""

    text: str
    readings: tuple[LabelReading, ...]
    sure: bool
    """Whether only labels look like it; `A.` may be an initial and `1.` the end of a date."""


class Labelled(NamedTuple):
    """The labels a paragraph begins with, outermost first."""

    quote: int
    """The number of block quotes around it."""
    labels: tuple[Label, ...]
    spans: tuple[Span, ...]
    """The words after each label, up to the next one."""
    behind_heading: bool = False
    """Whether a heading without a label of its own, such as a defined term, comes first."""


UNLABELLED: Final = Labelled(0, (), ())
"""The labels of a paragraph that starts without one."""


def read_labels(text: str, start: int, end: int) -> Labelled:
    """The labels at the start of a paragraph; none is an empty tuple."""
    quote, position, behind = 0, start, None
    if text[start] != "(" and not text[start].isalnum():
        opening = _OPENING.match(text, start, end)
        assert opening is not None
        behind = _behind_heading(text, start, end) if text[start] == "*" else None
        quote, position = opening["quote"].count(">"), behind or opening.end()
    labels: list[Label] = []
    spans: list[Span] = []
    started = position
    while match := _LABEL.match(text, position, end):
        style = match.lastgroup or ""
        label = _label(match[style], style)
        if not label.readings:
            break
        if labels:
            spans.append((started, position))
        labels.append(label)
        started = position = match.end()
        if text.startswith("*", position):
            position = _behind_heading(text, position, end) or position
    if labels:
        return Labelled(quote, tuple(labels), (*spans, (started, end)), behind is not None)
    return Labelled(quote, (), ()) if quote else UNLABELLED


def _behind_heading(text: str, position: int, end: int) -> int | None:
    """The start of a list that follows a heading in the same paragraph."""
    heading = _RUN_IN.match(text, position, end)
    match = _LABEL.match(text, heading.end(), end) if heading else None
    if heading is None or match is None or not match["round"]:
        return None
    readings = _label(match["round"], "round").readings
    return heading.end() if any(reading.value == STEP for reading in readings) else None


@lru_cache(maxsize=4096)
def _label(printed: str, style: str) -> Label:
    text = printed.translate(_UNMARKED)
    bare = unicodedata.normalize("NFKC", text).strip("().°第条項号")
    readings = tuple(
        LabelReading(f"{style} {reading.kind}", reading.value)
        for reading in _readings(bare.split()[-1] if style == "word" else bare)
    )
    return Label(text, readings, style not in {"dot", "half", "bare"})


def _readings(bare: str) -> list[LabelReading]:
    base, _, inserted = bare.replace("–", "-").partition("-")
    between = int(inserted) if inserted else 0
    if base[:1].isdigit():
        digits = base.rstrip("abcdefghijklmnopqrstuvwxyz")
        return [LabelReading("1", int(digits) * STEP + between + _letter(base[len(digits) :]))]
    if base[:1] in _KANJI:
        return [LabelReading("一", _kanji(base) * STEP)]
    if base in _IROHA:
        return [LabelReading("イ", (_IROHA.index(base) + 1) * STEP)]
    case = "a" if base.islower() else "A"
    values = [(case, _letter(base.lower())), (f"{case} roman", _roman(base.lower()))]
    return [LabelReading(kind, value * STEP + between) for kind, value in values if value]


def _letter(letters: str) -> int:
    """`a` is 1, `aa` 27, `bb` 28; anything else is not a letter."""
    if not letters or len(set(letters)) > 1:
        return 0
    return (len(letters) - 1) * _LETTERS + ord(letters[0]) - ord("a") + 1


def _roman(letters: str) -> int:
    if not _ROMAN.fullmatch(letters):
        return 0
    digits = [_ROMAN_DIGITS[letter] for letter in letters]
    pairs = zip(digits, [*digits[1:], 0], strict=True)
    return sum(-digit if digit < following else digit for digit, following in pairs)


def _kanji(numerals: str) -> int:
    """`二十一` is 21."""
    total = current = 0
    for numeral in numerals:
        if numeral in "十百":
            total += max(current, 1) * (10 if numeral == "十" else 100)
            current = 0
        else:
            current = "一二三四五六七八九".find(numeral) + 1
    return total + current


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
_QUOTE_MARKS: Final = re.compile(r"\n[ \t>]*")
_MAX_LEAD_IN_LENGTH: Final = 200
_LOOK_AHEAD: Final = 80
_LOOK_BACK: Final = 600
_FEWEST: Final = 2
# No publisher goes deeper; a text that seems to has unrelated lists.
_MAX_DEPTH: Final = 12
_INTRODUCING: Final = (":", "—", "：")
_OF_ROWS: Final = Labelled(0, (), ())
_A_TERM: Final = "term"
_A_PREAMBLE: Final = "preamble"


class ListItem(NamedTuple):
    """A labelled paragraph, a defined term or the words before a list, and its parent."""

    label: str
    """Empty if it has none."""
    kind: str
    value: int
    quote: int
    lead_in: Span
    parent: ListItem | None
    depth: int


class ParagraphStart(NamedTuple):
    """The start of a paragraph."""

    start: int
    item: ListItem | None
    """The innermost one it belongs to."""
    parent: ListItem | None
    """Its parents; its own items are left out if it begins with a label."""
    level: int
    """How deep a cut before it goes; the smaller the better."""
    labelled: bool


_Option = tuple[ListItem | None, LabelReading, bool]
"""A parent for a label, its reading there, and whether it opens a list."""


class Enumeration:
    """The starts of the paragraphs of a section, each with its enumerated path."""

    def __init__(self, text: str, marks: list[ParagraphStart]) -> None:
        self._text = text
        self._marks = marks
        self._starts = [mark.start for mark in marks]
        self._lead_ins: dict[Span, str] = {}

    def __bool__(self) -> bool:
        """Whether there are labels enough to be a list."""
        return sum([mark.labelled for mark in self._marks]) >= _FEWEST

    def parts(self, block: MarkdownBlock) -> list[Span]:
        """A block cut where its paragraphs begin."""
        start, end = block.start, block.end
        first = bisect_right(self._starts, start)
        last = bisect_right(self._starts, end, first)
        if first == last:
            return [(start, end)]
        edges = [start, *self._starts[first:last], end]
        return [span for edge in pairwise(edges) for span in trim(self._text, *edge)]

    def levels(self, positions: list[int]) -> list[int]:
        """How deep a cut before each position goes."""
        levels = {mark.start: mark.level for mark in self._marks}
        return [levels.get(position, INSIDE_A_PARAGRAPH) for position in positions]

    def begins_item(self, position: int) -> bool:
        """Whether a labelled paragraph begins exactly here."""
        mark = self._mark(position)
        return mark is not None and mark.start == position and mark.labelled

    def path(self, position: int) -> tuple[str, ...]:
        """The labels above this position, outermost first."""
        mark = self._mark(position)
        return tuple(item.label for item in _ancestry(mark.item) if item.label) if mark else ()

    def lead_ins(self, position: int) -> tuple[str, ...]:
        """The texts that introduce the lists around this position, outermost first."""
        mark = self._mark(position)
        if mark is None:
            return ()
        around = mark.parent if mark.start == position else mark.item
        texts = (self._lead_in(item.lead_in) for item in _ancestry(around))
        return tuple(filter(None, texts))

    def _lead_in(self, span: Span) -> str:
        if span not in self._lead_ins:
            self._lead_ins[span] = _lead_in(self._text, *span)
        return self._lead_ins[span]

    def _mark(self, position: int) -> ParagraphStart | None:
        index = bisect_right(self._starts, position)
        return self._marks[index - 1] if index else None


def _ancestry(item: ListItem | None) -> list[ListItem]:
    return list(_up(item))[::-1]


def _lead_in(text: str, start: int, end: int) -> str:
    """The paragraph that introduces a list, or its last sentence, or the start of that."""
    whole = _heading_text(text[start : min(end, start + _LOOK_BACK)])
    if end - start > _LOOK_BACK or len(whole) > _MAX_LEAD_IN_LENGTH:
        near = max(start, end - _LOOK_BACK)
        *before, last = sentences(text, near, end)
        if before and text[last[0]].isupper() and text[near:end].endswith(_INTRODUCING):
            whole = _heading_text(text[slice(*last)])
    if len(whole) <= _MAX_LEAD_IN_LENGTH:
        return whole
    return f"{whole[:_MAX_LEAD_IN_LENGTH].rpartition(' ')[0] or whole[:_MAX_LEAD_IN_LENGTH]}…"


def _heading_text(markdown: str) -> str:
    return " ".join(text_only(_QUOTE_MARKS.sub(" ", f"\n{markdown}")).split())


def read_enumeration(text: str, blocks: list[MarkdownBlock]) -> Enumeration:
    """The enumeration of one section, given its blocks."""
    spans = list(_paragraphs(text, blocks))
    heads = [_OF_ROWS if rows else read_labels(text, start, end) for start, end, rows in spans]
    reader = _TreeReader(text, spans, heads)
    if sum(1 for head in heads if head.labels) >= _FEWEST:
        for index in range(len(heads)):
            reader.take(index)
    return Enumeration(text, reader.marks)


def _paragraphs(text: str, blocks: list[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    for block in blocks:
        start, end, rows = block
        if rows or text.find("\n", start, end) < 0:
            yield block
            continue
        for joint in _JOINT.finditer(text, start, end):
            if joint.end() < end:
                yield MarkdownBlock(start, joint.start(), rows)
                start = joint.end()
        yield MarkdownBlock(start, end, rows)


class _TreeReader:
    """Paragraphs on their way into the tree; the open item is the innermost one so far."""

    def __init__(self, text: str, paragraphs: list[MarkdownBlock], heads: list[Labelled]) -> None:
        self.text = text
        self.paragraphs = paragraphs
        self.heads = heads
        self.marks: list[ParagraphStart] = []
        self.open: ListItem | None = None
        self.is_started = False

    def take(self, index: int) -> None:
        head = self.heads[index]
        while self.open is not None and self.open.quote > head.quote:
            self.open = self.open.parent
        if not head.labels:
            self._take_unlabelled(index)
            return
        outer: tuple[ListItem | None, int] | None = None
        if head.behind_heading:
            below = self._around_term()
            outer = below, 2 * _depth(below)
            self.open = self._unlabelled(index, _A_TERM, below)
        for label_index, label in enumerate(head.labels):
            option = self._choose(index, label_index, label)
            if option is None:
                break
            below, reading, opens = option
            outer = outer or (below, 2 * _depth(below) + opens)
            self.open = _item(head, label_index, reading, below)
        if outer is None:
            self._take_unlabelled(index)
        else:
            self.is_started = True
            self.marks.append(ParagraphStart(self.paragraphs[index].start, self.open, *outer, True))

    def _take_unlabelled(self, index: int) -> None:
        start = self.paragraphs[index].start
        if _AFTERWORD.match(self.text, start):
            self.open = None
        elif not self.heads[index].quote and _TERM.match(self.text, start):
            self._enter_unlabelled(index, _A_TERM, self._around_term())
            return
        elif not self.is_started and self._introduces(index):
            self._enter_unlabelled(index, _A_PREAMBLE, None)
            return
        item = self._continued(index)
        self.marks.append(ParagraphStart(start, item, item, 2 * _depth(item) + 1, False))

    def _continued(self, index: int) -> ListItem | None:
        """The parent of a paragraph without a label.

        Flush text after the last item of a list speaks of the whole list; only what is announced,
        such as a formula, or quoted surely belongs to the item.
        """
        item = self.open
        head = self.heads[index]
        if item is None or not item.label or item.quote < head.quote or head is _OF_ROWS:
            return item
        return item if self._introduces(index - 1) else item.parent

    def _around_term(self) -> ListItem | None:
        return next((item.parent for item in _up(self.open) if item.kind == _A_TERM), self.open)

    def _enter_unlabelled(self, index: int, kind: str, below: ListItem | None) -> None:
        self.open = self._unlabelled(index, kind, below)
        start, level = self.paragraphs[index].start, 2 * _depth(below)
        self.marks.append(ParagraphStart(start, self.open, below, level, False))

    def _unlabelled(self, index: int, kind: str, below: ListItem | None) -> ListItem:
        start, end, _ = self.paragraphs[index]
        return ListItem(
            "", kind, 0, self.heads[index].quote, (start, end), below, _depth(below) + 1
        )

    def _introduces(self, index: int) -> bool:
        start, end, _ = self.paragraphs[index]
        while end > start and self.text[end - 1] in " *_":
            end -= 1
        return self.text.endswith(_INTRODUCING, start, end)

    def _choose(self, index: int, label_index: int, label: Label) -> _Option | None:
        """The meaning of the label here: the next of an open list, or the first of one within."""
        if (following := self._continuing(index, label)) is not None:
            return following
        options = self._options(index, label)
        if len(options) > 1:
            return self._foretold(index, label_index, label, options) or self._likelier(
                index, label_index, options
            )
        if options or not label.sure:
            return options[0] if options else None
        return self._irregular(label, self.heads[index].quote)

    def _continuing(self, index: int, label: Label) -> _Option | None:
        """The plain case: a label with one meaning that is next in the innermost such list."""
        reading = label.readings[0]
        if reading.value == STEP or len(label.readings) > 1:
            return None
        item, quote = self.open, self.heads[index].quote
        while item is not None and item.quote == quote:
            if item.kind == reading.kind:
                continues = 0 < reading.value - item.value <= STEP
                return (item.parent, reading, False) if continues else None
            item = item.parent
        return None

    def _options(self, index: int, label: Label) -> list[_Option]:
        """Innermost first."""
        own = self._own(self.heads[index].quote)
        first = [reading for reading in label.readings if reading.value == STEP]
        options: list[_Option] = [
            (self.open, reading, True) for reading in first if _may_open(reading.kind, own)
        ]
        options += [
            (item.parent, reading, False)
            for item in own
            for reading in label.readings
            if reading.kind == item.kind and 0 < reading.value - item.value <= STEP
        ]
        return options or [self._again(index, reading, own) for reading in first[:1]]

    def _again(self, index: int, first: LabelReading, own: list[ListItem]) -> _Option:
        """A second list of the same kind: within the innermost item, or after the first list."""
        previous = next(item for item in own if item.kind == first.kind)
        before = self.heads[index - 1]
        if previous is not self.open and before.labels and _depth(self.open) < _MAX_DEPTH:
            return self.open, first, True
        below = previous.parent
        if not before.labels and self._introduces(index - 1):
            if below is not None and below.kind == _A_PREAMBLE:
                below = below.parent
            below = self._unlabelled(index - 1, _A_PREAMBLE, below)
        return below, first, True

    def _own(self, quote: int) -> list[ListItem]:
        """Open items of the same quotation, innermost first."""
        own = []
        item = self.open
        while item is not None and item.quote == quote:
            own.append(item)
            item = item.parent
        return own

    def _foretold(
        self, index: int, label_index: int, label: Label, options: list[_Option]
    ) -> _Option | None:
        """The option whose successor comes first among the labels that follow.

        `(i)` after `(h)(1)` is a letter if `(j)` follows, and a numeral if `(ii)` does; but if
        another `(i)` comes before `(ii)`, that one is the numeral.
        """
        successors = {
            (reading.kind, reading.value + STEP): (below, reading, opens)
            for below, reading, opens in reversed(options)
        }
        for following in self._following(index, label_index):
            if following.text == label.text:
                return next((option for option in options if not option[-1]), None)
            for reading in following.readings:
                if reading in successors:
                    return successors[reading]
        return None

    def _following(self, index: int, label_index: int) -> Iterator[Label]:
        quote = self.heads[index].quote
        yield from self.heads[index].labels[label_index + 1 :]
        for head in self.heads[index + 1 : index + _LOOK_AHEAD]:
            if head.quote < quote:
                return
            if head.quote == quote:
                yield from head.labels

    def _likelier(self, index: int, label_index: int, options: list[_Option]) -> _Option:
        introduced = label_index > 0 or (index > 0 and self._introduces(index - 1))
        return next((option for option in options if option[-1] == introduced), options[0])

    def _irregular(self, label: Label, quote: int) -> _Option | None:
        """Repealed and reserved labels leave gaps; a quoted amendment begins anywhere."""
        for item in self._own(quote):
            for reading in label.readings:
                if reading.kind == item.kind:
                    return item.parent, reading, False
        return self.open, label.readings[0], True


def _may_open(kind: str, own: list[ListItem]) -> bool:
    """No list is inside a list of its kind, unless words without a label come between."""
    for item in own:
        if not item.label:
            return True
        if item.kind == kind:
            return False
    return True


def _item(head: Labelled, index: int, reading: LabelReading, below: ListItem | None) -> ListItem:
    quote, labels, spans, _ = head
    text = labels[index].text
    # A quoted provision has a numbering of its own.
    if quote and _quotes(below, quote):
        text = f"“{text}"
    return ListItem(text, *reading, quote, spans[index], below, _depth(below) + 1)


def _quotes(below: ListItem | None, quote: int) -> bool:
    around = next((item for item in _up(below) if item.label), None)
    return around is not None and around.quote < quote


def _up(item: ListItem | None) -> Iterator[ListItem]:
    while item is not None:
        yield item
        item = item.parent


def _depth(item: ListItem | None) -> int:
    return item.depth if item else 0
