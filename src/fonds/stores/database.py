"""The relational database: one set of tables, on SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import (
    Connection,
    CursorResult,
    Dialect,
    Engine,
    Executable,
    Table,
    bindparam,
    collate,
    create_engine,
    event,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from fonds.errors import SettingsError
from fonds.seams import Seams, spend
from fonds.stores.fulltext import FullText, SqliteFullText
from fonds.stores.sqlite import GOES_ON, insert_rows, open_sqlite
from fonds.stores.sqlite_vectors import SqliteVectors
from fonds.stores.vectors import VectorIndex


class Database:
    """Transactions on one database; every commit passes the durability seam."""

    def __init__(self, engine: Engine, fulltext: FullText, seams: Seams) -> None:
        self.engine = engine
        self.fulltext = fulltext
        self.vectors = vector_index(engine.dialect)
        self._seams = seams
        self._turn = Lock()
        event.listen(engine, "before_cursor_execute", _spend_on)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file on this machine, with one writer at a time."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that takes the writer's claim at once and commits at the end."""
        # SQLite lets waiting writers try their luck; those of one process take turns instead.
        turn = self._turn if self.is_sqlite else nullcontext()
        with turn, self.engine.connect() as connection, connection.begin() as transaction:
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
        """Give all connections back."""
        self.engine.dispose()


def _spend_on(
    _connection: Any, _cursor: Any, _statement: Any, _values: Any, context: Any, _many: Any
) -> None:
    if not context.execution_options.get(GOES_ON):
        spend("database")


def _spend(*_checkout: Any) -> None:
    spend("database")


def open_database(address: str, *, seams: Seams, cache_mib: int = 16) -> Database:
    """Open by SQLAlchemy address; does not look at the schema. The cache is SQLite's."""
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise SettingsError("the database setting is not an address SQLAlchemy knows") from error
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise SettingsError("SQLite needs a file: sqlite:////path/to/fonds.db")
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        return Database(open_sqlite(url, cache_mib=cache_mib), SqliteFullText(), seams)
    if url.get_backend_name() == "postgresql":
        from fonds.stores.fulltext import PostgresFullText  # noqa: PLC0415 — as below

        return Database(_open_postgres(url), PostgresFullText(), seams)
    raise SettingsError(f"fonds keeps its library in sqlite or postgresql, not {url.drivername}")


def _open_postgres(url: URL) -> Engine:
    engine = create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    event.listen(engine, "checkout", _spend)  # the ping is a statement that no other event tells of

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get("read_only"):
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    return engine


def vector_index(dialect: Dialect) -> VectorIndex:
    """The index over vectors that a database has."""
    if dialect.name == "sqlite":
        return SqliteVectors()
    from fonds.stores.postgres_vectors import PostgresVectors  # noqa: PLC0415 — takes much memory

    return PostgresVectors()


Values = Mapping[str, Any]
Binds = list[tuple[str, Any]]
"""Names of values in the order of a statement, each with what makes it one of the driver's."""


def run(
    connection: Connection, statement: Executable, given: Values | Sequence[Values]
) -> CursorResult[*tuple[Any, ...]]:
    """Execute a statement that is kept for good, once or for each of some values.

    Core takes longer to bind values than SQLite takes to do what is asked. Rows come as the driver
    has them: nothing is made of the moments, identities and JSON that stand in their columns.
    """
    text, fixed, binds = _prepared(statement, connection.dialect)
    each: Iterable[Values] = [given] if isinstance(given, Mapping) else given
    if fixed:
        each = [{**fixed, **values} for values in each]
    bound: list[Any]
    if connection.dialect.positional:
        bound = [_positions(values, binds) for values in each]
    else:
        bound = [
            {name: process(values[name]) if process else values[name] for name, process in binds}
            for values in each
        ]
    return connection.exec_driver_sql(text, bound if len(bound) > 1 else bound[0])


@cache
def _prepared(statement: Any, dialect: Dialect) -> tuple[str, Values, Binds]:
    """The words of a statement, the values that stand in it, and how each is bound, in order."""
    compiled = statement.compile(dialect=dialect)
    binds = compiled.binds
    processors = {
        name: bind.type.dialect_impl(dialect).bind_processor(dialect)
        for name, bind in binds.items()
    }
    fixed = {name: bind.value for name, bind in binds.items() if not bind.required}
    order = compiled.positiontup if compiled.positional else binds
    return str(compiled), fixed, [(name, processors[name]) for name in order]


def _positions(values: Values, binds: Binds) -> tuple[Any, ...]:
    return tuple(process(values[name]) if process else values[name] for name, process in binds)


def insert_many(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Insert rows of one shape."""
    if rows:
        statement = _insert(table, tuple(rows[0]), connection.dialect.name)
        _insert_rows(connection, statement, rows)


def insert_ignoring(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Insert rows, leaving those whose key is taken as they are."""
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
    """Insert rows by key (the primary one), overwriting the given columns of those there."""
    if rows:
        by = tuple(keys or [column.name for column in table.primary_key])
        statement = _upsert(table, tuple(rows[0]), connection.dialect.name, by)
        _insert_rows(connection, statement, rows)


def _insert_rows(connection: Connection, statement: Any, rows: Sequence[Values]) -> None:
    """Insert rows by a statement that is meant for one."""
    if connection.dialect.name != "sqlite":
        run(connection, statement, rows)
        return
    text, _, binds = _prepared(statement, connection.dialect)
    insert_rows(connection, text, [_positions(row, binds) for row in rows])


def insert_into(table: Table, dialect: str) -> Any:
    """An insertion as a database knows it: one that can say what is done where a key is taken."""
    if dialect == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 — takes much memory

    return postgresql.insert(table)


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
    """A column to be compared by its bytes, as SQLite does; PostgreSQL goes by the language."""
    return column if connection.dialect.name == "sqlite" else collate(column, "C")
