"""Sections of the Connecticut General Statutes as Markdown, their notes under headings.

The input is a slice of a chapter's page: the catchline becomes the heading, and the parts that
the publisher distinguishes only by a class (source, history, cross references, annotations) get
headings as well, which separate them from the text. The links between sections are left out.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any, Final

from lxml import etree

from fonds.normalize.html import Html

_PARTS: Final = {
    "front-note": "Notes",
    "source": "Source",
    "history": "History",
    "cross-ref": "Cross references",
    "annotation": "Annotations",
}
_NAVIGATION: Final = frozenset({"nav_tbl", "toc_catchln", "chap_toc_hd", "chaps_pg_bar"})
_UPRIGHT: Final = "upright"
_REMOVED: Final = "removed"
_BACK: Final = re.compile(r"\s*\(Return to[^()]*\)\s*")


class Cga(Html):
    """The normalizer `cga_v1`."""

    name = "cga_v1"
    version = "1.0.0"

    def _content(self, root: Any) -> Any:
        for element in list(root.iter(etree.Element)):
            if _NAVIGATION.intersection(_classes(element)) or _is_return_link(element):
                element.tag = _REMOVED
        etree.strip_elements(root, _REMOVED, with_tail=False)
        for letter in list(root.iter("i")):
            if _is_of_a_number(letter):
                letter.tag = _UPRIGHT
        etree.strip_tags(root, _UPRIGHT)
        for span in list(root.iter("span")):
            if "catchln" in _classes(span):
                _head(span)
        etree.strip_elements(root, _REMOVED, with_tail=False)
        _divide(root)
        return root


def _classes(element: Any) -> list[str]:
    return (element.get("class") or "").split()


def _is_return_link(element: Any) -> bool:
    return element.tag == "tr" and _BACK.fullmatch("".join(element.itertext())) is not None


def _is_of_a_number(letter: Any) -> bool:
    """Whether a letter l belongs to a number: it is in italics so that it is not read as a one."""
    previous = letter.getprevious()
    before = letter.getparent().text if previous is None else previous.tail
    return letter.text == "l" and not len(letter) and bool(before) and before[-1].isdigit()


def _head(span: Any) -> None:
    """A catchline that opens a paragraph becomes the heading above it.

    A copy is moved and the original marked for removal, so that the text behind it remains: a
    damaged page may contain characters that lxml can read but not write.
    """
    if next(span.iterancestors(_REMOVED), None) is not None:
        return
    paragraph = next(span.iterancestors("p"), None)
    if paragraph is None:
        span.tag = "h1"
        return
    heading = etree.Element("h1")
    paragraph.addprevious(heading)
    heading.append(deepcopy(span))
    heading[0].tail = None
    span.tag = _REMOVED


def _divide(root: Any) -> None:
    open_part = ""
    for paragraph in list(root.iter("p")):
        if next(paragraph.iterancestors("td", "th"), None) is not None:
            continue
        part = next(filter(None, map(_part, _classes(paragraph))), "")
        if part and part != open_part:
            heading = etree.Element("h2")
            heading.text = part
            paragraph.addprevious(heading)
        open_part = part or open_part


def _part(name: str) -> str:
    return _PARTS.get(name.removesuffix("-first"), "")
