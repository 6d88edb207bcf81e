"""Two texts of one section, word by word: what was kept, deleted and inserted.

Paragraphs are aligned first, words only inside those that changed, and the work is bounded: where
two texts have too little in common, the one is said to replace the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from fonds.codes.diff.words import (
    SIGNS,
    EqualRun,
    EqualRunSearch,
    WordSpan,
    end_of_first,
    ends_at_line_start,
    essence,
    fragment_essence,
    paragraphs_of,
    separators_of,
    start_of_last,
    words_of,
)

Kind = Literal["keep", "delete", "insert"]

_EMPHASIS: Final = re.compile(r"(?<!\\)(?:\*+|~~)")

_EFFORT: Final = 2_000_000
"""Steps one redline may take before it settles for coarser replacements; about a second."""
_ISLAND: Final = 4
"""So few equal words between longer changes are chance: `of the`, `shall be`."""
_CONTEXT: Final = 12
_SHORT: Final = 24
"""Characters that take less room than their leaving out is worth."""


class Op(NamedTuple):
    """A stretch of text and what became of it."""

    op: Kind
    text: str


class ChangedPassage(NamedTuple):
    """A stretch of an excerpt; `skip` is unchanged text that is to be left out."""

    op: Literal["keep", "delete", "insert", "skip"]
    text: str


@dataclass(frozen=True, slots=True)
class Redline:
    """Kept and deleted stretches make up the text before, kept and inserted ones the text after."""

    ops: tuple[Op, ...]

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    @property
    def before(self) -> str:
        """The older text, to the character."""
        return "".join(text for op, text in self.ops if op != "insert")

    @property
    def after(self) -> str:
        """The newer text, to the character."""
        return "".join(text for op, text in self.ops if op != "delete")

    @property
    def is_change(self) -> bool:
        """Whether any word differs; white space, soft hyphens and signs of a line are none."""
        return any(op != "keep" for op, _ in self.shown())

    def shown(self) -> Iterator[Op]:
        """The stretches worth showing: where no word changed, the text is kept as it is after."""
        return _merged(self._worded())

    def _worded(self) -> Iterator[Op]:
        deleted, inserted = _ChangeSide(), _ChangeSide()
        for op, text in (*self.ops, Op("keep", "")):
            if op == "delete":
                deleted.text += text
            elif op == "insert":
                inserted.text += text
            else:
                gone, come = deleted.words(text), inserted.words(text)
                is_quiet = gone == come
                yield Op("delete", "" if is_quiet or not gone else deleted.text)
                yield Op("insert", "" if is_quiet or not come else inserted.text)
                yield Op("keep", inserted.text + text if is_quiet else text)
                deleted.keep(text)
                inserted.keep(text)


@dataclass(slots=True)
class _ChangeSide:
    """One side of a change, and whether it begins at the start of a line."""

    text: str = ""
    opens_line: bool = True

    def words(self, following: str) -> str:
        """Its own words; signs at its end are some if the line goes on right behind them."""
        if not following[:1].strip():
            return fragment_essence(self.text, opens_line=self.opens_line)
        words = fragment_essence(f"{self.text}\u3007", opens_line=self.opens_line)
        return words.removesuffix("\u3007").rstrip()

    def keep(self, following: str) -> None:
        told = self.text + following
        self.opens_line = ends_at_line_start(told, opens_line=self.opens_line)
        self.text = ""


def redline(before: str, after: str) -> Redline:
    """What was deleted from the one and inserted into the other: whole words, nothing lost."""
    return Redline(tuple(_merged(_ops(before, after))))


def excerpt(redline: Redline, *, context: int = _CONTEXT) -> Iterator[ChangedPassage]:
    """The changes, with so many unchanged words around each of them; empty if there is none."""
    shown = list(redline.shown())
    if all(op == "keep" for op, _ in shown):
        return
    for number, (op, text) in enumerate(shown):
        if op != "keep":
            yield ChangedPassage(op, text)
            continue
        head = end_of_first(text, context) if number else 0
        tail = start_of_last(text, context) if number < len(shown) - 1 else len(text)
        if head + _SHORT > tail:
            yield ChangedPassage("keep", text)
            continue
        cut = ChangedPassage("keep", text[:head]), ChangedPassage("skip", text[head:tail])
        yield from (
            passage for passage in (*cut, ChangedPassage("keep", text[tail:])) if passage.text
        )


def as_markdown(redline: Redline, *, context: int = _CONTEXT) -> str:
    """The changes as ~~deleted~~ and **inserted** words, with `…` for what is left out between.

    The texts' own emphasis is dropped, so that bold and struck words are always changes.
    """
    page = _MarkedText()
    for op, text in excerpt(redline, context=context):
        page.write(op, _EMPHASIS.sub("", text))
    return page.text


# Writing ----------------------------------------------------------------------------------


class _MarkedText:
    """Markdown in which marks stand close to words and never reach over the end of a line."""

    _MARKS: Final = {"delete": "~~", "insert": "**"}

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._last = "\n"
        self._mark = ""
        """Of what was written last."""

    @property
    def text(self) -> str:
        return "".join(self._parts).strip()

    def write(self, op: str, text: str) -> None:
        if op == "skip":
            self._put("\n\n…\n\n" if "\n" in text else " … ", "")
        elif op == "keep":
            self._put(text, "")
        else:
            for line in text.splitlines(keepends=True):
                self._put_marked(line, self._MARKS[op])

    def _put_marked(self, line: str, mark: str) -> None:
        signs = SIGNS.match(line) if self._last == "\n" else None
        body = line[signs.end() :] if signs else line
        words = body.strip()
        start = body.index(words)
        self._put((signs[0] if signs else "") + body[:start], self._mark)
        if words:
            apart = " " if self._mark and self._mark != mark and not self._last.isspace() else ""
            self._put(f"{apart}{mark}{words}{mark}", mark)
        self._put(body[start + len(words) :], mark)

    def _put(self, text: str, mark: str) -> None:
        if text:
            self._parts.append(text)
            self._last = text[-1]
            self._mark = mark


# Stretches --------------------------------------------------------------------------------


def _ops(before: str, after: str) -> Iterator[Op]:
    i = j = 0
    end = WordSpan(len(before), len(before)), WordSpan(len(after), len(after))
    for one, other in (*_aligned(before, after), end):
        yield from _between(before[i : one.start], after[j : other.start])
        yield from _replaced(before[one.start : one.stop], after[other.start : other.stop])
        i, j = one.stop, other.stop


def _between(deleted: str, inserted: str) -> Iterator[Op]:
    """What stands between two stretches of equal words, less the separators both have."""
    start, end = _common_ends(deleted, inserted)
    yield Op("keep", deleted[:start])
    old, new = deleted[start : len(deleted) - end], inserted[start : len(inserted) - end]
    yield from _by_paragraphs(old, new)
    yield Op("keep", deleted[len(deleted) - end :])


def _common_ends(deleted: str, inserted: str) -> tuple[int, int]:
    """How many characters before the first word are equal, and how many after the last."""
    lead, trail = separators_of(deleted)
    other_lead, other_trail = separators_of(inserted)
    start = len(lead) if lead == other_lead else _common_space(lead, other_lead)
    room = min(len(deleted), len(inserted)) - start
    return start, len(trail) if trail == other_trail and len(trail) <= room else 0


def _common_space(one: str, other: str) -> int:
    length = 0
    while one[length : length + 1].isspace() and one[length] == other[length : length + 1]:
        length += 1
    return length


def _by_paragraphs(deleted: str, inserted: str) -> Iterator[Op]:
    """Each paragraph beside the one it became, as far as that can be told."""
    old, new = (_cut(text, paragraphs_of(text)) for text in (deleted, inserted))
    if len(old) != len(new):
        yield from _replaced(deleted, inserted)
        return
    for one, other in zip(old, new, strict=True):
        trail = separators_of(one)[1]
        same = len(trail) if trail == separators_of(other)[1] else 0
        yield from _replaced(one[: len(one) - same], other[: len(other) - same])
        yield Op("keep", one[len(one) - same :])


def _replaced(deleted: str, inserted: str) -> Iterator[Op]:
    if deleted == inserted:
        yield Op("keep", deleted)
    else:
        yield Op("delete", deleted)
        yield Op("insert", inserted)


def _merged(ops: Iterable[Op]) -> Iterator[Op]:
    """Without empty stretches, each change as at most one deletion and one insertion."""
    texts: dict[Kind, list[str]] = {"keep": [], "delete": [], "insert": []}
    for op, text in ops:
        if not text:
            continue
        is_turn = texts["keep"] if op != "keep" else texts["delete"] or texts["insert"]
        if is_turn:
            yield from _flushed(texts)
        texts[op].append(text)
    yield from _flushed(texts)


def _flushed(texts: dict[Kind, list[str]]) -> Iterator[Op]:
    for kind, parts in texts.items():
        if parts:
            yield Op(kind, "".join(parts))
            parts.clear()


# Alignment --------------------------------------------------------------------------------


_Pair = tuple[WordSpan, WordSpan]


def _aligned(before: str, after: str) -> Iterator[_Pair]:
    """Stretches with the same words, in order; their white space may differ."""
    if essence(before) == essence(after):
        yield from _same_words(before, after, (WordSpan(0, len(before)), WordSpan(0, len(after))))
        return
    a, b = paragraphs_of(before), paragraphs_of(after)
    search = EqualRunSearch(_EFFORT)
    i = j = 0
    blocks = search.blocks(*_paragraph_keys(_cut(before, a), _cut(after, b)))
    for x, y, size in (*blocks, EqualRun(len(a), len(b), 0)):
        if i < x and j < y:
            changed = WordSpan(a[i].start, a[x - 1].stop), WordSpan(b[j].start, b[y - 1].stop)
            yield from _aligned_words(before, after, changed, search)
        for pair in zip(a[x : x + size], b[y : y + size], strict=True):
            yield from _same_words(before, after, pair)
        i, j = x + size, y + size


def _cut(text: str, spans: list[WordSpan]) -> list[str]:
    return [text[start:stop] for start, stop in spans]


def _paragraph_keys(a: list[str], b: list[str]) -> tuple[list[str], list[str]]:
    """What paragraphs are compared by; one that stands in both texts needs no closer look."""
    common = set(a).intersection(b)
    return _keyed(a, common), _keyed(b, common)


def _keyed(paragraphs: list[str], common: set[str]) -> list[str]:
    return [text if text in common else essence(text) for text in paragraphs]


def _aligned_words(
    before: str, after: str, within: _Pair, search: EqualRunSearch
) -> Iterator[_Pair]:
    a, b = words_of(before, within[0]), words_of(after, within[1])
    end = EqualRun(len(a.keys), len(b.keys), 0)
    for x, y, size in _without_islands(search.blocks(a.keys, b.keys), end):
        one = WordSpan(a.spans[x].start, a.spans[x + size - 1].stop)
        other = WordSpan(b.spans[y].start, b.spans[y + size - 1].stop)
        yield from _same_words(before, after, (one, other))


def _same_words(before: str, after: str, pair: _Pair) -> Iterator[_Pair]:
    """As one stretch where all is equal, else word by word."""
    one, other = pair
    if before[one.start : one.stop] == after[other.start : other.stop]:
        yield pair
    else:
        yield from zip(words_of(before, one).spans, words_of(after, other).spans, strict=True)


def _without_islands(blocks: list[EqualRun], end: EqualRun) -> list[EqualRun]:
    kept = [EqualRun(0, 0, 0)]
    for block in (*blocks, end):
        while len(kept) > 1 and _is_island(kept[-2], kept[-1], block):
            kept.pop()
        kept.append(block)
    return kept[1:-1]


def _is_island(left: EqualRun, block: EqualRun, right: EqualRun) -> bool:
    change_before = max(block.a - left.a, block.b - left.b) - left.size
    change_after = max(right.a - block.a, right.b - block.b) - block.size
    is_smaller = 2 * block.size < change_before + change_after
    return is_smaller and block.size <= min(_ISLAND, change_before, change_after)
