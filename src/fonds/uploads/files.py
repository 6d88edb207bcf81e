"""The file formats that can be uploaded, detected by name and by content."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from fonds.errors import MalformedError, UploadRefusedError
from fonds.model import BodyFormat
from fonds.normalize.docx.package import OLD_OFFICE, ZipArchive
from fonds.normalize.encodings import decode

MAX_NAME_LENGTH: Final = 255
"""Characters of a file's name."""
SNIFFED_BYTES: Final = 65_536
"""Bytes at the beginning of a file by which its format is detected."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFormat:
    """A format of files that can be uploaded."""

    called: str
    """Its name in a sentence."""
    extension: str
    """The extension of its key in the store, without a dot."""
    endings: tuple[str, ...]
    """The extensions of file names, in lower case."""
    normalizer: str
    body_format: BodyFormat
    """The format that documents record."""
    media_type: str


FORMATS: Final = {
    "pdf": FileFormat(
        called="a PDF",
        extension="pdf",
        endings=(".pdf",),
        normalizer="pdf_v1",
        body_format="pdf",
        media_type="application/pdf",
    ),
    "docx": FileFormat(
        called="a Word file",
        extension="docx",
        endings=(".docx",),
        normalizer="docx_v1",
        body_format="xml",
        media_type="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    "html": FileFormat(
        called="an HTML page",
        extension="html",
        endings=(".html", ".htm"),
        normalizer="html_v1",
        body_format="html",
        media_type="text/html",
    ),
    "markdown": FileFormat(
        called="Markdown",
        extension="md",
        endings=(".md", ".markdown"),
        normalizer="markdown_v1",
        body_format="text",
        media_type="text/markdown",
    ),
    "text": FileFormat(
        called="plain text",
        extension="txt",
        endings=(".txt",),
        normalizer="text_v1",
        body_format="text",
        media_type="text/plain",
    ),
}
"""By name; the order is that of the message that lists them."""

# Formats by first bytes, as keys of `_CALLED`.
_MAGIC: Final = (
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (OLD_OFFICE, "old-office"),
    (b"\x89PNG", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF8", "image"),
    (b"II*\0", "image"),
    (b"MM\0*", "image"),
    (b"{\\rtf", "rtf"),
    (b"\x1f\x8b", "packed"),
    (b"7z\xbc\xaf", "packed"),
    (b"Rar!", "packed"),
    (b"\x7fELF", "program"),
    (b"MZ\x90\0", "program"),
)
_CALLED: Final = {
    "zip": "a ZIP archive, and not a Word file",
    "old-office": "an old Office file (.doc), or one locked with a password: "
    "save it as .docx without one",
    "image": "a picture",
    "rtf": "an RTF file: save it as .docx",
    "packed": "a packed archive",
    "program": "a program",
    "binary": "neither text nor any known format",
    **{name: form.called for name, form in FORMATS.items()},
}
_BEFORE: Final = b"\xef\xbb\xbf \t\r\n\f\v"
_PAGE: Final = re.compile(
    rb"(?:<\?xml[^>]{0,200}>\s*|<!--(?:(?!-->).){0,4000}-->\s*)*<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_TAG: Final = re.compile(rb"<[A-Za-z!/]")
# Some programs write a line or two of their own in front of a PDF.
_LATE_PDF: Final = re.compile(rb"[\r\n]%PDF-\d")
_PDF_WITHIN: Final = 1024
_SAMPLE: Final = 4096
_FEW: Final = 2
_USUAL_CONTROLS: Final = frozenset("\t\n\r\v\f\x1a\x1b\x85")
_ODD: Final = frozenset({"Cc", "Cn", "Co", "Cs"})
_INVISIBLE: Final = _ODD | {"Cf", "Zl", "Zp"}
_HASH: Final = re.compile(r"[0-9a-fA-F]{64}")
_ENDING: Final = re.compile(r"\.[^.\s]{1,16}$")


def clean_name(name: str) -> str:
    """A file name that is safe to show: without folders and control characters, not too long."""
    last = re.split(r"[/\\]", name)[-1]
    # Characters that change the direction of writing can disguise an extension.
    visible = "".join(" " if unicodedata.category(sign) in _INVISIBLE else sign for sign in last)
    cleaned = " ".join(unicodedata.normalize("NFC", visible).split())
    if not cleaned.strip(". "):
        raise UploadRefusedError("the file has no name; give it one", kind="bad-name")
    if len(cleaned) <= MAX_NAME_LENGTH:
        return cleaned
    match = _ENDING.search(cleaned)
    ending = match[0] if match else ""
    return cleaned[: MAX_NAME_LENGTH - len(ending)] + ending


def claimed_format(name: str) -> str:
    """The format that a file's name claims, as a key of `FORMATS`."""
    lower = name.strip().lower()
    for key, form in FORMATS.items():
        if lower.endswith(form.endings):
            return key
    accepted = ", ".join(ending for form in FORMATS.values() for ending in form.endings)
    raise UploadRefusedError(
        f"files of this kind cannot be uploaded; names may end in {accepted}", kind="type-unknown"
    )


