"""Exports a library: a file for each table, written by DuckDB, and a data package."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

from sqlalchemy import inspect

from fonds.errors import StoreError, UsageError
from fonds.exchange.export_tables import ExportColumn, Exported, exported_tables
from fonds.exchange.snapshot import Snapshot, snapshot
from fonds.sources.registry import SourceRegistry
from fonds.stores.blobs import Blobs
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database
from fonds.stores.permissions import make_private_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Format = Literal["csv", "parquet", "jsonl"]

_MEMORY: Final = 256 << 20
_THREADS: Final = 2
_LINE: Final = 16 << 20
"""DuckDB's default for the bytes of the longest row."""
_OPTIONS: Final[dict[Format, str]] = {
    "csv": "FORMAT csv, HEADER",
    "parquet": "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE_BYTES '32MB'",
    "jsonl": "FORMAT json",
}
_DANGEROUS: Final = "^[=+\\-@\\t\\r\\n''＝＋－＠]"
"""The start of texts that a spreadsheet would take for a formula, or that have a quote already."""


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The rows of a table as lines of JSON in a file."""

    file: Path
    rows: int
    max_length: int
    """Bytes of the longest line."""
    shapes: Mapping[str, set[type[Any]]]
    """The types of the values of JSON columns, by column."""

    def kind_of(self, field: ExportColumn) -> str:
        """The data package's type of a column; JSON is an object or array if all values are."""
        if field.kind != "any":
            return field.kind
        json_kinds: dict[type[Any], str] = {dict: "object", list: "array"}
        kinds = {json_kinds.get(each, "any") for each in self.shapes[field.name]}
        return kinds.pop() if len(kinds) == 1 else "any"


def stage(table: Exported, rows: Iterable[Sequence[Any]], file: Path) -> StagedTable:
    """Write rows to a file, one line each."""
    names = [field.name for field in table.fields]
    trees = [index for index, field in enumerate(table.fields) if field.kind == "any"]
    shapes: dict[str, set[type[Any]]] = {names[index]: set() for index in trees}
    count = max_length = 0
    with file.open("wb") as out:
        for row in rows:
            for index in trees:
                shapes[names[index]] |= {type(row[index])} - {type(None)}
            line = json.dumps(dict(zip(names, row, strict=True)), default=_text).encode()
            out.write(line + b"\n")
            count, max_length = count + 1, max(max_length, len(line))
    return StagedTable(file, count, max_length, shapes)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be exported")


class Converter:
    """Converts staged tables to files of one format."""

    def __init__(self, folder: Path, kind: Format) -> None:
        self._kind = kind
        self._connection = _connect(folder)

    def convert(self, table: Exported, staged: StagedTable, to: Path) -> None:
        """Write the file of a table."""
        selected = ", ".join(
            f"{_expression(each, self._kind)} AS {_name(each.name)}" for each in table.fields
        )
        columns = ", ".join(
            f"{_quoted(each.name)}: {_quoted(_type(each, self._kind))}" for each in table.fields
        )
        line_size = max(_LINE, staged.max_length + 1)
        rows = (
            f"SELECT {selected} FROM read_json({_quoted(str(staged.file))},"  # noqa: S608 — quoted
            f" columns = {{{columns}}}, format = 'newline_delimited', compression = 'none',"
            f" maximum_object_size = {line_size})"
        )
        memory = max(_MEMORY, 12 * line_size) >> 20
        try:
            self._connection.execute(f"SET memory_limit = '{memory}MB'")
            self._connection.execute(
                f"COPY ({rows}) TO {_quoted(str(to))} ({_OPTIONS[self._kind]})"
            )
        except Exception as error:
            # Its message may contain text of a document.
            raise StoreError(f"{table.name} cannot be written: {type(error).__name__}") from error

    def close(self) -> None:
        """Close the database, which releases its memory."""
        self._connection.close()


def _type(field: ExportColumn, kind: Format) -> str:
    # As text, since DuckDB would format times in another way.
    return "VARCHAR" if kind != "parquet" and field.kind in {"string", "datetime"} else field.type


def _expression(field: ExportColumn, kind: Format) -> str:
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
    connection.execute("SET preserve_insertion_order = false")  # which would buffer rows
    connection.execute("SET enable_progress_bar = false")  # which would be printed to stdout
    return connection


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


Watch = Callable[[str, int], None]
"""Called from time to time with a table and the number of its rows that are done."""

DESCRIPTOR: Final = "datapackage.json"
NAME: Final = "fonds-export"
_WATCH_ROWS: Final = 1000
_READ: Final = 100
_GLOB: Final = re.compile(r"[*?\[\]{}]")
_MEDIA: Final[Mapping[Format, str]] = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
}
_MAX_DESCRIPTOR: Final = 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportResult:
    """The rows and bytes that were exported."""

    rows: Mapping[str, int]
    """By table; tables without rows have no file."""
    bytes: int


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    resource: dict[str, Any]


