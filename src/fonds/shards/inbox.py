"""The inbox, which has the newest record of each key until it is compiled, and imports to it.

Any number of processes may write. Records are imported from CSV with a header, or from JSON lines.
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

CONCURRENCY: Final = 32
"""Concurrent requests while many records are written or read."""
_TRIES: Final = 100
"""Lost races after which a writer gives up; another writer won each of them."""


@dataclass(frozen=True, slots=True)
class InboxRecord:
    """A record in the inbox, as it was read."""

    path: str
    etag: str
    line: bytes
    """Without its newline."""


def put(index: Index, record: Record) -> bool:
    """Write a record; False if the inbox has a newer one of its key.

    Shards are not read: a record that is older than theirs is dropped when it is compiled, and
    ignored by look-ups.
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
    raise StoreError(f"{path} is being changed too often by others; nothing was written, try again")


def put_many(index: Index, records: Iterable[Record], *, concurrency: int = CONCURRENCY) -> int:
    """Write records concurrently, with few in memory; returns how many were accepted."""
    taken = 0
    with ThreadPoolExecutor(concurrency, "fonds-inbox") as pool:
        for done in _bounded(pool, index, records, 2 * concurrency):
            taken += done.result()
    return taken


def _bounded(
    pool: ThreadPoolExecutor, index: Index, records: Iterable[Record], limit: int
) -> Iterator[Future[bool]]:
    pending: set[Future[bool]] = set()
    for record in records:
        if len(pending) >= limit:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from done
        pending.add(pool.submit(put, index, record))
    yield from pending


def _supersede(index: Index, path: str, data: bytes) -> bool | None:
    """Replace an older record; None if another writer was faster."""
    current = version_of(index.blobs, path)
    if current is None:
        return None
    # An empty item was compiled in a store that cannot delete a single version.
    if current.data:
        _check_record(index, path, current.data)
        if rank(current.data) >= rank(data):
            return current.data == data  # our own write, whose response was lost
    try:
        index.blobs.replace(path, data, etag=current.etag)
    except BlobChangedError:
        return None
    return True


def waiting(index: Index) -> Iterator[tuple[str, str]]:
    """The keys that have a record in the inbox, with the paths of the records."""
    for info in index.blobs.list(index.layout.inbox):
        if info.size and (key := index.layout.key_of(info.key)) is not None:
            yield key, info.key


def read_item(index: Index, path: str) -> InboxRecord | None:
    """The record at a path, if it is still there; ShardError if it is not one of this index."""
    current = version_of(index.blobs, path)
    if current is None or not current.data:
        return None
    _check_record(index, path, current.data)
    return InboxRecord(path, current.etag, current.data[:-1])


def _check_record(index: Index, path: str, data: bytes) -> None:
    if data.find(b"\n") != len(data) - 1:
        raise ShardError(f"{path} does not contain exactly one record")
    try:
        key = index.schema.decode(data[:-1])[index.schema.key.name]
        is_its_own = index.layout.item(str(key)) == path
    except (ShardError, RecordError) as error:
        raise ShardError(f"{path}: {error}") from None
    if not is_its_own:
        raise ShardError(f"{path} contains the record of another key")


def forget(index: Index, item: InboxRecord) -> None:
    """Remove a compiled record from the inbox, unless it has been replaced."""
    try:
        if index.blobs.can_remove_versions():
            index.blobs.remove(item.path, etag=item.etag)
        else:
            index.blobs.replace(item.path, b"", etag=item.etag)
    except BlobChangedError:
        return


_MAX_CELL = 1 << 24


def read_records(
    path: Path, schema: Schema, *, columns: Mapping[str, str], time: datetime
) -> Iterator[dict[str, Value]]:
    """The records of a file; `time` is the time of records without one.

    `columns` has the columns of fields that have another name in the file. Other columns are
    ignored. RecordError names the line of an invalid record.
    """
    readers = {".csv": _csv, ".jsonl": _jsonl, ".ndjson": _jsonl}
    if path.suffix.lower() not in readers:
        raise UsageError(f"{path.name} is not a .csv, .jsonl or .ndjson file")
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
            f"{where}: there is no column {key!r}; name the column of the key by"
            f" --column {schema.key.name}=NAME (columns: {', '.join(map(str, row))})"
        )
    values = {name: row[column] for name, column in names.items() if column in row}
    try:
        record = schema.parse({n: v for n, v in values.items() if v is None or isinstance(v, str)})
        record |= {name: value for name, value in values.items() if name not in record}
        if record.get(schema.time.name) is None:
            record[schema.time.name] = time
        schema.encode(record)
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
    return record


def _csv(file: TextIO) -> Iterator[tuple[int, Mapping[str, Any]]]:
    csv.field_size_limit(_MAX_CELL)
    reader = csv.DictReader(file, strict=True)
    rows = _counted(reader)
    while (row := next(rows, None)) is not None:
        # An empty cell has no value; a row that is too long has cells without a name.
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
