"""Writing Markdown block by block: white space, escapes, and the offsets of headings and pages.

`MarkdownWriter` writes each text as it comes. `BlockWriter` collects the texts of a block, then
trims, escapes and joins them at once: a title of the US Code has a hundred thousand inline
elements. Until then markup is represented by control characters, which XML cannot contain.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import deque
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
_Part = TypeVar("_Part")

_OPENING: Final = frozenset("([{“‘—–-/$@_")
_CLOSING: Final = frozenset(".,;:!?)]}”’'\"—–-/%_")


def escape(text: str) -> str:
    """Text that renders as its own characters, at any position in a line."""
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
    """The common prefix of two lines, which the line between them needs."""
    if one == other:
        return one
    shorter, longer = sorted((one, other), key=len)
    return shorter if longer.startswith(shorter) else ""


def visible_text(markdown: str) -> str:
    """The text of a line that this module wrote, without its markup."""
    return _MARKUP.sub("", markdown).strip()


def html_comment(text: str) -> str:
    """Text that a page prints in its margins, as a comment.

    No word is lost, no sentence is interrupted, and search ignores it.
    """
    return f"<!-- {' '.join(text.split()).replace('--', '- -')} -->"


class MarkdownWriter:
    """Collects blocks of Markdown; every offset it hands out is final."""

    def __init__(self, *, restore_spaces: bool = False) -> None:
        self.restore_spaces = restore_spaces
        """Put back the space a publisher lost between text and an inline element."""
        self.in_table = False
        self.is_open = False
        """Whether a block has begun, with text or without."""
        self._marks: list[tuple[str, str]] = []
        self._open_marks = 0
        """How many of the marks are written in front of the last text."""
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._pages: list[PageMark] = []
        self._artifacts: list[Artifact] = []
        self._pending_pages: list[tuple[str | None, int | None]] = []
        self._prefix = ""
        self._first_prefix: str | None = None
        self._last_prefix = ""
        self._level = 0
        self._section: str | None = None
        self._offset = 0
        self._block_part = 0
        self._started = False
        self._run_in = False
        self._last = ""
        self._pending_space = self._at_seam = False
        self._bare = True

    def finish(self, warnings: tuple[str, ...] = ()) -> NormalizedBody:
        """The body, once everything is written."""
        self.end()
        if self._parts:
            self._put("\n")
        self._mark_pages()
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
        self.is_open = True

    def end(self) -> None:
        """Finish the block, if one is open; marks around its text continue in the next one."""
        if self._open_marks:
            self.end_marks()
        if self._started and self._level:
            line = "".join(self._parts[self._block_part :])
            text = visible_text(line.lstrip("#"))
            self._headings.append(
                Heading(level=self._level, text=text, offset=self._offset, section=self._section)
            )
        self._started = self._run_in = self.is_open = False
        self._level = 0
        self._clear()

    def run_in(self) -> None:
        """Let the next paragraph continue this one, as a lead-in does."""
        self._run_in = self._started

    def indent(self, prefix: str, first: str | None = None) -> str:
        """Put a prefix before every line to come; returns the previous one, for `outdent`."""
        self.end()
        outer = self._prefix
        self._first_prefix = None if first is None else outer + first
        self._prefix = outer + prefix
        return outer

    def outdent(self, outer: str) -> None:
        """Restore a previous prefix."""
        self.end()
        self._prefix, self._first_prefix = outer, None

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
        joined = " ".join(words)
        line_start = not (self._last or self._level or self._open_marks < len(self._marks))
        self._join(joined[0])
        self._put(self._escaped(joined, line_start=line_start))
        self._last = joined[-1]
        self._pending_space = text[-1].isspace()

    def markup(self, markup: str) -> None:
        """Write markup without escapes, directly behind the text before it."""
        if not self._started:
            self._start()
        self._mark_pages()
        self._put(markup)
        self._bare = False

    def mark(self, opening: str, closing: str) -> None:
        """Put the text to come between these, in each block of it."""
        self._marks.append((opening, closing))

    def unmark(self) -> None:
        """End the last mark; if no text came, nothing of it is written."""
        _, closing = self._marks.pop()
        if self._open_marks > len(self._marks):
            self._open_marks = len(self._marks)
            self._put(closing)
            self._bare = False

    def end_marks(self) -> None:
        """Close the marks behind the last text; they open again before the next."""
        for _, closing in reversed(self._marks[: self._open_marks]):
            self._put(closing)
            self._bare = False
        self._open_marks = 0

    def before(self, first: str) -> str:
        """The character the next text would be written behind; empty at the start of a line."""
        if not self._started or self._pending_space or self._lost_space(first):
            return ""
        return self._last if self._bare else "*"

    def takes_emphasis(self, words: str, following: str) -> bool:
        """Whether Markdown would read markers around words as such, given the text around them."""
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

    def page(self, page: str | None, pdf_page: int | None = None) -> None:
        """Mark the next text as the beginning of a page."""
        self._pending_pages.append((page, pdf_page))

    def artifact(self, kind: str, content: str) -> None:
        """Store as an artifact what the next text only names."""
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
        """Begin or end a cell of a table."""
        self.end_marks()
        self._clear()

    def row(
        self, cells: Sequence[Sequence[_Part]], columns: int, write: Callable[[_Part], None]
    ) -> None:
        """A table's row on this line, blank cells up to its columns; pieces of one get a slash."""
        self.markup("|")
        for cell in [*cells, *[()] * (columns - len(cells))]:
            for index, part in enumerate(cell):
                self.cell()
                self.markup(" / " if index else " ")
                write(part)
            self.cell()
            self.markup(" |" if cell else "  |")

    # Offsets ------------------------------------------------------------------------------

    def _join(self, first: str) -> None:
        if not self._started:
            self._start()
        elif self._pending_space or self._lost_space(first):
            self._put(" ")
        self._pending_space = self._at_seam = False
        self._mark_pages()
        if self._open_marks < len(self._marks):
            for opening, _ in self._marks[self._open_marks :]:
                self._put(opening)
            self._open_marks = len(self._marks)
        self._bare = True

    def _start(self) -> None:
        prefix = self._prefix if self._first_prefix is None else self._first_prefix
        if self._parts:
            shared = shared_prefix(self._last_prefix, self._prefix)
            self._put(f"\n{shared.rstrip()}\n")
        self._put(prefix)
        self._mark_pages()
        self._first_prefix, self._last_prefix = None, self._prefix
        self._offset, self._block_part = self._length, len(self._parts)
        self._started = self.is_open = True
        if self._level:
            self._put("#" * self._level + " ")

    def _mark_pages(self) -> None:
        for page, pdf_page in self._pending_pages:
            self._pages.append(PageMark(offset=self._length, page=page, pdf_page=pdf_page))
        self._pending_pages.clear()

    def _lost_space(self, first: str) -> bool:
        return (
            self.restore_spaces
            and self._at_seam
            and first not in _CLOSING
            and self._last != ""
            and self._last not in _OPENING
        )

    def _escaped(self, joined: str, *, line_start: bool) -> str:
        escaped = escape(joined)
        if self.in_table:
            return escaped.replace("|", "\\|")
        return escape_start(escaped) if line_start else escaped

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _clear(self) -> None:
        self._last = ""
        self._pending_space = self._at_seam = False
        self._bare = True


