"""Records from somebody's table: CSV with a heading, or JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from fonds.errors import RecordError, UsageError
from fonds.shards.schema import Schema, Value

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
