"""Shards kept in a folder: read again only when the store says that they changed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from uuid import uuid4

from fonds.errors import BlobMissingError
from fonds.shards.index import version_of
from fonds.stores.blobs import BlobInfo, Blobs


class ShardCache:
    """Objects of a store beside their etags, each in one file; processes may share the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, blobs: Blobs, key: str) -> bytes | None:
        """The object as it is now, or None where there is none."""
        path = self._path(key)
        etag, data = _kept(path)
        try:
            fresh = blobs.read(key, unless=etag)
        except BlobMissingError:
            path.unlink(missing_ok=True)
            return None
        if fresh is None:
            return data
        _keep(path, fresh.etag, fresh.data)
        return fresh.data

    def fetch(self, blobs: Blobs, info: BlobInfo) -> Path | None:
        """A file with the object as it was listed, or newer, below one line; None if it is gone."""
        path = self._path(info.key)
        if _etag_of(path) != info.etag:
            fresh = version_of(blobs, info.key)
            if fresh is None:
                return None
            _keep(path, fresh.etag, fresh.data)
        return path

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()


def _kept(path: Path) -> tuple[str | None, bytes]:
    try:
        with path.open("rb") as file:
            heading, data = file.readline(), file.read()
    except FileNotFoundError:
        return None, b""
    return _etag(heading[:-1], len(data)), data


def _etag_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            heading = file.readline()
            return _etag(heading[:-1], path.stat().st_size - len(heading))
    except FileNotFoundError:
        return None


def _etag(heading: bytes, size: int) -> str | None:
    """The etag in the first line of a file; None if it was cut, as when the power failed."""
    etag, _, told = heading.decode(errors="replace").rpartition(" ")
    return etag if told == str(size) else None


def _keep(path: Path, etag: str, data: bytes) -> None:
    beside = path.with_name(f"{path.name}.{uuid4().hex}")
    beside.write_bytes(f"{etag} {len(data)}\n".encode() + data)
    beside.replace(path)
