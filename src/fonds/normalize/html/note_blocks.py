"""The whole of a footnote, found from the element its references lead to."""

from __future__ import annotations

import re
from typing import Any, Final

LABEL: Final = re.compile(
    r"[\[(]?\s*([0-9]{1,4}[a-z]?|[a-z]|[*†‡§#]{1,3})\s*[\])]?\.?", re.IGNORECASE
)
"""What stands before a note and for it in the text."""
NAMED: Final = re.compile(r"(?:^|[^a-z])(?:_?ft?n|foot|note|endnote|_edn)", re.IGNORECASE)
"""What pages call their notes in addresses and ids."""

_CELLS: Final = frozenset({"td", "th"})
_BLOCKS: Final = _CELLS | {
    *("p", "li", "div", "dd", "tr", "aside", "section", "blockquote", "center", "dt"),
}
_WITHIN: Final = frozenset({"p", "div", "center", "section", "blockquote"})
_HOLDERS: Final = frozenset({"li", "dd", "td", "th", "aside"})
_PARAGRAPHS: Final = frozenset({"p", "div", "blockquote"})
_NEAR: Final = 4
_LONGEST_SIGN: Final = 8


def block_of(element: Any) -> Any:
    """The block an element stands in, or None where that is far away."""
    for _ in range(_NEAR):
        if element is None or element.tag in _BLOCKS:
            return element
        element = element.getparent()
    return None


def is_sign(element: Any) -> bool:
    """Whether an element holds a note's sign at most, and not the note."""
    text = ""
    for piece in element.itertext():
        text += piece.strip()
        if len(text) > _LONGEST_SIGN:
            return False
    return not text or LABEL.fullmatch(text) is not None


class NoteBlocks:
    """Finds notes; what arranges a sign and its note in two blocks may be put into one."""

    def __init__(self, anchors: dict[Any, Any]) -> None:
        self._anchor_of = anchors
        """By the links that refer to notes."""
        self._anchors = set(anchors.values())
        self._found: dict[Any, Any] = {}

    def of(self, anchor: Any) -> Any:
        """The block that is the note, or None where nothing but its sign can be found."""
        block = _behind(anchor)
        if block is None:
            block = block_of(anchor)
        if block is None:
            return None
        # A page may give one note a thousand anchors.
        if block not in self._found:
            whole = self._whole(block, anchor)
            self._found[block] = None if is_sign(whole) else whole
        return self._found[block]

    def _whole(self, block: Any, anchor: Any) -> Any:
        for find in (self._row, self._described, self._held, self._parted):
            if (whole := find(block, anchor)) is not None:
                return whole
        return block

    def _row(self, block: Any, anchor: Any) -> Any:
        """A row whose first cell has the sign."""
        cell = _around(block, _CELLS)
        row = None if cell is None else cell.getparent()
        if row is None or row.tag != "tr":
            return None
        before = cell.getprevious()
        if before is not None and (before.getprevious() is not None or not is_sign(before)):
            return None
        return row if (before is not None or is_sign(cell)) and self._alone(row, anchor) else None

    def _described(self, block: Any, anchor: Any) -> Any:
        """A term that is the sign, with the descriptions behind it."""
        term = _around(block, frozenset({"dt", "dd"}))
        if term is not None and term.tag == "dd":
            term = term.getprevious()
        if term is None or term.tag != "dt" or not is_sign(term):
            return None
        descriptions = []
        after = term.getnext()
        while after is not None and after.tag == "dd" and self._alone(after, anchor):
            descriptions.append(after)
            after = after.getnext()
        return _in_one(term, *descriptions) if descriptions else None

    def _held(self, block: Any, anchor: Any) -> Any:
        """An item of several paragraphs, of which the first has the anchor."""
        holder = block.getparent()
        if holder is None or not _is_first(block):
            return None
        own = holder.tag in _HOLDERS or (holder.tag == "div" and _is_named(holder))
        return holder if own and self._alone(holder, anchor) else None

    def _parted(self, block: Any, anchor: Any) -> Any:
        """A sign on a line of its own, with the paragraph behind it."""
        after = block.getnext()
        if after is None or not {block.tag, after.tag} <= _PARAGRAPHS or not is_sign(block):
            return None
        apart = is_sign(after) or (block.tail or "").strip() or not self._alone(after, anchor)
        return None if apart else _in_one(block, after)

    def _alone(self, element: Any, anchor: Any) -> bool:
        """Whether neither another note is in there nor a reference to this one."""
        return not any(
            (inner is not anchor and inner in self._anchors) or self._anchor_of.get(inner) is anchor
            for inner in element.iter("*")
        )


def _behind(anchor: Any) -> Any:
    """The block behind an empty anchor that stands between blocks."""
    after = anchor.getnext()
    if anchor.tag != "a" or after is None or after.tag not in _PARAGRAPHS or len(anchor):
        return None
    return None if (anchor.text or "").strip() or (anchor.tail or "").strip() else after


def _around(block: Any, tags: frozenset[str]) -> Any:
    """The nearest of these elements, if the block is what it begins with."""
    for _ in range(_NEAR):
        if block is None or block.tag in tags:
            return block
        if block.tag not in _WITHIN or not _is_first(block):
            return None
        block = block.getparent()
    return None


def _is_first(element: Any) -> bool:
    parent = element.getparent()
    return element.getprevious() is None and not (parent is None or (parent.text or "").strip())


def _is_named(element: Any) -> bool:
    name = element.get("id") or ""
    return name[-1:].isdigit() and NAMED.search(name) is not None


def _in_one(first: Any, *others: Any) -> Any:
    whole = first.makeelement("div")
    first.addprevious(whole)
    whole.append(first)
    for other in others:
        other.tag = "div"
        whole.append(other)
    return whole
