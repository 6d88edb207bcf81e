"""From the elements of Federal Register XML to Markdown, one handler for each kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar, Final

from fonds.errors import MalformedError
from fonds.model import NormalizedBody
from fonds.normalize.fr.notes import is_reference, leading_sign, signs
from fonds.normalize.fr.vocabulary import (
    ACCENTS,
    BASE_LEVEL,
    DEEPEST,
    DEEPEST_HEADING,
    EMPHASIS,
    INLINE,
    KNOWN,
    LEAD_IN,
    RAISED,
    TEXT,
    lost_its_spaces,
    text_before,
)
from fonds.normalize.gpotable import Grid, read_table
from fonds.normalize.markdown import MarkdownWriter

_FILLED_UP: Final = 64
_LEADERS: Final = re.compile(r"\.{4,}|(?:\. ){4,}\.?")
_ENUMERATOR: Final = re.compile(
    r"(?:([IVXLC]+|[A-Z]|\d{1,2}|[a-z])\.|\(([A-Za-z]{1,4}|\d{1,2})\))\s"
)
_STRUCTURE: Final = re.compile(r"(?:sub)?(?:part|chapter|appendix)\s[^—]{1,60}", re.IGNORECASE)


class Walker:
    """Writes one element and all below it; every word of it, in order."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._out = MarkdownWriter(restore_spaces=lost_its_spaces(root))
        self._depth = 0
        self._base = 2
        self._titled = False
        self._in_contents = False
        self._emphasized = False
        self._note_sign: Any = None
        self._outline: dict[int, str | None] = {}
        self._references: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()

    def walk(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with the given warnings and those met on the way."""
        self._block(self._root)
        unknown = [
            f"unknown element <{tag}> ({count}×); its text is kept"
            for tag, count in sorted(self._unknown.items())
        ]
        return self._out.finish((*warnings, *unknown, *self._unlinked()))

    def _unlinked(self) -> list[str]:
        return [
            f"footnote {sign}: {self._references[sign]} references, {self._notes[sign]} notes"
            for sign in sorted(self._references.keys() | self._notes.keys())
            if self._references[sign] != self._notes[sign]
        ]

    # Blocks -------------------------------------------------------------------------------

    def _block(self, element: Any) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise MalformedError(f"elements are nested more than {DEEPEST} deep")
        tag = element.tag
        if tag not in KNOWN:
            self._unknown[tag] += 1
        self._BLOCKS.get(tag, Walker._paragraph)(self, element)
        self._depth -= 1

    def _paragraph(self, element: Any) -> None:
        self._out.begin()
        self._flow(element)
        self._out.end()

    def _flow(self, element: Any) -> None:
        """Text and children in order; a block child interrupts the paragraph around it."""
        self._run(element.text)
        for child in element:
            tag = child.tag
            if not isinstance(tag, str):
                self._out.seam()
            elif tag in INLINE or (tag not in KNOWN and self._is_running(element)):
                self._inline(child)
            else:
                self._block(child)
            self._run(child.tail)

    def _is_running(self, parent: Any) -> bool:
        return parent.tag in TEXT or parent.tag in INLINE or bool((parent.text or "").strip())

    def _run(self, text: str | None) -> None:
        if not text:
            return
        if text.isspace():
            self._out.space()
            return
        self._out.text(_LEADERS.sub(" ", text) if self._out.in_table else text)

    def _strong(self, element: Any) -> None:
        self._out.begin()
        self._emphasize(element, "**")
        self._out.end()

    def _structure(self, element: Any) -> None:
        former, self._base = self._base, BASE_LEVEL[element.tag]
        self._paragraph(element)
        self._base = former

    def _contents(self, element: Any) -> None:
        former, self._in_contents = self._in_contents, True
        self._paragraph(element)
        self._in_contents = former

    def _extract(self, element: Any) -> None:
        former = self._out.indent("> ")
        self._paragraph(element)
        self._out.outdent(former)

    def _stars(self, element: Any) -> None:
        # Printed as five asterisks; bare ones would be a horizontal rule.
        self._out.begin()
        self._out.markup(r"\* \* \* \* \*")
        self._out.end()
        self._flow(element)

    def _figure(self, element: Any) -> None:
        kind, name = ("equation", "Equation") if element.tag == "MATH" else ("graphic", "Graphic")
        for child in element.iterchildren("*"):
            if child.tag not in {"GID", "MID"}:
                self._flow_one(child)
                continue
            content = " ".join("".join(child.itertext()).split())
            self._out.begin()
            self._out.artifact(kind, content)
            self._out.markup(f"[{name} ")
            self._out.text(content)
            self._out.markup("]")
            self._out.end()

    def _flow_one(self, child: Any) -> None:
        if child.tag in INLINE:
            self._inline(child)
        else:
            self._block(child)

    # Headings -----------------------------------------------------------------------------

    def _heading(self, element: Any) -> None:
        parent = element.getparent()
        within = "" if parent is None else parent.tag
        if self._in_contents or within in LEAD_IN:
            self._out.begin()
            self._emphasize(element, "**")
            if within in LEAD_IN:
                self._out.run_in()
            else:
                self._out.end()
            return
        level = self._heading_level(element.get("SOURCE", ""), within)
        self._out.begin(level=level, section=self._outline_label(element, level))
        self._flow(element)
        self._out.end()

    def _heading_level(self, source: str, within: str) -> int:
        depth = source.removeprefix("HD")
        if depth.isdecimal():
            return min(self._base + int(depth), DEEPEST_HEADING)
        if within in BASE_LEVEL:
            return BASE_LEVEL[within]
        if within in {"LSTSUB", "EXTRACT", "REGTEXT", "FURINF"} and self._titled:
            return 2 if within == "FURINF" else 3
        if not self._titled and self._root.tag == "PRESDOCU":
            self._titled = True
            return 1
        return 2

    def _outline_label(self, element: Any, level: int) -> str | None:
        text = " ".join("".join(element.itertext()).split())
        if structure := _STRUCTURE.match(text):
            label: str | None = structure[0].strip()
        else:
            match = _ENUMERATOR.match(text + " ")
            label = (match[1] or match[2]) if match else None
        self._outline = {at: name for at, name in self._outline.items() if at < level}
        self._outline[level] = label
        if label is None or structure:
            return label
        above = [self._outline[at] for at in sorted(self._outline) if at > self._base]
        return ".".join(name for name in above if name) if all(above) else label

    def _section_number(self, element: Any) -> None:
        # The number stays open for the SUBJECT that follows it.
        parent = element.getparent()
        if parent is not None and parent.tag == "SECTION":
            number = " ".join("".join(element.itertext()).split())
            self._out.begin(level=BASE_LEVEL["SECTION"], section=number)
        else:
            self._out.begin()
        self._flow(element)
        self._out.space()

    def _subject(self, element: Any) -> None:
        previous = element.getprevious()
        parent = element.getparent()
        if previous is not None and previous.tag == "SECTNO":
            self._flow(element)
            self._out.end()
        elif parent is not None and parent.tag == "PREAMB":
            self._titled = True
            self._out.begin(level=1)
            self._flow(element)
            self._out.end()
        else:
            self._paragraph(element)

    # Footnotes ----------------------------------------------------------------------------

    def _footnote(self, element: Any) -> None:
        sign = leading_sign(element)
        if sign is None:
            self._paragraph(element)
            return
        label = _label(signs(sign)[0], self._notes)
        self._define(label, element, sign)

    def _define(self, label: str, note: Any, sign: Any) -> None:
        former = self._out.indent("    ", first=f"[^{label}]: ")
        former_sign, self._note_sign = self._note_sign, sign
        self._paragraph(note)
        self._note_sign = former_sign
        self._out.outdent(former)

    # Inline -------------------------------------------------------------------------------

    def _inline(self, element: Any) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise MalformedError(f"elements are nested more than {DEEPEST} deep")
        if element.tag not in KNOWN:
            self._unknown[element.tag] += 1
        self._out.seam()
        self._INLINES.get(element.tag, Walker._flow)(self, element)
        # A word goes on behind its accent.
        if element.tag != "AC":
            self._out.seam()
        self._depth -= 1

    def _page(self, element: Any) -> None:
        # In a footnote that runs over a page the mark has no number.
        if page := element.get("P"):
            self._out.page(page)

    def _typography(self, element: Any) -> None:
        code = element.get("T", "")
        if raised := RAISED.get(code):
            self._sign(element) if raised == "sup" else self._raise(element, raised)
        elif marker := self._EMPHASIS.get(code):
            self._emphasize(element, marker)
        else:
            self._flow(element)

    def _emphasize(self, element: Any, marker: str) -> None:
        content = "".join(element.itertext()).split()
        if self._emphasized or not content or not self._can_emphasize(element, content):
            self._flow(element)
            return
        self._emphasized = True
        self._out.emphasis(marker)
        self._flow(element)
        self._out.close(marker)
        self._emphasized = False

    def _can_emphasize(self, element: Any, content: list[str]) -> bool:
        """Markdown reads a marker only where words and punctuation around it allow it."""
        if not any(character.isalnum() for word in content for character in word):
            return False
        first, last = content[0][0], content[-1][-1]
        before = self._out.before(first)
        if before == "*" or (before.isalnum() and not first.isalnum()):
            return False
        tail = element.tail or ""
        after = tail[:1]
        if self._out.restore_spaces or not after.isalnum():
            return True
        return last.isalnum()

    def _raise(self, element: Any, name: str) -> None:
        if "\n" in text_before(element):
            self._out.no_space()
        self._out.markup(f"<{name}>")
        self._out.no_space()
        self._flow(element)
        self._out.markup(f"</{name}>")

    def _sign(self, element: Any) -> None:
        if element is self._note_sign:
            return
        if not is_reference(element):
            self._raise(element, "sup")
            return
        for sign in signs(element):
            self._out.markup(f"[^{_label(sign, self._references)}]")

    def _fraction(self, element: Any) -> None:
        # 7<FR>1/2</FR> is seven and a half.
        self._out.space()
        self._flow(element)
        if (element.tail or "")[:1].isalnum():
            self._out.space()

    def _accent(self, element: Any) -> None:
        if mark := ACCENTS.get(element.get("T", "")):
            self._out.accent(mark)
        self._flow(element)

    def _line_item(self, element: Any) -> None:
        self._out.space()
        self._flow(element)
        self._out.space()

    # Tables -------------------------------------------------------------------------------

    def _table(self, element: Any) -> None:
        grid = read_table(element)
        for caption in grid.captions:
            if caption.tag == "TTITLE":
                self._strong(caption)
            else:
                self._flow_one(caption)
        if grid.heads or grid.rows:
            self._draw(element, grid)
        for note in grid.notes:
            self._flow_one(note)

    def _draw(self, element: Any, grid: Grid) -> None:
        del element
        self._out.begin()
        self._out.in_table = True
        self._out.row(grid.heads, grid.columns, self._flow)
        self._out.line()
        self._out.markup("|" + " --- |" * grid.columns)
        # Markdown fills short rows up by itself; a hostile width must not be written out.
        width = min(grid.columns, _FILLED_UP)
        for row in grid.rows:
            for page in row.pages:
                self._page(page)
            self._out.line()
            cells = [() if cell is None else (cell,) for cell in row.cells]
            self._out.row(cells, width, self._flow)
        self._out.in_table = False
        self._out.end()

    _EMPHASIS: ClassVar[dict[str, str]] = EMPHASIS
    _BLOCKS: ClassVar[dict[str, Callable[[Walker, Any], None]]] = {
        "AGENCY": _strong,
        "SUBAGY": _strong,
        "HD": _heading,
        "SECTNO": _section_number,
        "SUBJECT": _subject,
        "EXTRACT": _extract,
        "STARS": _stars,
        "GPH": _figure,
        "MATH": _figure,
        "GPOTABLE": _table,
        "FTNT": _footnote,
        "CONTENTS": _contents,
        **dict.fromkeys(BASE_LEVEL, _structure),
    }
    _INLINES: ClassVar[dict[str, Callable[[Walker, Any], None]]] = {
        "E": _typography,
        "SU": _sign,
        "FTREF": _flow,
        "FR": _fraction,
        "PRTPAGE": _page,
        "LI": _line_item,
        "AC": _accent,
    }


def _label(sign: str, seen: Counter[str]) -> str:
    # Numbering starts again in appendices; the second note 1 becomes 1-2.
    seen[sign] += 1
    return sign if seen[sign] == 1 else f"{sign}-{seen[sign]}"
