"""Pages: files of a publisher, wherever they lie on their way to the archive."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from fonds.fetch.client import Download
from fonds.model import Archived
from fonds.stores.blobs import Blobs

PIECE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class LocalPage:
    """A page that is a file of this machine."""

    name: str
    archived: Archived
    path: Path

    def read(self) -> bytes:
        """All of it."""
        return self.path.read_bytes()

    def open(self) -> IO[bytes]:
        """A stream over it."""
        return self.path.open("rb")


@dataclass(frozen=True, slots=True)
class BlobPage:
    """A page in the archive."""

    name: str
    archived: Archived
    blobs: Blobs

    def read(self) -> bytes:
        """All of it."""
        return self.blobs.get(self.archived.key)

    def open(self) -> IO[bytes]:
        """A stream over it."""
        return open_blob(self.blobs, self.archived.key)


@dataclass(frozen=True, slots=True)
class MemberPage:
    """A page that is a member of an archive on this machine."""

    name: str
    archived: Archived
    archive: Path
    member: str

    def read(self) -> bytes:
        """All of it."""
        with self.open() as stream:
            return stream.read()

    def open(self) -> IO[bytes]:
        """A stream over it."""
        # The member keeps the archive open until it is closed itself.
        return zipfile.ZipFile(self.archive).open(self.member)


def open_blob(blobs: Blobs, key: str) -> IO[bytes]:
    """A blob as a file; one blob operation, however long it is."""
    return io.BufferedReader(_Stream(blobs.stream(key)), PIECE)


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken


def archived(download: Download) -> Archived:
    """What is known of a file that is not kept."""
    return Archived(
        url=download.url,
        key="",
        sha256=download.sha256,
        size=download.size,
        retrieved_at=download.retrieved_at,
        media_type=download.media_type,
    )


def described(file: Path, url: str, retrieved_at: datetime) -> Download:
    """A file of this machine, as if it had been fetched."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(PIECE):
            digest.update(piece)
        size = opened.tell()
    return Download(
        url=url,
        file=file,
        sha256=digest.hexdigest(),
        size=size,
        media_type=None,
        etag=None,
        last_modified=None,
        retrieved_at=retrieved_at,
    )