def check_claim(size: int, sha256: str, *, limit: int) -> None:
    """Refuse a file by its announcement, before it is sent; `limit` is in bytes."""
    if size <= 0:
        raise UploadRefusedError("the file is empty", kind="empty")
    if size > limit:
        raise UploadRefusedError(
            f"the file is too large: {size} bytes, {limit} are allowed", kind="too-large"
        )
    if _HASH.fullmatch(sha256) is None:
        raise UploadRefusedError("sha256 must be 64 hexadecimal digits", kind="bad-hash")


def sniff_format(head: bytes, file: BinaryIO | None = None) -> str:
    """The format of a file by its first bytes: a key of `FORMATS`, or of `_CALLED` if refused.

    Markdown is `text`. A Word file is recognised only with the whole `file`; without it, or if it
    is damaged, the result is `zip`.
    """
    start = head.lstrip(_BEFORE)
    by_magic = next((name for magic, name in _MAGIC if start.startswith(magic)), None)
    if by_magic == "zip":
        return "docx" if file is not None and _is_word(file) else "zip"
    if by_magic is not None:
        return by_magic
    if _PAGE.match(_in_utf8(start)):
        return "html"
    if _LATE_PDF.search(head, 0, _PDF_WITHIN):
        return "pdf"
    return "text" if _is_text(head) else "binary"


def check_content(path: Path, claimed: str) -> None:
    """Refuse a file whose format differs from its name's, or that is a zip bomb."""
    with path.open("rb") as file:
        head = file.read(SNIFFED_BYTES)
        if not head:
            raise UploadRefusedError("the file is empty", kind="empty")
        if claimed == "docx":
            _refuse_bomb(head, file)
        detected = sniff_format(head, file)
    if detected != claimed and not _passes(head, detected, claimed):
        raise UploadRefusedError(
            f"the name claims {_CALLED[claimed]}, but the file is {_CALLED[detected]}",
            kind="type-mismatch",
        )


def _passes(head: bytes, detected: str, claimed: str) -> bool:
    if detected != "text":
        return False
    # HTML may be a fragment, without the tags at the start by which it is detected.
    return claimed in {"text", "markdown"} or (claimed == "html" and bool(_TAG.search(head)))


def _refuse_bomb(head: bytes, file: BinaryIO) -> None:
    if not head.startswith(b"PK"):
        return
    try:
        why = ZipArchive(file).bomb
    except MalformedError as error:
        raise UploadRefusedError(str(error), kind="type-mismatch") from None
    if why:
        raise UploadRefusedError(
            f"the Word file is rejected as a possible zip bomb: {why}", kind="archive-bomb"
        )


def _is_word(file: BinaryIO) -> bool:
    try:
        return ZipArchive(file).is_word
    except MalformedError:
        return False


def _in_utf8(start: bytes) -> bytes:
    """The same text in UTF-8 if it is in UTF-16, in which no tag would be recognised."""
    return decode(start[:_SAMPLE]).text.encode() if b"\0" in start[:_SAMPLE] else start


def _is_text(head: bytes) -> bool:
    decoded = decode(head[:_SAMPLE])
    # NULs are removed and counted later; in a wide encoding they are halves of letters.
    wide = decoded.encoding.startswith(("utf-16", "utf-32"))
    nuls = 0 if wide else head[:_SAMPLE].count(0)
    odd = sum(
        sign == "\ufffd" or (sign not in _USUAL_CONTROLS and unicodedata.category(sign) in _ODD)
        for sign in decoded.text
    )
    return odd <= max(_FEW, len(decoded.text) // 20) and nuls <= len(decoded.text) // 3
