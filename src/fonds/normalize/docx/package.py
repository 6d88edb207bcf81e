"""A Word file as an archive of parts, read under limits that no honest file meets.

The parts of a Word file that hold its text, as trees that are safe to walk.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from lxml import etree

from fonds.errors import EncryptedError, FondsError, MalformedError, WrongContentError
from fonds.normalize.safe_xml import refuse_unsafe

OLD_OFFICE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How files of Word before 2007 begin, and those of today that are locked with a password."""
MAX_ENTRIES: Final = 4_096
LARGEST_DIRECTORY: Final = 2**20
LARGEST_TOTAL: Final = 512 * 2**20
"""Bytes of all entries together; pictures are counted, though they are never unpacked."""
LARGEST_TEXT: Final = 32 * 2**20
"""Bytes of all entries that are XML, some thousand pages; and of all parts that are read."""
STEEPEST: Final = 250
"""How much smaller compression may make a large part: XML of long tables comes near 100."""

_LARGE: Final = 2**20
_READ_SIZE: Final = 2**16
_MAIN: Final = "word/document.xml"
_PACKAGED: Final = "[Content_Types].xml"
_LOCKED_FLAG: Final = 1
# Others would let an archive choose how much memory its reader needs.
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    ValueError,
    UnicodeError,
    OverflowError,
)
_CUT: Final = "the Word file is cut off or damaged: its archive cannot be read; send it again"


class _LimitedFile(io.RawIOBase):
    """A file of which no read may be larger than the directory of a genuine archive.

    `zipfile` reads as much as the archive states as the size of its directory.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def read(self, size: int = -1, /) -> bytes:
        if size > LARGEST_DIRECTORY:
            raise zipfile.BadZipFile("the directory is larger than any")
        return self._file.read(LARGEST_DIRECTORY if size < 0 else size)


class ZipArchive:
    """The entries of a ZIP archive; nothing of it is ever written to a disk."""

    def __init__(self, file: BinaryIO) -> None:
        """Read the directory of an archive, or raise `MalformedError`."""
        try:
            self._zip = zipfile.ZipFile(_LimitedFile(file))
        except _BROKEN:
            raise MalformedError(_CUT) from None
        self._entries = {entry.filename: entry for entry in self._zip.infolist()}
        self._left = LARGEST_TEXT

    @property
    def is_word(self) -> bool:
        """Whether the names are those of a Word file."""
        return _MAIN in self._entries or (
            _PACKAGED in self._entries and any(name.startswith("word/") for name in self._entries)
        )

    @property
    def bomb(self) -> str | None:
        """Why unpacking would be dangerous, as far as the directory tells; None: it would not."""
        entries = self._zip.infolist()
        if len(entries) > MAX_ENTRIES:
            return f"it has {len(entries)} entries; {MAX_ENTRIES} are allowed"
        if (total := sum(entry.file_size for entry in entries)) > LARGEST_TOTAL:
            return f"its parts are {_mib(total)} MiB together; {_mib(LARGEST_TOTAL)} are allowed"
        texts = [entry for entry in entries if entry.filename.endswith((".xml", ".rels"))]
        if (total := sum(entry.file_size for entry in texts)) > LARGEST_TEXT:
            return f"its text is {_mib(total)} MiB of XML; {_mib(LARGEST_TEXT)} are allowed"
        return next((why for entry in texts if (why := _too_steep(entry))), None)

    def read(self, name: str) -> bytes | None:
        """The bytes of an entry, None if there is no such entry; all that is read is limited."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        if entry.flag_bits & _LOCKED_FLAG:
            raise EncryptedError("the Word file is locked with a password; save it without one")
        if entry.compress_type not in _METHODS:
            raise MalformedError(f"the Word file's part {name!r} is packed as Word never does")
        if why := _too_steep(entry):
            raise MalformedError(f"the Word file is rejected as a possible zip bomb: {why}")
        try:
            return self._unpacked(entry)
        except (*_BROKEN, RuntimeError):
            raise MalformedError(f"the Word file's part {name!r} is damaged") from None

    def _unpacked(self, entry: zipfile.ZipInfo) -> bytes:
        chunks: list[bytes] = []
        with self._zip.open(entry) as part:
            while chunk := part.read(_READ_SIZE):
                self._left -= len(chunk)
                if self._left < 0:
                    allowed = f"{_mib(LARGEST_TEXT)} MiB of text are allowed"
                    raise MalformedError(f"the Word file is too large to be read: {allowed}")
                chunks.append(chunk)
        return b"".join(chunks)


