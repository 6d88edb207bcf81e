"""Normalizers by name, and the one that fits the bytes of a file.

A normalizer turns bytes of one format into Markdown, with a map of its headings and pages.
Installed packages add theirs in the entry-point group `fonds.normalizers`, by name.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Protocol, runtime_checkable

from lxml import etree
from pydantic import TypeAdapter, ValidationError

from fonds.errors import ItemFailedError, PluginError, UsageError, WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.plugins import load_plugin


@runtime_checkable
class Normalizer(Protocol):
    """Pure and synchronous: the same bytes give the same Markdown, on every machine."""

    @property
    def name(self) -> str:
        """Its slug: `fr_xml_v1`."""
        ...

    @property
    def version(self) -> str:
        """Semantic version; another one makes stored bodies stale."""
        ...

    @property
    def label(self) -> str:
        """Name and version as a document records them: `fr_xml_v1@1.0.0`."""
        ...

    @property
    def accepts_format(self) -> BodyFormat:
        """The raw format it reads."""
        ...

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """Turn raw bytes into Markdown, or raise a `ParseError` that names the reason."""
        ...


GROUP: Final = "fonds.normalizers"

# Loaded when first used: the PDF libraries alone take longer than most commands.
_HOMES: Final = {
    "billres_v1": "fonds.normalize.billres:BillRes",
    "cga_v1": "fonds.normalize.cga:Cga",
    "dc_xml_v1": "fonds.normalize.dc:DcXml",
    "docx_v1": "fonds.normalize.docx:Docx",
    "ecfr_xml_v1": "fonds.normalize.ecfr:EcfrXml",
    "egov_v1": "fonds.normalize.egov:Egov",
    "fr_xml_v1": "fonds.normalize.fr:FrXml",
    "gii_v1": "fonds.normalize.gii:Gii",
    "html_article_v1": "fonds.normalize.html:HtmlArticle",
    "html_v1": "fonds.normalize.html:Html",
    "markdown_v1": "fonds.normalize.markdown_file:MarkdownFile",
    "pdf_v1": "fonds.normalize.pdf:PdfNormalizer",
    "text_v1": "fonds.normalize.text:TextNormalizer",
    "uslm_v1": "fonds.normalize.uslm:Uslm",
    "xml_v1": "fonds.normalize.xml:Xml",
}

_USLM: Final = re.compile(r"\{http://(?:xml\.house\.gov/schemas/uslm|schemas\.gpo\.gov/xml/uslm)")
_BY_ROOT: Final = {
    **dict.fromkeys(("ECFR", "DLPSTEXTCLASS", "CFRDOC", "CFRGRANULE"), "ecfr_xml_v1"),
    **{f"DIV{level}": "ecfr_xml_v1" for level in range(1, 10)},
    **dict.fromkeys(("FEDREG", "RULE", "PRORULE", "NOTICE", "PRESDOCU"), "fr_xml_v1"),
    **dict.fromkeys(("bill", "resolution", "amendment-doc"), "billres_v1"),
    **dict.fromkeys(("Law", "DataRoot", "Article"), "egov_v1"),
    **{
        f"{{https://code.dccouncil.us/schemas/dc-library}}{name}": "dc_xml_v1"
        for name in ("section", "container", "document")
    },
    **dict.fromkeys(("dokumente", "norm"), "gii_v1"),
}
_HTML: Final = re.compile(
    rb"<(?:!doctype html|html|head|body|div|p|table|h[1-6]|span|article|section|ul|ol|pre)\b",
    re.IGNORECASE,
)
_PREFORMATTED: Final = re.compile(
    rb"<body[^>]*>\s*<pre\b"
    # A whole text in one element that keeps its lines, without any other.
    rb"|\A(?:\xef\xbb\xbf)?\s*<div\b[^<>]*?\bwhite-space:\s*pre\b[^<>]*>[^<]*(?:</[^<]*)?\Z",
    re.IGNORECASE,
)
_ZIP: Final = b"PK\x03\x04"
# An archive writes the names of its entries as they are, in front of each and at its end.
_WORD_PARTS: Final = (b"word/document.xml", b"word/_rels/")
_LOOKED_AT: Final = 4096


def normalizer_names() -> list[str]:
    """The names of all normalizers."""
    return sorted({**_announced(), **_HOMES})


@cache
def get_normalizer(name: str) -> Normalizer:
    """The normalizer of that name."""
    if home := _HOMES.get(name):
        module, _, kind = home.partition(":")
        normalizer: Normalizer = getattr(import_module(module), kind)()
        return normalizer
    if entry := _announced().get(name):
        return load_plugin(entry, load_normalizer)
    names = ", ".join(normalizer_names())
    raise UsageError(f"unknown normalizer {name!r}; the known ones are {names}")


def load_normalizer(entry: EntryPoint) -> Normalizer:
    """The normalizer of an entry point."""
    normalizer = entry.load()()
    if not isinstance(normalizer, Normalizer) or normalizer.name != entry.name:
        raise PluginError("it is not a normalizer of that name")
    return normalizer


@cache
def _announced() -> dict[str, EntryPoint]:
    """The normalizers of installed packages; built-in names take precedence."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def sniff(data: bytes) -> str:
    """The name of the normalizer for these bytes."""
    start = data[:_LOOKED_AT]
    if (binary := _binary(data)) is not None:
        return binary
    root = _root(data) if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else None
    if root is not None and _USLM.match(root):
        return "uslm_v1"
    if root is not None and root in _BY_ROOT:
        return _BY_ROOT[root]
    if _PREFORMATTED.search(start):
        return "text_v1"
    if _HTML.search(start):
        return "html_v1"
    if root is not None:
        raise WrongContentError(f"no normalizer reads XML whose root is <{root}>")
    return "text_v1"


