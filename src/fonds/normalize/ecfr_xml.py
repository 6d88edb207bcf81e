"""The Code of Federal Regulations as XML (eCFR's API and bulk files, the annual edition)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError, WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.ecfr_walker import CfrWalker

_ROOTS: Final = frozenset(
    {"ECFR", "DLPSTEXTCLASS", "CFRDOC", "CFRGRANULE", *(f"DIV{level}" for level in range(1, 10))}
)
_ENCODING: Final = re.compile(rb"""<\?xml[^>]*\sencoding\s*=\s*["']([^"']+)""")
_PLAIN_ENCODINGS: Final = frozenset({"utf-8", "us-ascii", "ascii", "iso-8859-1", "windows-1252"})
# <DIV5 is eCFR's, <div class="…"> is a page's.
_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body|div)[\s>]")


@dataclass(frozen=True, slots=True)
class EcfrXml:
    """The normalizer `ecfr_xml_v1`."""

    name: str = "ecfr_xml_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The whole file as Markdown: a title, a part, a section; the hint is not needed."""
        del source_hint
        root, warnings = read_cfr(data)
        body = CfrWalker(root).walk(warnings)
        if not body.markdown:
            raise WrongContentError(f"<{root.tag}> holds no text")
        return body


def read_cfr(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of CFR XML, and what had to be mended to read it."""
    data, warnings = _without_nuls(data)
    _refuse(data)
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise MalformedError(f"not well-formed XML: {error.msg}") from None
    if root.tag not in _ROOTS:
        raise WrongContentError(
            f"the root element is <{root.tag[:80]}>, which is no Code of Federal Regulations"
        )
    return root, warnings


def _without_nuls(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    found = data.count(b"\0")
    if not found:
        return data, ()
    return data.replace(b"\0", b""), (f"{found} NUL characters removed",)


def _refuse(data: bytes) -> None:
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start:
        raise MalformedError("the file is empty")
    if _HTML.match(start):
        raise WrongContentError("an HTML page instead of XML")
    if not start.startswith(b"<"):
        raise WrongContentError("not XML in UTF-8: the file does not begin with a tag")
    encoding = _ENCODING.match(start)
    # Other encodings could hide an entity declaration from the next test.
    if encoding and encoding[1].decode("latin-1") not in _PLAIN_ENCODINGS:
        raise MalformedError(f"unexpected encoding {encoding[1].decode('latin-1')!r}")
    if b"<!ENTITY" in data:
        raise MalformedError("declares entities of its own; refused, since they can explode")
