"""Reading the bytes of a bill: nothing outside the file is opened, nothing in it can explode."""

from __future__ import annotations

import re
from collections import Counter
from html.entities import html5
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError, WrongContentError

_ROOTS: Final = frozenset({"bill", "resolution", "amendment-doc"})
_BODIES: Final = frozenset(
    {
        "form",
        "amendment-form",
        "conference-report-form",
        "engrossed-amendment-form",
        "legis-body",
        "resolution-body",
        "amendment-body",
        "engrossed-amendment-body",
    }
)
_ENCODING: Final = re.compile(rb"""^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']+)""")
_PLAIN_ENCODINGS: Final = frozenset({"utf-8", "us-ascii", "ascii", "iso-8859-1", "windows-1252"})
# A declaration that only names an outside file is harmless, for that file is never opened;
# graphics are declared so.
_OWN_ENTITY: Final = re.compile(rb"<!ENTITY\s++(?![^\s%&\"']+\s+(?:SYSTEM|PUBLIC)\s)")

_ENTITY: Final = re.compile(rb"&([A-Za-z][A-Za-z0-9._-]*+);")
_XML_ENTITIES: Final = frozenset({"amp", "lt", "gt", "quot", "apos"})


def read_bill(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of a bill, resolution or amendment, and what had to be mended to read it."""
    nuls = data.count(b"\0")
    if nuls:
        data = data.replace(b"\0", b"")
    _refuse(data)
    data, unknown = _decode_entities(data)
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise MalformedError(f"not well-formed XML: {error.msg}") from None
    _require_bill(root)
    mended = (f"{nuls} NUL characters removed",) if nuls else ()
    return root, (*mended, *unknown)


def _refuse(data: bytes) -> None:
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start:
        raise MalformedError("the file is empty")
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<div")):
        raise WrongContentError("an HTML page instead of a bill's XML")
    if not start.startswith(b"<"):
        raise WrongContentError("not XML in UTF-8: the file does not begin with a tag")
    encoding = _ENCODING.match(data[:512].removeprefix(b"\xef\xbb\xbf"))
    # Other encodings could hide an entity declaration from the next test.
    if encoding and encoding[1].decode("latin-1").lower() not in _PLAIN_ENCODINGS:
        raise MalformedError(f"unexpected encoding {encoding[1].decode('latin-1')!r}")
    if _OWN_ENTITY.search(data):
        raise MalformedError("declares entities of its own; refused, since they can explode")


def _require_bill(root: Any) -> None:
    tag = str(root.tag)
    if tag.startswith("{http://schemas.gpo.gov/xml/uslm}"):
        raise WrongContentError("USLM XML, not the bill DTD's; use the normalizer for USLM")
    if tag not in _ROOTS:
        raise WrongContentError(
            f"the root element is <{tag[:80]}>, which is no bill, resolution or amendment"
        )
    # Bill trackers' status files have a root of the same name.
    if not any(child.tag in _BODIES for child in root):
        raise WrongContentError(f"<{tag}> holds neither a form nor a body, so it is no bill text")


def _decode_entities(data: bytes) -> tuple[bytes, list[str]]:
    # Files refer to ISO character entities that an outside DTD would declare; HTML knows them.
    unknown: Counter[str] = Counter()

    def decoded(reference: re.Match[bytes]) -> bytes:
        name = reference[1].decode("ascii")
        if name in _XML_ENTITIES:
            return reference[0]
        characters = html5.get(f"{name};")
        if characters is None:
            unknown[name] += 1
            return b"&amp;" + reference[0][1:]
        return "".join(f"&#{ord(character)};" for character in characters).encode()

    data = _ENTITY.sub(decoded, data)
    return data, [
        f"unknown entity &{name[:80]}; ({count}×); kept as it is"
        for name, count in sorted(unknown.items())
    ]
