"""Rows into files of one format, by DuckDB."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

from fonds.errors import StoreError, UsageError
from fonds.exchange.export.tables import Exported, Field
from fonds.stores.columns import format_timestamp

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Format = Literal["csv", "parquet", "jsonl"]

_MEMORY: Final = 256 << 20
_THREADS: Final = 2
_LINE: Final = 16 << 20
"""Bytes of the longest row that DuckDB reads unless it is told."""
_OPTIONS: Final[dict[Format, str]] = {
    "csv": "FORMAT csv, HEADER",
    "parquet": "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE_BYTES '32MB'",
    "jsonl": "FORMAT json",
}
_DANGEROUS: Final = "^[=+\\-@\\t\\r\\n''＝＋－＠]"
"""How a text begins that a spreadsheet would calculate, and the mark that keeps it from it."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows of a table, as lines of JSON in a file."""

    file: Path
    rows: int
    longest: int
    """Bytes of a line."""
    shapes: Mapping[str, set[type[Any]]]
    """Of what is JSON: the types of its values, by column."""

    def kind_of(self, field: Field) -> str:
        """What a data package calls a column; JSON is an object or an array if all of it is."""
        if field.kind != "any":
            return field.kind
        known: dict[type[Any], str] = {dict: "object", list: "array"}
        found = {known.get(each, "any") for each in self.shapes[field.name]}
        return found.pop() if len(found) == 1 else "any"


def stage(table: Exported, rows: Iterable[Sequence[Any]], file: Path) -> Staged:
    """Write rows down, a line each."""
    names = [field.name for field in table.fields]
    trees = [place for place, field in enumerate(table.fields) if field.kind == "any"]
    shapes: dict[str, set[type[Any]]] = {names[place]: set() for place in trees}
    count = longest = 0
    with file.open("wb") as out:
        for row in rows:
            for place in trees:
                shapes[names[place]] |= {type(row[place])} - {type(None)}
            line = json.dumps(dict(zip(names, row, strict=True)), default=_text).encode()
            out.write(line + b"\n")
            count, longest = count + 1, max(longest, len(line))
    return Staged(file, count, longest, shapes)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be exported")


class Converter:
    """Makes files of what was written down."""

    def __init__(self, folder: Path, kind: Format) -> None:
        self._kind = kind
        self._connection = _connect(folder)

    def convert(self, table: Exported, staged: Staged, to: Path) -> None:
        """Make the file of a table."""
        selected = ", ".join(
            f"{_expression(each, self._kind)} AS {_name(each.name)}" for each in table.fields
        )
        given = ", ".join(
            f"{_quoted(each.name)}: {_quoted(_type(each, self._kind))}" for each in table.fields
        )
        longest = max(_LINE, staged.longest + 1)
        rows = (
            f"SELECT {selected} FROM read_json({_quoted(str(staged.file))},"  # noqa: S608 — quoted
            f" columns = {{{given}}}, format = 'newline_delimited', compression = 'none',"
            f" maximum_object_size = {longest})"
        )
        memory = max(_MEMORY, 12 * longest) >> 20
        try:
            self._connection.execute(f"SET memory_limit = '{memory}MB'")
            self._connection.execute(
                f"COPY ({rows}) TO {_quoted(str(to))} ({_OPTIONS[self._kind]})"
            )
        except Exception as error:
            # Its words may hold what a document says.
            raise StoreError(f"{table.name} cannot be written: {type(error).__name__}") from error

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()


def _type(field: Field, kind: Format) -> str:
    # Texts stay as they are written: DuckDB would write moments in a way of its own.
    return "VARCHAR" if kind != "parquet" and field.kind in {"string", "datetime"} else field.type


def _expression(field: Field, kind: Format) -> str:
    name = _name(field.name)
    if kind == "csv" and field.kind == "string":
        return (
            f"CASE WHEN regexp_matches({name}, '{_DANGEROUS}') THEN '''' || {name} ELSE {name} END"
        )
    return name


def _connect(folder: Path) -> DuckDBPyConnection:
    try:
        import duckdb  # noqa: PLC0415 — an extra, and slow to load
    except ImportError:
        raise UsageError("exports need DuckDB: pip install 'fonds[query]'") from None
    connection = duckdb.connect(
        config={
            "threads": _THREADS,
            "temp_directory": str(folder / "spilled"),
            "home_directory": str(folder),
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "python_enable_replacements": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET preserve_insertion_order = false")  # it would hold rows for it
    connection.execute("SET enable_progress_bar = false")  # it would stand among what is printed
    return connection


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