def export(
    database: Database,
    blobs: Blobs,
    kind: Format,
    *,
    where: str,
    sources: Sequence[str] | None = None,
    registry: SourceRegistry | None = None,
    owner: UUID | None = None,
    scratch: Path | None = None,
    watch: Watch | None = None,
) -> ExportResult:
    """Write all tables, or those of some sources, to an address; the data package is the last.

    An earlier export at the address is replaced when all files of the new one are ready.
    """
    before = _earlier(blobs, where)
    with _context(scratch) as folder:
        with snapshot(database) as view, closing(Converter(folder, kind)) as converter:
            files_of = _Files(view, folder, kind, converter, watch or _unwatched)
            there = inspect(view.connection).get_table_names()
            tables = exported_tables(
                there, registry or SourceRegistry(), sources=sources, owner=owner
            )
            files = [made for table in tables if (made := files_of.file(table)) is not None]
        if not any(each.resource["name"] == "documents" for each in files):
            raise UsageError("there is no document to export; load one first")
        _replace(blobs, before, files)
    return ExportResult(
        rows={each.resource["name"]: each.resource["rows"] for each in files},
        bytes=sum(each.resource["bytes"] for each in files),
    )


class _Files:
    """Makes the files of an export, one after the other."""

    def __init__(
        self, view: Snapshot, folder: Path, kind: Format, converter: Converter, watch: Watch
    ) -> None:
        self._view = view
        self._converter = converter
        self._folder = folder
        self._kind = kind
        self._watch = watch

    def file(self, table: Exported) -> _File | None:
        """The file of a table; None if it has no rows."""
        staged = stage(table, self._rows(table), self._folder / "staged")
        if not staged.rows:
            return None
        path = self._folder / f"{table.name}.{self._kind}"
        self._converter.convert(table, staged, path)
        staged.file.unlink()
        return _File(path, self._resource(table, staged, path))

    def _rows(self, table: Exported) -> Iterator[Sequence[Any]]:
        for count, row in enumerate(self._view.stream(table.query, batch_size=_READ), 1):
            if count % _WATCH_ROWS == 0:
                self._watch(table.name, count)
            yield row

    def _resource(self, table: Exported, staged: StagedTable, path: Path) -> dict[str, Any]:
        resource = {
            "name": table.name,
            "type": "table",
            **({"description": table.about} if table.about else {}),
            "path": path.name,
            "format": self._kind,
            "mediatype": _MEDIA[self._kind],
            **({} if self._kind == "parquet" else {"encoding": "utf-8"}),
            "rows": staged.rows,
            "bytes": path.stat().st_size,
            "hash": f"sha256:{_sha256(path)}",
            "schema": self._schema(table, staged),
        }
        if self._kind == "csv":
            resource["escape"] = "a text that begins like a formula, or with ', has a ' before it"
        return resource

    def _schema(self, table: Exported, staged: StagedTable) -> dict[str, Any]:
        fields = [
            {
                "name": field.name,
                "type": staged.kind_of(field),
                **({"description": field.about} if field.about else {}),
            }
            for field in table.fields
        ]
        missing = [""] if self._kind == "csv" else []
        return {"fields": fields, "primaryKey": list(table.key), "missingValues": missing}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _earlier(blobs: Blobs, where: str) -> list[str]:
    """The files of an earlier export; UsageError if the data package is not one of an export."""
    info = blobs.head(DESCRIPTOR)
    if info is None:
        return []
    package = None
    if info.size <= _MAX_DESCRIPTOR:
        with suppress(ValueError, RecursionError):
            package = json.loads(blobs.get(DESCRIPTOR))
    if not isinstance(package, dict) or package.get("name") != NAME:
        raise UsageError(
            f"{where} has a {DESCRIPTOR} that is not one of an export; use another address"
        )
    return re.findall(r'"path": "([^"/]+)"', json.dumps(package))


def _replace(blobs: Blobs, before: Sequence[str], files: Sequence[_File]) -> None:
    package = {
        "name": NAME,
        "title": "Public documents, each with where it comes from and how it is cited.",
        "resources": [each.resource for each in files],
    }
    blobs.delete(DESCRIPTOR)  # it would be wrong while files are replaced
    for each in files:
        blobs.put(each.path.name, each.path)
    blobs.put(DESCRIPTOR, (json.dumps(package, indent=1, ensure_ascii=False) + "\n").encode())
    new_names = {each.path.name for each in files}
    for name in before:
        if name not in new_names and _is_exported(name):
            blobs.delete(name)


def _is_exported(name: str) -> bool:
    return re.fullmatch(rf"\w+\.({'|'.join(_MEDIA)})", name) is not None


@contextmanager
def _context(scratch: Path | None) -> Iterator[Path]:
    # DuckDB takes some characters in the name of a folder for a pattern.
    usable = scratch if scratch is not None and not _GLOB.search(str(scratch)) else None
    if usable is not None:
        make_private_folder(usable)
    with TemporaryDirectory(prefix="fonds-export-", dir=usable) as name:
        yield Path(name).absolute()


def _unwatched(_table: str, _rows: int) -> None:
    return
