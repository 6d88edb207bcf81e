"""The texts of documents as pages show them: rendered once, kept in files, read from there."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from sqlalchemy import Connection, func, select

from fonds.stores.database import Database
from fonds.stores.tables import document_chunk_buffer, documents
from fonds.web.markdown import VERSION, Heading, render

FOLDER: Final = Path("cache", "pages")
"""Below the library's home; it may be deleted at any time."""
PART: Final = 1_000_000
"""Characters of text on one page, about: a longer text is shown in parts."""

_DAMAGE: Final = (OSError, ValueError, TypeError, KeyError)
"""What reading a file of the cache may end in; whatever is wrong with it, it is made again."""
_chunk: Final = document_chunk_buffer.c
_Page = tuple[bytes, Sequence[Heading]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of a text."""

    html: bytes
    headings: Sequence[Heading]
    number: int
    """From 1."""
    parts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cuts:
    """Where the parts of a text begin, and the number of the first passage in each."""

    offsets: Sequence[int]
    passages: Sequence[int]
    end: int


class Texts:
    """Gives the text of a document as HTML, rendering it if nobody did before."""

    def __init__(self, database: Database, home: Path) -> None:
        self._database = database
        self._folder = home / FOLDER

    def part(self, document: Mapping[str, Any], number: int) -> Part | None:
        """A part of a document's text; None if it has no text, the last one for too high ones."""
        if document["body_text_sha256"] is None:
            return None
        key = _key(document)
        cuts = self._cuts(key, document)
        number = min(max(number, 1), len(cuts.offsets))
        path = self._folder / key[:2] / f"{key}.{number}"
        html, headings = _kept(path) or self._make(path, document, cuts, number)
        return Part(html=html, headings=headings, number=number, parts=len(cuts.offsets))

    def part_of(self, document: Mapping[str, Any], passage: int) -> int:
        """The part that a passage stands in."""
        if document["body_text_sha256"] is None:
            return 1
        cuts = self._cuts(_key(document), document)
        return max(1, sum(first <= passage for first in cuts.passages))

    def _cuts(self, key: str, document: Mapping[str, Any]) -> _Cuts:
        path = self._folder / key[:2] / f"{key}.cuts"
        with suppress(*_DAMAGE):
            return _Cuts(**json.loads(path.read_bytes()))
        with self._database.read() as connection:
            cuts = _cut(connection, document)
        _keep(path, json.dumps(asdict(cuts)).encode())
        return cuts

    def _make(self, path: Path, document: Mapping[str, Any], cuts: _Cuts, number: int) -> _Page:
        start = cuts.offsets[number - 1]
        end = [*cuts.offsets, cuts.end][number]
        with self._database.read() as connection:
            text = _text(connection, document["id"], start, end)
            passages = _passages(connection, document, start, end)
        made = render(text, passages, prefix=f"s{number}-" if number > 1 else "s")
        html = made.html.encode()
        headings = [asdict(heading) for heading in made.headings]
        _keep(_beside(path), json.dumps({"crc32": crc32(html), "headings": headings}).encode())
        _keep(path, html)
        return html, made.headings


def _key(document: Mapping[str, Any]) -> str:
    """The recipe says how the text was cut, and so where its passages begin."""
    made_of = [VERSION, document["body_text_sha256"], document["recipe"]]
    return hashlib.sha256("\0".join(made_of).encode()).hexdigest()


def _cut(connection: Connection, document: Mapping[str, Any]) -> _Cuts:
    """A part ends where a passage begins: nothing is torn that belongs together."""
    whole = documents.c.id == document["id"]
    end = connection.scalar(select(func.length(documents.c.body_text)).where(whole)) or 0
    offsets, firsts = [0], [0]
    if end > PART:
        for number, start in sorted(_passages(connection, document, 0, end).items()):
            if start - offsets[-1] >= PART:
                offsets.append(start)
                firsts.append(number)
    return _Cuts(offsets=offsets, passages=firsts, end=end)


def _text(connection: Connection, document_id: str, start: int, end: int) -> str:
    piece = func.substr(documents.c.body_text, start + 1, end - start)
    return connection.scalar(select(piece).where(documents.c.id == document_id)) or ""


def _passages(
    connection: Connection, document: Mapping[str, Any], start: int, end: int
) -> dict[int, int]:
    """Where the passages within a part begin, from its beginning."""
    query = select(_chunk.chunk_ord, _chunk.meta).where(_chunk.document_id == document["uid"])
    begins = {row.chunk_ord: row.meta["start"] for row in connection.execute(query)}
    return {number: at - start for number, at in begins.items() if start <= at < end}


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _kept(path: Path) -> _Page | None:
    """What was rendered before; None if it is not there, or not as it was written."""
    with suppress(*_DAMAGE):
        html, told = path.read_bytes(), json.loads(_beside(path).read_bytes())
        headings = [Heading(**each) for each in told["headings"]]
        return (html, headings) if crc32(html) == told["crc32"] else None
    return None


def _keep(path: Path, content: bytes) -> None:
    """Whole or not at all; a cache that cannot be written to costs time and nothing else."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
