"""Writing Markdown block by block: white space, escapes, and the offsets of what stands where."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from fonds.model import Artifact, Heading, NormalizedBody, PageMark

# An escape is written only where the character would otherwise mean something to a renderer:
# passages are read as plain text far more often than they are rendered.
_SPECIAL: Final = re.compile(r"[\\`*_<&~\]]")
_ESCAPES: Final = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # a backslash that would escape the next character
    r"|[`*]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # between letters an underscore is only an underscore
    r"|<(?=[A-Za-z/!?])"
    r"|&(?=#?\w+;)"
    r"|(?<!/)~"  # but not in http://host/~user, which would stop being a link
    r"|\](?=[(\[:])"
)
_LINE_START: Final = re.compile(
    r"#{1,6}(?=\s|$)|[-+](?=\s|$)|-{3,}|>|\||=+$|(\d{1,9})(?=[.)](?:\s|$))"
)
_MARKUP: Final = re.compile(r" ?\[\^[^\]\s]+\]|(?<!\\)\*+|</?su[bp]>|\\(?=[!-/:-@\[-`{-~])")

# Between a letter and its accent: the end of emphasis, of a raised letter, and so on.
_MARKUP_BEHIND: Final = 4
_Piece = TypeVar("_Piece")

_OPENING: Final = frozenset("([{“‘—–-/$@_")
_CLOSING: Final = frozenset(".,;:!?)]}”’'\"—–-/%_")


def escape(text: str) -> str:
    """Text that renders as its own characters, wherever in a line it stands."""
    # One set of characters is found far faster than the rules for each of them.
    return _SPECIAL.sub(_escaped, text)


def _escaped(special: re.Match[str]) -> str:
    needed = _ESCAPES.match(special.string, special.start())
    return f"\\{special[0]}" if needed else special[0]


def escape_start(text: str) -> str:
    """Escaped text that begins no list, heading, quotation, table or rule either."""
    match = _LINE_START.match(text)
    if match is None:
        return text
    at = match.end(1) if match[1] else 0
    return f"{text[:at]}\\{text[at:]}"


def shared_prefix(one: str, other: str) -> str:
    """What two lines' prefixes have in common, which the line between them needs."""
    if one == other:
        return one
    shorter, longer = sorted((one, other), key=len)
    return shorter if longer.startswith(shorter) else ""


def plain(markdown: str) -> str:
    """What a reader sees of a line this module wrote."""
    return _MARKUP.sub("", markdown).strip()


def unseen(text: str) -> str:
    """What a page prints beside its text, as a comment.

    No word is lost, and no sentence is interrupted for a reader; nor does search see it.
    """
    return f"<!-- {' '.join(text.split()).replace('--', '- -')} -->"


