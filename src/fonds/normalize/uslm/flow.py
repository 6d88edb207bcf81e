"""Running text of United States Legislative Markup: blocks, typography and notes.

A footnote that its publisher put between two blocks, or at the end of one, is a footnote of
GitHub-flavoured Markdown: `[^1]` at the call, `[^1]: …` at the position of the note. One in the
middle of a sentence or in a cell is written right there, as in print, with its own number and
marked as marginal notes are: `of the<sup>1</sup> *[1 So in original.]* law`. Behind its paragraph
it would have left its position, and a passage cut between the two would lose it; a definition on
the spot would break the sentence into two paragraphs; a hidden copy would repeat the words. The
headings of sections stay free of notes, since they are quoted as locators; theirs follow them.
"""

from __future__ import annotations

import html
import re
from collections import Counter, deque
from collections.abc import Callable
from itertools import islice
from typing import Any, ClassVar, Final

from lxml import etree

from fonds.errors import MalformedError
from fonds.model import NormalizedBody
from fonds.normalize import markdown as marks
from fonds.normalize.markdown import BlockWriter, escape
from fonds.normalize.tables import local_name
from fonds.normalize.uslm import vocabulary as words

FOOTNOTES: Final = frozenset({"footnote", "endnote"})
"""The types of notes at the foot of a page."""

_NO_SIGN: Final = re.compile(r"[\s,\[\]\\|^]+")
_SAME_LINE: Final = words.RUN_IN | words.NUMBERED
_LINES: Final = words.RUN_IN | words.NUMBERED | words.INLINE | {"p", "ref", "i", "b", "inline"}
# Of a note: the block, its paragraph, and the sign in it.
_MAX_SIGN_DEPTH: Final = 3
# No printed block continues for more elements without a word.
_MAX_ENDING_ELEMENTS: Final = 8


def sign_of(element: Any) -> str:
    """The number or symbol of a call or of a note, fit for a label."""
    return _NO_SIGN.sub("", "".join(element.itertext()))


def sign_element(note: Any) -> Any:
    """The element of the number with which a note begins, in any block of it; or None."""
    for _ in range(_MAX_SIGN_DEPTH):
        if not len(note) or (note.text or "").strip():
            return None
        note = note[0]
        name = local_name(note)
        if name in {"num", "sup"} or (name == "ref" and note.get("idref")):
            return note
    return None


def footnote_sign(note: Any) -> str:
    """The number of a note, empty if it has none."""
    element = sign_element(note)
    return "" if element is None else sign_of(element)


def interrupts(note: Any) -> bool:
    """Whether words of the same block follow a note."""
    element = note
    while element is not None and local_name(element) not in words.BLOCK_LEVEL:
        if _has_words(element.tail):
            return True
        for sibling in islice(element.itersiblings(), _MAX_ENDING_ELEMENTS):
            name = local_name(sibling)
            if name in words.BLOCK_LEVEL and name not in _SAME_LINE:
                return False
            if not _is_footnote(sibling) and any(map(_has_words, sibling.itertext())):
                return True
            if _has_words(sibling.tail):
                return True
        element = element.getparent()
    return False


def _is_footnote(element: Any) -> bool:
    return local_name(element) == "footnote" or element.get("type") in FOOTNOTES


def _is_in_a_line(element: Any) -> bool:
    """True if an unknown element is part of the sentence around it, which it may begin."""
    parent = element.getparent()
    if any(local_name(child) in words.BLOCK_LEVEL for child in parent):
        return False
    return local_name(parent) in _LINES or any(
        map(_has_words, (parent.text, *(child.tail for child in parent)))
    )


def _has_words(text: str | None) -> bool:
    return text is not None and any(map(str.isalnum, text))


Handler = Callable[[Any, Any], None]
"""A method that writes one element."""

_CHANGES: Final = {"added": "ins", "deleted": "del", "notChanged": ""}

_TEXT_ONLY_ELEMENTS: Final = frozenset(
    {"td", "th", "tr", "caption", "sidenote", "note", "footnote"}
)
_CELLS: Final = ("{*}td", "{*}th", "{*}toc")
_LOOK_AHEAD: Final = 5
# No element can have these names.
_ENTITY: Final = "&"
_STRANGER: Final = "?"


