"""Rows in files of bounded size, whose boundaries depend on the rows alone.

A file ends before a row whose owner's hash says so, once it is large enough. So a row that is new,
changed or removed changes the file it stands in, and rarely another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from fonds import ids
from fonds.exchange.bundle.canonical import line_of
from fonds.exchange.bundle.content import Record, Resource

LEAST: Final = 1 << 20
MOST: Final = 8 << 20
"""Bytes of a file: one that is not the last has no fewer, and one of several rows no more."""
_ODDS: Final = 16
"""Of so many documents, one may begin a file."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of rows, known by its hash."""

    records: int
    bytes: int
    sha256: str

    def path(self, resource: Resource) -> str:
        """Where it stands in a bundle: equal rows are the same file in all of them."""
        return f"data/{resource.name}/{self.sha256}.jsonl"


@dataclass(frozen=True, slots=True)
class Filled:
    """A file with its bytes."""

    part: Part
    data: bytes = field(repr=False)

    def read(self) -> bytes:
        """Its bytes, which need not be fetched."""
        return self.data


def cut(resource: Resource, records: Iterable[Record]) -> Iterator[Filled]:
    """Rows, in order, as files."""
    lines: list[bytes] = []
    size, before = 0, None
    for record in records:
        line, owner = line_of(record), record[resource.owner]
        is_over = size + len(line) > MOST
        if lines and (is_over or (size >= LEAST and owner != before and _begins(owner))):
            yield _filled(lines)
            lines, size = [], 0
        lines.append(line)
        size, before = size + len(line), owner
    if lines:
        yield _filled(lines)


def _begins(owner: str) -> bool:
    return int(ids.text_sha256(owner)[:8], 16) % _ODDS == 0


def _filled(lines: list[bytes]) -> Filled:
    data = b"".join(lines)
    return Filled(Part(len(lines), len(data), hashlib.sha256(data).hexdigest()), data)
