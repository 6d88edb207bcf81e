"""Zip and tar archives, read member by member: they may be damaged, or made to do harm."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Final, TypeVar

from fonds.errors import TooLargeError

MAX_MEMBERS: Final = 1_000_000
"""Of one archive; those of publishers have far fewer."""
BLOCK_SIZE: Final = 1 << 18
TAR_SUFFIXES: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
DAMAGED: Final = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, ValueError)
"""Raised while a damaged archive is read; `ValueError` includes bad encodings of names."""

T = TypeVar("T")

Reject = Callable[[str, str], None]
"""Called with the name of a member that is not read, and the reason."""


@dataclass(frozen=True, slots=True)
class DiskFile:
    """A file of a folder or archive that has not been read yet."""

    name: str
    """Below the given path, with slashes."""
    open: Callable[[], IO[bytes]]


def is_archive(name: str) -> bool:
    """True for the name of an archive that can be read."""
    return name.lower().endswith((".zip", *TAR_SUFFIXES))


def is_zip(name: str) -> bool:
    """True for an archive whose members can be read in any order."""
    return name.lower().endswith(".zip")


def is_hidden(name: str) -> bool:
    """True for files of the system, not of the publisher."""
    parts = PurePosixPath(name).parts
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in parts)


@contextmanager
def open_members(
    path: Path, reject: Reject, *, nested: bool = False
) -> Iterator[Iterator[DiskFile]]:
    """The members of an archive; those of a tar archive must be read one after the other.

    Archives within the archive are rejected unless `nested`.
    """
    if is_zip(path.name):
        with zipfile.ZipFile(path) as packed:
            yield _zip_members(packed, reject, nested=nested)
    else:
        with tarfile.open(path, "r|*") as tape:
            yield _tar_members(tape, reject, nested=nested)


def copy_member(member: DiskFile, target: Path, limit: int) -> int:
    """Write a member to a new file; returns its size, TooLargeError if it is over the limit."""
    size = 0
    with member.open() as packed, target.open("xb") as file:
        while block := packed.read(BLOCK_SIZE):
            size += len(block)
            if size > limit:
                raise TooLargeError(f"{member.name} is larger than {limit >> 20} MiB")
            file.write(block)
    return size


def _zip_members(packed: zipfile.ZipFile, reject: Reject, *, nested: bool) -> Iterator[DiskFile]:
    members: dict[str, DiskFile] = {}
    for info in _limited(packed.infolist()):
        if not info.is_dir() and _is_readable(info.filename, reject, nested=nested):
            members[info.filename] = DiskFile(info.filename, partial(packed.open, info))
    yield from members.values()


def _tar_members(tape: tarfile.TarFile, reject: Reject, *, nested: bool) -> Iterator[DiskFile]:
    # `next` returns None at the end, and the archive remembers all members.
    for info in _limited(iter(tape.next, None)):
        tape.members.clear()  # type: ignore[attr-defined]
        if info.isdir() or not _is_readable(info.name, reject, nested=nested):
            continue
        file = tape.extractfile(info) if info.isreg() else None
        if file is None:
            reject(info.name, "it is a link or a device")
        else:
            yield DiskFile(str(PurePosixPath(info.name)), partial(_same, file))  # not ./a.xml


def _limited(members: Iterable[T]) -> Iterator[T]:
    for number, member in enumerate(members):
        if number >= MAX_MEMBERS:
            raise ValueError(f"it has more than {MAX_MEMBERS} members")
        yield member


def _is_readable(member: str, reject: Reject, *, nested: bool) -> bool:
    """True for a member to be read; one whose name is unsafe is rejected."""
    if is_hidden(member):
        return False
    path = PurePosixPath(member)
    if path.is_absolute() or ".." in path.parts or "\\" in member:
        reject(member, "its name leads out of the archive")
        return False
    if is_archive(member) and not nested:
        reject(member, "it is an archive within an archive")
        return False
    return True


def _same(file: IO[bytes]) -> IO[bytes]:
    return file
