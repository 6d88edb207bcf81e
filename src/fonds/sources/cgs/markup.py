"""The marks of the publisher's pages, found in their bytes, and what a reader sees of a piece."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from fonds.normalize.encodings import decode, without_controls

_SILENT: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_INLINE: Final = re.compile(r"</?(?:a|b|em|font|i|span|strong|sub|sup|u)\b[^<>]*>", re.IGNORECASE)
_TAG: Final = re.compile(r"<[A-Za-z/!?][^<>]*>")

# An element that is never closed reaches to the end of the page, as in a browser: looking for the
# end of every one of them again and again would take a hostile page's length squared.
_A: Final = rb"[^<>]{0,500}?"
"""Attributes of a tag."""

TOKEN: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)"
    rb"|<(?P<silent>script|style)\b.*?(?:</(?P=silent)\s*>|\Z)"
    rb"|(?P<nav><table\b" + _A + rb"\bnav_tbl\b.*?(?:</table\s*>|\Z))"
    rb"|(?P<toc_head><h[1-6]\b" + _A + rb"\bchap_toc_hd\b[^<>]*>)"
    rb"|(?P<toc><p\b" + _A + rb"\btoc_catchln\b[^<>]*>)(?P<entry>.*?)(?=</p|<p\b|<hr\b|\Z)"
    rb"|(?P<bar><hr\b" + _A + rb"\bchaps_pg_bar\b[^<>]*>)"
    rb"|<h[1-6]\b" + _A + rb"\b(?P<level>chap|part|subpart)-(?P<field>no|name)\b[^<>]*>"
    rb"(?P<heading>.*?)(?:</h[1-6]\s*>|\Z)"
    rb"|<span\b(?P<catchln>" + _A + rb"\bcatchln\b[^<>]*)>"
    rb"(?P<line>.*?)(?:</span\s*>|(?=</p)|\Z)"
    rb"|(?P<end></body\b|</html\b)",
    re.DOTALL | re.IGNORECASE,
)
"""Everything that bounds a section, in one pass over a page."""

ANCHOR: Final = re.compile(rb"<a\b" + _A + rb"""\bhref\s*=\s*["']?#([^\s"'<>]+)""", re.IGNORECASE)
PARAGRAPH: Final = re.compile(rb"<(/?)p\b[^<>]*>", re.IGNORECASE)
FILE: Final = re.compile(
    rb"<div\b" + _A + rb"""\bid\s*=\s*["']?((?:chap|art)_\w+\.html?)""", re.IGNORECASE
)
TITLE_LINK: Final = re.compile(
    rb"""\bhref\s*=\s*["']?[^"'<>\s]{0,300}?\btitle_0*([0-9]+[a-z]*)\.html?""", re.IGNORECASE
)
_ID_ATTRIBUTE: Final = re.compile(rb"""\bid\s*=\s*["']?([^\s"'<>]+)""", re.IGNORECASE)


def seen(data: bytes) -> str:
    """The text of a piece of a page, on one line."""
    text = _SILENT.sub(" ", decode(data).text)
    text = unescape(_TAG.sub(" ", _INLINE.sub("", text)))
    return " ".join(without_controls(text)[0].split())


def identifier(attributes: bytes) -> str:
    """The id among an element's attributes, or nothing."""
    match = _ID_ATTRIBUTE.search(attributes)
    return unescape(match[1].decode("utf-8", "replace")) if match else ""
