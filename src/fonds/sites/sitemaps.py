"""Sitemaps: lists of addresses that a website publishes for crawlers."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from typing import Final

from lxml import etree

from fonds.errors import WrongContentError
from fonds.sites.pages.addresses import canonical

LARGEST: Final = 50 << 20
"""Bytes of a sitemap, unpacked, as its specification allows."""
MOST: Final = 50_000
"""Addresses in one sitemap, as its specification allows."""
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one sitemap lists."""

    pages: tuple[str, ...]
    sitemaps: tuple[str, ...]
    """Further ones, where it is an index."""


def read_sitemap(data: bytes) -> Sitemap:
    """The addresses of a sitemap or an index of sitemaps: XML, packed or not, or plain lines."""
    text = _unpacked(data)
    if text.lstrip()[:1] != b"<":
        lines = text.decode("utf-8-sig", errors="replace").split()
        return Sitemap(_addresses(lines), ())
    pages: list[str] = []
    sitemaps: list[str] = []
    try:
        for _, element in _elements(text):
            parent = element.getparent()
            is_index = parent is not None and etree.QName(parent).localname == "sitemap"
            into = sitemaps if is_index else pages
            into.append(element.text or "")
            element.clear()
            if len(pages) + len(sitemaps) >= MOST:
                break
    except etree.XMLSyntaxError as error:
        if not pages and not sitemaps:
            raise WrongContentError(f"this is no sitemap: {error}") from error
    return Sitemap(_addresses(pages), _addresses(sitemaps))


def _elements(text: bytes) -> etree.iterparse:
    return etree.iterparse(
        io.BytesIO(text),
        tag="{*}loc",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=False,
    )


def _addresses(found: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url for text in found if (url := canonical(text.strip()))))


def _unpacked(data: bytes) -> bytes:
    if data[:2] != _GZIP:
        return data[:LARGEST]
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(LARGEST)
    except (OSError, EOFError, zlib.error) as error:
        raise WrongContentError(f"this sitemap cannot be unpacked: {error}") from error
