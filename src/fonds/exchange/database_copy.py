"""A whole database copied to another one, of the same kind or not.

Copying a library's database: every row, of one moment, in one transaction.

Where a copy comes from and goes to: the home of a library, a file of SQLite, a server.

What watches over a database while it is used, put aside while it is filled.

A job that is complete may not begin so, and a committee may come before the one it belongs to. All
of it is back, and foreign keys have been checked, before anything is committed.

The indexes over words and vectors, made anew: each kind of database has its own.

The last number that a database has given out for each table: none is given out twice.

What a table holds, as a count and a hash in which the order of rows does not matter.
"""

from __future__ import annotations

import hashlib
import json
import os
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
from fonds.exchange.snapshot import Snapshot, shown, snapshot
from fonds.schema import upgrade_within
from fonds.seams import Seams
from fonds.settings import read_settings
from fonds.sites.tables import websites
from fonds.sources.registry import builtin_sources, plugin_sources
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database, insert_many, open_database
from fonds.stores.passages import index_entry
from fonds.stores.revisions import HEAD, current_version, mismatch, version_of
from fonds.stores.sqlite import batched
from fonds.stores.tables import document_chunk_buffer, document_vector_buffer, documents, metadata
from fonds.stores.vectors import Generation, generations

_FILES: Final = (".db", ".sqlite", ".sqlite3")
_BESIDE: Final = ("", "-wal", "-shm", "-journal")


def database_address(given: str) -> str:
    """The address of a database that somebody names by it, by its file, or by a library's home."""
    if "://" in given:
        return given
    path = Path(given)
    if path.suffix in _FILES or path.is_file():
        return f"sqlite:///{path.absolute()}"
    return read_settings({"home": path}, environ={}).database_url


@contextmanager
def open_source(address: str, *, seams: Seams) -> Iterator[Database]:
    """The database that is copied: it is there, and has this program's schema."""
    url = _url(address)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise UsageError(f"there is no database at {shown(address)}")
    database = open_database(address, seams=seams)
    try:
        _require_head(current_version(database), shown(address))
        yield database
    finally:
        database.close()


@contextmanager
def open_target(address: str, *, seams: Seams) -> Iterator[Database]:
    """A database to be filled. A file of SQLite gets its name when the block ends well."""
    url = _url(address)
    if url.get_backend_name() != "sqlite":
        database = open_database(address, seams=seams)
        try:
            yield database
        finally:
            database.close()
        return
    file = Path(url.database or "")
    if any(_beside(file, end).exists() for end in _BESIDE):
        raise UsageError(
            f"there is a database at {file} already; name a file, or a home, that has none"
        )
    with _renamed(file, seams) as draft:
        database = open_database(f"sqlite:///{draft.absolute()}", seams=seams)
        try:
            yield database
        finally:
            database.close()


def require_empty(version: str | None, rows: int, where: str) -> None:
    """Refuse to copy to where something is, or tables are of another version."""
    if version is None:
        return
    _require_head(version, where)
    if rows:
        raise UsageError(f"the database at {where} is not empty; a copy goes to one that is")


def _require_head(version: str | None, where: str) -> None:
    if version == HEAD:
        return
    if version is None:
        raise SchemaError(f"the database at {where} holds no library")
    raise mismatch(version, f"the database at {where}")


def _url(address: str) -> URL:
    try:
        return make_url(address)
    except ArgumentError:
        raise UsageError(f"{shown(address)} is not the address of a database") from None