EMPHASIS, BOLD_END, ITALIC_END = "\x01", "\x02", "\x04"
BREAK, PAGE = "\x05", "\x06"
NOTE, NOTE_END = "\x07", "\x08"
SUP, SUP_END, SUB, SUB_END = "\x0e", "\x0f", "\x10", "\x11"
BOLD, ITALIC = "\x16", "\x17"
INS, INS_END, DEL, DEL_END = "\x12", "\x13", "\x14", "\x15"

STRONG: Final = -1
"""The level of a block that is printed as a heading but is not one of this document."""

# CommonMark trims spaces and takes four of them for code; this one it leaves alone.
_INDENT: Final = "\u2003"
_TAGS: Final = {
    **dict.fromkeys((EMPHASIS, BOLD_END, ITALIC_END), ""),
    BREAK: "<br>",
    PAGE: PAGE,
    NOTE: "[^",
    NOTE_END: "]",
    SUP: "<sup>",
    SUP_END: "</sup>",
    SUB: "<sub>",
    SUB_END: "</sub>",
    INS: "<ins>",
    INS_END: "</ins>",
    DEL: "<del>",
    DEL_END: "</del>",
}
_MARKS: Final = re.compile("[\x01\x02\x04-\x08\x0e-\x15]")
_EMPHASIS: Final = re.compile("\x01([^\x01\x02\x04]*)([\x02\x04])")
_BREAKS: Final = re.compile("(?: ?\x05)+ ?")
_SPACES: Final = re.compile(" {2,}")
_HIDDEN_MARKUP: Final = re.compile(r"</?(?:ins|del)>|<br>")
_STARTERS: Final = frozenset("#-+>|=0123456789")
_MAX_CLOSING_LENGTH: Final = 3
_MARKERS: Final = frozenset({BOLD, BOLD_END, ITALIC, ITALIC_END, "*"})


