"""Packs: the publisher's bytes of a batch of sections in one blob, behind an index.

The first line is the index, as JSON: of every section its id, where it begins after that line, its
length, hash, address and time. The bytes follow as they were served, one section after the other.
A pack is never changed: sections that come late go to `<pack>.r1`, `<pack>.r2`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import IO, Final, Self

from fonds.errors import BlobExistsError, StoreError
from fonds.stores.blobs import Blobs
from fonds.stores.body_refs import body_ref
from fonds.stores.columns import format_timestamp

FORMAT: Final = "fonds pack 1"
_PIECE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Entry:
    """One section in a pack."""

    id: str
    start: int
    """After the index."""
    length: int
    sha256: str
    url: str
    retrieved_at: datetime


class Pack:
    """A pack at hand: a local copy of the blob, and its index."""

    def __init__(self, key: str, file: IO[bytes], entries: list[Entry], begin: int) -> None:
        self.key = key
        self.entries = {entry.id: entry for entry in entries}
        self._file = file
        self._begin = begin

    def read(self, entry: Entry) -> bytes:
        """The bytes of one section, proven to be those that were packed."""
        self._file.seek(self._begin + entry.start)
        data = self._file.read(entry.length)
        if sha256(data).hexdigest() != entry.sha256:
            raise StoreError(f"{self.key} is damaged: delete it from the blob store and run again")
        return data

    def ref(self, entry: Entry) -> str:
        """What `body_ref` says of a section: pack, offset, length."""
        return body_ref(self.key, self._begin + entry.start, entry.length)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


class PackWriter:
    """Gathers sections on disk, so that a pack of any size takes little memory."""

    def __init__(self) -> None:
        self._bodies = NamedTemporaryFile()  # noqa: SIM115 — closed with the writer
        self._entries: list[Entry] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to be packed."""
        return not self._entries

    def add(self, section: str, data: bytes, *, url: str, retrieved_at: datetime) -> None:
        """Put one more section behind the others."""
        start = self._bodies.tell()
        self._bodies.write(data)
        digest = sha256(data).hexdigest()
        self._entries.append(Entry(section, start, len(data), digest, url, retrieved_at))

    def close(self) -> None:
        """Give up what was gathered."""
        self._bodies.close()

    def store(self, blobs: Blobs, key: str) -> Pack:
        """Write the pack, unless somebody did who died after it, or was faster."""
        index = _index_line(self._entries)
        file = NamedTemporaryFile()  # noqa: SIM115 — closed with the pack
        file.write(index)
        self._bodies.seek(0)
        shutil.copyfileobj(self._bodies, file, _PIECE)
        file.flush()
        self.close()
        try:
            blobs.create(key, Path(file.name))
        except BlobExistsError:
            file.close()
            return open_pack(blobs, key)
        except BaseException:
            file.close()
            raise
        return Pack(key, file, self._entries, len(index))


def open_pack(blobs: Blobs, key: str) -> Pack:
    """A pack that is there, copied to this machine in one blob operation."""
    file = NamedTemporaryFile()  # noqa: SIM115 — closed with the pack
    try:
        for piece in blobs.stream(key):
            file.write(piece)
        size = file.tell()
        file.seek(0)
        line = file.readline()
        return Pack(key, file, list(_read_index(line, key, size)), len(line))
    except BaseException:
        file.close()
        raise


def _index_line(entries: list[Entry]) -> bytes:
    told = [
        [one.id, one.start, one.length, one.sha256, one.url, format_timestamp(one.retrieved_at)]
        for one in entries
    ]
    line = json.dumps({"format": FORMAT, "sections": told}, ensure_ascii=False)
    return line.encode("utf-8", "surrogatepass") + b"\n"


def _read_index(line: bytes, key: str, size: int) -> Iterator[Entry]:
    try:
        told = json.loads(line)
        for known, start, length, digest, url, retrieved_at in told["sections"]:
            moment = datetime.fromisoformat(retrieved_at)
            yield Entry(known, _within(start, size), _within(length, size), digest, url, moment)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{key} is no pack: its first line is no index") from error


def _within(number: object, size: int) -> int:
    if type(number) is not int or not 0 <= number <= size:
        raise ValueError("no place in this file")
    return number