def open_word(file: BinaryIO) -> ZipArchive:
    """The archive of a Word file that is safe to read; raises for everything else."""
    start = file.read(8)
    file.seek(0)
    if start == OLD_OFFICE:
        raise WrongContentError(
            "an old Word file (.doc), or one locked with a password; save it as .docx without one"
        )
    if not start.startswith(b"PK"):
        raise WrongContentError("no Word file (.docx): it does not begin as one")
    archive = ZipArchive(file)
    if why := archive.bomb:
        raise MalformedError(f"the Word file is rejected as a possible zip bomb: {why}")
    if not archive.is_word:
        raise WrongContentError("a ZIP archive, but no Word file (.docx) is in it")
    return archive


def _too_steep(entry: zipfile.ZipInfo) -> str | None:
    if entry.file_size <= max(_LARGE, STEEPEST * entry.compress_size):
        return None
    return f"{entry.filename[:80]!r} is more than {STEEPEST} times as large when unpacked"


def _mib(size: int) -> int:
    return -(-size // 2**20)


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
MAX_MARKUP_SIGNS: Final = 2_500_000
"""Tags and attributes of one part, each of which takes some hundred bytes of memory."""
MAX_LINK_LENGTH: Final = 1_000
"""Characters of an address: one that all words of a document link to is written that often."""

_DOCTYPE: Final = re.compile(rb"<!DOCTYPE", re.IGNORECASE)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")
_LINKS: Final = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PackagePart:
    """One part and where its links lead."""

    root: Any
    links: dict[str, str]
    """Addresses on the web, by the ids the part calls them; nothing else is referred to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """The parts of a Word file that contain text."""

    document: PackagePart
    footnotes: PackagePart | None
    endnotes: PackagePart | None
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


def read_word(archive: ZipArchive) -> Word:
    """The parts of an opened Word file; an error says which of them is broken."""
    start = _relationships(archive, "")
    main = _target_of_kind(start.values(), "officeDocument", "") or "word/document.xml"
    root = _tree(archive, main)
    if root is None:
        raise WrongContentError("no Word file (.docx): the document itself is missing in it")
    if root.tag != f"{W}document":
        raise WrongContentError("no Word file (.docx): its main part is another kind of document")
    relationships = _relationships(archive, main)
    base = posixpath.dirname(main)
    parts = {
        kind: _target_of_kind(relationships.values(), kind, base) or f"word/{kind}.xml"
        for kind in ("footnotes", "endnotes", "styles", "numbering")
    }
    return Word(
        document=PackagePart(root, _links(relationships)),
        footnotes=_part(archive, parts["footnotes"]),
        endnotes=_part(archive, parts["endnotes"]),
        styles=_tree(archive, parts["styles"]),
        numbering=_tree(archive, parts["numbering"]),
        has_margins=any(one.kind in {"header", "footer"} for one in relationships.values()),
    )


def _part(archive: ZipArchive, name: str) -> PackagePart | None:
    root = _tree(archive, name)
    return None if root is None else PackagePart(root, _links(_relationships(archive, name)))


def _relationships(archive: ZipArchive, part: str) -> dict[str, _Relationship]:
    folder, name = posixpath.split(part)
    root = _tree(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    relationships = () if root is None else root.iter(f"{_PACKAGE}Relationship")
    return {
        one.get("Id", ""): _Relationship(
            kind=one.get("Type", "").rpartition("/")[2],
            target=one.get("Target", ""),
            outside=one.get("TargetMode") == "External",
        )
        for one in relationships
    }


def _target_of_kind(relationships: Any, kind: str, base: str) -> str | None:
    for one in relationships:
        if one.kind == kind and not one.outside:
            return posixpath.normpath(posixpath.join("/", base, one.target)).lstrip("/")
    return None


def _links(relationships: dict[str, _Relationship]) -> dict[str, str]:
    return {
        name: one.target
        for name, one in relationships.items()
        if one.kind == "hyperlink" and one.outside and _is_link(one.target)
    }


def _is_link(target: str) -> bool:
    return len(target) <= MAX_LINK_LENGTH and _LINKS.match(target) is not None


def _tree(archive: ZipArchive, name: str) -> Any:
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
    # Word never writes one, and every declaration of entities needs one.
    if _DOCTYPE.search(data):
        raise MalformedError("it has a DOCTYPE, which is refused in Word files")
    if data.count(b"<") + data.count(b"=") > MAX_MARKUP_SIGNS:
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