class MarkdownWriter:
    """Collects blocks of Markdown; every offset it hands out is final."""

    def __init__(self, *, restore_spaces: bool = False) -> None:
        self.restore_spaces = restore_spaces
        """Put back the space a publisher lost between text and an inline element."""
        self.in_table = False
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._pages: list[PageMark] = []
        self._artifacts: list[Artifact] = []
        self._pending_pages: list[str] = []
        self._prefix = ""
        self._first_prefix: str | None = None
        self._written_prefix = ""
        self._level = 0
        self._section: str | None = None
        self._offset = 0
        self._block_part = 0
        self._started = False
        self._run_in = False
        self._last = self._opening = ""
        self._pending_space = self._at_seam = False
        self._bare = True

    def finish(self, warnings: tuple[str, ...] = ()) -> NormalizedBody:
        """The body, once everything is written."""
        self.end()
        if self._parts:
            self._put("\n")
        self._pages.extend(PageMark(offset=self._length, page=page) for page in self._pending_pages)
        return NormalizedBody(
            markdown="".join(self._parts),
            headings=tuple(self._headings),
            pages=tuple(self._pages),
            artifacts=tuple(self._artifacts),
            warnings=warnings,
        )

    # Blocks -------------------------------------------------------------------------------

    def begin(self, *, level: int = 0, section: str | None = None) -> None:
        """Start a paragraph, or a heading of that level; nothing is written until text comes."""
        if self._run_in:
            self._run_in = False
            self.space()
            return
        self.end()
        self._level, self._section = level, section

    def end(self) -> None:
        """Finish the block, if one is open."""
        if self._started and self._level:
            line = "".join(self._parts[self._block_part :])
            text = plain(line.lstrip("#"))
            self._headings.append(
                Heading(level=self._level, text=text, offset=self._offset, section=self._section)
            )
        self._started = self._run_in = False
        self._level = 0
        self._clear()

    def run_in(self) -> None:
        """Let the next paragraph continue this one, as a lead-in does."""
        self._run_in = self._started

    def indent(self, prefix: str, first: str | None = None) -> str:
        """Put a prefix before every line to come; gives the former one, for `outdent`."""
        self.end()
        former = self._prefix
        self._first_prefix = None if first is None else former + first
        self._prefix = former + prefix
        return former

    def outdent(self, former: str) -> None:
        """Go back to a former prefix."""
        self.end()
        self._prefix, self._first_prefix = former, None

    def line(self) -> None:
        """A new line within the block."""
        self._put("\n" + self._prefix)
        self._clear()

    # Inline -------------------------------------------------------------------------------

    def text(self, text: str | None) -> None:
        """Running text: white space collapses, and what Markdown would read is escaped."""
        if not text:
            return
        words = text.split()
        if not words:
            self.space()
            return
        if text[0].isspace():
            self.space()
        body = " ".join(words)
        line_start = not (self._last or self._level or self._opening)
        self._join(body[0])
        self._put(self._escaped(body, line_start=line_start))
        self._last = body[-1]
        self._pending_space = text[-1].isspace()

    def markup(self, markup: str) -> None:
        """Markdown of our own, written as it is, glued to the text before it."""
        if not self._started:
            self._start()
        self._mark_pages()
        self._put(markup)
        self._bare = False

    def emphasis(self, marker: str) -> None:
        """Let the next text be preceded by that marker."""
        self._opening = marker

    def close(self, marker: str) -> None:
        """End emphasis right behind the last text, or forget it if there was none."""
        if self._opening:
            self._opening = ""
        else:
            self._put(marker)
            self._bare = False

    def before(self, first: str) -> str:
        """The character the next text would be written behind; empty at the start of a line."""
        if not self._started or self._pending_space or self._lost_space(first):
            return ""
        return self._last if self._bare else "*"

    def takes_emphasis(self, words: str, following: str) -> bool:
        """Whether markers around words would be read as such: what stands around them decides."""
        if not any(character.isalnum() for character in words):
            return False
        before = self.before(words[0])
        if before == "*" or (before.isalnum() and not words[0].isalnum()):
            return False
        return words[-1].isalnum() or not following[:1].isalnum()

    def seam(self) -> None:
        """An inline element begins or ends here."""
        self._at_seam = True

    def space(self) -> None:
        """A space, unless nothing or another one is before it."""
        self._pending_space = self._last != ""

    def no_space(self) -> None:
        """Take back a space that only the publisher's indentation suggested."""
        self._pending_space = self._at_seam = False

    def page(self, page: str) -> None:
        """The next text stands on that page."""
        self._pending_pages.append(page)

    def artifact(self, kind: str, content: str) -> None:
        """Keep beside the text what the next text only names."""
        if not self._started:
            self._start()
        self._artifacts.append(Artifact(kind=kind, offset=self._length, content=content))

    def accent(self, mark: str) -> None:
        """Put a combining mark on the last character, even across the markup behind it."""
        self.no_space()
        if not self._last:
            return
        first = max(self._block_part, len(self._parts) - _MARKUP_BEHIND)
        for index in range(len(self._parts) - 1, first - 1, -1):
            part = self._parts[index]
            if part.endswith(self._last):
                marked = unicodedata.normalize("NFC", self._last + mark)
                self._parts[index] = part[:-1] + marked
                self._length += len(marked) - 1
                self._last = marked[-1]
                return

    def cell(self) -> None:
        """Forget what was written before: a table's cell begins."""
        self._clear()

    def row(
        self, cells: Sequence[Sequence[_Piece]], columns: int, write: Callable[[_Piece], None]
    ) -> None:
        """A table's row on this line, blank cells up to its columns; pieces of one get a slash."""
        self.markup("|")
        for pieces in [*cells, *[()] * (columns - len(cells))]:
            for index, piece in enumerate(pieces):
                self.cell()
                self.markup(" / " if index else " ")
                write(piece)
            self.cell()
            self.markup(" |" if pieces else "  |")

    # Offsets ------------------------------------------------------------------------------

    def _join(self, first: str) -> None:
        if not self._started:
            self._start()
        elif self._pending_space or self._lost_space(first):
            self._put(" ")
        self._pending_space = self._at_seam = False
        self._mark_pages()
        if self._opening:
            self._put(self._opening)
            self._opening = ""
        self._bare = True

    def _start(self) -> None:
        prefix = self._prefix if self._first_prefix is None else self._first_prefix
        if self._parts:
            shared = shared_prefix(self._written_prefix, self._prefix)
            self._put(f"\n{shared.rstrip()}\n")
        self._put(prefix)
        self._mark_pages()
        self._first_prefix, self._written_prefix = None, self._prefix
        self._offset, self._block_part = self._length, len(self._parts)
        self._started = True
        if self._level:
            self._put("#" * self._level + " ")

    def _mark_pages(self) -> None:
        for page in self._pending_pages:
            self._pages.append(PageMark(offset=self._length, page=page))
        self._pending_pages.clear()

    def _lost_space(self, first: str) -> bool:
        return (
            self.restore_spaces
            and self._at_seam
            and first not in _CLOSING
            and self._last != ""
            and self._last not in _OPENING
        )

    def _escaped(self, body: str, *, line_start: bool) -> str:
        escaped = escape(body)
        if self.in_table:
            return escaped.replace("|", "\\|")
        return escape_start(escaped) if line_start else escaped

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _clear(self) -> None:
        self._last = self._opening = ""
        self._pending_space = self._at_seam = False
        self._bare = True
