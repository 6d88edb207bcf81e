"""SQL queries of an index: DuckDB reads copies of its shards and inbox, and no other files.

A query is not trusted. It must be one SELECT, it runs as a subquery, where DuckDB allows no
writes, and the list of files that may be opened is locked before it runs.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Self

from fonds.errors import ShardError, StoreError, UsageError
from fonds.shards import usv
from fonds.shards.inbox import CONCURRENCY, read_item, waiting
from fonds.shards.index import Index, list_shards
from fonds.shards.lookup import ShardCache
from fonds.shards.schema import MAX_RECORD_SIZE, IndexColumn, Schema, Type
from fonds.stores.blobs import BlobInfo

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BATCH: Final = 1024
"""Items of the inbox in memory at the same time."""
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Copies:
    """Files that together contain every record of an index."""

    shards: list[Path]
    """No key is in two of them."""
    divided: list[Path]
    """Shards with longer or shorter names, of an index that is being divided: some of their
    records are also in `shards`."""
    skip: int
    """Lines before the records in each shard's file."""
    inbox: Path
    waiting: int
    """Records in the inbox."""


def copy_records(index: Index, folder: Path, *, cache: Path | None) -> Copies:
    """Files with the records of an index in a folder; ShardError if a shard is truncated.

    Shards of a local store are linked and not copied.
    """
    inbox = folder / "inbox.usv"
    # In this order, as a record that is compiled meanwhile is in its shard.
    count = _gather(index, inbox)
    files = _find_files(index, ShardCache(cache or folder / "shards"))
    sizes: Counter[int] = Counter()
    for shard, (path, _) in files.items():
        _check_end(index, shard, path)
        (folder / f"{shard}.usv").symlink_to(path.absolute())
        sizes[len(shard)] += path.stat().st_size
    usual = max(sizes, key=lambda digits: sizes[digits], default=index.layout.digits)
    return Copies(
        shards=[folder / f"{shard}.usv" for shard in files if len(shard) == usual],
        divided=[folder / f"{shard}.usv" for shard in files if len(shard) != usual],
        skip=max((skip for _, skip in files.values()), default=0),
        inbox=inbox,
        waiting=count,
    )


def _gather(index: Index, path: Path) -> int:
    count = 0
    paths = (item for _, item in waiting(index))
    with ThreadPoolExecutor(CONCURRENCY, "fonds-query") as pool, path.open("wb") as file:
        while batch := list(islice(paths, _BATCH)):
            for item in pool.map(partial(read_item, index), batch):
                if item is not None:
                    file.write(item.line + b"\n")
                    count += 1
    return count


def _find_files(index: Index, cache: ShardCache) -> dict[str, tuple[Path, int]]:
    """The file of each shard, and the lines to skip in it."""
    for _ in range(_TRIES):
        listed = {shard: info for shard, info in list_shards(index).shards.items() if info.size}
        with ThreadPoolExecutor(CONCURRENCY, "fonds-query") as pool:
            paths = list(pool.map(partial(_file_of, index, cache), listed.values()))
        files = {shard: file for shard, file in zip(listed, paths, strict=True) if file}
        if len(files) == len(listed):
            return files
    raise StoreError("shards disappear while they are read: the index is being divided; try again")


def _file_of(index: Index, cache: ShardCache, info: BlobInfo) -> tuple[Path, int] | None:
    if path := index.blobs.local_path(info.key):
        return path, 0
    copy = cache.fetch(index.blobs, info)
    return None if copy is None else (copy, 1)


def _check_end(index: Index, shard: str, path: Path) -> None:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            raise ShardError(f"{index.layout.shard(shard)} ends inside a record")


_MEMORY: Final = "256MB"
_SPILLED: Final = "20GB"
_THREADS: Final = 2
_ROWS: Final = 1024
"""Rows of one fetch."""
_LINE: Final = 2 * MAX_RECORD_SIZE
_BUFFER: Final = 2 * _LINE
"""Bytes of a file that are read at a time; the default is sixteen lines."""

