"""The tables people ask of a library, as files for other programs.

Rows into files of one format, by DuckDB.

Exporting a library: a file for each table, and a data package that tells of them.
"""

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
class StagedTable:
    """The rows of a table, as lines of JSON in a file."""

    file: Path
    rows: int
    longest: int
    """Bytes of a line."""
    shapes: Mapping[str, set[type[Any]]]
    """Of what is JSON: the types of its values, by column."""

    def kind_of(self, field: ExportColumn) -> str:
        """What a data package calls a column; JSON is an object or an array if all of it is."""
        if field.kind != "any":
            return field.kind
        known: dict[type[Any], str] = {dict: "object", list: "array"}
        found = {known.get(each, "any") for each in self.shapes[field.name]}
        return found.pop() if len(found) == 1 else "any"


def stage(table: Exported, rows: Iterable[Sequence[Any]], file: Path) -> StagedTable:
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
    return StagedTable(file, count, longest, shapes)


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

    def convert(self, table: Exported, staged: StagedTable, to: Path) -> None:
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


def _type(field: ExportColumn, kind: Format) -> str:
    # Texts stay as they are written: DuckDB would write moments in a way of its own.
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
    connection.execute("SET preserve_insertion_order = false")  # it would hold rows for it
    connection.execute("SET enable_progress_bar = false")  # it would stand among what is printed
    return connection


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


Watch = Callable[[str, int], None]
"""Told, now and then, of a table and how many of its rows are done."""

DESCRIPTOR: Final = "datapackage.json"
NAME: Final = "fonds-export"
_TOLD: Final = 1000
_READ: Final = 100
_GLOB: Final = re.compile(r"[*?\[\]{}]")
_MEDIA: Final[Mapping[Format, str]] = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
}
_LONGEST_DESCRIPTOR: Final = 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportResult:
    """What was written."""

    rows: Mapping[str, int]
    """By table; those without a row have no file."""
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
    """Write all tables, or those of some sources, to an address; the data package comes last.

    An earlier export that stands there is replaced, once all of the new one is made.
    """
    before = _earlier(blobs, where)
    with _context(scratch) as folder:
        with snapshot(database) as held, closing(Converter(folder, kind)) as converter:
            making = _Making(held, folder, kind, converter, watch or _unwatched)
            there = inspect(held.connection).get_table_names()
            tables = exported_tables(
                there, registry or SourceRegistry(), sources=sources, owner=owner
            )
            files = [made for table in tables if (made := making.file(table)) is not None]
        if not any(each.resource["name"] == "documents" for each in files):
            raise UsageError("there is no document to export")
        _replace(blobs, before, files)
    return ExportResult(
        rows={each.resource["name"]: each.resource["rows"] for each in files},
        bytes=sum(each.resource["bytes"] for each in files),
    )


class _Making:
    """One file after the other."""

    def __init__(
        self, held: Snapshot, folder: Path, kind: Format, converter: Converter, watch: Watch
    ) -> None:
        self._held = held
        self._converter = converter
        self._folder = folder
        self._kind = kind
        self._watch = watch

    def file(self, table: Exported) -> _File | None:
        """The file of a table; None where it has no row."""
        staged = stage(table, self._rows(table), self._folder / "staged")
        if not staged.rows:
            return None
        path = self._folder / f"{table.name}.{self._kind}"
        self._converter.convert(table, staged, path)
        staged.file.unlink()
        return _File(path, self._resource(table, staged, path))

    def _rows(self, table: Exported) -> Iterator[Sequence[Any]]:
        for count, row in enumerate(self._held.stream(table.query, at_once=_READ), 1):
            if count % _TOLD == 0:
                self._watch(table.name, count)
            yield row

    def _resource(self, table: Exported, staged: StagedTable, path: Path) -> dict[str, Any]:
        told = {
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
            told["escape"] = "a text that begins like a formula, or with ', has a ' before it"
        return told

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
    """The files of an earlier export; what is no export stays as it is."""
    found = blobs.head(DESCRIPTOR)
    if found is None:
        return []
    told = None
    if found.size <= _LONGEST_DESCRIPTOR:
        with suppress(ValueError, RecursionError):
            told = json.loads(blobs.get(DESCRIPTOR))
    if not isinstance(told, dict) or told.get("name") != NAME:
        raise UsageError(
            f"at {where} stands a {DESCRIPTOR} that is not one of an export; name another place"
        )
    return re.findall(r'"path": "([^"/]+)"', json.dumps(told))


def _replace(blobs: Blobs, before: Sequence[str], files: Sequence[_File]) -> None:
    told = {
        "name": NAME,
        "title": "Public documents, each with where it comes from and how it is cited.",
        "resources": [each.resource for each in files],
    }
    blobs.delete(DESCRIPTOR)  # for a while, what it tells would not be true
    for each in files:
        blobs.put(each.path.name, each.path)
    blobs.put(DESCRIPTOR, (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())
    kept = {each.path.name for each in files}
    for name in before:
        if name not in kept and _is_ours(name):
            blobs.delete(name)


def _is_ours(name: str) -> bool:
    return re.fullmatch(rf"\w+\.({'|'.join(_MEDIA)})", name) is not None


@contextmanager
def _context(scratch: Path | None) -> Iterator[Path]:
    # DuckDB would take some characters in the name of a folder for a pattern.
    usable = scratch if scratch is not None and not _GLOB.search(str(scratch)) else None
    if usable is not None:
        usable.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="fonds-export-", dir=usable) as name:
        yield Path(name).absolute()


def _unwatched(_table: str, _rows: int) -> None:
    return
