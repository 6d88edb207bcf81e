"""The publishers' bytes in a bundle: the table `inputs`, and containers of archived files.

They are outside of the root, and have a hash of their own. A container is files of the archive, one
after the other, and is named by the hash over their hashes and sizes; which files are together
depends on these alone, so that a bundle that is made again has the same containers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from fonds import ids
from fonds.errors import BundleError, StoreError
from fonds.exchange.bundle.contents import (
    INPUTS,
    MAX_DESCRIPTOR,
    MAX_FILE_SIZE,
    MIN_FILE_SIZE,
    BundleFile,
    Record,
    canonical,
    read_files,
)
from fonds.stores.blobs import Blobs

RAW: Final = "raw.json"
RAW_FOLDER: Final = "raw/"
MAX_CONTAINER: Final = 1 << 30
"""Bytes of a container with a single file; the largest title of any code has a sixth of it."""
_FORMAT: Final = 1
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_ODDS: Final = 16


@dataclass(frozen=True, slots=True)
class RawFile:
    """An archived file in a container."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Container:
    """Archived files, one after the other."""

    files: tuple[RawFile, ...]

    @property
    def path(self) -> str:
        """Its path in a bundle."""
        return f"{RAW_FOLDER}{ids.json_sha256([[file.sha256, file.size] for file in self.files])}"

    @property
    def size(self) -> int:
        """Its size."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class RawPackage:
    """The inputs and containers of a bundle."""

    inputs: Sequence[BundleFile]
    containers: Sequence[Container]

    @property
    def sha256(self) -> str:
        """The hash over all of it."""
        return hashlib.sha256(canonical(self._fields()).encode()).hexdigest()

    @property
    def size(self) -> int:
        """The size of the containers."""
        return sum(container.size for container in self.containers)

    def to_bytes(self) -> bytes:
        """The bytes of the descriptor."""
        return (canonical({**self._fields(), "sha256": self.sha256}) + "\n").encode()

    def _fields(self) -> dict[str, Any]:
        containers = [
            [[file.sha256, file.size] for file in container.files] for container in self.containers
        ]
        inputs = [asdict(part) for part in self.inputs]
        return {"format": _FORMAT, "inputs": inputs, "containers": containers}


def read_raw_package(blobs: Blobs) -> RawPackage | None:
    """The descriptor of a bundle with raw bytes; None if it has none."""
    info = blobs.head(RAW)
    if info is None:
        return None
    if info.size > MAX_DESCRIPTOR:
        raise BundleError(f"the {RAW} is too long for one of a bundle")
    try:
        values = json.loads(blobs.get(RAW))
        if values["format"] != _FORMAT:
            raise BundleError(f"the {RAW} has a format that this program does not read")
        package = RawPackage(
            read_files(INPUTS, values["inputs"]),
            [_container(files) for files in values["containers"]],
        )
        stated = values["sha256"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BundleError(f"the {RAW} is not one of a bundle") from None
    if stated != package.sha256:
        raise BundleError(f"the {RAW} does not match its own hash")
    return package


def _container(files: Sequence[Any]) -> Container:
    container = Container(tuple(RawFile(*file) for file in files))
    if not container.files:
        raise ValueError
    for file in container.files:
        if type(file.size) is not int or file.size < 0 or not _SHA256.fullmatch(file.sha256):
            raise ValueError
    limit = MAX_CONTAINER if len(container.files) == 1 else MAX_FILE_SIZE
    if container.size > limit:
        raise BundleError(f"a container of raw files is too large: {container.size:,} bytes")
    return container


def containers(files: Iterable[tuple[RawFile, str]]) -> Iterator[tuple[Container, list[str]]]:
    """Files of the archive in containers, each with the keys of its files."""
    chosen: list[tuple[RawFile, str]] = []
    size = 0
    for file, key in files:
        is_over = size + file.size > MAX_FILE_SIZE
        begins = size >= MIN_FILE_SIZE and int(file.sha256[:8], 16) % _ODDS == 0
        if chosen and (is_over or begins):
            yield _filled(chosen)
            chosen, size = [], 0
        chosen.append((file, key))
        size += file.size
    if chosen:
        yield _filled(chosen)


def _filled(chosen: Sequence[tuple[RawFile, str]]) -> tuple[Container, list[str]]:
    return Container(tuple(file for file, _ in chosen)), [key for _, key in chosen]


def write_container(
    bundle: Blobs, container: Container, archive: Blobs, keys: Sequence[str]
) -> None:
    """Copy files of an archive into a container, and check the hash of each."""
    with NamedTemporaryFile() as target:
        for file, key in zip(container.files, keys, strict=True):
            digest = hashlib.sha256()
            for block in archive.stream(key):
                digest.update(block)
                target.write(block)
            if digest.hexdigest() != file.sha256:
                raise StoreError(f"{key} is damaged in the archive: `fonds verify` names documents")
        target.flush()
        bundle.put(container.path, Path(target.name))


def read_container(bundle: Blobs, container: Container) -> Iterator[tuple[RawFile, bytes | Path]]:
    """The files of a container, a long one as a temporary file; BundleError if one is damaged.

    Nothing is read beyond the sizes of the descriptor.
    """
    info = bundle.head(container.path)
    if info is None:
        raise BundleError(f"{container.path} is missing")
    if info.size != container.size:
        raise BundleError(f"{container.path} has {info.size:,} bytes instead of {container.size:,}")
    if container.size > MAX_FILE_SIZE:
        yield from _read_long(bundle, container)
        return
    data, start = bundle.get(container.path), 0
    for file in container.files:
        content = data[start : start + file.size]
        _require_hash(container, file, hashlib.sha256(content).hexdigest())
        yield file, content
        start += file.size


def _read_long(bundle: Blobs, container: Container) -> Iterator[tuple[RawFile, Path]]:
    (file,) = container.files
    with NamedTemporaryFile() as target:
        digest = hashlib.sha256()
        for block in bundle.stream(container.path):
            digest.update(block)
            target.write(block)
        _require_hash(container, file, digest.hexdigest())
        target.flush()
        yield file, Path(target.name)


def _require_hash(container: Container, file: RawFile, sha256: str) -> None:
    if sha256 != file.sha256:
        raise BundleError(f"a file in {container.path} does not match its hash {file.sha256}")


def files_of(record: Record) -> Iterator[Mapping[str, Any]]:
    """The archived files that an input names: of a task, or of a unit of a code."""
    task = record["task"]
    if record["kind"] == "unit":
        yield task["plan"]
        yield from task["packs"]
        yield from (page for _, page in task["pages"])
        return
    if task["origin"] is not None:
        yield task["origin"]
    yield from (part["file"] for part in task["parts"])
