"""Blobs in a folder: complete files or none, even after crashes and concurrent writes.

A blob is written to `.tmp`, synced, and only then given its name, so that a reader never sees a
part of it. Every path is opened folder by folder without following symbolic links.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, Literal
from uuid import uuid4

from fonds.errors import (
    BlobChangedError,
    BlobExistsError,
    BlobMissingError,
    StoreError,
    StoreFullError,
)
from fonds.seams import Seams, spend
from fonds.stores.permissions import PRIVATE_FILE, PRIVATE_FOLDER

Data = bytes | Path
"""Content to be stored: bytes, or a file, which is never read into memory as a whole."""

CHUNK_SIZE: Final = 1 << 20
"""Bytes of the largest chunk of a stream."""

MAX_SIGNED_SECONDS: Final = 7 * 24 * 60 * 60
"""A week; no store signs addresses for longer."""

_TEMPORARY: Final = ".tmp"
_LOCKS: Final = ".locks"
_STALE_SECONDS: Final = 24 * 60 * 60
_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# Another file system, or one that has no links.
_NO_LINK: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP})
_UNPORTABLE: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NOT_THERE: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_CONFLICT: Final = "a key cannot be both a file and the beginning of other keys in a folder"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_REASONS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.ENAMETOOLONG: "a part of the key is longer than this file system allows",
    errno.ENOTDIR: _CONFLICT,
    errno.EISDIR: _CONFLICT,
    errno.ELOOP: "a part of the path is a symbolic link, and links are not followed",
}


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """The metadata of an object, known without reading it."""

    key: str
    size: int
    etag: str
    """Changes with every change of the object; `replace` and `remove` compare it."""
    modified: datetime


@dataclass(frozen=True, slots=True)
class BlobVersion:
    """An object as it was at one moment."""

    data: bytes = field(repr=False)
    etag: str
    modified: datetime
    """By the store's clock."""


