"""Footnotes of HTML pages: which links refer to notes, and which blocks are the notes.

A footnote is found from the element to which its references link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

LABEL: Final = re.compile(
    r"[\[(]?\s*([0-9]{1,4}[a-z]?|[a-z]|[*†‡§#]{1,3})\s*[\])]?\.?", re.IGNORECASE
)
"""The sign of a note, as written before it and in the text."""
NOTE_ID: Final = re.compile(r"(?:^|[^a-z])(?:_?ft?n|foot|note|endnote|_edn)", re.IGNORECASE)
"""Names that pages give to notes in addresses and ids."""

_NOTE_CLASS: Final = re.compile(r"(?:foot|end)note", re.IGNORECASE)
_CELLS: Final = frozenset({"td", "th"})
_BLOCKS: Final = _CELLS | {
    *("p", "li", "div", "dd", "tr", "aside", "section", "blockquote", "center", "dt"),
}
_WITHIN: Final = frozenset({"p", "div", "center", "section", "blockquote"})
_HOLDERS: Final = frozenset({"li", "dd", "td", "th", "aside"})
_PARAGRAPHS: Final = frozenset({"p", "div", "blockquote"})
_NEAR: Final = 4
_MAX_SIGN_LENGTH: Final = 8


def block_of(element: Any) -> Any:
    """The block that contains an element, or None where that is far away."""
    for _ in range(_NEAR):
        if element is None or element.tag in _BLOCKS:
            return element
        element = element.getparent()
    return None


def is_sign(element: Any) -> bool:
    """Whether an element contains only the sign of a note, and not the note."""
    text = ""
    for part in element.itertext():
        text += part.strip()
        if len(text) > _MAX_SIGN_LENGTH:
            return False
    return not text or LABEL.fullmatch(text) is not None


class NoteBlocks:
    """Finds notes; what arranges a sign and its note in two blocks may be put into one."""

    def __init__(self, anchors: dict[Any, Any]) -> None:
        self._anchor_of = anchors
        """By the links that refer to notes."""
        self._anchors = set(anchors.values())
        self._blocks: dict[Any, Any] = {}

    def of(self, anchor: Any) -> Any:
        """The block that is the note, or None where nothing but its sign can be found."""
        block = _behind(anchor)
        if block is None:
            block = block_of(anchor)
        if block is None:
            return None
        # A page may give one note a thousand anchors.
        if block not in self._blocks:
            whole = self._whole(block, anchor)
            self._blocks[block] = None if is_sign(whole) else whole
        return self._blocks[block]

    def _whole(self, block: Any, anchor: Any) -> Any:
        for find in (self._row, self._described, self._first_of_several, self._parted):
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

    def _first_of_several(self, block: Any, anchor: Any) -> Any:
        """An item of several paragraphs, of which the first has the anchor."""
        holder = block.getparent()
        if holder is None or not _is_first(block):
            return None
        own = holder.tag in _HOLDERS or (holder.tag == "div" and _has_note_id(holder))
        return holder if own and self._alone(holder, anchor) else None

    def _parted(self, block: Any, anchor: Any) -> Any:
        """A sign on a line of its own, with the paragraph behind it."""
        after = block.getnext()
        if after is None or not {block.tag, after.tag} <= _PARAGRAPHS or not is_sign(block):
            return None
        unrelated = is_sign(after) or (block.tail or "").strip() or not self._alone(after, anchor)
        return None if unrelated else _in_one(block, after)

    def _alone(self, element: Any, anchor: Any) -> bool:
        """Whether neither another note is in there nor a reference to this one."""
        return not any(
            (inner is not anchor and inner in self._anchors) or self._anchor_of.get(inner) is anchor
            for inner in element.iter("*")
        )


def _behind(anchor: Any) -> Any:
    """The block behind an empty anchor between blocks."""
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


def _has_note_id(element: Any) -> bool:
    name = element.get("id") or ""
    return name[-1:].isdigit() and NOTE_ID.search(name) is not None


def _in_one(first: Any, *others: Any) -> Any:
    whole = first.makeelement("div")
    first.addprevious(whole)
    whole.append(first)
    for other in others:
        other.tag = "div"
        whole.append(other)
    return whole


_AROUND: Final = " []().\t\n"


@dataclass(slots=True)
class HtmlFootnotes:
    """The footnotes of a page, as the walker writes them."""

    references: dict[Any, str] = field(default_factory=dict)
    """Elements that are written as `[^label]`."""
    definitions: dict[Any, str] = field(default_factory=dict)
    """Blocks that begin with `[^label]:`."""
    dropped: set[Any] = field(default_factory=set)
    """Links back from a note, which only repeat its label."""
    tables: set[Any] = field(default_factory=set)
    """Tables that arrange notes."""


@dataclass(frozen=True, slots=True)
class _Reference:
    link: Any
    anchor: Any
    sign: str


def notes_of(root: Any) -> HtmlFootnotes:
    """The footnotes of a page: links to a later block, with a note's sign as their text."""
    notes = HtmlFootnotes()
    references = list(_references(root))
    blocks = NoteBlocks({one.link: one.anchor for one in references})
    counts: dict[str, int] = {}
    for reference in references:
        block = blocks.of(reference.anchor)
        if block is None or block is block_of(reference.link):
            continue
        if block not in notes.definitions:
            notes.definitions[block] = _unique(reference.sign, counts)
            notes.tables.update(block.iterancestors("table"))
            _drop_sign(block, reference.sign, notes)
        notes.references[_sign_element(reference.link)] = notes.definitions[block]
    return notes


