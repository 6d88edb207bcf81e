"""The parts of a Word file that hold its text, as trees that are safe to walk."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

from fonds.errors import FondsError, MalformedError, WrongContentError
from fonds.normalize.docx.archive import Archive
from fonds.normalize.safe_xml import refuse_unsafe

MAIN: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONSHIPS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
W: Final = f"{{{MAIN}}}"
R: Final = f"{{{RELATIONSHIPS}}}"

_PACKAGE: Final = "{http://schemas.openxmlformats.org/package/2006/relationships}"
# Word can save the same file in a stricter form, whose names differ and nothing else.
_STRICT: Final = (
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main", MAIN.encode()),
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", RELATIONSHIPS.encode()),
)
MOST_SIGNS: Final = 2_500_000
"""Tags and attributes of one part, each of which takes some hundred bytes of memory."""
LONGEST_LINK: Final = 1_000
"""Characters of an address: one that all words of a document link to is written that often."""

_DOCTYPE: Final = re.compile(rb"<!DOCTYPE", re.IGNORECASE)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")
_LINKS: Final = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """One part and where its links lead."""

    root: Any
    links: dict[str, str]
    """Addresses on the web, by the ids the part calls them; nothing else is referred to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """What of a Word file makes its text."""

    document: Part
    footnotes: Part | None
    endnotes: Part | None
    styles: Any
    """None, like `numbering`, if the file has none."""
    numbering: Any
    has_margins: bool
    """Whether pages have a head or a foot."""


@dataclass(frozen=True, slots=True)
class _Relationship:
    kind: str
    target: str
    outside: bool


def read_word(archive: Archive) -> Word:
    """The parts of an opened Word file; an error says which of them is broken."""
    start = _relationships(archive, "")
    main = _named(start.values(), "officeDocument", "") or "word/document.xml"
    root = _tree(archive, main)
    if root is None:
        raise WrongContentError("no Word file (.docx): the document itself is missing in it")
    if root.tag != f"{W}document":
        raise WrongContentError("no Word file (.docx): its main part is another kind of document")
    known = _relationships(archive, main)
    base = posixpath.dirname(main)
    parts = {
        kind: _named(known.values(), kind, base) or f"word/{kind}.xml"
        for kind in ("footnotes", "endnotes", "styles", "numbering")
    }
    return Word(
        document=Part(root, _links(known)),
        footnotes=_part(archive, parts["footnotes"]),
        endnotes=_part(archive, parts["endnotes"]),
        styles=_tree(archive, parts["styles"]),
        numbering=_tree(archive, parts["numbering"]),
        has_margins=any(one.kind in {"header", "footer"} for one in known.values()),
    )


def _part(archive: Archive, name: str) -> Part | None:
    root = _tree(archive, name)
    return None if root is None else Part(root, _links(_relationships(archive, name)))


def _relationships(archive: Archive, part: str) -> dict[str, _Relationship]:
    folder, name = posixpath.split(part)
    root = _tree(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    found = () if root is None else root.iter(f"{_PACKAGE}Relationship")
    return {
        one.get("Id", ""): _Relationship(
            kind=one.get("Type", "").rpartition("/")[2],
            target=one.get("Target", ""),
            outside=one.get("TargetMode") == "External",
        )
        for one in found
    }


def _named(found: Any, kind: str, base: str) -> str | None:
    for one in found:
        if one.kind == kind and not one.outside:
            return posixpath.normpath(posixpath.join("/", base, one.target)).lstrip("/")
    return None


def _links(found: dict[str, _Relationship]) -> dict[str, str]:
    return {
        name: one.target
        for name, one in found.items()
        if one.kind == "hyperlink" and one.outside and _is_link(one.target)
    }


def _is_link(target: str) -> bool:
    return len(target) <= LONGEST_LINK and _LINKS.match(target) is not None


def _tree(archive: Archive, name: str) -> Any:
    data = archive.read(name)
    if data is None:
        return None
    if data.startswith(_UTF16):
        data = _DECLARATION.sub("", data.decode("utf-16", "replace"), count=1).encode()
    try:
        return _parsed(data)
    except FondsError as error:
        raise MalformedError(
            f"the Word file's part {name[:80]!r} cannot be read: {error}"
        ) from None


def _parsed(data: bytes) -> Any:
    refuse_unsafe(data)
    # Word never writes one, and everything that can explode needs one.
    if _DOCTYPE.search(data):
        raise MalformedError("it has a DOCTYPE, which is refused in Word files")
    if data.count(b"<") + data.count(b"=") > MOST_SIGNS:
        raise MalformedError("it has more elements than can be read; save it in several files")
    for strict, usual in _STRICT:
        data = data.replace(strict, usual)
    # Without huge_tree the parser itself refuses elements nested deeper than 256.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise MalformedError(f"not well-formed XML: {error.msg}") from None