@contextmanager
def _renamed(file: Path, seams: Seams) -> Iterator[Path]:
    """A file under another name, and under its own once it is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = _beside(file, ".copying")
    for end in _BESIDE:  # what a copy that was killed has left
        _beside(draft, end).unlink(missing_ok=True)
    try:
        yield draft
        _sync(draft)
        seams.durable("database.rename", file.name)
        draft.rename(file)
        _sync(file.parent)
    finally:
        for end in _BESIDE:
            _beside(draft, end).unlink(missing_ok=True)


def _beside(file: Path, end: str) -> Path:
    return file.with_name(file.name + end)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def put_aside(connection: Connection) -> Iterator[None]:
    """Let rows come in any order and in any state, within the transaction of the connection."""
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
    """Without foreign keys by which rows refer to others of their own table."""
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


AT_ONCE: Final = 200

_chunk: Final = document_chunk_buffer.c
_vector: Final = document_vector_buffer.c


def index_words(held: Snapshot, target: Database, connection: Connection) -> int:
    """Make the passages of all documents findable by their words."""
    count = 0
    for rows in batched(_passages(held, select(_chunk.id, _chunk.text, _chunk.meta)), AT_ONCE):
        entries = [index_entry(row.id, row.title, row._asdict()) for row in rows]
        target.fulltext.add(connection, entries)
        count += len(entries)
    return count


def index_vectors(held: Snapshot, target: Database, connection: Connection) -> int:
    """Make them findable by their vectors, in every generation."""
    count = 0
    for generation in generations(connection):
        target.vectors.create(connection, generation)
        for rows in batched(_vectors(held, generation), AT_ONCE):
            near = [(row.id, bytes(row.vector)) for row in rows]
            target.vectors.add(connection, generation, near)
            count += len(near)
    return count


def _vectors(held: Snapshot, generation: Generation) -> Iterator[Row[Any]]:
    query = select(_chunk.id, _vector.vector).join_from(
        document_chunk_buffer, document_vector_buffer, _vector.chunk_id == _chunk.chunk_id
    )
    made_by = _vector.embed_model == generation.name, _vector.embed_version == generation.version
    return _passages(held, query.where(*made_by))


def _passages(held: Snapshot, query: Select[Any]) -> Iterator[Row[Any]]:
    # Passages of an upload that is not published yet belong to no document, and are not found.
    joined = query.add_columns(documents.c.title).join(
        documents, documents.c.uid == _chunk.document_id
    )
    return held.stream(joined.order_by(_chunk.id), at_once=AT_ONCE)


def last_number(connection: Connection, table: Table) -> int | None:
    """The last one given out; None of a table whose rows are not numbered."""
    column = table.autoincrement_column
    if column is None:
        return None
    given: int | None = None
    if connection.dialect.name == "sqlite":
        query = text("SELECT seq FROM sqlite_sequence WHERE name = :table")
        given = connection.scalar(query, {"table": table.name})
    elif sequence := _sequence(connection, table, column.name):
        given = connection.scalar(text(f"SELECT last_value FROM {sequence} WHERE is_called"))  # noqa: S608 — a name the server gave
    return max(given or 0, connection.scalar(select(func.max(column))) or 0)


def set_last_number(connection: Connection, table: Table, number: int) -> None:
    """Go on behind this number."""
    column = table.autoincrement_column
    if not number or column is None:
        return
    if connection.dialect.name != "sqlite":
        if sequence := _sequence(connection, table, column.name):
            asked = text("SELECT setval(CAST(:sequence AS regclass), :number)")
            connection.execute(asked, {"sequence": sequence, "number": number})
        return
    if not table.dialect_options["sqlite"]["autoincrement"]:
        return
    given = {"table": table.name, "number": number}
    connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), given)
    connection.execute(text("INSERT INTO sqlite_sequence VALUES (:table, :number)"), given)


def _sequence(connection: Connection, table: Table, column: str) -> str | None:
    query = text("SELECT pg_get_serial_sequence(:table, :column)")
    found: str | None = connection.scalar(query, {"table": table.name, "column": column})
    return found


@dataclass(slots=True)
class TableChecksum:
    """The rows seen so far."""

    rows: int = 0
    _sum: int = 0

    def add(self, values: Iterable[Any]) -> None:
        """Count a row, given by its values."""
        told = json.dumps([_plain(value) for value in values], sort_keys=True)
        self.rows += 1
        # Added up: two databases need not agree on an order.
        self._sum += int.from_bytes(hashlib.sha256(told.encode()).digest(), "big")

    @property
    def digest(self) -> str:
        """The hash over all rows."""
        return f"{self._sum % (1 << 256):064x}"


def _plain(value: Any) -> Any:
    """A value as both databases give it back."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)  # of a number in JSON, PostgreSQL keeps what it is worth
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, datetime):
        return format_timestamp(value)
    return str(value) if isinstance(value, UUID) else value


Watch = Callable[[str, int], None]
"""Told, now and then, of a table and how many of its rows are done."""

_READ: Final = 100
"""Rows read at once: some hold the whole text of a document."""
_WRITTEN: Final = 500
_WRITTEN_BYTES: Final = 4 << 20
_NOT_ROWS: Final = ("alembic_version", "chunk_index", "sqlite_", "vec_")
"""How the names of tables begin that every database makes for itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedTable:
    """A table that is the same in both."""

    rows: int
    sha256: str
    """Over its rows, in any order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """What was copied and made anew."""

    tables: Mapping[str, CopiedTable]
    passages: int
    """Findable by their words."""
    vectors: int
    """Findable by meaning."""


