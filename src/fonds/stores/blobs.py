"""The protocol of blob stores, how one is opened, and references to blobs or ranges of them.

`corpus/usc/2024/packs/title-42/00007#5120+890` is a reference with key, offset and length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from fonds.errors import SettingsError, StoreError, UsageError
from fonds.seams import Seams
from fonds.stores.folder import BlobInfo, BlobVersion, Data, FolderBlobs, Method, SignedAddress

__all__ = [
    "BlobInfo",
    "BlobVersion",
    "Blobs",
    "Data",
    "FolderBlobs",
    "Method",
    "SignedAddress",
    "open_blobs",
    "open_existing_blobs",
]

_OBJECTS: Final = frozenset({"memory", "s3", "az", "gs"})
_POSSIBLE: Final = (
    "a folder, file:///folder, memory://, s3://bucket/prefix, az://container/prefix "
    "or gs://bucket/prefix"
)


class Blobs(Protocol):
    """Objects by key; every write is whole and durable when the call returns."""

    def head(self, key: str) -> BlobInfo | None:
        """Size, etag and time of an object, or None if there is none."""
        ...

    def get(self, key: str) -> bytes:
        """All bytes of an object; `BlobMissingError` if there is none."""
        ...

    def read(self, key: str, *, unless: str | None = None) -> BlobVersion | None:
        """An object with its etag, in one request; None if it has the etag `unless`."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """The bytes of a range; fewer, or none, if the object ends before its end."""
        ...

    def stream(self, key: str) -> Iterator[bytes]:
        """The object in chunks of bounded size."""
        ...

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        """The objects whose key begins with a text, page by page, always in the same order."""
        ...

    def create(self, key: str, data: Data) -> str:
        """Store an object under a free key, return its etag; `BlobExistsError` if it is taken."""
        ...

    def move_file(self, key: str, file: Path) -> str:
        """As `create`, from a file that is removed once it is stored."""
        ...

    def replace(self, key: str, data: Data, *, etag: str) -> str:
        """Replace the version with this etag; `BlobChangedError` if it is not the current one."""
        ...

    def put(self, key: str, data: Data) -> str:
        """Store an object, in place of any other, and return its etag."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object, if there is one."""
        ...

    def remove(self, key: str, *, etag: str) -> None:
        """Remove the version with this etag; `BlobChangedError` if it is not the current one."""
        ...

    def can_remove_versions(self) -> bool:
        """True if `remove` works; some stores ignore the etag when they delete."""
        ...

    def local_path(self, key: str) -> Path | None:
        """The read-only file of an object; None if the store has no files."""
        ...

    def sign(self, method: Method, key: str, seconds: int) -> SignedAddress | None:
        """A signed address for one method and key; None if the store cannot sign."""
        ...


def open_blobs(
    address: str, *, seams: Seams, private: bool = True, public_endpoint: str = ""
) -> Blobs:
    """The store at an address; options and credentials come from its query or the environment.

    A folder is created for its owner alone, unless it is not `private`. Signed addresses of an
    object store have its `public_endpoint`, if there is one.
    """
    if not address:
        raise SettingsError(f"the address of the blob store is empty; use {_POSSIBLE}")
    if "://" not in address:
        return FolderBlobs(Path(address), seams=seams, private=private)
    parts = _split(address)
    if parts.scheme == "file":
        return FolderBlobs(_local_path(parts), seams=seams, private=private)
    if parts.scheme not in _OBJECTS:
        raise SettingsError(f"blobs cannot be stored at {parts.scheme}://; use {_POSSIBLE}")
    # obstore takes 6 MiB, of the 128 that an invocation of a code may have.
    from fonds.stores.objects import open_objects  # noqa: PLC0415

    return open_objects(parts, seams=seams, public_endpoint=public_endpoint)


def open_existing_blobs(address: str, *, seams: Seams, private: bool = True) -> Blobs:
    """As `open_blobs`; a folder that does not exist is an error, and is not created."""
    is_folder = "://" not in address or address.startswith("file:")
    folder = _local_path(_split(address)) if "://" in address and is_folder else Path(address)
    if is_folder and not folder.is_dir():
        raise UsageError(f"no such folder: {address}")
    return open_blobs(address, seams=seams, private=private)


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address, allow_fragments=False)
    except ValueError:
        raise SettingsError(
            f"the address of the blob store is malformed; use {_POSSIBLE}"
        ) from None


def _local_path(parts: SplitResult) -> Path:
    if parts.netloc not in {"", "localhost"} or not parts.path:
        raise SettingsError("a folder is addressed as file:///folder, with three slashes")
    return Path(unquote(parts.path))


_RANGE: Final = re.compile(r"(?P<key>.+)#(?P<start>\d+)\+(?P<length>\d+)")


def body_ref(key: str, start: int, length: int) -> str:
    """A reference to a range of a blob."""
    return f"{key}#{start}+{length}"


def read_reference(blobs: Blobs, ref: str) -> bytes:
    """The bytes of a blob or of a range, of which only that is read."""
    match = _RANGE.fullmatch(ref)
    if match is None:
        return blobs.get(ref)
    length = int(match["length"])
    data = blobs.get_range(match["key"], int(match["start"]), length)
    if len(data) != length:
        raise StoreError(f"{match['key']} is truncated: it ends before the range {ref}")
    return data
