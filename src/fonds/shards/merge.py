"""Merging records into the bytes of a shard; no store is asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from fonds.errors import ShardError
from fonds.shards.schema import rank

_FIELD = b"\x1f"


def lines_of(data: bytes, fields: int) -> list[bytes]:
    """The records of a shard, without their newlines; ShardError if it is cut or bent."""
    if data and not data.endswith(b"\n"):
        raise ShardError("the shard ends inside a record")
    lines = data.split(b"\n")
    lines.pop()
    if data.count(_FIELD) != len(lines) * (fields - 1):
        raise ShardError("a record of the shard has too many or too few fields")
    return lines


def merge(data: bytes, new: Iterable[bytes], fields: int) -> bytes:
    """The shard with these records in it: of each key the newest, in the order of their bytes."""
    lines = lines_of(data, fields)
    fresh: dict[bytes, bytes] = {}
    for line in new:
        key = key_of(line)
        if key not in fresh or rank(fresh[key]) < rank(line):
            fresh[key] = line
    added = []
    for key, line in fresh.items():
        place = bisect_left(lines, key)
        if place == len(lines) or not lines[place].startswith(key):
            added.append(line)
        elif rank(lines[place]) < rank(line):
            lines[place] = line
    # Two runs that are in order already: sorting them is one pass.
    lines += sorted(added)
    lines.sort()
    return b"".join(line + b"\n" for line in lines)


def key_of(line: bytes) -> bytes:
    """What the record of a key, and of no other, begins with."""
    return line[: line.index(_FIELD) + 1]


def find(data: bytes, key: bytes) -> bytes | None:
    """The record that begins with a key; ShardError if the shard is cut."""
    if data and not data.endswith(b"\n"):
        raise ShardError("the shard ends inside a record")
    start = 0 if data.startswith(key) else data.find(b"\n" + key) + 1
    if not start and not data.startswith(key):
        return None
    return data[start : data.index(b"\n", start)]