class BlockWriter:
    """Collects the pieces of one block after another; every offset it records is final."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        """The pieces of the open block."""
        self.level = 0
        """Of the open block: 0 for a paragraph, 1 to 6 for a heading, or `STRONG`."""
        self.section: str | None = None
        self.marked = False
        """Whether the open block has marks, which only then have to be replaced."""
        self.indent = 0
        self.flat: str | None = None
        """Separator of blocks while they are forced into one line, as in a table's cell."""
        self.change = ""
        """`ins` or `del` while blocks are marked as inserted or deleted."""
        self.page_names: deque[str] = deque()
        """One name for each `PAGE` among the pieces."""
        self._waiting_pages = 0
        self._emphatic = False
        self._prefix = ""
        self._first: str | None = None
        self._last_prefix = ""
        self._after_quotation = False
        self._out: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._pages: list[PageMark] = []
        self._artifacts: list[Artifact] = []

    def finish(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The body, once everything is written."""
        self.flush()
        if self._out:
            self._put("\n")
        for page in self.page_names:
            self._pages.append(PageMark(offset=self._length, page=page))
            self._put(f"{html_comment(page)}\n")
        return NormalizedBody(
            markdown="".join(self._out),
            headings=tuple(self._headings),
            pages=tuple(self._pages),
            artifacts=tuple(self._artifacts),
            warnings=warnings,
        )

    def flush(self) -> None:
        """End the open block; nothing is written if it has no text."""
        if self.flat is not None:
            self.parts.append(self.flat)
            return
        level, self.level = self.level, 0
        section, self.section = self.section, None
        if not self.parts:
            return
        line = "".join(self.parts).strip()
        self.parts.clear()
        if line:
            self._block(_single_spaced(line), level, section)
            self.marked = False

    def is_blank(self, since: int = 0) -> bool:
        """Whether the open block is not a cell and has no text after so many parts."""
        if self.flat is not None:
            return False
        if any(part and not part.isspace() for part in itertools.islice(self.parts, since, None)):
            return False
        del self.parts[since:]
        return True

    def take(self, since: int) -> str:
        """Remove the pieces after so many, and give their text."""
        text = "".join(self.parts[since:])
        del self.parts[since:]
        return text

    def strong(self, since: int) -> None:
        """Make the pieces after so many a bold lead-in, with a space on either side."""
        text = self.take(since).strip()
        if any(map(str.isalnum, text)):
            text = f" {BOLD}{text}{BOLD} "
            self._emphatic = True
        self.parts.append(text)

    def emphasize(self, text: str, marker: str) -> bool:
        """Add words between two markers, if Markdown is sure to read these; else nothing."""
        core = text.strip()
        if not core or not (core[0].isalnum() or core[-1].isalnum()):
            return False
        left, right = text[0].isspace(), text[-1].isspace()
        if not ((left or core[0].isalnum()) and (right or core[-1].isalnum())):
            return False
        if not left and self.parts and self.parts[-1][-1:] in _MARKERS:
            return False
        self.parts.append(f"{' ' * left}{marker}{core}{marker}{' ' * right}")
        self._emphatic = True
        return True

    def aside(self, text: str) -> None:
        """Add a note in brackets and italics, before a space or a punctuation mark."""
        self.parts.append(f" {ITALIC}[{text}]{ITALIC}")
        self._emphatic = True

    def enter(self, prefix: str, first: str | None = None) -> tuple[str, int]:
        """Put a prefix before all lines to come; returns the previous state, for `leave`."""
        outer = self._prefix, self.indent
        self._first = None if first is None else self._prefix + first
        self._prefix += prefix
        self.indent = 0
        return outer

    def leave(self, outer: tuple[str, int], *, quotation: bool = False) -> None:
        """Restore a previous prefix and indent."""
        self._prefix, self.indent = outer
        self._last_prefix = self._prefix if quotation else self._last_prefix
        self._first = None
        self._after_quotation = quotation

    def glue(self, text: str) -> None:
        """Add to the block already written, as a full stop after a quotation."""
        self._put(_rendered(escape(" ".join(text.split())).replace(PAGE, "")))

    def table(self, rows: list[list[str]], *, headed: bool) -> None:
        """A pipe table of raw cells; the first row is its head, or the head is blank."""
        columns = max(len(row) for row in rows)
        lines = ["| " + " | ".join([*map(_cell, row), *[""] * (columns - len(row))]) + " |"
                 for row in rows]  # fmt: skip
        if not headed:
            lines.insert(0, "|" + "  |" * columns)
        lines.insert(1, "|" + " --- |" * columns)
        self._write("\n".join(lines), indent=0)

    def artifact(self, kind: str, content: str) -> None:
        """Store as an artifact, at the end of the text so far, what Markdown cannot express."""
        self._artifacts.append(Artifact(kind=kind, offset=self._length, content=content))

    def _block(self, line: str, level: int, section: str | None) -> None:
        if len(line) <= _MAX_CLOSING_LENGTH and self._closes(line):
            self.glue(line)
            return
        if self.page_names and not line.strip(" \x06"):
            self._waiting_pages += line.count(PAGE)
            return
        if level == STRONG:
            line = f"{EMPHASIS}{line}{BOLD_END}"
            self.marked = True
        text = escape(line) if _may_need_escapes(line) else line
        if level <= 0 and text[0] in _STARTERS:
            text = escape_start(text)
        if self.marked:
            text = _rendered(text)
        if self._emphatic:
            text = text.replace(BOLD, "**").replace(ITALIC, "*")
            self._emphatic = False
        if self.change:
            text = f"<{self.change}>{text}</{self.change}>"
        if level > 0:
            self._heading(text, level, section)
        else:
            self._write(text, indent=self.indent)

    def _closes(self, line: str) -> bool:
        return self._after_quotation and not any(map(str.isalnum, line)) and PAGE not in line

    def _heading(self, text: str, level: int, section: str | None) -> None:
        visible = visible_text(_HIDDEN_MARKUP.sub("", text.replace(PAGE, "")))
        # A comment before the signs would make the line HTML, and no heading.
        text = PAGE * self._waiting_pages + text
        self._waiting_pages = 0
        start = self._write(f"{'#' * level} {text}", indent=0)
        self._headings.append(Heading(level=level, text=visible, offset=start, section=section))

    def _write(self, text: str, *, indent: int) -> int:
        # Most blocks are outside quotations and notes.
        nested = self._prefix or self._last_prefix or self._first is not None
        first = self._opening() if nested else "\n\n" if self._out else ""
        if indent:
            first += _INDENT * indent
        self._after_quotation = False
        if self._prefix and "\n" in text:
            text = text.replace("\n", "\n" + self._prefix)
        start = self._length + len(first)
        if not self.page_names or not (self._waiting_pages or PAGE in text):
            self._out.append(first + text)
            self._length = start + len(text)
        else:
            self._put(first)
            self._put_pages(text)
        return start

    def _opening(self) -> str:
        """The separator between a block and the one before it, and the prefix of its first line."""
        first = self._prefix if self._first is None else self._first
        if self._out:
            first = f"\n{shared_prefix(self._last_prefix, self._prefix).rstrip()}\n{first}"
        self._first, self._last_prefix = None, self._prefix
        return first

    def _put_pages(self, text: str) -> None:
        text = PAGE * self._waiting_pages + text
        self._waiting_pages = 0
        for index, part in enumerate(text.split(PAGE)):
            if index:
                page = self.page_names.popleft()
                self._pages.append(PageMark(offset=self._length, page=page))
                self._put(html_comment(page))
            self._put(part)

    def _put(self, text: str) -> None:
        self._out.append(text)
        self._length += len(text)


# A search for one character runs at the speed of memory; a pattern takes each one in turn.
def _may_need_escapes(line: str) -> bool:
    return (
        "*" in line
        or "_" in line
        or "`" in line
        or "<" in line
        or "&" in line
        or "~" in line
        or "\\" in line
        or ("]" in line and ("](" in line or "][" in line or "]:" in line))
    )


def _single_spaced(line: str) -> str:
    # The Code has one after each §.
    if "\u202f" in line:
        line = line.replace("\u202f", " ")
    if (
        "  " in line
        or "\n" in line
        or "\t" in line
        or "\r" in line
        or "\xa0" in line
        or "\u2000" in line
        or "\u2001" in line
        or "\u2002" in line
        or "\u2003" in line
        or "\u2004" in line
        or "\u2005" in line
        or "\u2009" in line
        or "\u2028" in line
    ):
        return " ".join(line.split())
    return line


def _rendered(text: str) -> str:
    """Text whose marks have become Markdown; only those of pages are left."""
    if PAGE in text:
        text = text.replace(" \x06 ", " \x06")
    if EMPHASIS in text:
        text = _EMPHASIS.sub(_emphasized, text)
    if _is_tagged(text):
        text = _MARKS.sub(_tag, text)
    return (_SPACES.sub(" ", text) if "  " in text else text).strip()


def _is_tagged(text: str) -> bool:
    for mark in _TAGS:  # noqa: SIM110 — `any` of a generator takes twice the time
        if mark in text:
            return True
    return False


def _tag(mark: re.Match[str]) -> str:
    return _TAGS[mark[0]]


def _emphasized(match: re.Match[str]) -> str:
    """Markdown reads a marker only where words and punctuation around it allow it."""
    inner, end = match.groups()
    marker = "**" if end == BOLD_END else "*"
    whole, start = match.string, match.start()
    before = whole[start - 1] if start else ""
    if inner[:1].isalnum() and inner[-1].isalnum():
        return inner if before in _MARKERS else f"{marker}{inner}{marker}"
    core = inner.strip()
    if not any(map(str.isalnum, core)):
        return inner
    before = " " if inner[0] == " " else before
    after = " " if inner[-1] == " " else whole[match.end() : match.end() + 1]
    if before in _MARKERS or (before.isalnum() and not core[0].isalnum()):
        return inner
    if after.isalnum() and not core[-1].isalnum():
        return inner
    left, right = inner[: inner.index(core[0])], inner[len(inner.rstrip()) :]
    return f"{left}{marker}{core}{marker}{right}"


def _cell(raw: str) -> str:
    text = " ".join(raw.split())
    if BREAK in text:
        text = _BREAKS.sub(BREAK, text).strip(" \x05")
    if _may_need_escapes(text):
        text = escape(text)
    if "|" in text:
        text = text.replace("|", "\\|")
    text = text.replace(BOLD, "**").replace(ITALIC, "*")
    return text if text.isascii() and text.isprintable() else _rendered(text)
