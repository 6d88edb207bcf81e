"""United States Legislative Markup (the Code, public laws, bills, compilations) as Markdown.

A part cut out of a title by its bytes, a section or several notes, has no declarations of its own:
elements are identified by their local names, so that any namespace serves.
"""

from __future__ import annotations

import re
from typing import Any, Final

from lxml import etree

from fonds.errors import WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.safe_xml import parse_fragment, parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.uslm.vocabulary import DOCUMENTS, NAMESPACES, SECTIONS
from fonds.normalize.uslm.walker import UslmWalker
from fonds.normalize.walker import XmlNormalizer

_FIRST_TAG: Final = re.compile(rb"\s*<(?:[\w.-]+:)?([A-Za-z][\w.-]*)([^>]*)>")
_USLM: Final = re.compile("|".join(map(re.escape, NAMESPACES)).encode())
_XHTML: Final = b"http://www.w3.org/1999/xhtml"
_USUAL: Final = {
    b"xsi": b"http://www.w3.org/2001/XMLSchema-instance",
    b"dc": b"http://purl.org/dc/elements/1.1/",
    b"dcterms": b"http://purl.org/dc/terms/",
    b"xhtml": _XHTML,
    b"html": _XHTML,
}


def is_part(data: bytes) -> bool:
    """Whether bytes begin with an element of a title rather than with a document's own root."""
    tag = _FIRST_TAG.match(data)
    if tag is None or _USLM.search(tag[2]):
        return False
    name = tag[1].decode("ascii")
    return name in UslmWalker.HANDLERS and name not in DOCUMENTS


def read_part(data: bytes) -> Any:
    """The element of a part; of several side by side, an element around them all."""
    around = parse_fragment(
        data,
        root=b"notes",
        default=NAMESPACES[0],
        namespaces=_USUAL,
        remove_pis=True,
        collect_ids=False,
    )
    if len(around) == 1 and not (around.text or "").strip():
        return around[0]
    return around


class Uslm(XmlNormalizer):
    """The normalizer `uslm_v1` of a file, or of a title's section whose identifier is the hint."""

    name = "uslm_v1"
    version = "1.2.2"

    def _convert(self, data: bytes, hint: str | None) -> NormalizedBody:
        root, warnings = read_uslm(data)
        if hint and hint.startswith("/us/"):
            root = _identified(root, hint)
        return element_to_markdown(root, warnings)


def element_to_markdown(element: Any, warnings: tuple[str, ...] = ()) -> NormalizedBody:
    """One document, title or section, already parsed, as Markdown."""
    return UslmWalker(element).walk(warnings)


def read_uslm(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of USLM, and warnings of what was changed to read it.

    Parts that were cut out of a title by their bytes are read as they would be inside it.
    """
    data, warnings = without_nuls(data)
    refuse_unsafe(data)
    if is_part(data):
        return read_part(data), warnings
    root = parse_xml(data, remove_pis=True, collect_ids=False)
    if etree.QName(root).namespace not in NAMESPACES:
        raise WrongContentError(f"the root element is <{root.tag}>, not one of USLM")
    return root, warnings


def _identified(root: Any, identifier: str) -> Any:
    for element in root.iter(*(f"{{*}}{name}" for name in sorted(SECTIONS))):
        if element.get("identifier") == identifier:
            return element
    raise WrongContentError(f"the file contains no section with the identifier {identifier}")
