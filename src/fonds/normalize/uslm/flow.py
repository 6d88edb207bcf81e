"""Running text of United States Legislative Markup: blocks, typography and notes."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from lxml import etree

from fonds.errors import MalformedError
from fonds.normalize.uslm import vocabulary as words
from fonds.normalize.uslm import writer as marks
from fonds.normalize.uslm.writer import BlockWriter
from fonds.normalize.xhtml_table import local_name

if TYPE_CHECKING:
    from fonds.model import NormalizedBody

Handler = Callable[[Any, Any], None]
"""What to do with one element."""

_CHANGES: Final = {"added": "ins", "deleted": "del", "notChanged": ""}

FOOTNOTES: Final = frozenset({"footnote", "endnote"})
"""The types of notes that stand at the foot of a page."""

_NO_SIGN: Final = re.compile(r"[\s,\[\]\\|^]+")
_PLAIN: Final = frozenset({"td", "th", "tr", "caption", "sidenote"})
_LOOK_AHEAD: Final = 5
# No element can have these names.
_ENTITY: Final = "&"
_STRANGER: Final = "?"


class Flow:
    """Writes text and what stands in its lines; every word of it, in order."""

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
        self._expected = [
            (note, _footnote_sign(note)) for note in root.iter("{*}footnote")
        ]  # fmt: skip

    def walk(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with the given warnings and those met on the way."""
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
        if self._depth > words.DEEPEST:
            raise _too_deep()
        handlers = self._handlers
        for child in element:
            tag = child.tag
            (handlers.get(tag) or self._handler(tag))(self, child)
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
        """What is in a block, to its end, marked if all of it is inserted or deleted."""
        changed = element.get("changed")
        if changed is None:
            self._flow(element)
            self._end()
            return
        former = self._out.change
        self._out.change = _CHANGES.get(changed, former)
        self._flow(element)
        self._end()
        self._out.change = former

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
        """Metadata is no part of the body."""

    def _stranger(self, element: Any) -> None:
        self._unknown[local_name(element)] += 1
        if self._out.is_blank():
            self._block(element)
        else:
            self._flow(element)

    def _entity(self, node: Any) -> None:
        if isinstance(node, etree._Entity):  # noqa: SLF001 — lxml has no public name for it
            self._put(html.unescape(node.text or ""))

    def _one_line(self, element: Any, separator: str) -> str:
        start = len(self._out.parts)
        former, self._out.flat = self._out.flat, separator
        if local_name(element) in _PLAIN:
            self._flow(element)
        else:
            self._handler(element.tag)(self, element)
        self._out.flat = former
        return self._out.take(start)

    # Notes and pages ------------------------------------------------------------------------

    def _reference(self, element: Any) -> None:
        if element.get("class") == "footnoteRef" and (sign := _sign(element)):
            self._refer(element.get("idref") or element, sign)
        else:
            self._flow(element)

    def _refer(self, key: Any, sign: str) -> None:
        if key not in self._labels:
            # Numbering starts again in each section; the second note 1 becomes 1-2.
            self._signs[sign] += 1
            count = self._signs[sign]
            self._labels[key] = sign if count == 1 else f"{sign}-{count}"
        self._put(f"{marks.NOTE}{self._labels[key]}{marks.NOTE_END}")
        self._out.marked = True

    def _footnote(self, element: Any) -> None:
        key = element.get("id") or element
        if key not in self._labels:
            sign = _footnote_sign(element) or "*"
            if self._out.is_blank():
                self._refer(key, sign)
                self._out.glue(self._out.take(0))
            else:
                self._refer(key, sign)
        self._notes.append((self._labels[key], element))
        if self._out.is_blank():
            self._end()

    def _write_note(self, label: str, note: Any) -> None:
        self._depth += 1
        if self._depth > words.DEEPEST:
            raise _too_deep()
        levels, self._levels = self._levels, 0
        former = self._out.enter("    ", first=f"[^{label}]: ")
        sign = _sign_element(note)
        for child in note:
            if child is not sign:
                self._handler(child.tag)(self, child)
            elif _sign(child) != label.partition("-")[0]:
                self._flow(child)
            self._put(child.tail or "")
        self._end()
        self._out.leave(former)
        self._levels = levels
        self._depth -= 1

    def _sidenote(self, element: Any) -> None:
        alone = self._out.is_blank()
        text = " ".join(self._one_line(element, " ").split())
        self._put(f" {marks.EMPHASIS}[{text}]{marks.ITALIC_END} ")
        self._out.marked = True
        if alone:
            self._end()

    def _page(self, element: Any) -> None:
        self._out.page_names.append(" ".join("".join(element.itertext()).split()))
        self._put(marks.PAGE)
        self._out.marked = True

    # Typography -----------------------------------------------------------------------------

    def _italic(self, element: Any) -> None:
        self._emphasize(element, marks.ITALIC_END)

    def _bold(self, element: Any) -> None:
        self._emphasize(element, marks.BOLD_END)

    def _emphasize(self, element: Any, end: str) -> None:
        if self._emphasized or self._out.level:
            self._flow(element)
            return
        self._emphasized = self._out.marked = True
        self._put(marks.EMPHASIS)
        self._flow(element)
        self._put(end)
        self._emphasized = False

    def _raised(self, element: Any) -> None:
        sign = _sign(element) if self._expected else ""
        for index, (note, expected) in enumerate(self._expected[:_LOOK_AHEAD]):
            if sign and sign == expected:
                del self._expected[index]
                self._refer(note.get("id") or note, sign)
                return
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
    return MalformedError(f"elements are nested more than {words.DEEPEST} deep")


def _sign(element: Any) -> str:
    return _NO_SIGN.sub("", "".join(element.itertext()))


def _sign_element(note: Any) -> Any:
    first = next(iter(note), None)
    return first if first is not None and local_name(first) in {"num", "sup"} else None


def _footnote_sign(note: Any) -> str:
    sign = _sign_element(note)
    return "" if sign is None else _sign(sign)
