"""Copies a library's database to another one, on SQLite or PostgreSQL.

All rows of a snapshot are copied in one transaction and compared by a checksum. Triggers, and
foreign keys of a table to itself, are suspended meanwhile, as rows come in any order and in their
final states; they are restored, and all foreign keys checked, before the commit. Sequences continue
after the last number of the source. The full-text and vector indexes are created again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Float, Numeric, Row, Select, Table, func, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from fonds.errors import SchemaError, StoreError, UsageError
from fonds.exchange.snapshot import Snapshot, display_address, snapshot
from fonds.schema import HEAD, current_version, mismatch, upgrade_within, version_of
from fonds.seams import Seams
from fonds.settings import read_settings
from fonds.sites.tables import websites
from fonds.sources.registry import builtin_sources, plugin_sources
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database, insert_many, open_database
from fonds.stores.folder import sync_path
from fonds.stores.passages import index_entry
from fonds.stores.permissions import make_private_folder
from fonds.stores.sqlite import batched
from fonds.stores.tables import document_chunk_buffer, document_vector_buffer, documents, metadata
from fonds.stores.vectors import Generation, generations

_FILES: Final = (".db", ".sqlite", ".sqlite3")
_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")


def database_address(name: str) -> str:
    """The address of a database from its address, its file, or the home of its library."""
    if "://" in name:
        return name
    path = Path(name)
    if path.suffix in _FILES or path.is_file():
        return f"sqlite:///{path.absolute()}"
    return read_settings({"home": path}, environ={}).database_url


@contextmanager
def open_source(address: str, *, seams: Seams) -> Iterator[Database]:
    """The database to be copied, which must exist with this program's schema."""
    url = _url(address)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise UsageError(f"there is no database at {display_address(address)}")
    database = open_database(address, seams=seams)
    try:
        _require_head(current_version(database), display_address(address))
        yield database
    finally:
        database.close()


@contextmanager
def open_target(address: str, *, seams: Seams) -> Iterator[Database]:
    """A database to be filled. A SQLite file gets its name when the block ends without error."""
    url = _url(address)
    if url.get_backend_name() != "sqlite":
        database = open_database(address, seams=seams)
        try:
            yield database
        finally:
            database.close()
        return
    file = Path(url.database or "")
    if any(_with_suffix(file, end).exists() for end in _SUFFIXES):
        raise UsageError(f"there is a database at {file} already; name another file or home")
    with _renamed(file, seams) as draft:
        database = open_database(f"sqlite:///{draft.absolute()}", seams=seams)
        try:
            yield database
        finally:
            database.close()


def require_empty(version: str | None, rows: int, where: str) -> None:
    """UsageError or SchemaError if the target has rows, or tables of another version."""
    if version is None:
        return
    _require_head(version, where)
    if rows:
        raise UsageError(f"the database at {where} is not empty; copy to an empty one")


def _require_head(version: str | None, where: str) -> None:
    if version == HEAD:
        return
    if version is None:
        raise SchemaError(f"the database at {where} is not one of a library")
    raise mismatch(version, f"the database at {where}")


def _url(address: str) -> URL:
    try:
        return make_url(address)
    except ArgumentError:
        raise UsageError(f"{display_address(address)} is not the address of a database") from None


@contextmanager
def _renamed(file: Path, seams: Seams) -> Iterator[Path]:
    """A file under a temporary name, which is renamed when it is complete."""
    make_private_folder(file.parent)
    draft = _with_suffix(file, ".copying")
    for end in _SUFFIXES:  # left behind by a copy that was killed
        _with_suffix(draft, end).unlink(missing_ok=True)
    try:
        yield draft
        sync_path(draft)
        seams.durable("database.rename", file.name)
        draft.rename(file)
        sync_path(file.parent)
    finally:
        for end in _SUFFIXES:
            _with_suffix(draft, end).unlink(missing_ok=True)


def _with_suffix(file: Path, end: str) -> Path:
    return file.with_name(file.name + end)


