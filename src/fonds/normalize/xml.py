"""Any XML as Markdown, by its shape alone: for formats that have no reader of their own yet.

An element with text of its own is a paragraph, and so is one without children; what is inside
it is inline. A label of its own (`(1)`, `2.`) leads in what follows it. No element is a heading,
a list or a table here, and no word is lost or joined with another.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fonds.errors import MalformedError
from fonds.model import NormalizedBody
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.safe_xml import parse_fragment, parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.walker import XmlNormalizer

_PROLOGUE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[?!]")
_BOM: Final = b"\xef\xbb\xbf"
_LABEL: Final = re.compile(r"[(\[]?(?:\d[\w.]{0,7}|[A-Za-z]|[ivxlcIVXLC]{1,7})[)\].]*")
_MAX_DEPTH: Final = 200


class Xml(XmlNormalizer):
    """The normalizer `xml_v1` of a whole file, or of elements cut out of one."""

    name = "xml_v1"
    version = "1.0.0"

    def _convert(self, data: bytes, _hint: str | None) -> NormalizedBody:
        data, warnings = without_nuls(data)
        refuse_unsafe(data)
        root = parse_xml(data) if _PROLOGUE.match(data) else parse_fragment(data.lstrip(_BOM))
        out = MarkdownWriter()
        _blocks(out, root, 0)
        return out.finish(warnings)


def _blocks(out: MarkdownWriter, element: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise MalformedError("the elements are nested too deeply to be read")
    if not _has_own_text(element) and len(element):
        for child in element.iterchildren("*"):
            _blocks(out, child, depth + 1)
        return
    out.begin()
    _flow(out, element, depth)
    if _LABEL.fullmatch("".join(element.itertext()).strip()):
        out.run_in()
    else:
        out.end()


def _flow(out: MarkdownWriter, element: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise MalformedError("the elements are nested too deeply to be read")
    is_mixed = _has_own_text(element)
    out.text(element.text)
    for child in element.iterchildren("*"):
        if not is_mixed:
            out.space()
        _flow(out, child, depth + 1)
        out.text(child.tail)


def _has_own_text(element: Any) -> bool:
    texts = (element.text, *(child.tail for child in element.iterchildren("*")))
    return any(text and not text.isspace() for text in texts)
