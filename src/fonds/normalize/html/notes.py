"""Footnotes of HTML pages: which links refer to notes, and which blocks are the notes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

_LABEL: Final = re.compile(
    r"[\[(]?\s*([0-9]{1,4}[a-z]?|[a-z]|[*†‡§#]{1,3})\s*[\])]?\.?", re.IGNORECASE
)
_NAMED: Final = re.compile(r"(?:^|[^a-z])(?:_?ft?n|foot|note|endnote|_edn)", re.IGNORECASE)
_BLOCKS: Final = frozenset(
    {"p", "li", "div", "dd", "td", "aside", "section", "blockquote", "center", "dt"}
)
_NEAR: Final = 4


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


def notes_of(root: Any) -> Notes:
    """The footnotes of a page: links to a later block, with a note's sign as their text."""
    notes = Notes()
    links = [link for link in root.iter("a") if (link.get("href") or "").startswith("#")]
    if not links:
        return notes
    targets = _targets(root)
    wanted = {link.get("href")[1:] for link in links}
    places = {
        element: place
        for place, element in enumerate(root.iter())
        if element.tag == "a" or element.get("id") in wanted
    }
    labels: dict[Any, str] = {}
    for link in links:
        _consider(link, targets, places, labels, notes)
    return notes


def _targets(root: Any) -> dict[str, Any]:
    targets: dict[str, Any] = {}
    for element in root.iter():
        for name in (element.get("id"), element.get("name") if element.tag == "a" else None):
            if name:
                targets.setdefault(name, element)
    return targets


def _consider(
    link: Any,
    targets: dict[str, Any],
    places: dict[Any, int],
    labels: dict[Any, str],
    notes: Notes,
) -> None:
    target = targets.get(link.get("href")[1:])
    sign = _LABEL.fullmatch("".join(link.itertext()).strip())
    if target is None or sign is None or not _is_reference(link, target, places):
        return
    block = _block(target)
    if block is None or block in {_block(link), None}:
        return
    if block not in labels:
        labels[block] = _unique(sign[1], set(labels.values()))
        notes.definitions[block] = labels[block]
        notes.tables.update(block.iterancestors("table"))
        _drop_sign(block, sign[1], notes)
    notes.references[_sign_element(link)] = labels[block]


def _is_reference(link: Any, target: Any, places: dict[Any, int]) -> bool:
    if places.get(target, -1) <= places[link]:
        return False
    parent = link.getparent()
    return (
        parent.tag == "sup"
        or next(link.iter("sup"), None) is not None
        or link.get("role") == "doc-noteref"
        or bool(_NAMED.search(link.get("href")))
    )


def _block(element: Any) -> Any:
    for _ in range(_NEAR):
        if element is None or element.tag in _BLOCKS:
            return element
        element = element.getparent()
    return None


def _sign_element(link: Any) -> Any:
    parent = link.getparent()
    if parent.tag == "sup" and len(parent) == 1:
        around = (parent.text or "") + (link.tail or "")
        if not any(character.isalnum() for character in around):
            return parent
    return link


def _unique(label: str, taken: set[str]) -> str:
    if label not in taken:
        return label
    # Pages that number the notes of each section anew.
    number = 2
    while f"{label}-{number}" in taken:
        number += 1
    return f"{label}-{number}"


def _drop_sign(block: Any, sign: str, notes: Notes) -> None:
    """Take the note's own sign from its beginning: `[^1]:` says it."""
    for element in block.iter():
        text = element.text or ""
        if element.tag == "a" and "".join(element.itertext()).strip(" []().\t\n") == sign:
            notes.dropped.add(_sign_element(element))
            return
        if text.strip():
            found = re.match(rf"\s*[\[(]?{re.escape(sign)}(?!\w)[\])]?\.?\s*", text)
            if found:
                element.text = text[found.end() :]
            return
        if element is not block and (element.tail or "").strip():
            return
