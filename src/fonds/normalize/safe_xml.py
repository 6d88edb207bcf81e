"""Reading XML that may be hostile: no external entities, and no declared ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError, WrongContentError

_HTML: Final = re.compile(rb"<(?:!doctype html|html|head|body|div)\b")
_ENCODING: Final = re.compile(rb"""\bencoding\s*+=\s*+["']?([^"'\s?>]*+)""")
_DECLARATION: Final = re.compile(rb"<\?xml\s")
_MAX_DECLARATION_BYTES: Final = 4096
_PREFIX: Final = re.compile(rb"""<([A-Za-z_][\w.-]*):|\s([A-Za-z_][\w.-]*):[\w.-]+\s*=\s*["']""")
_NEVER_DECLARED: Final = frozenset({b"xml", b"xmlns", b""})
_ASCII_ENCODINGS: Final = frozenset({"utf-8", "us-ascii", "ascii", "iso-8859-1", "windows-1252"})
_ANY_ENTITY: Final = re.compile(rb"<!ENTITY")
# A declaration that only names an outside file is harmless, for that file is never opened.
_OWN_ENTITY: Final = re.compile(rb"<!ENTITY\s++(?![^\s%&\"']+\s+(?:SYSTEM|PUBLIC)\s)")


def without_nuls(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The bytes without NUL characters, and a warning if there were any."""
    count = data.count(b"\0")
    if not count:
        return data, ()
    return data.replace(b"\0", b""), (f"{count} NUL characters removed",)


def refuse_unsafe(data: bytes, *, outside_entities: bool = False) -> None:
    """Raise for data that is empty, not XML, or declares entities; external ones may be allowed."""
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start:
        raise MalformedError("the file is empty")
    if _HTML.match(start):
        raise WrongContentError("an HTML page instead of XML")
    if not start.startswith(b"<"):
        raise WrongContentError("not XML in UTF-8: the file does not begin with a tag")
    # Other encodings could hide an entity declaration from the next test.
    if b"\0" in data[:4]:
        raise WrongContentError("not XML in UTF-8: it seems to be UTF-16 or UTF-32")
    if _DECLARATION.match(start):
        _require_ascii_encoding(data)
    declared = _OWN_ENTITY if outside_entities else _ANY_ENTITY
    if declared.search(data):
        raise MalformedError(
            "declares entities of its own: rejected, since they can expand without limit"
        )


def _require_ascii_encoding(data: bytes) -> None:
    declaration, end, _ = data[:_MAX_DECLARATION_BYTES].partition(b"?>")
    if not end:
        raise MalformedError(
            f"its XML declaration does not end within {_MAX_DECLARATION_BYTES} bytes"
        )
    for name in _ENCODING.findall(declaration.lower()):
        encoding = name.decode("latin-1")
        if encoding not in _ASCII_ENCODINGS:
            raise MalformedError(f"unexpected encoding {encoding[:40]!r}")


def parse_xml(data: bytes, **options: Any) -> Any:
    """The root element; options are those of lxml's parser."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        **options,
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise MalformedError(f"not well-formed XML: {error.msg}") from None


def parse_fragment(
    data: bytes,
    *,
    root: bytes = b"fragment",
    default: str = "",
    namespaces: Mapping[bytes, bytes] | None = None,
    **options: Any,
) -> Any:
    """Elements cut out of a file by their bytes, below a root that declares what they use.

    The file around them declared their namespaces, and a publisher may call these as it likes:
    prefixes without a known namespace are declared as themselves.
    """
    used = {prefix for pair in _PREFIX.findall(data) for prefix in pair} - _NEVER_DECLARED
    prefixes = {name: b"urn:" + name for name in sorted(used)} | dict(namespaces or {})
    spaces = b"".join(b' xmlns:%b="%b"' % pair for pair in prefixes.items())
    start = b'<%b xmlns="%b"%b>' % (root, default.encode(), spaces)
    return parse_xml(b"%b%b</%b>" % (start, data, root), **options)
