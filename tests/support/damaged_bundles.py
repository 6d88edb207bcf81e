"""Bundles with raw bytes that were damaged, or forged so that their hashes match again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fonds.exchange.bundle.contents import (
    DESCRIPTOR,
    INPUTS,
    RESOURCES,
    BundlePackage,
    Record,
    Resource,
    cut,
    describe,
    read_package,
)
from fonds.exchange.bundle.groups import read_rows
from fonds.exchange.bundle.raw import (
    RAW,
    Container,
    RawFile,
    RawPackage,
    read_container,
    read_raw_package,
)
from fonds.exchange.bundle.statement import STATEMENT, Statement, read_statement, to_bytes
from fonds.exchange.keys import SigningKey
from fonds.seams import Seams
from fonds.stores.blobs import Blobs, open_blobs

FORGER: Final = SigningKey.generate()
"""The key of somebody else."""


@dataclass(kw_only=True)
class OpenBundle:
    """The contents of a bundle, to be changed and sealed again."""

    rows: dict[Resource, list[Record]]
    inputs: list[Record]
    files: dict[str, bytes]
    """The publishers' bytes by their hash; none if the bundle has none."""
    statement: Statement | None
    sources: tuple[str, ...] | None

    def document(self, document_id: str, resource: Resource) -> Record:
        """The first row of a document in a table."""
        return next(row for row in self.rows[resource] if row[resource.owner] == document_id)

    def replace_file(self, old: str, data: bytes) -> str:
        """Put other bytes in place of a file, in all inputs; returns their hash."""
        new = hashlib.sha256(data).hexdigest()
        text = json.dumps(self.inputs).replace(old, new)
        self.inputs = json.loads(text)
        for each in self.inputs:
            _resize(each["task"], new, len(data))
        del self.files[old]
        self.files[new] = data
        return new


def _resize(value: Any, sha256: str, size: int) -> None:
    if isinstance(value, dict):
        if value.get("sha256") == sha256:
            value["size"] = size
        for each in value.values():
            _resize(each, sha256, size)
    elif isinstance(value, list):
        for each in value:
            _resize(each, sha256, size)


def at(folder: Path) -> Blobs:
    """The store of a folder."""
    return open_blobs(str(folder), seams=Seams())


def opened(folder: Path) -> OpenBundle:
    """The contents of a bundle."""
    blobs = at(folder)
    package, raw = read_package(blobs, "there"), read_raw_package(blobs)
    files: dict[str, bytes] = {}
    for container in raw.containers if raw else ():
        for file, data in read_container(blobs, container):
            files[file.sha256] = data if isinstance(data, bytes) else data.read_bytes()
    return OpenBundle(
        rows={each: list(read_rows(blobs, each, package.parts[each])) for each in RESOURCES},
        inputs=list(read_rows(blobs, INPUTS, raw.inputs)) if raw else [],
        files=files,
        statement=read_statement(blobs),
        sources=package.sources,
    )


def seal(bundle: OpenBundle, folder: Path, *, key: SigningKey | None = FORGER) -> None:
    """Write a bundle whose hashes and signature match, in place of another."""
    shutil.rmtree(folder, ignore_errors=True)
    blobs = at(folder)
    parts = {}
    for resource in RESOURCES:
        rows = sorted(bundle.rows[resource], key=resource.key_of)
        parts[resource] = list(cut(resource, rows))
        for filled in parts[resource]:
            blobs.put(filled.part.path(resource), filled.data)
    package = BundlePackage(
        bundle.sources, {each: [filled.part for filled in parts[each]] for each in RESOURCES}
    )
    blobs.put(DESCRIPTOR, describe(package))
    raw = _seal_raw(bundle, blobs) if bundle.inputs else None
    if bundle.statement is not None:
        unsigned = replace(
            bundle.statement,
            root=package.root,
            raw=raw.sha256 if raw else None,
            key=None,
            signature=None,
        )
        blobs.put(STATEMENT, to_bytes(unsigned.sign(key, []) if key else unsigned))


def _seal_raw(bundle: OpenBundle, blobs: Blobs) -> RawPackage:
    inputs = list(cut(INPUTS, sorted(bundle.inputs, key=INPUTS.key_of)))
    for filled in inputs:
        blobs.put(filled.part.path(INPUTS), filled.data)
    container = Container(tuple(RawFile(sha, len(data)) for sha, data in bundle.files.items()))
    blobs.put(container.path, b"".join(bundle.files.values()))
    raw = RawPackage([filled.part for filled in inputs], [container])
    blobs.put(RAW, raw.to_bytes())
    return raw


def forged(folder: Path, change: Callable[[OpenBundle], None], **given: Any) -> None:
    """Change a bundle in place, and seal it again."""
    bundle = opened(folder)
    change(bundle)
    seal(bundle, folder, **given)


def first(folder: Path, pattern: str) -> Path:
    """The first file of those that a pattern matches."""
    return min(path for path in folder.glob(pattern) if path.is_file())