_TYPES: Final[Mapping[Type, str]] = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "datetime": "TIMESTAMPTZ",
}
_ZONED_TIME: Final = "TIMESTAMP WITH TIME ZONE"
_GLOB: Final = re.compile(r"[*?\[\]{}]")
_UNREADABLE: Final = re.compile(r"CSV Error|CSV Parser|CSV File")
_FILE_NAME: Final = re.compile(r"([0-9a-f]+)\.usv$", re.MULTILINE)


class QueryResult:
    """The rows of a query; to be closed, or used in a `with` statement."""

    def __init__(
        self, columns: Mapping[str, str], rows: Iterator[tuple[Any, ...]], stack: ExitStack
    ) -> None:
        self.columns = columns
        """DuckDB's types by the names of the columns."""
        self.rows = rows
        self._stack = stack

    def close(self) -> None:
        """End the query, and remove its files."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def query(
    index: Index, sql: str, *, scratch: Path | None = None, cache: Path | None = None
) -> QueryResult:
    """The result of one SELECT, in which the index is a table of its own name.

    `scratch` is a folder for data that does not fit in memory, `cache` one for shards of a remote
    store, which are read again only if they have changed. UsageError for an invalid query, with
    DuckDB's message; ShardError for a damaged shard or record.
    """
    stack = ExitStack()
    try:
        return _run(index, sql, stack, scratch=scratch, cache=cache)
    except BaseException:
        stack.close()
        raise


def _run(
    index: Index, sql: str, stack: ExitStack, *, scratch: Path | None, cache: Path | None
) -> QueryResult:
    folder = stack.enter_context(_context(scratch))
    connection = _connect(folder)
    stack.callback(connection.close)
    with _explained(folder):
        _check_statement(connection, sql)
    copies = copy_records(index, folder, cache=cache)
    with _explained(folder):
        connection.execute(f"CREATE VIEW {_name(index.name)} AS {_view(index.schema, copies)}")
        _lock(connection, copies)
        # The text inside `query` must be a subquery, which cannot write.
        statement = f"query({_text(sql)})"
        described = connection.execute(f"DESCRIBE FROM {statement}").fetchall()
        columns: dict[str, str] = {name: kind for name, kind, *_ in described}
        connection.execute(f"FROM {statement} SELECT {_fetchable(columns)}")
    return QueryResult(columns, _rows(connection, columns, folder), stack)


@contextmanager
def _context(scratch: Path | None) -> Iterator[Path]:
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="fonds-query-", dir=scratch) as name:
        folder = Path(name).absolute()
        if _GLOB.search(str(folder)):
            raise UsageError(
                f"the path of the folder {folder.parent} contains one of *?[]{{}}, which DuckDB "
                "takes for a pattern; use another folder"
            )
        yield folder


def _connect(folder: Path) -> DuckDBPyConnection:
    try:
        import duckdb  # noqa: PLC0415 — an extra, and slow to load
    except ImportError:
        raise UsageError("queries need DuckDB: pip install 'fonds[query]'") from None
    connection = duckdb.connect(
        config={
            "memory_limit": _MEMORY,
            "threads": _THREADS,
            "temp_directory": str(folder / "spilled"),
            "max_temp_directory_size": _SPILLED,
            "home_directory": str(folder),
            "secret_directory": str(folder),
            "allow_persistent_secrets": False,
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "python_enable_replacements": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _check_statement(connection: DuckDBPyConnection, sql: str) -> None:
    kinds = [statement.type.name for statement in connection.extract_statements(sql)]
    if kinds != ["SELECT"]:
        raise UsageError("a query must be a single SELECT statement")


def _lock(connection: DuckDBPyConnection, copies: Copies) -> None:
    files = [*copies.shards, *copies.divided, copies.inbox]
    connection.execute(f"SET allowed_paths = {_paths(files)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _view(schema: Schema, copies: Copies) -> str:
    typed = ", ".join(f"{_typed(field)} AS {_name(field.name)}" for field in schema.fields)
    return f"FROM ({_newest(schema, copies)}) SELECT {typed}"


def _newest(schema: Schema, copies: Copies) -> str:
    """A query of the newest record of each key, with its fields as texts."""
    inbox = _read(schema, [copies.inbox], 0)
    if not copies.shards:
        return inbox
    shards = _read(schema, copies.shards, copies.skip)
    newer = [_read(schema, copies.divided, copies.skip)] if copies.divided else []
    newer += [inbox] if copies.waiting else []
    if not newer:
        return shards
    key, time = _name(schema.key.name), _name(schema.time.name)
    both = f"FROM base SEMI JOIN newer USING ({key}) UNION ALL FROM newer"
    # Most records are in one file only; comparing all of them takes ten times as long.
    return (
        f"WITH base AS NOT MATERIALIZED ({shards}), newer AS ({' UNION ALL '.join(newer)})"
        f" FROM base ANTI JOIN newer USING ({key}) UNION ALL"
        f" (FROM ({both}) SELECT DISTINCT ON ({key}) * ORDER BY {time} DESC, {_line(schema)} DESC)"
    )


def _read(schema: Schema, files: list[Path], skip: int) -> str:
    columns = ", ".join(f"{_text(field.name)}: 'VARCHAR'" for field in schema.fields)
    return (
        f"FROM read_csv({_paths(files)}, columns = {{{columns}}}, auto_detect = false,"
        f" header = false, skip = {skip}, delim = {_text(usv.FIELD)}, new_line = '\\n',"
        f" quote = '', escape = '', comment = '', nullstr = {_text(usv.NULL)},"
        f" compression = 'none', max_line_size = {_LINE}, buffer_size = {_BUFFER})"
    )


def _line(schema: Schema) -> str:
    """The whole record, which `rank` compares if times are equal."""
    fields = (f"coalesce({_name(field.name)}, {_text(usv.NULL)})" for field in schema.fields)
    return f"concat_ws({_text(usv.FIELD)}, {', '.join(fields)})"


def _typed(field: IndexColumn) -> str:
    name = _name(field.name)
    if field.type != "string":
        return f"CAST({name} AS {_TYPES[field.type]})"
    unescaped = name
    for character, escape in sorted(usv.ESCAPES.items(), key=lambda pair: pair[0] == usv.ESCAPE):
        unescaped = f"replace({unescaped}, {_text(escape)}, chr({ord(character)}))"
    return f"CASE WHEN contains({name}, {_text(usv.ESCAPE)}) THEN {unescaped} ELSE {name} END"


def _fetchable(columns: Mapping[str, str]) -> str:
    # For a time with its zone, DuckDB's Python API needs a package that it does not install.
    return ", ".join(
        f"#{number}::{kind.replace(_ZONED_TIME, 'TIMESTAMP')}"
        if _ZONED_TIME in kind
        else f"#{number}"
        for number, kind in enumerate(columns.values(), 1)
    )


def _rows(
    connection: DuckDBPyConnection, columns: Mapping[str, str], folder: Path
) -> Iterator[tuple[Any, ...]]:
    time_columns = [number for number, kind in enumerate(columns.values()) if kind == _ZONED_TIME]
    while True:
        with _explained(folder):
            rows = connection.fetchmany(_ROWS)
        if not rows:
            return
        yield from (_with_zone(row, time_columns) for row in rows) if time_columns else rows


def _with_zone(row: tuple[Any, ...], time_columns: list[int]) -> tuple[Any, ...]:
    values = list(row)
    for number in time_columns:
        if isinstance(values[number], datetime):
            values[number] = values[number].replace(tzinfo=UTC)
    return tuple(values)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    import duckdb  # noqa: PLC0415 — as above

    try:
        yield
    except duckdb.Error as error:
        message = str(error)
        if _UNREADABLE.search(message):
            match = _FILE_NAME.search(message)
            where = f"shard {match[1]}" if match else "the index"
            raise ShardError(f"{where} is damaged; see `fonds index verify`") from None
        # The rest of the message points into a text that differs from the user's query.
        sentence = " ".join(message.partition("\n\nLINE ")[0].split()).replace(f"{folder}/", "")
        is_io_error = isinstance(error, duckdb.IOException)
        raise (StoreError if is_io_error else UsageError)(sentence) from None


def _paths(files: list[Path]) -> str:
    return f"[{', '.join(_text(str(file)) for file in files)}]"


def _text(value: str) -> str:
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def _name(value: str) -> str:
    return f'"{value}"'
