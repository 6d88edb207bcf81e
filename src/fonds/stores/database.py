"""The relational database: one set of tables, on SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    CursorResult,
    Dialect,
    Engine,
    Executable,
    Row,
    Table,
    bindparam,
    collate,
    create_engine,
    event,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from fonds.errors import SettingsError
from fonds.seams import Seams, spend
from fonds.stores.fulltext import FullText, PostgresFullText, SqliteFullText
from fonds.stores.permissions import make_private_file, make_private_folder
from fonds.stores.postgres_vectors import PostgresVectors
from fonds.stores.sqlite import IS_CONTINUATION, insert_rows, open_sqlite
from fonds.stores.sqlite_vectors import SqliteVectors
from fonds.stores.vectors import VectorIndex

T = TypeVar("T")


class Database:
    """Transactions on one database; every commit passes the durability seam."""

    def __init__(self, engine: Engine, fulltext: FullText, seams: Seams) -> None:
        self.engine = engine
        self.fulltext = fulltext
        self.vectors = vector_index(engine.dialect)
        self._seams = seams
        self._write_lock = Lock()
        event.listen(engine, "before_cursor_execute", _spend_on_statement)

    @property
    def is_sqlite(self) -> bool:
        """True if this is a file on this machine, with one writer at a time."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that locks the database for writing first and commits at the end."""
        # SQLite's waiting writers retry in no order; those of one process queue here instead.
        lock = self._write_lock if self.is_sqlite else nullcontext()
        with lock, self.engine.connect() as connection, connection.begin() as transaction:
            yield connection
            self._seams.durable("commit", self.engine.dialect.name)
            spend("database")
            transaction.commit()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view that never waits for a writer."""
        reader = self.engine.connect().execution_options(read_only=True)
        with reader as connection, connection.begin():
            yield connection
            spend("database")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _spend_on_statement(
    _connection: Any, _cursor: Any, _statement: Any, _values: Any, context: Any, _many: Any
) -> None:
    if not context.execution_options.get(IS_CONTINUATION):
        spend("database")


def _spend_on_ping(*_checkout: Any) -> None:
    spend("database")


def open_database(address: str, *, seams: Seams, cache_mib: int = 16) -> Database:
    """Open a database by its SQLAlchemy address, without checking its schema.

    `cache_mib` is SQLite's page cache.
    """
    url = _url(address)
    file = sqlite_file(address)
    if file is not None:
        make_private_folder(file.parent)
        make_private_file(file)  # its WAL gets the same permissions
        return Database(open_sqlite(url, cache_mib=cache_mib), SqliteFullText(), seams)
    if url.get_backend_name() == "postgresql":
        return Database(_open_postgres(url), PostgresFullText(), seams)
    raise SettingsError(f"{url.drivername} is not supported; use sqlite or postgresql")


def sqlite_file(address: str) -> Path | None:
    """The file of an SQLite database; None for an address of another database."""
    url = _url(address)
    if url.get_backend_name() != "sqlite":
        return None
    if not url.database or url.database == ":memory:":
        raise SettingsError("SQLite needs a file: sqlite:////path/to/fonds.db")
    return Path(url.database)


def _url(address: str) -> URL:
    try:
        return make_url(address)
    except ArgumentError as error:
        raise SettingsError(
            "the setting `database` is not a database URL; use sqlite:////path/to/fonds.db "
            "or postgresql://user@host/name"
        ) from error


def _open_postgres(url: URL) -> Engine:
    engine = create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    event.listen(engine, "checkout", _spend_on_ping)  # no other event reports the ping

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get("read_only"):
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    return engine


def vector_index(dialect: Dialect) -> VectorIndex:
    """The index over the vectors of a database."""
    return SqliteVectors() if dialect.name == "sqlite" else PostgresVectors()


Values = Mapping[str, Any]
Binds = list[tuple[str, Any]]
"""Names of parameters in the order of a statement, each with its bind processor."""


def run(
    connection: Connection, statement: Executable, parameters: Values | Sequence[Values]
) -> CursorResult[*tuple[Any, ...]]:
    """Execute a statement whose compiled form is cached, once or for each set of parameters.

    Core takes longer to bind values than SQLite takes to execute the statement. Rows are the
    driver's own: timestamps, UUIDs and JSON in them are not converted.
    """
    text, fixed, binds = _prepared(statement, connection.dialect)
    sets: Iterable[Values] = [parameters] if isinstance(parameters, Mapping) else parameters
    if fixed:
        sets = [{**fixed, **values} for values in sets]
    bound: list[Any]
    if connection.dialect.positional:
        bound = [_positional(values, binds) for values in sets]
    else:
        bound = [
            {name: process(values[name]) if process else values[name] for name, process in binds}
            for values in sets
        ]
    return connection.exec_driver_sql(text, bound if len(bound) > 1 else bound[0])


@cache
def _prepared(statement: Any, dialect: Dialect) -> tuple[str, Values, Binds]:
    """The text of a statement, its constant values, and its parameters in order."""
    compiled = statement.compile(dialect=dialect)
    binds = compiled.binds
    processors = {
        name: bind.type.dialect_impl(dialect).bind_processor(dialect)
        for name, bind in binds.items()
    }
    fixed = {name: bind.value for name, bind in binds.items() if not bind.required}
    order = compiled.positiontup if compiled.positional else binds
    return str(compiled), fixed, [(name, processors[name]) for name in order]


def _positional(values: Values, binds: Binds) -> tuple[Any, ...]:
    return tuple(process(values[name]) if process else values[name] for name, process in binds)


def insert_many(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Insert rows that have the same columns."""
    if rows:
        statement = _insert(table, tuple(rows[0]), connection.dialect.name)
        _insert_rows(connection, statement, rows)


