"""Where documents and their bytes are, and the text of an archived body, as loading made it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fonds.chunk.chunker import Chunker
from fonds.engine.local import LocalEngine
from fonds.errors import StoreError
from fonds.model import NormalizedBody, PageMark
from fonds.normalize.registry import APART, BodyToNormalize, make_text
from fonds.runs.tasks import address_of
from fonds.seams import Seams
from fonds.stores.blobs import Blobs, read_body
from fonds.stores.database import Database

BY_FORMAT: Final = {"pdf": "pdf_v1", "html": "html_v1", "text": "text_v1"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shelf:
    """Where documents and their bytes are, and how their texts are cut."""

    database: Database
    blobs: Blobs
    seams: Seams
    chunker: Chunker


def make_text_apart(work: BodyToNormalize) -> NormalizedBody:
    """Normalize one body, in a process of its own where that is wiser."""
    if work.normalizer not in APART:
        return make_text(work)
    with LocalEngine(workers=1) as engine:
        (outcome,) = engine.run(make_text, [work])
    body: NormalizedBody = outcome.unwrap()
    return body


def text_again(
    shelf: Shelf, document_id: str, normalizer: str, key: str, body_map: Mapping[str, Any]
) -> NormalizedBody:
    """What a normalizer makes of a body of a document today, from nothing but the archive.

    `body_map` tells what was known from metadata alone: what is above it, and its first page.
    """
    address = address_of_body(shelf, document_id, key)
    work = BodyToNormalize(normalizer=normalizer, data=read_body(shelf.blobs, key), address=address)
    return _in_place(make_text_apart(work), body_map)


def address_of_body(shelf: Shelf, document_id: str, key: str) -> str | None:
    """Where the bytes of a body came from, which its links begin with; None if nobody knows."""
    with shelf.database.read() as connection:
        address = address_of(connection, key)
    pack, is_packed, _ = key.partition("#")
    return _address_in_pack(shelf.blobs, pack, document_id) if is_packed else address


def _address_in_pack(blobs: Blobs, key: str, section: str) -> str | None:
    """The address that the first line of a pack tells of a section."""
    line = b""
    try:
        for piece in blobs.stream(key):
            head, ended, _ = piece.partition(b"\n")
            line += head
            if ended:
                break
        told = json.loads(line)["sections"]
        return next((str(url) for name, _, _, _, url, _ in told if name == section), None)
    except (StoreError, ValueError, KeyError, TypeError):
        return None


def _in_place(text: NormalizedBody, body_map: Mapping[str, Any]) -> NormalizedBody:
    """What was known from metadata alone: what the body is a part of, and the page it begins on."""
    text = replace(text, above=tuple(body_map.get("above", ())))
    first = next((page for offset, page in body_map["pages"] if offset == 0), None)
    if first is None or any(mark.offset == 0 for mark in text.pages):
        return text
    return replace(text, pages=(PageMark(offset=0, page=first), *text.pages))