def _references(root: Any) -> Iterator[_Reference]:
    links = [link for link in root.iter("a") if (link.get("href") or "").startswith("#")]
    if not links:
        return
    targets = _targets(root)
    target_ids = {link.get("href")[1:] for link in links}
    positions = {
        element: position
        for position, element in enumerate(root.iter())
        if element.tag == "a" or element.get("id") in target_ids
    }
    for link in links:
        target = targets.get(link.get("href")[1:])
        sign = LABEL.fullmatch("".join(link.itertext()).strip())
        if target is not None and sign is not None and _is_reference(link, target, positions):
            yield _Reference(link, target, sign[1])


def _targets(root: Any) -> dict[str, Any]:
    targets: dict[str, Any] = {}
    for element in root.iter():
        for name in (element.get("id"), element.get("name") if element.tag == "a" else None):
            if name:
                targets.setdefault(name, element)
    return targets


def _is_reference(link: Any, target: Any, positions: dict[Any, int]) -> bool:
    if positions.get(target, -1) <= positions[link]:
        return False
    parent = link.getparent()
    return (
        parent.tag == "sup"
        or next(link.iter("sup"), None) is not None
        or link.get("role") == "doc-noteref"
        or bool(NOTE_ID.search(link.get("href")))
        or bool(_NOTE_CLASS.search(f"{link.get('class') or ''} {parent.get('class') or ''}"))
    )


def _sign_element(link: Any) -> Any:
    parent = link.getparent()
    if parent.tag == "sup" and len(parent) == 1:
        around = (parent.text or "") + (link.tail or "")
        if not any(character.isalnum() for character in around):
            return parent
    return link


def _unique(sign: str, counts: dict[str, int]) -> str:
    """A unique label: some pages restart the numbers of notes in each section."""
    counts[sign] = counts.get(sign, 0) + 1
    return sign if counts[sign] == 1 else f"{sign}-{counts[sign]}"


def _drop_sign(block: Any, sign: str, notes: HtmlFootnotes) -> None:
    """Take the note's own sign from its beginning: `[^1]:` says it."""
    for element, part in _texts(block):
        if element.tag == "a" and "".join(element.itertext()).strip(_AROUND) == sign:
            notes.dropped.add(_sign_element(element))
            return
        text = getattr(element, part) or ""
        if text.strip():
            match = re.match(rf"\s*[\[(]?{re.escape(sign)}(?!\w)[\])]?\.?\s*", text)
            if match:
                setattr(element, part, text[match.end() :])
            return


def _texts(block: Any) -> Iterator[tuple[Any, str]]:
    """The elements and attributes that have the texts of a block, in order."""
    for event, element in etree.iterwalk(block, events=("start", "end")):
        if event == "start":
            yield element, "text"
        elif element is not block:
            yield element, "tail"