def _binary(data: bytes) -> str | None:
    # Word files may hold PDFs, so they come first.
    if data.startswith(_ZIP) and any(name in data for name in _WORD_PARTS):
        return "docx_v1"
    return "pdf_v1" if b"%PDF-" in data[:_LOOKED_AT] else None


def _root(data: bytes) -> str | None:
    """The name of the first element, or None if the bytes are not XML so far."""
    parser = etree.XMLPullParser(
        ("start",), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        for position in range(0, len(data), _LOOKED_AT):
            parser.feed(data[position : position + _LOOKED_AT])
            started: Any = next(iter(parser.read_events()), None)
            if started is not None:
                return str(started[1].tag)
    except etree.XMLSyntaxError:
        return None
    return None


READER_MODULES: Final = (
    "fonds.normalize.registry",
    "fonds.normalize.pdf",
    "fonds.normalize.html",
    "fonds.normalize.docx",
)
"""Modules that a process loads before it normalizes one document after the other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalizerInput:
    """The bytes of one document, and the normalizer for them."""

    normalizer: str
    data: bytes
    address: str | None
    """The address of the bytes, which completes the links of a page."""

    @property
    def label(self) -> str:
        """Name and version of the normalizer."""
        return get_normalizer(self.normalizer).label


def make_text(work: NormalizerInput) -> NormalizedBody:
    """Normalize one document."""
    return get_normalizer(work.normalizer).to_markdown(work.data, work.address)


def read_text(work: NormalizerInput) -> dict[str, Any]:
    """Normalize one document in a reader process; `text_of_json` makes a text of the result."""
    return asdict(make_text(work))


def text_of_json(value: Any) -> NormalizedBody:
    """The text that `read_text` returned; the types of all its parts are checked."""
    try:
        return _text_adapter().validate_python(value)
    except ValidationError as error:
        raise ItemFailedError("the reader process returned something other than a text") from error


@cache
def _text_adapter() -> TypeAdapter[NormalizedBody]:
    return TypeAdapter(NormalizedBody)


SHOULD_RECYCLE: Final = "fonds.normalize.pdf.document:should_recycle"
"""The address of the function by which such a process decides whether to start again."""
