"""The nodes of a title in reading order, over all of its volumes and files.

Each file is read once, from beginning to end. A volume begins in the middle of a chapter, often of
a part, and prints their headings again. A level that was open when the volume before it ended is
continued, not listed a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fonds.errors import MalformedError
from fonds.sources.cfr.heads import (
    LEAVES,
    Dialect,
    Part,
    appendix_number,
    level_number,
    printed_number,
    rank,
    section_number,
    single_line,
    stated_number,
    status_of,
    without_volume,
)
from fonds.sources.jurisdiction import FRONT, Span, TocNode


@dataclass(slots=True)
class _OpenCfrLevel:
    kind: str
    number: str
    volume: int


class CfrOutline:
    """Takes nodes as they are found, and gives them away as the tree can be built of them."""

    def __init__(self) -> None:
        self._ready: list[TocNode] = []
        self._path: list[_OpenCfrLevel] = []
        self._pending: list[TocNode] = []
        self._volume = 0
        self._is_titled = False

    def next_file(self) -> None:
        """Another volume or file begins."""
        self._volume += 1

    def container(self, node: TocNode) -> bool:
        """List a level that has others below it; False if it only goes on from the last volume."""
        position = self._position(node)
        added = _OpenCfrLevel(node.kind, node.number, self._volume)
        last = self._path[position] if position < len(self._path) else None
        is_same = last is not None and (last.kind, last.number) == (added.kind, added.number)
        if last and is_same and node.number and last.volume != self._volume:
            last.volume = self._volume
            return False
        self._leave(position)
        self._path.append(added)
        self._ready.append(node)
        return True

    def leaf(self, node: TocNode) -> None:
        """List a leaf."""
        self._leave(self._position(node))
        self._ready.append(node)

    def defer(self, node: TocNode) -> None:
        """List a leaf of a level that goes on, once nothing below that level can go on any more."""
        self._position(node)
        self._pending.append(node)

    def title(self, node: TocNode) -> bool:
        """Add what is known of the unit itself; False if an earlier volume has done so."""
        if self._is_titled:
            return False
        self._is_titled = True
        self._ready.append(node)
        return True

    def drain(self) -> list[TocNode]:
        """The nodes that are ready since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> list[TocNode]:
        """The rest, at the end of the last file."""
        self._leave(0)
        return self.drain()

    def _position(self, node: TocNode) -> int:
        position = node.depth - 1
        if position > len(self._path):
            raise MalformedError(f"{node.label!r} is in a level that has already ended")
        return position

    def _leave(self, position: int) -> None:
        """End the levels from here on; the innermost is listed first."""
        for node in sorted(self._pending, key=lambda node: -node.depth):
            if node.depth > position:
                self._ready.append(node)
                self._pending.remove(node)
        del self._path[position:]


_EXCERPT_LENGTH: Final = 60


@dataclass(slots=True)
class _CfrLevel:
    kind: str
    stated: str
    identifier: str
    start: int
    depth: int
    words: dict[Part, str] = field(default_factory=dict)
    inside: int | None = None
    """The position of its first element."""
    text: tuple[int, int] | None = None
    """From the first to the last of its own elements since the last level below it."""
    is_added: bool = False
    is_continued: bool = False
    is_over: bool = False

    @property
    def label(self) -> str:
        number, heading = self.words.get("number", ""), self.words.get("heading", "")
        joined = number + heading if number.endswith("—") else f"{number} {heading}"
        return without_volume(joined.strip()) or f"{self.kind.capitalize()} {self.stated}".strip()

    @property
    def number(self) -> str:
        printed = self.words.get("number", "")
        if self.kind == "section":
            own = stated_number(self.stated) or printed_number(printed)
            return own or section_number(self.label)
        if self.kind == "appendix":
            return appendix_number(self.label) or appendix_number(self.stated)
        # What eCFR states of a subject group is a hash, and is never printed.
        if rank(self.kind) == rank("subject-group"):
            return ""
        return stated_number(self.stated) or level_number(self.label)


