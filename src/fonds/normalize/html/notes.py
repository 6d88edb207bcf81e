"""Footnotes of HTML pages: which links refer to notes, and which blocks are the notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

from fonds.normalize.html.note_blocks import LABEL, NAMED, NoteBlocks, block_of

_AROUND: Final = " []().\t\n"


@dataclass(slots=True)
class Notes:
    """What the walker must know about footnotes."""

    references: dict[Any, str] = field(default_factory=dict)
    """Elements that stand for `[^label]`."""
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


def notes_of(root: Any) -> Notes:
    """The footnotes of a page: links to a later block, with a note's sign as their text."""
    notes = Notes()
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
    wanted = {link.get("href")[1:] for link in links}
    places = {
        element: place
        for place, element in enumerate(root.iter())
        if element.tag == "a" or element.get("id") in wanted
    }
    for link in links:
        target = targets.get(link.get("href")[1:])
        sign = LABEL.fullmatch("".join(link.itertext()).strip())
        if target is not None and sign is not None and _is_reference(link, target, places):
            yield _Reference(link, target, sign[1])


def _targets(root: Any) -> dict[str, Any]:
    targets: dict[str, Any] = {}
    for element in root.iter():
        for name in (element.get("id"), element.get("name") if element.tag == "a" else None):
            if name:
                targets.setdefault(name, element)
    return targets


def _is_reference(link: Any, target: Any, places: dict[Any, int]) -> bool:
    if places.get(target, -1) <= places[link]:
        return False
    parent = link.getparent()
    return (
        parent.tag == "sup"
        or next(link.iter("sup"), None) is not None
        or link.get("role") == "doc-noteref"
        or bool(NAMED.search(link.get("href")))
    )


def _sign_element(link: Any) -> Any:
    parent = link.getparent()
    if parent.tag == "sup" and len(parent) == 1:
        around = (parent.text or "") + (link.tail or "")
        if not any(character.isalnum() for character in around):
            return parent
    return link


def _unique(sign: str, counts: dict[str, int]) -> str:
    """A label no other note has: some pages number the notes of each section anew."""
    counts[sign] = counts.get(sign, 0) + 1
    return sign if counts[sign] == 1 else f"{sign}-{counts[sign]}"


def _drop_sign(block: Any, sign: str, notes: Notes) -> None:
    """Take the note's own sign from its beginning: `[^1]:` says it."""
    for element, part in _texts(block):
        if element.tag == "a" and "".join(element.itertext()).strip(_AROUND) == sign:
            notes.dropped.add(_sign_element(element))
            return
        text = getattr(element, part) or ""
        if text.strip():
            found = re.match(rf"\s*[\[(]?{re.escape(sign)}(?!\w)[\])]?\.?\s*", text)
            if found:
                setattr(element, part, text[found.end() :])
            return


def _texts(block: Any) -> Iterator[tuple[Any, str]]:
    """Where the texts of a block are, in their order."""
    for event, element in etree.iterwalk(block, events=("start", "end")):
        if event == "start":
            yield element, "text"
        elif element is not block:
            yield element, "tail"
