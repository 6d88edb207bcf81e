"""Sitemaps: the addresses that a website publishes for crawlers, up to the limits of the format."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from lxml import etree

from fonds.errors import WrongContentError
from fonds.sites.pages.urls import canonical

MAX_SIZE: Final = 50 << 20
"""Bytes of an uncompressed sitemap, as its specification allows."""
MAX_ADDRESSES: Final = 50_000
"""Addresses in one sitemap, as its specification allows."""
MAX_LEVELS: Final = 3
"""Sitemaps on the way to an address: the specification allows an index of sitemaps."""
_CHUNK: Final = 64 * 1024
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The addresses in one sitemap."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    """Further sitemaps, if it is an index."""
    error: str = ""
    """The limit at which reading ended; the addresses before it are there."""


def sitemap_fields(content: bytes | Path) -> dict[str, Any]:
    """As `read_sitemap`, for a reader process: the fields of the sitemap."""
    return asdict(read_sitemap(content))


def read_sitemap(content: bytes | Path) -> Sitemap:
    """The addresses of a sitemap or an index of sitemaps: XML, compressed or not, or text."""
    with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
        text, error = _read_up_to_limit(file)
    if text.lstrip()[:1] == b"<":
        sitemap = _read_xml(text)
    else:
        lines = text.decode("utf-8-sig", errors="replace").split(maxsplit=MAX_ADDRESSES)
        sitemap = Sitemap(_addresses(lines[:MAX_ADDRESSES]), (), _too_many(lines))
    return Sitemap(sitemap.pages, sitemap.sitemaps, error or sitemap.error)


def _read_up_to_limit(file: BinaryIO) -> tuple[bytes, str]:
    """The decompressed content, no more of which is ever in memory than a sitemap may have."""
    is_compressed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    opened = gzip.GzipFile(fileobj=file) if is_compressed else file
    text = bytearray()
    try:
        while chunk := opened.read(_CHUNK):
            text += chunk
            if len(text) > MAX_SIZE:
                state = "decompressed " if is_compressed else ""
                error = f"it has more than {MAX_SIZE >> 20} MiB {state}and was read up to there"
                return bytes(text[:MAX_SIZE]), error
    except (OSError, EOFError, zlib.error) as error:
        raise WrongContentError(f"This sitemap cannot be decompressed: {error}") from error
    return bytes(text), ""


def _read_xml(text: bytes) -> Sitemap:
    pages: list[str] = []
    sitemaps: list[str] = []
    message = ""
    try:
        for _, element in _elements(text):
            if len(pages) + len(sitemaps) == MAX_ADDRESSES:
                message = _too_many([*pages, *sitemaps, ""])
                break
            parent = element.getparent()
            is_index = parent is not None and etree.QName(parent).localname == "sitemap"
            into = sitemaps if is_index else pages
            into.append(element.text or "")
            element.clear()
    except etree.XMLSyntaxError as error:
        if not pages and not sitemaps and len(text) < MAX_SIZE:
            raise WrongContentError(f"This is not a sitemap: {error}") from error
        if "depth" in str(error):
            message = f"its elements are nested too deeply, and it was read up to there: {error}"
    return Sitemap(_addresses(pages), _addresses(sitemaps), message)


def _elements(text: bytes) -> etree.iterparse:
    return etree.iterparse(
        io.BytesIO(text),
        tag="{*}loc",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=False,
    )


def _too_many(addresses: list[str]) -> str:
    if len(addresses) <= MAX_ADDRESSES:
        return ""
    return f"it lists more than {MAX_ADDRESSES:,} addresses, and was read up to there"


def _addresses(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url for text in texts if (url := canonical(text.strip()))))