class CfrFileParser:
    """A listener that puts the nodes of one file into an outline."""

    def __init__(
        self, dialect: Dialect, outline: CfrOutline, *, page: str, title: str, above: int
    ) -> None:
        self._dialect = dialect
        self._outline = outline
        self._page = page
        self._title = title
        self._above = above
        """The number of levels around the file that are not in it themselves."""
        self._frames: list[_CfrLevel | None] = []
        """The open elements down to the innermost level; None is one around levels."""
        self._level: _CfrLevel | None = None
        """The innermost level."""
        self._inner = 0
        """How many elements are open below that."""
        self._captured: tuple[Part, int, list[str]] | None = None
        self._element = 0
        self._has_words = False
        self._is_unread = False
        self._is_headed = False
        """Whether, within what is not read, the heading is about to come."""
        self._is_forgotten = False
        """Whether the end of a section was; from there on elements end in the wrong places."""

    # Heard ------------------------------------------------------------------------------------

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """An element begins: a level, a heading, or text of the level around it."""
        # Nearly all elements are inside others that are known already.
        if self._inner:
            self._inner += 1
            if self._is_unread and self._captured is None:
                self._capture_within(name, attributes)
            return
        level = self._level
        if level is not None and level.inside is None:
            level.inside = offset
        if self._opens(name, attributes, offset):
            return
        self._inner = 1
        self._element, self._has_words = offset, name in self._dialect.pictures
        self._is_unread = level is None or name in self._dialect.unread
        self._is_headed = False
        if not self._is_unread:
            self._capture(name, attributes)

    def end(self, name: str, offset: int) -> None:
        """An element ends."""
        del name
        if self._inner == 0:
            self._leave(offset)
            return
        if self._captured and self._captured[1] == self._inner:
            self._keep_heading(self._captured)
        elif self._inner == 1 and self._has_words and not self._is_unread:
            self._extend(offset)
        self._inner -= 1

    def text(self, data: str) -> None:
        """Some text."""
        if self._captured:
            self._captured[2].append(data)
        elif self._inner:
            self._has_words = self._has_words or not data.isspace()
        elif (level := self._level) and level.kind not in LEAVES and not data.isspace():
            excerpt = single_line(data)[:_EXCERPT_LENGTH]
            raise MalformedError(f"words outside of any element in {level.label!r}: {excerpt!r}")

    # Levels -----------------------------------------------------------------------------------

    def _opens(self, name: str, attributes: Mapping[str, str], offset: int) -> bool:
        around = self._level
        kind = self._dialect.kind(name, attributes)
        if kind is None:
            is_wrapper = around is None and name in self._dialect.wrappers
            if is_wrapper:
                self._frames.append(None)
            return is_wrapper
        is_large = rank("subtitle") <= rank(kind) <= rank("part")
        if around is not None and around.kind in LEAVES:
            if not is_large:
                return False
            self._let_go(around, offset)
        if around is not None and around.is_over and not is_large:
            raise MalformedError(f"<{name}> is in {around.label!r}, after parts that follow it")
        if self._is_forgotten:
            self._make_room(kind)
        for level in self._open():
            self._add_level(level)
            self._flush(level)
        self._begin(kind, attributes, offset)
        return True

    def _begin(self, kind: str, attributes: Mapping[str, str], offset: int) -> None:
        if kind == "title":
            self._outline.next_file()
        above = self._open()
        around = above[-1].identifier if above else self._dialect.within(self._title)
        levels = self._above + sum(level.kind != "title" for level in above)
        level = _CfrLevel(
            kind=kind,
            stated=attributes.get("N", ""),
            identifier=self._dialect.identifier(attributes, around),
            start=offset,
            depth=0 if kind == "title" else levels + 1,
        )
        self._frames.append(level)
        self._level = level

    def _leave(self, offset: int) -> None:
        level = self._frames.pop()
        self._level = next((frame for frame in reversed(self._frames) if frame is not None), None)
        if level is not None and not level.is_over:
            self._finish(level, offset)

    def _open(self) -> list[_CfrLevel]:
        return [frame for frame in self._frames if frame is not None and not frame.is_over]

    def _let_go(self, section: _CfrLevel, offset: int) -> None:
        """End a section, whose end was forgotten, where whole parts begin in it.

        Its bytes are its elements, side by side, for its own end tag comes much later.
        """
        self._frames[-1] = None
        self._is_forgotten = True
        start = section.start if section.inside is None else section.inside
        self._outline.leaf(self._leaf(section, start, offset))

    def _make_room(self, kind: str) -> None:
        """After a missing end tag, nesting is unreliable: a level ends those it cannot be in."""
        for level in self._open():
            if rank(level.kind) >= rank(kind) > 0:
                self._add_level(level)
                self._flush(level)
                level.is_over = True

    def _finish(self, level: _CfrLevel, offset: int) -> None:
        if level.kind in LEAVES:
            self._outline.leaf(self._leaf(level, level.start, offset))
        elif level.is_added:
            self._flush(level)
        elif not any(level.words.values()) and level.text is None:
            return  # an empty element, in the place of a heading that was left out
        elif level.kind == "title":
            self._add_level(level)
            self._outline.leaf(self._front(level, level.start, offset))
        elif status_of(level.label):
            self._outline.leaf(self._leaf(level, level.start, offset))
        else:
            self._add_level(level)
            self._flush(level)

    # Nodes ------------------------------------------------------------------------------------

    def _add_level(self, level: _CfrLevel) -> None:
        if level.is_added:
            return
        level.is_added = True
        node = TocNode(
            kind=level.kind,
            number=self._title if level.kind == "title" else level.number,
            label=level.label,
            depth=level.depth,
            identifier=level.identifier,
        )
        add = self._outline.title if level.kind == "title" else self._outline.container
        level.is_continued = not add(node)

    def _flush(self, level: _CfrLevel) -> None:
        if level.text is None:
            return
        front = self._front(level, *level.text)
        level.text = None
        list_it = self._outline.defer if level.is_continued else self._outline.leaf
        list_it(front)

    def _leaf(self, level: _CfrLevel, start: int, end: int) -> TocNode:
        return TocNode(
            kind=level.kind,
            number=level.number,
            label=level.label,
            depth=level.depth,
            is_leaf=True,
            pages=(self._page,),
            span=Span(start=start, length=end - start),
            identifier=level.identifier,
            status=status_of(level.label),
        )

    def _front(self, level: _CfrLevel, start: int, end: int) -> TocNode:
        return TocNode(
            kind=FRONT,
            label=level.label,
            depth=level.depth + 1,
            is_leaf=True,
            pages=(self._page,),
            span=Span(start=start, length=end - start),
            identifier=level.identifier,
            status=status_of(level.label),
        )

    # Headings and texts -----------------------------------------------------------------------

    def _capture(self, name: str, attributes: Mapping[str, str]) -> None:
        part = self._dialect.head(name, attributes)
        if self._level is not None and part is not None and part not in self._level.words:
            self._captured = (part, self._inner, [])

    def _capture_within(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in self._dialect.inner_heads:
            self._is_headed = True
        elif self._is_headed:
            self._capture(name, attributes)

    def _keep_heading(self, captured: tuple[Part, int, list[str]]) -> None:
        part, _, chunks = captured
        self._captured = None
        if self._level is not None:
            self._level.words[part] = single_line("".join(chunks))

    def _extend(self, offset: int) -> None:
        level = self._level
        if level is not None and level.is_over:
            raise MalformedError(f"text of {level.label!r} is after parts that follow it")
        if level is not None and level.kind not in LEAVES:
            first = level.text[0] if level.text else self._element
            level.text = (first, offset)