Method = Literal["GET", "PUT"]
"""The methods of signed addresses: to read an object, or to write it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedAddress:
    """An address that allows anyone who has it to read or write one object for some time."""

    method: Method
    url: str = field(repr=False)
    headers: Mapping[str, str]
    """To be sent with the request, which the store rejects otherwise."""


def check_key(key: str) -> None:
    """StoreError for a key that some kind of store would reject or change."""
    if reason := _fault(key):
        raise StoreError(f"{key!r} cannot be a blob key: {reason}")


def open_source(path: Path) -> BinaryIO:
    """A file to be stored, opened for reading."""
    try:
        return path.open("rb")
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error


def check_range(key: str, start: int, length: int) -> None:
    """StoreError for a range with negative numbers."""
    if start < 0 or length < 0:
        raise StoreError(f"blob {key!r} has no range {start} + {length}")


def check_lifetime(key: str, seconds: int) -> None:
    """StoreError unless an address would be valid for some time, up to a week."""
    if not 0 < seconds <= MAX_SIGNED_SECONDS:
        raise StoreError(f"no address of {key!r} can be valid for {seconds} seconds")


class FolderBlobs:
    """Blobs as files below one folder, shared safely by threads and processes.

    A `private` store is for its owner alone; another has the permissions of the user's umask.
    """

    def __init__(self, root: Path, *, seams: Seams, private: bool = True) -> None:
        self._root = root.absolute()
        self._seams = seams
        self._folder_mode = PRIVATE_FOLDER if private else 0o777
        self._file_mode = PRIVATE_FILE if private else 0o666
        self._durable_folders: set[str] = set()
        with _explained(f"open the folder {root}"):
            self._make_root()
            for folder in (_TEMPORARY, _LOCKS):
                (self._root / folder).mkdir(self._folder_mode, exist_ok=True)
            self._sweep()

    def head(self, key: str) -> BlobInfo | None:
        """Size, etag and time of an object, or None if there is none."""
        check_key(key)
        with _explained(f"look up blob {key!r}"):
            status = self._find(key)
        return _info(key, status) if status else None

    def get(self, key: str) -> bytes:
        """All bytes of an object."""
        with self._reading(key) as file:
            return file.read()

    def read(self, key: str, *, unless: str | None = None) -> BlobVersion | None:
        """An object with its etag; None if it has the etag `unless`."""
        with self._reading(key) as file:
            info = _info(key, os.fstat(file.fileno()))
            if info.etag == unless:
                return None
            return BlobVersion(file.read(), info.etag, info.modified)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """The bytes of a range; fewer, or none, if the object ends before its end."""
        check_range(key, start, length)
        with self._reading(key) as file:
            file.seek(start)
            return file.read(length)

    def stream(self, key: str) -> Iterator[bytes]:
        """The object in chunks, all of one version, even while it is being replaced."""
        with self._reading(key) as file:
            while chunk := file.read(CHUNK_SIZE):
                yield chunk

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        """The objects whose key begins with a text, in the order of their UTF-8 bytes."""
        folders, slash, beginning = prefix.rpartition("/")
        if slash:
            check_key(folders)
        path = f"{folders}{slash}"
        with (
            _explained(f"list blobs below {prefix!r}"),
            suppress(*_NOT_THERE),
            self._folder(path) as (at, _),
        ):
            yield from _walk(at, path, beginning)

    def create(self, key: str, data: Data) -> str:
        """Store an object under a free key."""
        check_key(key)
        with _explained(f"create blob {key!r}"), self._folder(key, make=True) as (at, name):
            if _lookup(at, name):
                raise BlobExistsError(f"blob {key!r} exists")
            with self._staged(key, data) as staged:
                self._seams.durable("blob.rename", key)
                try:
                    os.link(staged, name, dst_dir_fd=at, follow_symlinks=False)
                except FileExistsError:
                    raise BlobExistsError(f"blob {key!r} exists") from None
                os.fsync(at)
                return _etag(staged.stat())

    def move_file(self, key: str, file: Path) -> str:
        """Store a file under a free key by moving it, if it is on the same file system.

        A copy would take as long as fetching it: ext4 is slow to create files where others were
        just deleted.
        """
        check_key(key)
        with _explained(f"create blob {key!r}"), self._folder(key, make=True) as (at, name):
            if _lookup(at, name):
                raise BlobExistsError(f"blob {key!r} exists")
            with open_source(file) as opened:
                os.fchmod(opened.fileno(), self._file_mode & 0o644)
                os.utime(opened.fileno(), ns=(time.time_ns(),) * 2)
                self._seams.durable("blob.put", key)
                os.fsync(opened.fileno())
                etag = _etag(os.fstat(opened.fileno()))
            self._seams.durable("blob.rename", key)
            try:
                os.link(file, name, dst_dir_fd=at, follow_symlinks=False)
            except FileExistsError:
                raise BlobExistsError(f"blob {key!r} exists") from None
            except OSError as error:
                if error.errno not in _NO_LINK:
                    raise
                etag = self.create(key, file)
            else:
                os.fsync(at)
        file.unlink()
        return etag

    def replace(self, key: str, data: Data, *, etag: str) -> str:
        """Replace the version with this etag."""
        check_key(key)
        with _explained(f"replace blob {key!r}"), self._locked(key):
            current = self._find(key)
            if current is None or _etag(current) != etag:
                raise BlobChangedError(f"blob {key!r} is no longer the version {etag}")
            return self._overwrite(key, data)

    def put(self, key: str, data: Data) -> str:
        """Store an object, in place of any other."""
        check_key(key)
        with _explained(f"put blob {key!r}"), self._locked(key):
            return self._overwrite(key, data)

    def delete(self, key: str) -> None:
        """Remove an object, if there is one."""
        check_key(key)
        with _explained(f"delete blob {key!r}"), self._locked(key):
            if self._find(key):
                self._unlink(key)

    def remove(self, key: str, *, etag: str) -> None:
        """Remove the version with this etag."""
        check_key(key)
        with _explained(f"remove blob {key!r}"), self._locked(key):
            current = self._find(key)
            if current is None or _etag(current) != etag:
                raise BlobChangedError(f"blob {key!r} is no longer the version {etag}")
            self._unlink(key)

    def can_remove_versions(self) -> bool:
        """True: all writers lock the key."""
        return True

    def local_path(self, key: str) -> Path | None:
        """The file of an object; None if there is none."""
        return self._root / key if self.head(key) else None

    def sign(self, method: Method, key: str, seconds: int) -> SignedAddress | None:  # noqa: ARG002 — of other stores
        """None: a folder has no addresses."""
        check_key(key)
        check_lifetime(key, seconds)
        return None

    def _find(self, key: str) -> os.stat_result | None:
        with suppress(*_NOT_THERE), self._folder(key) as (at, name):
            return _lookup(at, name)
        return None

    def _overwrite(self, key: str, data: Data) -> str:
        with self._folder(key, make=True) as (at, name):
            current = _lookup(at, name)
            with self._staged(key, data, after=current) as staged:
                etag = _etag(staged.stat())
                self._seams.durable("blob.rename", key)
                os.rename(staged, name, dst_dir_fd=at)
                os.fsync(at)
                return etag

    def _unlink(self, key: str) -> None:
        with self._folder(key) as (at, name):
            self._seams.durable("blob.delete", key)
            os.unlink(name, dir_fd=at)
            os.fsync(at)

    @contextmanager
    def _staged(
        self, key: str, data: Data, *, after: os.stat_result | None = None
    ) -> Iterator[Path]:
        staged = self._root / _TEMPORARY / uuid4().hex
        try:
            with open(staged, "xb", opener=self._create_file) as file:
                _fill(file, data)
                # The kernel's timestamps have a resolution of milliseconds, and freed inodes are
                # reused at once: two quick writes could share inode, size and time. So the time
                # is set here in nanoseconds, and later than that of the replaced version.
                time_ns = max(time.time_ns(), after.st_mtime_ns + 1 if after else 0)
                os.utime(file.fileno(), ns=(time_ns, time_ns))
                self._seams.durable("blob.put", key)
                os.fsync(file.fileno())
            yield staged
        finally:
            staged.unlink(missing_ok=True)

    @contextmanager
    def _folder(self, key: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        *folders, name = key.split("/")
        # The root may be a link, as the user chose it.
        handle = os.open(self._root, _OPEN_FOLDER & ~os.O_NOFOLLOW)
        try:
            for depth, folder in enumerate(folders, 1):
                path = "/".join(folders[:depth])
                inner = self._enter(handle, folder, path) if make else _open_folder(handle, folder)
                os.close(handle)
                handle = inner
            yield handle, name
        finally:
            os.close(handle)

    def _enter(self, parent: int, name: str, path: str) -> int:
        if path in self._durable_folders:
            with suppress(FileNotFoundError):
                return _open_folder(parent, name)
        with suppress(FileExistsError):
            os.mkdir(name, self._folder_mode, dir_fd=parent)
        # An existing folder may not be on disk yet, if the process that created it died before
        # it was synced; hence the sync, once for each process and folder.
        os.fsync(parent)
        self._durable_folders.add(path)
        return _open_folder(parent, name)

    @contextmanager
    def _reading(self, key: str) -> Iterator[BinaryIO]:
        check_key(key)
        with _explained(f"read blob {key!r}"):
            try:
                with self._folder(key) as (at, name):
                    file = _open_file(at, name)
            except _NOT_THERE:
                raise BlobMissingError(f"there is no blob {key!r}") from None
            with file:
                yield file

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        name = hashlib.sha256(key.encode()).hexdigest()[:2]
        with open(self._root / _LOCKS / name, "ab", opener=self._create_file) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _create_file(self, path: str, flags: int) -> int:
        return os.open(path, flags, self._file_mode)

    def _make_root(self) -> None:
        missing = [each for each in (self._root, *self._root.parents) if not each.exists()]
        for folder in reversed(missing):
            folder.mkdir(self._folder_mode, exist_ok=True)
            sync_path(folder.parent)
        self._root.mkdir(exist_ok=True)  # an error if it is a file

    def _sweep(self) -> None:
        # By the machine's clock: the one of a replayed run shows another day.
        oldest = time.time() - _STALE_SECONDS
        for path in (self._root / _TEMPORARY).iterdir():
            with suppress(FileNotFoundError):
                if path.lstat().st_mtime < oldest:
                    path.unlink()


def _fault(key: str) -> str | None:
    if not key:
        return "it is empty"
    # Servers disagree about these: some treat a backslash as a slash, some drop control
    # characters, and XML listings cannot contain them.
    if _UNPORTABLE.search(key):
        return "backslashes and control characters are not portable"
    parts = key.split("/")
    if {"", ".", ".."} & set(parts):
        return "every part between slashes must be a name"
    if any(part.startswith((_TEMPORARY, _LOCKS)) for part in parts):
        return f"names that begin with {_TEMPORARY} or {_LOCKS} are reserved"
    if not key.isascii() and _SURROGATE.search(key):
        return "it is not valid Unicode"
    return None


@contextmanager
def _explained(action: str) -> Iterator[None]:
    spend("blob")
    try:
        yield
    except OSError as error:
        raise _as_store_error(error, action) from error


def _as_store_error(error: OSError, action: str) -> StoreError:
    reason = _REASONS.get(error.errno or 0) or error.strerror
    kind = StoreFullError if error.errno in _FULL else StoreError
    return kind(f"cannot {action}: {reason}")


def sync_path(path: Path) -> None:
    """Sync a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _fill(file: BinaryIO, data: Data) -> None:
    if isinstance(data, Path):
        with open_source(data) as source:
            shutil.copyfileobj(source, file, CHUNK_SIZE)
    else:
        file.write(data)
    file.flush()


