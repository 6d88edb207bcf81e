"""From the elements of the bill DTD to Markdown, one handler for each kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal

from fonds.model import NormalizedBody
from fonds.normalize.billres.lines import (
    APPROPRIATIONS,
    CONTAINERS,
    DEEPEST_HEADING,
    GROUPS,
    LEVELS,
    METADATA,
    PASSAGES,
    RUNNING,
    BillLineWalker,
    words_of,
)
from fonds.normalize.tables import is_cals_grid, read_cals, write_table

_NAMED: Final = re.compile(r"(?:sec(?:tion\b|tions\b|s?\.)|§)", re.IGNORECASE)
_REVISION: Final = re.compile(r"</?(?:ins|del)>")
_CAPTIONS: Final = frozenset({"ttitle", "tdesc", "title", "subtitle"})
_RUN_IN: Final = LEVELS | {"whereas"}
_BEFORE_TEXT: Final = frozenset({"enum", "header", "pl-cite"})
_REVISIONS: Final[dict[str, Literal["ins", "del"]]] = {
    "added": "ins",
    "deleted": "del",
    # Without `changed`, how the print shows it: struck through, or the committee's italic.
    "strikethrough": "del",
    "italic": "ins",
}


class BillWalker(BillLineWalker):
    """Writes one document; every word of it, in order."""

    def __init__(self, root: Any) -> None:
        super().__init__(root)
        self._root = root
        self._nesting = 0
        self._titled = False
        self._unknown: Counter[str] = Counter()

    def walk(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with the given warnings and those met on the way."""
        self.flow(self._root)
        self._out.end()
        self._write_notes()
        unknown = [
            f"unknown element <{tag[:80]}> ({count}×); its text is kept"
            for tag, count in sorted(self._unknown.items())
        ]
        body = self._out.finish((*warnings, *unknown))
        headings = (
            replace(heading, text=_REVISION.sub("", heading.text)) for heading in body.headings
        )
        return replace(body, headings=tuple(headings))

    # Blocks -------------------------------------------------------------------------------

    def _block(self, element: Any) -> None:
        self._deeper()
        revision = _revision(element)
        if revision is None or revision == self._out.revision:
            self._BLOCKS.get(element.tag, BillWalker._passage)(self, element)
        else:
            self._out.end()
            former, self._out.revision = self._out.revision, revision
            self._BLOCKS.get(element.tag, BillWalker._passage)(self, element)
            self._out.end()
            self._out.revision = former
        self._depth -= 1

    def _child(self, child: Any, parent: Any) -> None:
        tag = child.tag
        if tag in self._INLINES:
            self._inline(child)
        elif self._out.in_table:
            self._note_unknown(tag)
            self._spaced(child)
        elif tag in self._BLOCKS:
            self._block(child)
        else:
            self._note_unknown(tag)
            if parent.tag in RUNNING or parent.tag in self._INLINES:
                self._inline(child)
            else:
                self._block(child)

    def _is_block(self, tag: str) -> bool:
        return tag in self._BLOCKS and not self._out.in_table

    def _note_unknown(self, tag: str) -> None:
        if tag not in self._BLOCKS:
            self._unknown[tag] += 1

    def _passage(self, element: Any) -> None:
        self._begin()
        self.flow(element)
        self._out.end()

    def _strong(self, element: Any) -> None:
        self._begin()
        self._emphasize(element, "**")
        self._out.end()

    def _skip(self, element: Any) -> None:
        """Leave out what is not the document's text."""

    # Structure ----------------------------------------------------------------------------

    def _number(self, element: Any) -> None:
        if self._titled:
            self._strong(element)
            return
        self._titled = True
        self._begin(level=1)
        self.flow(element)
        self._out.end()

    def _section(self, element: Any) -> None:
        enum, header = element.find("enum"), element.find("header")
        number = words_of(enum)
        prefix = "" if not number or _NAMED.match(number) else self._section_sign(element)
        self._heading(prefix, enum, header, prefix + number if number else None)
        self.flow(element, (enum, header))

    def _section_sign(self, element: Any) -> str:
        quoted = next(element.iterancestors("quoted-block"), None) if self._out.quoted else None
        return "§ " if quoted is not None and quoted.get("style") == "USC" else "Sec. "

    def _container(self, element: Any) -> None:
        enum, header = element.find("enum"), element.find("header")
        number, word = words_of(enum), CONTAINERS[element.tag]
        prefix = "" if not number or number.lower().startswith(word.lower()) else f"{word} "
        self._heading(prefix, enum, header, prefix + number if number else None, dash="—")
        self._nesting += 1
        self.flow(element, (enum, header))
        self._nesting -= 1

    def _heading(
        self, prefix: str, enum: Any, header: Any, label: str | None, dash: str = " "
    ) -> None:
        title = words_of(header)
        self._out.end()
        if not (label or title):
            return
        quoted = self._out.quoted
        level = 0 if quoted else min(2 + self._nesting, DEEPEST_HEADING)
        self._begin(level=level, section=label.rstrip(".—– ") if label else None)
        if quoted:
            self._out.mark("**", "**")
        if label:
            self._out.text(prefix)
            self.flow(enum)
            self._out.no_space()
        if label and title:
            self._out.text(dash if dash == " " or not label.endswith(dash) else "")
        if title:
            self.flow(header)
        if quoted:
            self._out.unmark()
        self._out.end()

    def _appropriation(self, element: Any) -> None:
        header = element.find("header")
        self._heading("", None, header, None)
        self.flow(element, (header,))

    def _level(self, element: Any) -> None:
        previous = element.getprevious()
        runs_in = element.get("display-inline") == "yes-display-inline" and (
            element.getparent().tag in LEVELS
            if previous is None
            else previous.tag == "text" or previous.tag in _BEFORE_TEXT
        )
        if not (runs_in and self._out.is_open):
            self._begin()
        elif previous is not None and previous.tag == "enum":
            self._out.no_space()
        else:
            self._out.space()
        self.flow(element)

    def _enum(self, element: Any) -> None:
        self.flow(element)
        self._out.space()

    def _header(self, element: Any) -> None:
        parent = element.getparent()
        if parent.tag not in LEVELS:
            self._strong(element)
        elif words_of(element):
            # Markdown cannot say small capitals; the dash is how the print sets a run-in heading.
            self._out.space()
            self._emphasize(element, "**")
            self._out.no_space()
            stop = "" if words_of(element)[-1] in ".:?!—" else "."
            self._out.text(stop if element.getnext() is None else f"{stop}—")

    def _text(self, element: Any) -> None:
        previous = element.getprevious()
        follows = previous is None or previous.tag in _BEFORE_TEXT
        runs_in = follows and element.getparent().tag in _RUN_IN and self._out.is_open
        if not runs_in or element.get("display-inline") == "no-display-inline":
            self._begin()
        after_header = previous is not None and previous.tag == "header"
        if not after_header:
            self._out.space()
        self.flow(element)

    def _continuation(self, element: Any) -> None:
        # The block stays open for the closing mark of a quotation.
        self._begin()
        self.flow(element)

    def _quoted_block(self, element: Any) -> None:
        former = self._out.indent("> ")
        after = element.find("after-quoted-block")
        self._out.open_quotation()
        self.flow(element, (after,))
        self._out.close_quotation()
        if after is not None:
            self._after_quoted_block(after)
        self._out.outdent(former)

    def _after_quoted_block(self, element: Any) -> None:
        # The punctuation of the sentence that quotes, behind the closing quotation mark.
        self._out.no_space()
        self.flow(element)

    # Lists --------------------------------------------------------------------------------

    def _entry(self, element: Any) -> None:
        if not words_of(element):
            return
        self._out.item()
        self.flow(element)
        self._out.end_marks()

    def _quoted_entries(self, element: Any) -> None:
        self._out.open_quotation()
        self.flow(element)
        self._out.close_quotation()

    # Tables -------------------------------------------------------------------------------

    def _table(self, element: Any) -> None:
        self._out.end()
        self._out.text(element.text)
        for child in element.iterchildren("*"):
            if child.tag == "tgroup" and is_cals_grid(child):
                self._rows(child)
            elif child.tag in _CAPTIONS:
                self._strong(child)
            else:
                self._child(child, element)
            self._out.text(child.tail)

    def _rows(self, tgroup: Any) -> None:
        grid = read_cals(tgroup)
        if grid.head or grid.rows:
            self._begin()
            write_table(self._out, grid, self.flow, source=tgroup, fills=False)

    _BLOCKS: ClassVar[dict[str, Callable[[BillWalker, Any], None]]] = {
        **dict.fromkeys(PASSAGES, _passage),
        **dict.fromkeys(GROUPS, BillLineWalker.flow),
        **dict.fromkeys((*METADATA, "colspec", "image-data"), _skip),
        **dict.fromkeys(LEVELS, _level),
        **dict.fromkeys(CONTAINERS, _container),
        **dict.fromkeys(APPROPRIATIONS, _appropriation),
        "section": _section,
        "legis-num": _number,
        "legis-type": _strong,
        "official-title": _passage,
        "action-desc": _passage,
        "enum": _enum,
        "header": _header,
        "committee-report-header": _strong,
        "subheader": _strong,
        "text": _text,
        "continuation-text": _continuation,
        "quoted-block-continuation-text": _continuation,
        "quoted-block": _quoted_block,
        "after-quoted-block": _after_quoted_block,
        "whereas": _passage,
        "para": _passage,
        "legis-comment": _passage,
        "toc": BillLineWalker.flow,
        "list": BillLineWalker.flow,
        "toc-entry": _entry,
        "multi-column-toc-entry": _entry,
        "list-item": _entry,
        "toc-quoted-entry": _quoted_entries,
        "multi-column-toc-quoted-entry": _quoted_entries,
        "instructive-para": _passage,
        "graphic": BillLineWalker.figure,
        "table": _table,
    }


def _revision(element: Any) -> Literal["ins", "del"] | None:
    """How an element is revised; one that says nothing, or `not-changed`, is as its parent."""
    changed = element.get("changed")
    if changed is None:
        changed = element.get("reported-display-style")
    return None if changed is None else _REVISIONS.get(changed)
