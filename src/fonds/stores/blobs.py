"""Raw files by key: in a folder, in memory, or in an object store, behind one protocol.

Where the raw bytes of a body stand: a blob of their own, or a range of a larger one.

`corpus/usc/2024/packs/title-42/00007#5120+890` names the blob, the offset and the length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from fonds.errors import SettingsError, StoreError
from fonds.seams import Seams
from fonds.stores.folder import BlobInfo, BlobVersion, Data, FolderBlobs, Method, SignedAddress
from fonds.stores.objects import open_objects

__all__ = [
    "BlobInfo",
    "BlobVersion",
    "Blobs",
    "Data",
    "FolderBlobs",
    "Method",
    "SignedAddress",
    "open_blobs",
]

_OBJECTS: Final = frozenset({"memory", "s3", "az", "gs"})
_POSSIBLE: Final = (
    "a folder, file:///folder, memory://, s3://bucket/prefix, az://container/prefix "
    "or gs://bucket/prefix"
)


class Blobs(Protocol):
    """Objects by key; every write is whole and durable when the call returns."""

    def head(self, key: str) -> BlobInfo | None:
        """What is known of an object, or None where there is none."""
        ...

    def get(self, key: str) -> bytes:
        """All bytes of an object; `BlobMissingError` where there is none."""
        ...

    def read(self, key: str, *, unless: str | None = None) -> BlobVersion | None:
        """An object with its etag, in one request; None where it has the etag `unless`."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """The bytes of a range; fewer, or none, where the object ends before it."""
        ...

    def stream(self, key: str) -> Iterator[bytes]:
        """The object in pieces of bounded size."""
        ...

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        """The objects whose key begins with a text, page by page, always in the same order."""
        ...

    def create(self, key: str, data: Data) -> str:
        """Store an object under a free key and give its etag; `BlobExistsError` if it is taken."""
        ...

    def adopt(self, key: str, file: Path) -> str:
        """As `create`, with a file that is gone from where it was once it is stored."""
        ...

    def replace(self, key: str, data: Data, *, etag: str) -> str:
        """Store an object in place of the version with this etag; `BlobChangedError` if gone."""
        ...

    def put(self, key: str, data: Data) -> str:
        """Store an object, whatever was there, and give its etag."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object, if there is one."""
        ...

    def remove(self, key: str, *, etag: str) -> None:
        """Remove the version of an object that has this etag; `BlobChangedError` if gone."""
        ...

    def can_remove_versions(self) -> bool:
        """Whether `remove` can be asked; some stores compare nothing when they delete."""
        ...

    def local_path(self, key: str) -> Path | None:
        """The file of an object, to be read and not written; None where it is in no file."""
        ...

    def sign(self, method: Method, key: str, seconds: int) -> SignedAddress | None:
        """An address that allows exactly this for so long; None where the store gives none out."""
        ...


def open_blobs(address: str, *, seams: Seams) -> Blobs:
    """The store at an address; options and credentials stand in its query or the environment."""
    if not address:
        raise SettingsError(f"no address for the blobs was given; possible are {_POSSIBLE}")
    if "://" not in address:
        return FolderBlobs(Path(address), seams=seams)
    parts = _split(address)
    if parts.scheme == "file":
        return FolderBlobs(_local_path(parts), seams=seams)
    if parts.scheme not in _OBJECTS:
        raise SettingsError(f"blobs cannot live at {parts.scheme}://; possible are {_POSSIBLE}")
    return open_objects(parts, seams=seams)


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address, allow_fragments=False)
    except ValueError:
        raise SettingsError(f"the blobs' address is malformed; possible are {_POSSIBLE}") from None


def _local_path(parts: SplitResult) -> Path:
    if parts.netloc not in {"", "localhost"} or not parts.path:
        raise SettingsError("a folder is addressed as file:///folder, with three slashes")
    return Path(unquote(parts.path))


_RANGE: Final = re.compile(r"(?P<key>.+)#(?P<start>\d+)\+(?P<length>\d+)")


def body_ref(key: str, start: int, length: int) -> str:
    """The name of a range of a blob."""
    return f"{key}#{start}+{length}"


def read_body(blobs: Blobs, ref: str) -> bytes:
    """The bytes that a reference names; of a range only those are read."""
    named = _RANGE.fullmatch(ref)
    if named is None:
        return blobs.get(ref)
    length = int(named["length"])
    data = blobs.get_range(named["key"], int(named["start"]), length)
    if len(data) != length:
        raise StoreError(f"{named['key']} is cut short: {ref} names bytes that it does not have")
    return data