def _open_folder(parent: int, name: str) -> int:
    try:
        return os.open(name, _OPEN_FOLDER, dir_fd=parent)
    except NotADirectoryError:
        # Linux reports the same error for a file and for a link to a folder.
        _lookup(parent, name)
        raise


def _open_file(at: int, name: str) -> BinaryIO:
    def opener(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NOFOLLOW, dir_fd=at)

    return open(name, "rb", opener=opener)


def _lookup(at: int, name: str) -> os.stat_result | None:
    try:
        status = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return status


def _walk(at: int, path: str, beginning: str = "") -> Iterator[BlobInfo]:
    for entry in _sorted_entries(at):
        key = f"{path}{entry.name}"
        if not entry.name.startswith(beginning) or _fault(key):
            continue
        # A file may be deleted during the listing.
        with suppress(FileNotFoundError):
            if entry.is_dir(follow_symlinks=False):
                yield from _walk_below(at, entry.name, f"{key}/")
            elif entry.is_file(follow_symlinks=False):
                yield _info(key, entry.stat(follow_symlinks=False))


def _walk_below(at: int, name: str, path: str) -> Iterator[BlobInfo]:
    handle = _open_folder(at, name)
    try:
        yield from _walk(handle, path)
    finally:
        os.close(handle)


def _sorted_entries(at: int) -> list[os.DirEntry[str]]:
    # Keys continue with a slash after the name of a folder, and it sorts after `-` and `.`.
    def sort_key(entry: os.DirEntry[str]) -> bytes:
        return os.fsencode(f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name)

    with os.scandir(at) as entries:
        return sorted(entries, key=sort_key)


def _info(key: str, status: os.stat_result) -> BlobInfo:
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return BlobInfo(key=key, size=status.st_size, etag=_etag(status), modified=modified)


def _etag(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