def insert_ignoring(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Insert rows whose key does not exist yet."""
    if rows:
        statement = _insert_ignoring(table, tuple(rows[0]), connection.dialect.name)
        _insert_rows(connection, statement, rows)


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Values],
    *,
    keys: Sequence[str] | None = None,
) -> None:
    """Insert rows, or update those whose key (by default the primary key) exists."""
    if rows:
        by = tuple(keys or [column.name for column in table.primary_key])
        statement = _upsert(table, tuple(rows[0]), connection.dialect.name, by)
        _insert_rows(connection, statement, rows)


def _insert_rows(connection: Connection, statement: Any, rows: Sequence[Values]) -> None:
    """Insert rows by a statement for one row."""
    if connection.dialect.name != "sqlite":
        run(connection, statement, rows)
        return
    text, _, binds = _prepared(statement, connection.dialect)
    insert_rows(connection, text, [_positional(row, binds) for row in rows])


def insert_into(table: Table, dialect: str) -> Any:
    """An INSERT of a dialect, which has `ON CONFLICT`."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


# Building a statement takes longer than the database takes to do it.


@cache
def _insert(table: Table, names: tuple[str, ...], dialect: str) -> Any:
    values = {name: bindparam(name, type_=table.c[name].type) for name in names}
    return insert_into(table, dialect).values(values).inline()


@cache
def _insert_ignoring(table: Table, names: tuple[str, ...], dialect: str) -> Any:
    return _insert(table, names, dialect).on_conflict_do_nothing()


@cache
def _upsert(table: Table, names: tuple[str, ...], dialect: str, keys: tuple[str, ...]) -> Any:
    insert = _insert(table, names, dialect)
    changed = {name: insert.excluded[name] for name in names if name not in keys}
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)


def by_bytes(connection: Connection, column: Any) -> Any:
    """A column compared by its bytes, as SQLite does; PostgreSQL would use its locale."""
    return column if connection.dialect.name == "sqlite" else collate(column, "C")


def from_row(record: type[T], row: Row[Any], **computed: Any) -> T:
    """A record whose fields are the columns of a row with their names, and what is computed."""
    columns: dict[str, Any] = row._asdict()
    names = {field.name for field in fields(record)}  # type: ignore[arg-type]  # a dataclass
    return record(**{**{name: columns[name] for name in names & columns.keys()}, **computed})
