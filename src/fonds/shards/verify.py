"""Whether the shards are what they should be: read as a whole, and compared with the manifest."""

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
from fonds.shards.manifest import Noted, entry_of, is_announced, key_of, read_entry

_AT_ONCE: Final = 4
"""Shards that are held in memory at once."""
_FAULTS: Final = 5
"""Bad records of a shard that are told one by one."""
_TRIES: Final = 5
_NOTHING: Final = entry_of(b"")
_BROKEN_OFF: Final = "was announced and not written: a compile broke off"


@dataclass(slots=True)
class IndexReport:
    """What was found in the shards of an index."""

    shards: int = 0
    records: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)
    """What no compiler leaves behind, wherever it is killed."""
    notes: list[str] = field(default_factory=list)
    """What the next compile puts right by itself, or what does no harm."""


@dataclass(frozen=True, slots=True)
class Stats:
    """How large an index is, as far as one listing and its data package tell."""

    records: int
    """In the shards, as of the last compile."""
    bytes: int
    shards: int
    waiting: int
    """Records in the inbox."""
    smallest: int
    """Bytes of the smallest shard."""
    largest: int
    compiled: datetime | None
    """When a shard was last written, by the store's clock."""


def verify(index: Index) -> IndexReport:
    """Read all shards, and say what is wrong with them; records that wait are not looked at."""
    # In this order: whatever is compiled meanwhile is newer than what is compared with it.
    described = _described(index)
    listing = list_shards(index)
    found = IndexReport(notes=_stray(listing))
    entries: dict[str, Noted] = {}
    with ThreadPoolExecutor(_AT_ONCE, "fonds-verify") as pool:
        shards = sorted(listing.shards.keys() | listing.entries.keys())
        for checked in pool.map(partial(_check, index), shards):
            found.shards += checked.records > 0
            found.records += checked.records
            found.bytes += checked.bytes
            found.problems += [f"shard {checked.shard} {told}" for told in checked.problems]
            found.notes += [f"shard {checked.shard} {told}" for told in checked.notes]
            if checked.noted is not None:
                entries[checked.shard] = checked.noted
    _compare(index, described, entries, found)
    return found


def stats(index: Index) -> Stats:
    """Count what an index holds, without reading a shard."""
    described = _described(index)
    entries = described.values() if isinstance(described, dict) else ()
    listing, items = ShardListing(), 0
    for info in index.blobs.list(index.layout.inbox):
        if info.key.startswith(index.layout.shards):
            listing.add(index, info)
        elif info.size and index.layout.key_of(info.key) is not None:
            items += 1
    held = [info for info in listing.shards.values() if info.size]
    sizes = [info.size for info in held]
    return Stats(
        records=sum(entry.records for entry in entries),
        bytes=sum(sizes),
        shards=len(held),
        waiting=items,
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        compiled=max((info.modified for info in held), default=None),
    )


@dataclass(slots=True)
class _Checked:
    shard: str
    noted: Noted | None = None
    records: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _described(index: Index) -> dict[str, ShardEntry] | ShardError | None:
    """What the data package says of each shard; None where there is none."""
    held = version_of(index.blobs, index.layout.descriptor)
    try:
        return None if held is None else dict(read_description(held.data).entries)
    except ShardError as error:
        return error


def _stray(listing: ShardListing) -> list[str]:
    now = datetime.now(UTC)
    old = [lock.key for lock in listing.locks if lock.modified + LIFETIME < now]
    return [f"{key} was left behind by a compiler that died" for key in old] + [
        f"{key} is nothing of an index" for key in listing.strangers
    ]


def _check(index: Index, shard: str) -> _Checked:
    checked = _Checked(shard)
    try:
        checked.noted, data = _read(index, shard)
    except ShardError as error:
        checked.problems.append(f"has no entry that can be read: {error}")
        return checked
    noted = checked.noted
    if noted is not None and noted.moved:
        if data:
            checked.notes.append("is being divided; a division that broke off can be continued")
        return checked
    _compare_bytes(checked, data)
    if data is not None:
        checked.records, checked.bytes = data.count(b"\n"), len(data)
        faults = _faults(index, shard, data)
        checked.problems += islice(faults, _FAULTS)
        if next(faults, None):
            checked.problems.append("has more records that are wrong")
    return checked


def _read(index: Index, shard: str) -> tuple[Noted | None, bytes | None]:
    """Entry and bytes of a shard; of one moment, while others write it."""
    for _ in range(_TRIES):
        noted = read_entry(index, shard)
        held = version_of(index.blobs, index.layout.shard(shard))
        data = held.data if held else None
        if is_announced(noted, data) or read_entry(index, shard) == noted:
            break
    return noted, data


def _compare_bytes(checked: _Checked, data: bytes | None) -> None:
    noted = checked.noted
    if noted is None:
        if data is not None:
            checked.notes.append("has no entry in the manifest yet; who compiles it makes one")
    elif not is_announced(noted, data):
        checked.problems.append(
            "is missing"
            if data is None
            else f"is not what its entry says: {len(data):,} bytes, not {noted.entry.bytes:,},"
            " or other ones"
        )
    elif data is not None and entry_of(data).sha256 != noted.entry.sha256:
        checked.notes.append(_BROKEN_OFF)
    elif data is not None and entry_of(data) != noted.entry:
        checked.problems.append("has an entry that counts wrongly")


def _faults(index: Index, shard: str, data: bytes) -> Iterator[str]:
    *lines, rest = data.split(b"\n")
    if rest:
        yield "ends inside a record"
    before = b""
    for number, line in enumerate(lines, 1):
        try:
            record = index.schema.decode(line)
            if index.schema.encode(record)[:-1] != line:
                yield f"does not write record {number} as it has to be written"
        except (ShardError, RecordError) as error:
            yield f"has a bad record, number {number}: {error}"
            continue
        key = str(record[index.schema.key.name])
        if ids.shard_id(key, len(shard)) != shard:
            yield f"holds {key!r}, which belongs in {ids.shard_id(key, len(shard))}"
        if key_of(line) <= before:
            yield f"holds {key!r} twice, or not in its place"
        before = key_of(line)


def _compare(
    index: Index,
    described: dict[str, ShardEntry] | ShardError | None,
    entries: dict[str, Noted],
    found: IndexReport,
) -> None:
    """Compare the data package with the entries; it may be older, and never newer."""
    if isinstance(described, ShardError):
        found.problems.append(str(described))
        return
    told, old = described or {}, 0
    digits = {len(shard) for shard in told} or {index.layout.digits}
    noted = {shard: entry for shard, entry in entries.items() if len(shard) in digits}
    for shard in sorted(told.keys() | noted.keys()):
        then, now = told.get(shard, _NOTHING), noted.get(shard)
        left = now.entry.records if now else 0
        if then.records > left and not (now and now.moved):
            # No compile takes a record away.
            found.problems.append(
                f"shard {shard} had {then.records:,} records by datapackage.json,"
                f" and has {left:,} by its entry"
            )
        old += now is not None and then != now.entry
    if old:
        found.notes.append(f"datapackage.json is older than the entries of {old:,} shards")
