"""HTML pages as trees, searched by element and class, and addresses in feeds and pages.

Addresses may be anything: `http://[x` is not one, and not an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

from lxml import etree

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.encodings import decode, without_controls
from fonds.normalize.html import refuse_other_files

_INLINE: Final = frozenset(
    {"a", "abbr", "b", "code", "em", "font", "i", "small", "span", "strong", "sub", "sup", "u"}
)


def read_page(data: bytes) -> Any:
    """The root of a page, scripts and head included."""
    refuse_other_files(data, "HTML")
    text, _ = without_controls(decode(data).text)
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise MalformedError(f"not readable as HTML: {error.msg}") from None
    if root is None or next(root.iter("html", "body"), None) is None:
        raise WrongContentError("the file holds no HTML page")
    return root


def by_class(root: Any, name: str) -> Iterator[Any]:
    """All elements of a class, in the page's order."""
    return (
        element
        for element in root.iter(etree.Element)
        if name in (element.get("class") or "").split()
    )


def text_of(element: Any | None) -> str | None:
    """The visible text of an element on one line; None if it has none."""
    if element is None:
        return None
    return " ".join("".join(_visible_words(element)).split()) or None


def canonical_address(root: Any) -> str | None:
    """The address the page calls its own."""
    links = (link for link in root.iter("link") if link.get("rel") == "canonical")
    return next((link.get("href") for link in links if link.get("href")), None)


def _visible_words(root: Any) -> Iterator[str]:
    # By events, not by recursion: pages nest as deep as they like.
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if element.tag not in _INLINE:
            yield " "  # a word may change its face in the middle, but a block always ends one
        if event == "start":
            yield element.text or ""
        elif element is not root:
            yield element.tail or ""


_NONE = SplitResult("", "", "", "", "")


def parts_of(address: str) -> SplitResult:
    """Scheme, host, path and query; all of them empty where the address cannot be read."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # is read late, and may be no number
    except ValueError:
        return _NONE
    return parts


def joined(base: str, address: str) -> str | None:
    """An address as a page at `base` means it; None where it cannot be read."""
    try:
        return urljoin(base, address)
    except ValueError:
        return None
