"""Verifies the shards of an index, by reading all of them and comparing them with the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final

from fonds import ids
from fonds.errors import RecordError, ShardError
from fonds.shards.compiler import LIFETIME
from fonds.shards.index import (
    Index,
    ShardEntry,
    ShardListing,
    list_shards,
    read_description,
    version_of,
)
from fonds.shards.manifest import ManifestEntry, entry_of, is_announced, key_of, read_entry

_CONCURRENCY: Final = 4
"""Shards that are in memory at the same time."""
_MAX_FAULTS: Final = 5
"""Invalid records of a shard that are reported."""
_TRIES: Final = 5
_NOTHING: Final = entry_of(b"")
_BROKEN_OFF: Final = "was announced and not written: a compiler was interrupted"


@dataclass(slots=True)
class IndexReport:
    """The result of verifying an index."""

    shards: int = 0
    records: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)
    """Damage, which no compiler causes, even when it is killed."""
    notes: list[str] = field(default_factory=list)
    """Differences that the next compilation repairs, or that do no harm."""


@dataclass(frozen=True, slots=True)
class Stats:
    """The size of an index, from one listing and its data package."""

    records: int
    """Records in the shards, as of the last compilation."""
    bytes: int
    shards: int
    waiting: int
    """Records in the inbox."""
    smallest: int
    """Bytes of the smallest shard."""
    largest: int
    compiled: datetime | None
    """The time at which a shard was last written, by the store's clock."""


def verify(index: Index) -> IndexReport:
    """Read and check all shards; records in the inbox are not checked."""
    # In this order, as shards that are compiled meanwhile are newer than what they are compared to.
    described = _described(index)
    listing = list_shards(index)
    report = IndexReport(notes=_stray(listing))
    entries: dict[str, ManifestEntry] = {}
    with ThreadPoolExecutor(_CONCURRENCY, "fonds-verify") as pool:
        shards = sorted(listing.shards.keys() | listing.entries.keys())
        for checked in pool.map(partial(_check, index), shards):
            report.shards += checked.records > 0
            report.records += checked.records
            report.bytes += checked.bytes
            report.problems += [f"shard {checked.shard} {problem}" for problem in checked.problems]
            report.notes += [f"shard {checked.shard} {problem}" for problem in checked.notes]
            if checked.entry is not None:
                entries[checked.shard] = checked.entry
    _compare(index, described, entries, report)
    return report


def stats(index: Index) -> Stats:
    """Count the contents of an index without reading a shard."""
    described = _described(index)
    entries = described.values() if isinstance(described, dict) else ()
    listing, items = ShardListing(), 0
    for info in index.blobs.list(index.layout.inbox):
        if info.key.startswith(index.layout.shards):
            listing.add(index, info)
        elif info.size and index.layout.key_of(info.key) is not None:
            items += 1
    filled = [info for info in listing.shards.values() if info.size]
    sizes = [info.size for info in filled]
    return Stats(
        records=sum(entry.records for entry in entries),
        bytes=sum(sizes),
        shards=len(filled),
        waiting=items,
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        compiled=max((info.modified for info in filled), default=None),
    )


@dataclass(slots=True)
class _Checked:
    shard: str
    entry: ManifestEntry | None = None
    records: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _described(index: Index) -> dict[str, ShardEntry] | ShardError | None:
    """The contents of each shard by the data package; None if there is none."""
    version = version_of(index.blobs, index.layout.descriptor)
    try:
        return None if version is None else dict(read_description(version.data).entries)
    except ShardError as error:
        return error


def _stray(listing: ShardListing) -> list[str]:
    now = datetime.now(UTC)
    old = [lock.key for lock in listing.locks if lock.modified + LIFETIME < now]
    return [f"{key} was left behind by a dead compiler" for key in old] + [
        f"{key} does not belong to an index" for key in listing.strangers
    ]


def _check(index: Index, shard: str) -> _Checked:
    checked = _Checked(shard)
    try:
        checked.entry, data = _read(index, shard)
    except ShardError as error:
        checked.problems.append(f"has an unreadable entry: {error}")
        return checked
    entry = checked.entry
    if entry is not None and entry.moved:
        if data:
            checked.notes.append("is being divided; an interrupted division can be continued")
        return checked
    _compare_bytes(checked, data)
    if data is not None:
        checked.records, checked.bytes = data.count(b"\n"), len(data)
        faults = _faults(index, shard, data)
        checked.problems += islice(faults, _MAX_FAULTS)
        if next(faults, None):
            checked.problems.append("has more invalid records")
    return checked


def _read(index: Index, shard: str) -> tuple[ManifestEntry | None, bytes | None]:
    """Entry and bytes of a shard at the same time, while others write it."""
    for _ in range(_TRIES):
        entry = read_entry(index, shard)
        version = version_of(index.blobs, index.layout.shard(shard))
        data = version.data if version else None
        if is_announced(entry, data) or read_entry(index, shard) == entry:
            break
    return entry, data


def _compare_bytes(checked: _Checked, data: bytes | None) -> None:
    entry = checked.entry
    if entry is None:
        if data is not None:
            checked.notes.append("has no entry in the manifest yet; the next compilation writes it")
    elif not is_announced(entry, data):
        checked.problems.append(
            "is missing"
            if data is None
            else f"differs from its entry: {len(data):,} bytes, not {entry.contents.bytes:,},"
            " or other content"
        )
    elif data is not None and entry_of(data).sha256 != entry.contents.sha256:
        checked.notes.append(_BROKEN_OFF)
    elif data is not None and entry_of(data) != entry.contents:
        checked.problems.append("has an entry with wrong counts")


def _faults(index: Index, shard: str, data: bytes) -> Iterator[str]:
    *lines, rest = data.split(b"\n")
    if rest:
        yield "ends inside a record"
    before = b""
    for number, line in enumerate(lines, 1):
        try:
            record = index.schema.decode(line)
            if index.schema.encode(record)[:-1] != line:
                yield f"has record {number} in another form than the canonical one"
        except (ShardError, RecordError) as error:
            yield f"has an invalid record, number {number}: {error}"
            continue
        key = str(record[index.schema.key.name])
        if ids.shard_id(key, len(shard)) != shard:
            yield f"contains {key!r}, which belongs in {ids.shard_id(key, len(shard))}"
        if key_of(line) <= before:
            yield f"contains {key!r} twice, or out of order"
        before = key_of(line)


def _compare(
    index: Index,
    described: dict[str, ShardEntry] | ShardError | None,
    entries: dict[str, ManifestEntry],
    report: IndexReport,
) -> None:
    """Compare the data package with the entries; it may be older, but not newer."""
    if isinstance(described, ShardError):
        report.problems.append(str(described))
        return
    stated, old = described or {}, 0
    digits = {len(shard) for shard in stated} or {index.layout.digits}
    current = {shard: entry for shard, entry in entries.items() if len(shard) in digits}
    for shard in sorted(stated.keys() | current.keys()):
        then, now = stated.get(shard, _NOTHING), current.get(shard)
        left = now.contents.records if now else 0
        if then.records > left and not (now and now.moved):
            # A compilation never removes a record.
            report.problems.append(
                f"shard {shard} had {then.records:,} records by datapackage.json,"
                f" and has {left:,} by its entry"
            )
        old += now is not None and then != now.contents
    if old:
        report.notes.append(f"datapackage.json is older than the entries of {old:,} shards")