@contextmanager
def constraints_suspended(connection: Connection) -> Iterator[None]:
    """Allow rows in any order and state until the block ends, in the connection's transaction."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        with _without_triggers(connection):
            yield
    else:
        with _without_user_triggers(connection), _without_loops(connection):
            yield


@contextmanager
def _without_triggers(connection: Connection) -> Iterator[None]:
    query = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid")
    triggers = connection.execute(query).all()
    for name, _ in triggers:
        connection.exec_driver_sql(f'DROP TRIGGER "{name}"')
    yield
    for _, sql in triggers:
        connection.exec_driver_sql(sql)


@contextmanager
def _without_user_triggers(connection: Connection) -> Iterator[None]:
    query = text(
        "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger"
        " JOIN pg_class ON pg_class.oid = tgrelid"
        " WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
    )
    guarded = list(connection.scalars(query))
    for name in guarded:
        connection.exec_driver_sql(f"ALTER TABLE {name} DISABLE TRIGGER USER")
    yield
    for name in guarded:
        connection.exec_driver_sql(f"ALTER TABLE {name} ENABLE TRIGGER USER")


@contextmanager
def _without_loops(connection: Connection) -> Iterator[None]:
    """Drop foreign keys from a table to itself until the block ends."""
    query = text(
        "SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid)"
        " FROM pg_constraint WHERE contype = 'f' AND conrelid = confrelid"
        " AND connamespace = current_schema()::regnamespace"
    )
    loops = connection.execute(query).all()
    for table, name, _ in loops:
        connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    yield
    for table, name, definition in loops:
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")


BATCH_SIZE: Final = 200

_chunk: Final = document_chunk_buffer.c
_vector: Final = document_vector_buffer.c


def index_words(view: Snapshot, target: Database, connection: Connection) -> int:
    """Create the full-text index over the passages of all documents."""
    count = 0
    for rows in batched(_passages(view, select(_chunk.id, _chunk.text, _chunk.meta)), BATCH_SIZE):
        entries = [index_entry(row.id, row.title, row._asdict()) for row in rows]
        target.fulltext.add(connection, entries)
        count += len(entries)
    return count


def index_vectors(view: Snapshot, target: Database, connection: Connection) -> int:
    """Create the vector index of every generation."""
    count = 0
    for generation in generations(connection):
        target.vectors.create(connection, generation)
        for rows in batched(_vectors(view, generation), BATCH_SIZE):
            near = [(row.id, bytes(row.vector)) for row in rows]
            target.vectors.add(connection, generation, near)
            count += len(near)
    return count


def _vectors(view: Snapshot, generation: Generation) -> Iterator[Row[Any]]:
    query = select(_chunk.id, _vector.vector).join_from(
        document_chunk_buffer, document_vector_buffer, _vector.chunk_id == _chunk.chunk_id
    )
    made_by = _vector.embed_model == generation.name, _vector.embed_version == generation.version
    return _passages(view, query.where(*made_by))


def _passages(view: Snapshot, query: Select[Any]) -> Iterator[Row[Any]]:
    # Staged passages of an upload belong to no document yet, and are not indexed.
    joined = query.add_columns(documents.c.title).join(
        documents, documents.c.uid == _chunk.document_id
    )
    return view.stream(joined.order_by(_chunk.id), batch_size=BATCH_SIZE)


def last_number(connection: Connection, table: Table) -> int | None:
    """The last row number that was assigned; None if the rows of a table are not numbered."""
    column = table.autoincrement_column
    if column is None:
        return None
    last: int | None = None
    if connection.dialect.name == "sqlite":
        query = text("SELECT seq FROM sqlite_sequence WHERE name = :table")
        last = connection.scalar(query, {"table": table.name})
    elif sequence := _sequence(connection, table, column.name):
        last = connection.scalar(text(f"SELECT last_value FROM {sequence} WHERE is_called"))  # noqa: S608 — a name the server gave
    return max(last or 0, connection.scalar(select(func.max(column))) or 0)


def set_last_number(connection: Connection, table: Table, number: int) -> None:
    """Continue the numbering of a table after this number."""
    column = table.autoincrement_column
    if not number or column is None:
        return
    if connection.dialect.name != "sqlite":
        if sequence := _sequence(connection, table, column.name):
            statement = text("SELECT setval(CAST(:sequence AS regclass), :number)")
            connection.execute(statement, {"sequence": sequence, "number": number})
        return
    if not table.dialect_options["sqlite"]["autoincrement"]:
        return
    row = {"table": table.name, "number": number}
    connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), row)
    connection.execute(text("INSERT INTO sqlite_sequence VALUES (:table, :number)"), row)


def _sequence(connection: Connection, table: Table, column: str) -> str | None:
    query = text("SELECT pg_get_serial_sequence(:table, :column)")
    sequence: str | None = connection.scalar(query, {"table": table.name, "column": column})
    return sequence


@dataclass(slots=True)
class TableChecksum:
    """The number of rows, and a hash that does not depend on their order."""

    rows: int = 0
    _sum: int = 0

    def add(self, values: Iterable[Any]) -> None:
        """Add the values of a row."""
        text_of_row = json.dumps([_comparable(value) for value in values], sort_keys=True)
        self.rows += 1
        # A sum, as two databases may return rows in different orders.
        self._sum += int.from_bytes(hashlib.sha256(text_of_row.encode()).digest(), "big")

    @property
    def digest(self) -> str:
        """The hash over all rows."""
        return f"{self._sum % (1 << 256):064x}"


def _comparable(value: Any) -> Any:
    """A value in a form that is equal for both databases."""
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)  # PostgreSQL stores the value of a JSON number, not its notation
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, datetime):
        return format_timestamp(value)
    return str(value) if isinstance(value, UUID) else value


Watch = Callable[[str, int], None]
"""Called from time to time with a table and the number of its rows that are done."""

_READ: Final = 100
"""Rows in memory while reading, some with the whole text of a document."""
_MAX_ROWS: Final = 500
_MAX_BYTES: Final = 4 << 20
_NOT_ROWS: Final = ("alembic_version", "chunk_index", "sqlite_", "vec_")
"""Prefixes of tables that each database has for itself, and that are not copied."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedTable:
    """A copied table, which is equal in both databases."""

    rows: int
    sha256: str
    """The hash over its rows in any order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """The tables that were copied, and the sizes of the new indexes."""

    tables: Mapping[str, CopiedTable]
    passages: int
    """Entries of the full-text index."""
    vectors: int
    """Entries of the vector indexes."""


def copy(
    source: str, target: str, *, seams: Seams | None = None, watch: Watch | None = None
) -> Copied:
    """Copy the database at an address to an empty one, completely or not at all."""
    _import_tables()
    used = seams or Seams()
    with open_source(source, seams=used) as one, open_target(target, seams=used) as other:
        if _same(one, other):
            raise UsageError("a database cannot be copied to itself")
        with snapshot(one) as view, other.write() as connection:
            tables = _tables(view.connection, display_address(source))
            _prepare(connection, tables, display_address(target))
            copier = _TableCopier(view, connection, watch or _unwatched)
            with constraints_suspended(connection):
                copied = {table.name: copier.table(table) for table in tables}
            return Copied(
                tables=copied,
                passages=index_words(view, other, connection),
                vectors=index_vectors(view, other, connection),
            )


def _import_tables() -> None:
    """Import the modules that declare tables."""
    builtin_sources()
    plugin_sources()
    assert websites.metadata is metadata


def _same(one: Database, other: Database) -> bool:
    return one.engine.url == other.engine.url


def _tables(connection: Connection, where: str) -> list[Table]:
    """All tables to be copied, each after those it refers to."""
    there = {
        name for name in inspect(connection).get_table_names() if not name.startswith(_NOT_ROWS)
    }
    if unknown := sorted(there - set(metadata.tables)):
        raise SchemaError(
            f"the database at {where} has unknown tables: {', '.join(unknown)}; "
            "install the plugin that they belong to"
        )
    return [table for table in metadata.sorted_tables if table.name in there]


def _prepare(connection: Connection, tables: Sequence[Table], where: str) -> None:
    there = set(inspect(connection).get_table_names())
    version = version_of(connection)
    filled = [t for t in tables if t.name in there and _has_rows(connection, t)]
    if there and version is None:
        raise UsageError(
            f"the database at {where} has tables of another program; use an empty database"
        )
    require_empty(version, len(filled), where)
    if version is None:
        upgrade_within(connection)
    metadata.create_all(connection, tables=tables)


def _has_rows(connection: Connection, table: Table) -> bool:
    return connection.execute(select(table).limit(1)).first() is not None


class _TableCopier:
    """Copies tables from a snapshot of a database to another database."""

    def __init__(self, view: Snapshot, connection: Connection, watch: Watch) -> None:
        self._view = view
        self._connection = connection
        self._watch = watch

    def table(self, table: Table) -> CopiedTable:
        """Copy the rows of a table, and compare them."""
        sent = TableChecksum()
        for rows in _batches(_rows(self._view, table, sent)):
            self._insert(table, rows)
            self._watch(table.name, sent.rows)
        number = last_number(self._view.connection, table)
        set_last_number(self._connection, table, number or 0)
        stored = TableChecksum()
        for _ in _rows(Snapshot(self._connection), table, stored):
            pass
        if sent != stored:
            raise StoreError(
                f"the copy of {table.name} is different: {sent.rows:,} rows were sent and "
                f"{stored.rows:,} stored; nothing was copied"
            )
        return CopiedTable(rows=sent.rows, sha256=sent.digest)

    def _insert(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        try:
            insert_many(self._connection, table, _exact(table, rows))
        except (DBAPIError, ValueError) as error:
            # The rest of a driver's message may contain the row.
            reason = str(getattr(error, "orig", error)).partition("\n")[0]
            raise StoreError(f"a row of {table.name} was rejected: {reason}") from None


def _exact(table: Table, rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """The rows with decimals, as PostgreSQL uses 15 digits of a floating-point number."""
    for column in table.c:
        if isinstance(column.type, Numeric) and not isinstance(column.type, Float):
            for row in rows:
                value = row[column.name]
                row[column.name] = None if value is None else Decimal(repr(value))
    return rows


def _rows(view: Snapshot, table: Table, checksum: TableChecksum) -> Iterator[dict[str, Any]]:
    for row in view.stream(select(table), batch_size=_READ):
        checksum.add(row)
        yield row._asdict()


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        if len(batch) == _MAX_ROWS or size >= _MAX_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _unwatched(_table: str, _rows: int) -> None:
    return