def copy(
    source: str, target: str, *, seams: Seams | None = None, watch: Watch | None = None
) -> Copied:
    """Copy the database at an address to another one, which is empty; all of it, or nothing."""
    _learn_tables()
    used = seams or Seams()
    with open_source(source, seams=used) as one, open_target(target, seams=used) as other:
        if _same(one, other):
            raise UsageError("a database cannot be copied to itself")
        with snapshot(one) as held, other.write() as connection:
            tables = _tables(held.connection, shown(source))
            _prepare(connection, tables, shown(target))
            copying = _Copying(held, connection, watch or _unwatched)
            with put_aside(connection):
                copied = {table.name: copying.table(table) for table in tables}
            return Copied(
                tables=copied,
                passages=index_words(held, other, connection),
                vectors=index_vectors(held, other, connection),
            )


def _learn_tables() -> None:
    """A table is known once the module is imported in which it stands."""
    builtin_sources()
    plugin_sources()
    assert websites.metadata is metadata


def _same(one: Database, other: Database) -> bool:
    return one.engine.url == other.engine.url


def _tables(connection: Connection, where: str) -> list[Table]:
    """All tables of rows, each after those it refers to."""
    there = {
        name for name in inspect(connection).get_table_names() if not name.startswith(_NOT_ROWS)
    }
    if unknown := sorted(there - set(metadata.tables)):
        raise SchemaError(
            f"the database at {where} has tables that nothing installed here knows: "
            f"{', '.join(unknown)}; install the plugin that they belong to"
        )
    return [table for table in metadata.sorted_tables if table.name in there]


def _prepare(connection: Connection, tables: Sequence[Table], where: str) -> None:
    there = set(inspect(connection).get_table_names())
    version = version_of(connection)
    filled = [t for t in tables if t.name in there and _has_rows(connection, t)]
    if there and version is None:
        raise UsageError(f"the database at {where} has tables of something else")
    require_empty(version, len(filled), where)
    if version is None:
        upgrade_within(connection)
    metadata.create_all(connection, tables=tables)


def _has_rows(connection: Connection, table: Table) -> bool:
    return connection.execute(select(table).limit(1)).first() is not None


class _Copying:
    """One table after the other, from one moment of a database to another database."""

    def __init__(self, held: Snapshot, connection: Connection, watch: Watch) -> None:
        self._held = held
        self._connection = connection
        self._watch = watch

    def table(self, table: Table) -> CopiedTable:
        """Copy the rows of a table, and read them again."""
        given = TableChecksum()
        for rows in _batches(_rows(self._held, table, given)):
            self._insert(table, rows)
            self._watch(table.name, given.rows)
        number = last_number(self._held.connection, table)
        set_last_number(self._connection, table, number or 0)
        taken = TableChecksum()
        for _ in _rows(Snapshot(self._connection), table, taken):
            pass
        if given != taken:
            raise StoreError(
                f"{table.name} did not arrive as it was: {given.rows:,} rows were sent and "
                f"{taken.rows:,} are there; nothing was copied"
            )
        return CopiedTable(rows=given.rows, sha256=given.digest)

    def _insert(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        try:
            insert_many(self._connection, table, _exact(table, rows))
        except (DBAPIError, ValueError) as error:
            # A driver's own words may hold the row.
            cause = str(getattr(error, "orig", error)).partition("\n")[0]
            raise StoreError(f"a row of {table.name} is not taken: {cause}") from None


def _exact(table: Table, rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """The rows with decimals as such: of a floating-point number PostgreSQL takes 15 digits."""
    for column in table.c:
        if isinstance(column.type, Numeric) and not isinstance(column.type, Float):
            for row in rows:
                value = row[column.name]
                row[column.name] = None if value is None else Decimal(repr(value))
    return rows


def _rows(held: Snapshot, table: Table, tally: TableChecksum) -> Iterator[dict[str, Any]]:
    for row in held.stream(select(table), at_once=_READ):
        tally.add(row)
        yield row._asdict()


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        if len(batch) == _WRITTEN or size >= _WRITTEN_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _unwatched(_table: str, _rows: int) -> None:
    return
