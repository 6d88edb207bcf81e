"""XML records, read strictly: a page of HTML, another root or a broken file is a named error."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECLARATION: Final = re.compile(r"\A\s*<\?xml[^>]*\?>")


def read(data: bytes, *roots: str) -> Any:
    """The root element, which must be one of `roots` (local names) where any are given."""
    data = _as_utf_8(data)
    refuse_unsafe(data, outside_entities=True)
    root = parse_xml(data)
    if roots and local_name(root) not in roots:
        raise WrongContentError(f"expected {' or '.join(roots)}, found <{local_name(root)}>")
    return root


def local_name(element: Any) -> str:
    """The name of an element without its namespace."""
    return str(etree.QName(element).localname)


def without_namespaces(root: Any) -> Any:
    """The same tree with plain element names, for formats whose namespace says nothing."""
    for element in root.iter(etree.Element):
        element.tag = local_name(element)
    return root


def text(element: Any, path: str) -> str | None:
    """The text of the first element at a path, its children's included; None where blank."""
    found = element.find(path)
    return None if found is None else whole_text(found)


def required(element: Any, path: str) -> str:
    """The text at a path that must be there."""
    found = text(element, path)
    if found is None:
        raise MalformedError(f"<{local_name(element)}> has no {path}")
    return found


def texts(element: Any, path: str) -> list[str]:
    """The texts of all elements at a path, without blank ones."""
    return [found for item in element.findall(path) if (found := whole_text(item))]


def whole(element: Any, path: str) -> int | None:
    """The whole number at a path; None where blank."""
    found = text(element, path)
    if found is None:
        return None
    if not re.fullmatch(r"[-+]?[0-9]{1,15}", found):
        raise MalformedError(f"{path} should be a whole number and is {found[:60]!r}")
    return int(found)


def required_whole(element: Any, path: str) -> int:
    """The whole number at a path that must be there."""
    found = whole(element, path)
    if found is None:
        raise MalformedError(f"<{local_name(element)}> has no {path}")
    return found


def whole_text(element: Any) -> str | None:
    """All text below an element, white space folded; None where there is none."""
    return " ".join("".join(_pieces(element)).split()) or None


def _pieces(element: Any) -> Iterator[str]:
    return (str(piece) for piece in element.itertext(etree.Element))


def _as_utf_8(data: bytes) -> bytes:
    """Some publishers serve UTF-16, and some say so while they do not."""
    if not data.startswith(_UTF_16):
        return data
    try:
        decoded = data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise MalformedError(f"not UTF-16: {error.reason}") from error
    return _DECLARATION.sub("", decoded).encode()