class Flow:
    """Writes text and the elements in its lines; every word of it, in order."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._out = BlockWriter()
        self._parts = self._out.parts
        self._put = self._parts.append
        self._handlers: dict[Any, Handler] = {}
        self._depth = 0
        # The title of the Code is its first heading; other documents have a title above theirs.
        self._outer = 0 if local_name(root) in words.SECTIONS | {"uscDoc"} else 1
        self._levels = 0
        self._quoted = False
        self._emphasized = False
        self._crossed = False
        self._label_end = -1
        self._notes: list[tuple[str, Any]] = []
        self._labels: dict[Any, str] = {}
        self._signs: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._expected = {note: footnote_sign(note) for note in root.iter("{*}footnote")}
        self._awaited = deque(self._expected)
        self._footnotes = {note.get("id"): note for note in self._expected}
        self._own_sign: Any = None
        self._in_note = False

    def walk(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with these warnings and those of the walk."""
        self._handler(self._root.tag)(self, self._root)
        self._end()
        unknown = [
            f"unknown element <{name}> ({count}×); its text is kept"
            for name, count in sorted(self._unknown.items())
        ]
        return self._out.finish((*warnings, *unknown))

    def _flow(self, element: Any) -> None:
        """Text and children in order."""
        parts = self._parts
        # White space before a block is nothing.
        if (text := element.text) and (parts or not text.isspace()):
            parts.append(text)
        if not len(element):
            return
        self._depth += 1
        if self._depth > words.MAX_DEPTH:
            raise _too_deep()
        handlers, words_of_a_line = self._handlers, self.HANDLERS["date"]
        for child in element:
            tag = child.tag
            handler = handlers.get(tag) or self._handler(tag)
            if handler is words_of_a_line and not len(child):
                if text := child.text:
                    parts.append(text)
            else:
                handler(self, child)
            if (tail := child.tail) and (parts or not tail.isspace()):
                parts.append(tail)
        self._depth -= 1

    def _handler(self, tag: Any) -> Handler:
        if not isinstance(tag, str):
            return self.HANDLERS[_ENTITY]
        name = tag.rpartition("}")[2]
        handler = self.HANDLERS.get(name) or self.HANDLERS[_STRANGER]
        self._handlers[tag] = handler
        return handler

    def _end(self) -> None:
        """End the open block, and let the notes it refers to follow it."""
        if self._parts or self._out.level:
            self._out.flush()
        self._label_end = -1
        if self._notes and self._out.flat is None:
            notes, self._notes = self._notes, []
            for label, note in notes:
                self._write_note(label, note)

    def _block(self, element: Any) -> None:
        self._end()
        self._inside(element)

    def _inside(self, element: Any) -> None:
        """Write the content of a block, marked if all of it is inserted or deleted."""
        changed = element.get("changed")
        if changed is None:
            self._flow(element)
            self._end()
            return
        outer = self._out.change
        self._out.change = _CHANGES.get(changed, outer)
        self._flow(element)
        self._end()
        self._out.change = outer

    def _paragraph(self, element: Any) -> None:
        labelled = self._label_end >= 0 and not self._out.level
        if not labelled or not self._out.is_blank(self._label_end):
            self._end()
        self._flow(element)
        self._end()

    def _run_in(self, element: Any) -> None:
        if self._out.level:
            self._end()
        else:
            self._put(" ")
        self._inside(element)

    def _spaced(self, element: Any) -> None:
        self._put(" ")
        self._flow(element)
        self._put(" ")

    def _opening(self, element: Any) -> None:
        # "Public Law" is followed by its number in the next element.
        self._end()
        self._flow(element)
        self._put(" ")

    def _skip(self, element: Any) -> None:
        """Leave out metadata."""

    def _stranger(self, element: Any) -> None:
        self._unknown[local_name(element)] += 1
        if self._out.is_blank() and not _is_in_a_line(element):
            self._block(element)
        else:
            self._flow(element)

    def _entity(self, node: Any) -> None:
        if isinstance(node, etree._Entity):  # noqa: SLF001 — lxml has no public name for it
            self._put(html.unescape(node.text or ""))

    def _one_line(self, element: Any, separator: str) -> str:
        start = len(self._out.parts)
        outer, self._out.flat = self._out.flat, separator
        if local_name(element) in _TEXT_ONLY_ELEMENTS:
            self._flow(element)
        else:
            self._handler(element.tag)(self, element)
        self._out.flat = outer
        return self._out.take(start)

    # Notes and pages ------------------------------------------------------------------------

    def _reference(self, element: Any) -> None:
        idref = element.get("idref")
        if idref is None or not (sign := sign_of(element)):
            self._flow(element)
        elif element is self._own_sign:
            return
        elif (note := self._note_of(element, idref)) is not None and self._stays(note):
            self._raise(element)
        elif note is not None or element.get("class") == "footnoteRef":
            self._refer(idref, sign)
        else:
            self._flow(element)

    def _note_of(self, call: Any, idref: str) -> Any:
        sibling = call.getnext()
        if sibling is not None and sibling.get("id") == idref:
            return sibling
        return self._footnotes.get(idref)

    def _stays(self, note: Any) -> bool:
        """Whether a note is written where it is and not as a block."""
        if (note.get("id") or note) in self._labels or self._out.level:
            return False
        return next(note.iterancestors(*_CELLS), None) is not None or interrupts(note)

    def _refer(self, key: Any, sign: str) -> None:
        if key not in self._labels:
            # Numbering starts again in each section; the second note 1 becomes 1-2.
            self._signs[sign] += 1
            count = self._signs[sign]
            self._labels[key] = sign if count == 1 else f"{sign}-{count}"
        self._put(f"{marks.NOTE}{self._labels[key]}{marks.NOTE_END}")
        self._out.marked = True

    def _footnote(self, element: Any) -> None:
        self._expected.pop(element, None)
        blank = self._out.is_blank()
        if not blank and self._stays(element):
            self._aside(element, (element.tail or "")[:1])
            return
        key = element.get("id") or element
        if key not in self._labels:
            self._refer(key, footnote_sign(element) or "*")
            if blank:
                self._out.glue(self._out.take(0))
        self._notes.append((self._labels[key], element))
        if blank:
            self._end()

    def _write_note(self, label: str, note: Any) -> None:
        self._depth += 1
        if self._depth > words.MAX_DEPTH:
            raise _too_deep()
        levels, self._levels = self._levels, 0
        outer = self._out.enter("    ", first=f"[^{escape(label)}]: ")
        sign, in_note = sign_element(note), self._in_note
        repeats_label = sign is not None and sign_of(sign) == label.partition("-")[0]
        self._own_sign, self._in_note = sign if repeats_label else None, True
        for child in note:
            if child is not self._own_sign:
                self._handler(child.tag)(self, child)
            self._put(child.tail or "")
        self._end()
        self._own_sign, self._in_note = None, in_note
        self._out.leave(outer)
        self._levels = levels
        self._depth -= 1

    def _aside(self, element: Any, after: str) -> None:
        """Words that print sets outside the line, in their place before what comes after them."""
        outer = self._emphasized, self._in_note
        self._emphasized = self._in_note = True
        text = " ".join(self._one_line(element, " ").split())
        self._emphasized, self._in_note = outer
        if self._emphasized:
            self._put(f" [{text}]")
        elif after and not after.isalnum():
            self._out.aside(text)
        else:
            self._put(f" {marks.EMPHASIS}[{text}]{marks.ITALIC_END}")
            self._out.marked = True

    def _sidenote(self, element: Any) -> None:
        alone = self._out.is_blank()
        self._aside(element, " ")
        self._put(" ")
        if alone:
            self._end()

    def _page(self, element: Any) -> None:
        self._out.page_names.append(" ".join("".join(element.itertext()).split()))
        self._put(marks.PAGE)
        self._out.marked = True

    # Typography -----------------------------------------------------------------------------

    def _italic(self, element: Any) -> None:
        self._emphasize(element, marks.ITALIC, marks.ITALIC_END)

    def _bold(self, element: Any) -> None:
        self._emphasize(element, marks.BOLD, marks.BOLD_END)

    def _emphasize(self, element: Any, marker: str, end: str) -> None:
        if self._emphasized or self._out.level:
            self._flow(element)
            return
        text = element.text
        if text and not len(element) and self._out.emphasize(text, marker):
            return
        self._emphasized = self._out.marked = True
        self._put(marks.EMPHASIS)
        self._flow(element)
        self._put(end)
        self._emphasized = False

    def _raised(self, element: Any) -> None:
        if element is self._own_sign:
            return
        if self._expected and not self._in_note and (sign := sign_of(element)):
            # What is deleted from the front of a dict is walked over again each time.
            while self._awaited[0] not in self._expected:
                self._awaited.popleft()
            for note in islice(self._awaited, _LOOK_AHEAD):
                if sign == self._expected.get(note) and not self._stays(note):
                    del self._expected[note]
                    self._refer(note.get("id") or note, sign)
                    return
        self._raise(element)

    def _raise(self, element: Any) -> None:
        self._wrap(element, marks.SUP, marks.SUP_END)

    def _lowered(self, element: Any) -> None:
        self._wrap(element, marks.SUB, marks.SUB_END)

    def _added(self, element: Any) -> None:
        self._wrap(element, marks.INS, marks.INS_END)

    def _deleted(self, element: Any) -> None:
        self._wrap(element, marks.DEL, marks.DEL_END)

    def _wrap(self, element: Any, start: str, end: str) -> None:
        self._put(start)
        self._out.marked = True
        self._flow(element)
        self._put(end)

    def _line_break(self, element: Any) -> None:
        self._put(self._out.flat or " ")
        self._flow(element)

    def _image(self, element: Any) -> None:
        source = element.get("src") or "without address"
        self._out.artifact("graphic", source)
        self._put(f" [Graphic {source}] ")

    HANDLERS: ClassVar[dict[str, Handler]] = {
        **dict.fromkeys(words.INLINE, _flow),
        **dict.fromkeys(words.SPACED, _spaced),
        **dict.fromkeys(words.BLOCKS, _block),
        **dict.fromkeys(words.METADATA, _skip),
        **dict.fromkeys(words.RUN_IN, _run_in),
        **dict.fromkeys(("i", "em"), _italic),
        **dict.fromkeys(("b", "strong"), _bold),
        **dict.fromkeys(("addedText", "ins"), _added),
        **dict.fromkeys(("deletedText", "del"), _deleted),
        _ENTITY: _entity,
        _STRANGER: _stranger,
        "type": _opening,
        "p": _paragraph,
        "footnote": _footnote,
        "sidenote": _sidenote,
        "page": _page,
        "ref": _reference,
        "sup": _raised,
        "sub": _lowered,
        "br": _line_break,
        "img": _image,
    }
    """By the local name of the element."""


def _too_deep() -> MalformedError:
    return MalformedError(f"elements are nested more than {words.MAX_DEPTH} deep")
