"""Editions as people have them on disk: archives, or several files and folders, become one folder.

Codes are read in the order of their trees, so archives with many files are unpacked. One folder,
one file, and a zip archive with one XML file are read where they are.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fonds.codes.origin import LocalOrigin
from fonds.errors import FondsError, MalformedError, TooLargeError, UsageError
from fonds.runs.archives import DAMAGED, Reject, copy_member, is_archive, is_zip, open_members
from fonds.sources.jurisdiction import JurisdictionAdapter
from fonds.stores.permissions import make_private_folder

MIN_UNPACKED_BYTES: Final = 1 << 30
MAX_RATIO: Final = 100
"""Bytes of the content of an archive for one of its own; XML seldom exceeds twenty."""


@contextmanager
def edition_folder(paths: Sequence[Path], tmp: Path, reject: Reject) -> Iterator[Path]:
    """One folder or file with the content of all paths; archives are unpacked below `tmp`."""
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist")
    if len(paths) == 1 and not _is_unpacked(paths[0]):
        yield paths[0]
        return
    make_private_folder(tmp)
    with TemporaryDirectory(prefix="edition-", dir=tmp) as folder:
        for path in paths:
            _add(path, Path(folder), reject)
        yield Path(folder)


async def innermost(adapter: JurisdictionAdapter, folder: Path, version: str | None) -> Path:
    """The folder in which a code has its units: archives often have one folder around all."""
    best = folder
    for candidate in _nested(folder):
        if await _has_units(adapter, candidate, version):
            best = candidate
        elif best is not folder:
            break
    return best


def _nested(folder: Path) -> Iterator[Path]:
    """The only folder in a folder, the only one in that, and so on."""
    while len(entries := list(folder.iterdir())) == 1 and entries[0].is_dir():
        folder = entries[0]
        yield folder


async def _has_units(adapter: JurisdictionAdapter, folder: Path, version: str | None) -> bool:
    origin = LocalOrigin(folder, base=adapter.info.base)
    try:
        origin.version = version or await adapter.newest_version(origin)
        async for _ in adapter.discover_unit_roots(origin):
            return True
    except FondsError:
        return False
    finally:
        await origin.close()
    return False


def _is_unpacked(path: Path) -> bool:
    """True for an archive that is unpacked; adapters read the only XML file of a zip themselves."""
    if not path.is_file() or not is_archive(path.name):
        return False
    if is_zip(path.name):
        with suppress(*DAMAGED), zipfile.ZipFile(path) as packed:
            return sum(name.lower().endswith(".xml") for name in packed.namelist()) != 1
    return True


def _add(path: Path, folder: Path, reject: Reject) -> None:
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                _link(file, folder / file.relative_to(path))
    elif _is_unpacked(path):
        _unpack(path, folder, reject)
    else:
        _link(path, folder / path.name)


def _link(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(file.resolve())
    except FileExistsError as error:
        raise UsageError(f"{target.name} is in two of the given paths; name one of them") from error


def _unpack(path: Path, folder: Path, reject: Reject) -> None:
    limit = max(MIN_UNPACKED_BYTES, MAX_RATIO * path.stat().st_size)
    size = 0
    try:
        with open_members(path, reject, nested=True) as members:
            for member in members:
                target = folder / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                size += copy_member(member, target, limit - size)
    except TooLargeError as error:
        raise TooLargeError(f"{path.name} has more than {limit >> 20} MiB unpacked") from error
    except (*DAMAGED, RuntimeError) as error:
        # zipfile raises RuntimeError for encrypted members.
        raise MalformedError(f"{path.name} cannot be read further: {error}") from error
