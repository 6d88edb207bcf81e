"""The inbox: the newest record of each key, from any number of writers, until it is compiled.

Records from somebody's table: CSV with a heading, or JSON lines.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO

from fonds.errors import (
    BlobChangedError,
    BlobExistsError,
    RecordError,
    ShardError,
    StoreError,
    UsageError,
)
from fonds.shards.index import Index, version_of
from fonds.shards.schema import Record, Schema, Value, rank

AT_ONCE: Final = 32
"""Requests under way while many records are written or read."""
_TRIES: Final = 100
"""Lost races after which a writer gives up; each one was won by somebody else."""


@dataclass(frozen=True, slots=True)
class InboxRecord:
    """A record in the inbox, as it was when it was read."""

    path: str
    etag: str
    line: bytes
    """Without its newline."""


def put(index: Index, record: Record) -> bool:
    """Note a record; False if a newer one of its key waits in the inbox already.

    Shards are not looked at: a record that is older than theirs is dropped when it is compiled,
    and no look-up prefers it.
    """
    data = index.schema.encode(record)
    path = index.layout.item(str(record[index.schema.key.name]))
    for _ in range(_TRIES):
        try:
            index.blobs.create(path, data)
        except BlobExistsError:
            outcome = _supersede(index, path, data)
            if outcome is not None:
                return outcome
        else:
            return True
    raise StoreError(f"{path} changes all the time: nothing was written")


def put_many(index: Index, records: Iterable[Record], *, at_once: int = AT_ONCE) -> int:
    """Note records, many at once but never many in memory; how many were taken."""
    taken = 0
    with ThreadPoolExecutor(at_once, "fonds-inbox") as pool:
        for done in _bounded(pool, index, records, 2 * at_once):
            taken += done.result()
    return taken


def _bounded(
    pool: ThreadPoolExecutor, index: Index, records: Iterable[Record], most: int
) -> Iterator[Future[bool]]:
    pending: set[Future[bool]] = set()
    for record in records:
        if len(pending) >= most:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from done
        pending.add(pool.submit(put, index, record))
    yield from pending


def _supersede(index: Index, path: str, data: bytes) -> bool | None:
    """Put a record in place of an older one; None if the race was lost."""
    held = version_of(index.blobs, path)
    if held is None:
        return None
    # An item without a byte was compiled in a store that cannot delete one version only.
    if held.data:
        _check_record(index, path, held.data)
        if rank(held.data) >= rank(data):
            return held.data == data  # what we wrote ourselves, when the answer was lost
    try:
        index.blobs.replace(path, data, etag=held.etag)
    except BlobChangedError:
        return None
    return True


def waiting(index: Index) -> Iterator[tuple[str, str]]:
    """Keys that have a record in the inbox, each with the path of it, page by page."""
    for info in index.blobs.list(index.layout.inbox):
        if info.size and (key := index.layout.key_of(info.key)) is not None:
            yield key, info.key


def read_item(index: Index, path: str) -> InboxRecord | None:
    """The record at a path, if one is there still; ShardError if it is none of this index."""
    held = version_of(index.blobs, path)
    if held is None or not held.data:
        return None
    _check_record(index, path, held.data)
    return InboxRecord(path, held.etag, held.data[:-1])


def _check_record(index: Index, path: str, data: bytes) -> None:
    if data.find(b"\n") != len(data) - 1:
        raise ShardError(f"{path} does not hold one record")
    try:
        key = index.schema.decode(data[:-1])[index.schema.key.name]
        is_its_own = index.layout.item(str(key)) == path
    except (ShardError, RecordError) as error:
        raise ShardError(f"{path}: {error}") from None
    if not is_its_own:
        raise ShardError(f"{path} holds the record of another key")


def forget(index: Index, item: InboxRecord) -> None:
    """Take a record that is compiled out of the inbox, unless another one stands there by now."""
    try:
        if index.blobs.can_remove_versions():
            index.blobs.remove(item.path, etag=item.etag)
        else:
            index.blobs.replace(item.path, b"", etag=item.etag)
    except BlobChangedError:
        return


_LONGEST_CELL = 1 << 24


def read_records(
    path: Path, schema: Schema, *, columns: Mapping[str, str], time: datetime
) -> Iterator[dict[str, Value]]:
    """The records of a file, one by one; `time` is that of records that do not tell their own.

    `columns` says what the file calls a field, where it calls it otherwise. What it holds besides
    is left out. RecordError names the line that does not fit.
    """
    readers = {".csv": _csv, ".jsonl": _jsonl, ".ndjson": _jsonl}
    if path.suffix.lower() not in readers:
        raise UsageError(f"{path.name} is neither .csv nor .jsonl")
    names = {field.name: columns.get(field.name, field.name) for field in schema.fields}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, row in readers[path.suffix.lower()](file):
                yield _record(schema, names, row, time, f"{path.name}, line {line}")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageError(f"{path.name} is not UTF-8") from None


def _record(
    schema: Schema, names: Mapping[str, str], row: Mapping[str, Any], time: datetime, where: str
) -> dict[str, Value]:
    key = names[schema.key.name]
    if key not in row:
        raise UsageError(
            f"{where}: there is no column {key!r}; say which one is the key with"
            f" --column {schema.key.name}=NAME (there are {', '.join(map(str, row))})"
        )
    given = {name: row[column] for name, column in names.items() if column in row}
    try:
        record = schema.parse({n: v for n, v in given.items() if v is None or isinstance(v, str)})
        record |= {name: value for name, value in given.items() if name not in record}
        if record.get(schema.time.name) is None:
            record[schema.time.name] = time
        schema.encode(record)
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
    return record


def _csv(file: TextIO) -> Iterator[tuple[int, Mapping[str, Any]]]:
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.DictReader(file, strict=True)
    rows = _counted(reader)
    while (row := next(rows, None)) is not None:
        # An empty cell tells nothing; a row that is too long or short has no name for a cell.
        yield reader.line_num, {name: cell or None for name, cell in row.items() if name}


def _counted(reader: csv.DictReader[str]) -> Iterator[Mapping[str, Any]]:
    try:
        yield from reader
    except csv.Error as error:
        raise RecordError(f"line {reader.line_num}: {error}") from None


def _jsonl(file: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise RecordError(f"line {number} is not a JSON object")
        yield number, row
