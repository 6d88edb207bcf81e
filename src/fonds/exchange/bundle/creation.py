"""Making a bundle: only files that are not there are written, and the data package last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fonds.errors import BlobExistsError
from fonds.exchange.bundle.content import RESOURCES, Record, Resource
from fonds.exchange.bundle.holdings import records, require_held, waiting
from fonds.exchange.bundle.package import DESCRIPTOR, Package, describe, read_package
from fonds.exchange.bundle.parts import Filled, Part, cut
from fonds.exchange.snapshot import snapshot
from fonds.stores.blobs import Blobs
from fonds.stores.database import Database

Watch = Callable[[str, int], None]
"""Told, now and then, of a table and how many of its rows are done."""

_TOLD: Final = 500
_DATA: Final = "data/"
_OURS: Final = re.compile(r"data/[a-z]+/[0-9a-f]{64}\.jsonl")


@dataclass(frozen=True, kw_only=True, slots=True)
class Created:
    """The bundle that is there, and what it took."""

    root: str
    content: str
    records: Mapping[str, int]
    bytes: int
    files: int
    written: int
    """Files that were not there before."""
    removed: int
    """Files of an earlier bundle that this one does not have."""
    waiting: Mapping[str, int]
    """Documents whose text or citations are still to be found: not all is in the bundle."""


def create(
    database: Database,
    blobs: Blobs,
    *,
    sources: Sequence[str] | None = None,
    where: str,
    watch: Watch | None = None,
) -> Created:
    """Write the public content of a library, or of some of its sources, to an address."""
    before = None if blobs.head(DESCRIPTOR) is None else read_package(blobs, where)
    there = {info.key: info.size for info in blobs.list(_DATA)}
    written = 0
    parts: dict[Resource, list[Part]] = {}
    with snapshot(database) as held:
        require_held(held, sources)
        unfinished = waiting(held, sources)
        for resource in RESOURCES:
            rows = watched(records(held, resource, sources), resource, watch)
            parts[resource] = []
            for filled in cut(resource, rows):
                parts[resource].append(filled.part)
                written += _write(blobs, resource, filled, there)
    package = Package(None if sources is None else tuple(sorted(set(sources))), parts)
    if package != before:
        blobs.put(DESCRIPTOR, describe(package))
    return Created(
        root=package.root,
        content=package.content,
        records={each.name: package.records(each) for each in RESOURCES},
        bytes=package.bytes,
        files=sum(map(len, parts.values())),
        written=written + (package != before),
        removed=_sweep(blobs, package, there),
        waiting=unfinished,
    )


def watched(rows: Iterable[Record], resource: Resource, watch: Watch | None) -> Iterator[Record]:
    """The same rows, told of."""
    for count, row in enumerate(rows, 1):
        if watch is not None and count % _TOLD == 0:
            watch(resource.name, count)
        yield row


def _write(blobs: Blobs, resource: Resource, filled: Filled, there: Mapping[str, int]) -> bool:
    path = filled.part.path(resource)
    if there.get(path) == filled.part.bytes:
        return False
    if path in there:  # cut short by somebody else: nothing of ours is
        blobs.put(path, filled.data)
        return True
    with suppress(BlobExistsError):
        blobs.create(path, filled.data)
    return True


def _sweep(blobs: Blobs, package: Package, there: Iterable[str]) -> int:
    kept = {part.path(each) for each, parts in package.parts.items() for part in parts}
    stale = [key for key in there if _OURS.fullmatch(key) and key not in kept]
    for key in stale:
        blobs.delete(key)
    return len(stale)
