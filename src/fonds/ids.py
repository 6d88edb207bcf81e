"""Computed ids, hashes and blob keys: the same input gives the same id on every machine."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID, uuid5

NAMESPACE: Final = UUID("6c8a1e6e-1f0b-4aa8-9f0a-1a7c2e6f2b42")

# Publishers set the hyphen of a section number as any of these; the number is the same.
_DASHES: Final = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013"), "-")
_SAFE_PUNCTUATION: Final = frozenset("-._:")
_UPLOAD: Final = "upload:"
_SITE: Final = "site-"
_WHITESPACE: Final = re.compile(r"\s+")
_NUMBERS: Final = re.compile(r"([0-9]+)")
_MAX_NAME_LENGTH: Final = 200
"""Bytes; file systems allow 255, and a changed file gets a suffix."""


# Trees ------------------------------------------------------------------------------------


def segment(level: str, number: str = "") -> str:
    """The path segment of one level: `section` and `47–1801.04` give `section-47-1801.04`."""
    name = _name(level.lower())
    cleaned = _clean(number)
    return f"{name}-{cleaned}" if cleaned else name


def number_siblings(segments: Iterable[str]) -> list[str]:
    """Segments in the publisher's order, a second `section-548` becoming `section-548~2`."""
    counts: Counter[str] = Counter()
    numbered = []
    for name in segments:
        counts[name] += 1
        numbered.append(repeated(name, counts[name]))
    return numbered


def repeated(segment: str, occurrence: int) -> str:
    """The segment of the nth sibling of the same level and number: `section-548~2`."""
    return segment if occurrence == 1 else f"{segment}~{occurrence}"


def tree_root(source: str, version: str) -> str:
    """The id every node of one edition of a code begins with."""
    return f"{_name(source)}/{_name(version)}/root"


def tree_child(parent: str, child_segment: str) -> str:
    """The id of a node: its parent's id is a strict prefix at a `/`."""
    return f"{parent}/{child_segment}"


def tree_parent(node_id: str) -> str | None:
    """The id of the node above, or None for a root."""
    parent, _, last = node_id.rpartition("/")
    return None if last == "root" and parent.count("/") == 1 else parent


def edition_order(version: str) -> tuple[tuple[int, str], ...]:
    """The sort key of an edition: `119-36` is after `119-4`, and `2025-01-02` after `2025`."""
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part)
        for part in _NUMBERS.split(version)
        if part
    )


def _name(text: str) -> str:
    """A segment that is never empty, and never `.` or `..`."""
    cleaned = _clean(text)
    if not cleaned:
        raise ValueError(f"{text!r} gives no name")
    return cleaned.replace(".", "%2E") if not cleaned.strip(".") else cleaned


def _clean(text: str) -> str:
    normalized = unicodedata.normalize("NFC", text).translate(_DASHES).strip()
    return "".join(map(_encode, _WHITESPACE.sub("-", normalized)))


def _encode(character: str) -> str:
    if character.isalnum() or character in _SAFE_PUNCTUATION:
        return character
    # Lone surrogates occur in damaged feeds; they have no UTF-8 form but must have an id.
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


# Documents --------------------------------------------------------------------------------


def document_uid(document_id: str) -> UUID:
    """The UUID of a document, by which the chunk and vector buffers know it."""
    if document_id.startswith(_UPLOAD):
        return UUID(document_id.removeprefix(_UPLOAD))
    return uuid5(NAMESPACE, document_id)


def upload_id(uid: UUID) -> str:
    """`upload:<uuid>`: the only kind of document whose UUID is older than its id."""
    return f"{_UPLOAD}{uid}"


def upload_uid(user_id: UUID, sha256: str) -> UUID:
    """The document id of an upload: the same bytes from the same user are one document."""
    return uuid5(NAMESPACE, f"{user_id}:{sha256.lower()}")


def federal_register_number(number: str) -> str:
    """A document number as the API writes it, whatever dash the print edition used."""
    return _WHITESPACE.sub("", number.translate(_DASHES))


def site_source(website: str) -> str:
    """The name of the source that a website is."""
    return f"{_SITE}{website}"


def website_of_source(source: str) -> str:
    """The website that the source of this name is."""
    return source.removeprefix(_SITE)


def site_file_id(website: str, url: str) -> str:
    """`site:tokyo/1f0a6c…`: a PDF of a website, by its address."""
    return f"site:{website}/{hashlib.sha256(url.encode()).hexdigest()[:16]}"


# Chunks -----------------------------------------------------------------------------------


def chunk_id(document_uid: UUID, chunker_name: str, chunker_version: str, ordinal: int) -> UUID:
    """The UUID of the nth chunk that one version of a chunker makes of a document."""
    name = f"{document_uid}:{chunker_name}:{chunker_version}:{ordinal}"
    return uuid5(NAMESPACE, name.lower())


def chunk_sha(text: str) -> str:
    """The hash by which equal passages are known: Unicode form and white space do not count."""
    return text_sha256(" ".join(unicodedata.normalize("NFC", text).split()))


# Hashes, blobs, shards --------------------------------------------------------------------


def text_sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8, as hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def json_sha256(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form: keys sorted, no spaces, dates as ISO text."""
    canonical = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )
    return text_sha256(canonical)


def archive_key(source: str, path: str) -> str:
    """The blob key of a raw file: `corpus/federal_register/metadata/2026/05/2026-08558.json`.

    Every segment is made safe and no longer than file systems allow, so no name in a feed
    escapes its source's folder or breaks it.
    """
    segments = [_clean(part) for part in path.split("/")]
    safe = [_shortened(part) for part in segments if part.strip(".")]
    return "/".join(["corpus", _name(source), *(safe or ["index"])])


def _shortened(name: str) -> str:
    if len(name.encode("utf-8", "surrogatepass")) <= _MAX_NAME_LENGTH:
        return name
    start = name.encode("utf-8", "surrogatepass")[: _MAX_NAME_LENGTH - 17].decode("utf-8", "ignore")
    return f"{start}~{text_sha256(name)[:16]}"


def changed_key(key: str, sha256: str) -> str:
    """The key of a file whose name is taken by other bytes: `name@<sha8>`."""
    return f"{key}@{sha256[:8]}"


def shard_id(key: str, digits: int = 2) -> str:
    """The shard of a key in a hash-sharded index: the first hex digits of its SHA-256."""
    return text_sha256(key)[:digits]
