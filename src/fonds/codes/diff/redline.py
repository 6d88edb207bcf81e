"""Comparison of two texts of a section, word by word: equal, deleted and inserted passages.

Paragraphs are aligned first, then the words of those that changed. The work is bounded: where two
texts have too little in common, the result is one deletion and one insertion.
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
    normalized_fragment,
    normalized_words,
    paragraphs_of,
    separators_of,
    start_of_last,
    words_of,
)

Kind = Literal["keep", "delete", "insert"]

_EMPHASIS: Final = re.compile(r"(?<!\\)(?:\*+|~~)")

_MAX_STEPS: Final = 2_000_000
"""Steps before the alignment becomes coarser; about a second."""
_ISLAND_SIZE: Final = 4
"""Equal words between longer changes that are taken for coincidence: `of the`, `shall be`."""
_CONTEXT_WORDS: Final = 12
_MIN_SKIPPED: Final = 24
"""Fewer characters than these are not worth an ellipsis."""


class Op(NamedTuple):
    """A passage of text that is equal in both versions, deleted or inserted."""

    op: Kind
    text: str


class ChangedPassage(NamedTuple):
    """A passage of an excerpt; `skip` is unchanged text to leave out."""

    op: Literal["keep", "delete", "insert", "skip"]
    text: str


@dataclass(frozen=True, slots=True)
class Redline:
    """Operations: `keep` and `delete` give the old text, `keep` and `insert` the new one."""

    ops: tuple[Op, ...]

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    @property
    def before(self) -> str:
        """The old text, character by character."""
        return "".join(text for op, text in self.ops if op != "insert")

    @property
    def after(self) -> str:
        """The new text, character by character."""
        return "".join(text for op, text in self.ops if op != "delete")

    @property
    def is_change(self) -> bool:
        """Whether any word differs; white space, soft hyphens and line markers do not count."""
        return any(op != "keep" for op, _ in self.visible_ops())

    def visible_ops(self) -> Iterator[Op]:
        """The operations to display; where no word changed, the new text is one `keep`."""
        return _merged(self._word_changes())

    def _word_changes(self) -> Iterator[Op]:
        deleted, inserted = _ChangeSide(), _ChangeSide()
        for op, text in (*self.ops, Op("keep", "")):
            if op == "delete":
                deleted.text += text
            elif op == "insert":
                inserted.text += text
            else:
                old_words, new_words = deleted.words(text), inserted.words(text)
                is_equal = old_words == new_words
                yield Op("delete", "" if is_equal or not old_words else deleted.text)
                yield Op("insert", "" if is_equal or not new_words else inserted.text)
                yield Op("keep", inserted.text + text if is_equal else text)
                deleted.keep(text)
                inserted.keep(text)


@dataclass(slots=True)
class _ChangeSide:
    """One side of a change, and whether it begins at the start of a line."""

    text: str = ""
    opens_line: bool = True

    def words(self, following: str) -> str:
        """Its words; line markers at its end count as words if text follows directly."""
        if not following[:1].strip():
            return normalized_fragment(self.text, opens_line=self.opens_line)
        words = normalized_fragment(f"{self.text}\u3007", opens_line=self.opens_line)
        return words.removesuffix("\u3007").rstrip()

    def keep(self, following: str) -> None:
        extended = self.text + following
        self.opens_line = ends_at_line_start(extended, opens_line=self.opens_line)
        self.text = ""


def redline(before: str, after: str) -> Redline:
    """Compare two texts by whole words; both can be restored from the result."""
    return Redline(tuple(_merged(_ops(before, after))))


def excerpt(redline: Redline, *, context: int = _CONTEXT_WORDS) -> Iterator[ChangedPassage]:
    """The changes with `context` unchanged words around each; empty without changes."""
    ops = list(redline.visible_ops())
    if all(op == "keep" for op, _ in ops):
        return
    for number, (op, text) in enumerate(ops):
        if op != "keep":
            yield ChangedPassage(op, text)
            continue
        head = end_of_first(text, context) if number else 0
        tail = start_of_last(text, context) if number < len(ops) - 1 else len(text)
        if head + _MIN_SKIPPED > tail:
            yield ChangedPassage("keep", text)
            continue
        cut = ChangedPassage("keep", text[:head]), ChangedPassage("skip", text[head:tail])
        yield from (
            passage for passage in (*cut, ChangedPassage("keep", text[tail:])) if passage.text
        )


def as_markdown(redline: Redline, *, context: int = _CONTEXT_WORDS) -> str:
    """The changes as ~~deleted~~ and **inserted** words, with `…` for skipped text.

    Emphasis in the texts is removed, so that bold and struck words are always changes.
    """
    page = _MarkedText()
    for op, text in excerpt(redline, context=context):
        page.write(op, _EMPHASIS.sub("", text))
    return page.text


# Writing ----------------------------------------------------------------------------------


class _MarkedText:
    """Markdown in which marks touch words and never span a line break."""

    _MARKS: Final = {"delete": "~~", "insert": "**"}

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._last = "\n"
        self._mark = ""
        """The mark of the last text."""

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
        content = line[signs.end() :] if signs else line
        words = content.strip()
        start = content.index(words)
        self._put((signs[0] if signs else "") + content[:start], self._mark)
        if words:
            space = " " if self._mark and self._mark != mark and not self._last.isspace() else ""
            self._put(f"{space}{mark}{words}{mark}", mark)
        self._put(content[start + len(words) :], mark)

    def _put(self, text: str, mark: str) -> None:
        if text:
            self._parts.append(text)
            self._last = text[-1]
            self._mark = mark


# Operations -------------------------------------------------------------------------------


def _ops(before: str, after: str) -> Iterator[Op]:
    i = j = 0
    end = WordSpan(len(before), len(before)), WordSpan(len(after), len(after))
    for old, new in (*_aligned(before, after), end):
        yield from _between(before[i : old.start], after[j : new.start])
        yield from _replaced(before[old.start : old.stop], after[new.start : new.stop])
        i, j = old.stop, new.stop


def _between(deleted: str, inserted: str) -> Iterator[Op]:
    """The text between two passages of equal words, without the separators both have."""
    start, end = _common_ends(deleted, inserted)
    yield Op("keep", deleted[:start])
    old, new = deleted[start : len(deleted) - end], inserted[start : len(inserted) - end]
    yield from _by_paragraphs(old, new)
    yield Op("keep", deleted[len(deleted) - end :])


def _common_ends(deleted: str, inserted: str) -> tuple[int, int]:
    """Numbers of equal characters before the first word and after the last."""
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
    """Paragraphs in pairs if there are equally many, else one replacement."""
    old, new = (_cut(text, paragraphs_of(text)) for text in (deleted, inserted))
    if len(old) != len(new):
        yield from _replaced(deleted, inserted)
        return
    for old_text, new_text in zip(old, new, strict=True):
        trail = separators_of(old_text)[1]
        same = len(trail) if trail == separators_of(new_text)[1] else 0
        yield from _replaced(old_text[: len(old_text) - same], new_text[: len(new_text) - same])
        yield Op("keep", old_text[len(old_text) - same :])


def _replaced(deleted: str, inserted: str) -> Iterator[Op]:
    if deleted == inserted:
        yield Op("keep", deleted)
    else:
        yield Op("delete", deleted)
        yield Op("insert", inserted)


def _merged(ops: Iterable[Op]) -> Iterator[Op]:
    """Operations without empty ones; each change is at most one deletion and one insertion."""
    texts: dict[Kind, list[str]] = {"keep": [], "delete": [], "insert": []}
    for op, text in ops:
        if not text:
            continue
        ends_run = texts["keep"] if op != "keep" else texts["delete"] or texts["insert"]
        if ends_run:
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
    """Passages with the same words, in order; their white space may differ."""
    if normalized_words(before) == normalized_words(after):
        yield from _same_words(before, after, (WordSpan(0, len(before)), WordSpan(0, len(after))))
        return
    a, b = paragraphs_of(before), paragraphs_of(after)
    search = EqualRunSearch(_MAX_STEPS)
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
    """Keys by which paragraphs are compared; one that is in both texts is its own key."""
    common = set(a).intersection(b)
    return _keyed(a, common), _keyed(b, common)


def _keyed(paragraphs: list[str], common: set[str]) -> list[str]:
    return [text if text in common else normalized_words(text) for text in paragraphs]


def _aligned_words(
    before: str, after: str, within: _Pair, search: EqualRunSearch
) -> Iterator[_Pair]:
    a, b = words_of(before, within[0]), words_of(after, within[1])
    end = EqualRun(len(a.keys), len(b.keys), 0)
    for x, y, size in _without_islands(search.blocks(a.keys, b.keys), end):
        old = WordSpan(a.spans[x].start, a.spans[x + size - 1].stop)
        new = WordSpan(b.spans[y].start, b.spans[y + size - 1].stop)
        yield from _same_words(before, after, (old, new))


def _same_words(before: str, after: str, pair: _Pair) -> Iterator[_Pair]:
    """One passage if the text is equal, else word by word."""
    old, new = pair
    if before[old.start : old.stop] == after[new.start : new.stop]:
        yield pair
    else:
        yield from zip(words_of(before, old).spans, words_of(after, new).spans, strict=True)


def _without_islands(blocks: list[EqualRun], end: EqualRun) -> list[EqualRun]:
    retained = [EqualRun(0, 0, 0)]
    for block in (*blocks, end):
        while len(retained) > 1 and _is_island(retained[-2], retained[-1], block):
            retained.pop()
        retained.append(block)
    return retained[1:-1]


def _is_island(left: EqualRun, block: EqualRun, right: EqualRun) -> bool:
    change_before = max(block.a - left.a, block.b - left.b) - left.size
    change_after = max(right.a - block.a, right.b - block.b) - block.size
    is_smaller = 2 * block.size < change_before + change_after
    return is_smaller and block.size <= min(_ISLAND_SIZE, change_before, change_after)
