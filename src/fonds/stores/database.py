"""The relational database: one set of tables, on SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from functools import cache, wraps
from pathlib import Path
from threading import Lock
from typing import Any, Final, ParamSpec, TypeVar

from sqlalchemy import (
    Connection,
    CursorResult,
    Dialect,
    Engine,
    Executable,
    RootTransaction,
    Row,
    Table,
    bindparam,
    collate,
    event,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from fonds.errors import ConnectionLostError, DatabaseUnavailableError, SettingsError
from fonds.seams import Seams, spend
from fonds.stores.fulltext import FullText, PostgresFullText, SqliteFullText
from fonds.stores.outages import Outage
from fonds.stores.permissions import make_private_file, make_private_folder
from fonds.stores.postgres import (
    is_committed,
    is_unavailable,
    open_postgres,
    rows_in_statements,
    transaction_id,
)
from fonds.stores.postgres_vectors import PostgresVectors
from fonds.stores.sqlite import insert_rows, open_sqlite
from fonds.stores.sqlite_vectors import SqliteVectors
from fonds.stores.vectors import VectorIndex

P = ParamSpec("P")
T = TypeVar("T")

_MAX_REPEATS: Final = 5
"""Times that a function is repeated: its own statements may be why the server fails."""


def repeatable(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function again if the connection was lost in one of its transactions.

    All that it does apart from its last transaction must be repeatable.
    """

    @wraps(function)
    def repeating(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_MAX_REPEATS):
            try:
                return function(*args, **kwargs)
            except ConnectionLostError:
                continue  # its next transaction waits for the server
        return function(*args, **kwargs)

    return repeating


class Database:
    """Transactions on one database; every commit passes the durability seam.

    A transaction waits at its beginning for a server that does not respond. One whose connection
    is lost ends with `ConnectionLostError`; functions that are `repeatable` then begin again.
    """

    def __init__(self, engine: Engine, fulltext: FullText, seams: Seams) -> None:
        self.engine = engine
        self.fulltext = fulltext
        self.vectors = vector_index(engine.dialect)
        self._seams = seams
        self._write_lock = Lock()
        self._outage = Outage(_name_of(engine.url), seams.outage_seconds)
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
        with lock, self._connected() as connection, self._transaction(connection) as transaction:
            yield connection
            self._seams.durable("commit", self.engine.dialect.name)
            spend("database")
            self._commit(connection, transaction)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view that never waits for a writer."""
        with self._connected(read_only=True) as connection, self._transaction(connection):
            yield connection
            spend("database")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def _connected(self, *, read_only: bool = False) -> Iterator[Connection]:
        """A connection that works, as soon as the server responds."""
        while True:
            try:
                connection = self.engine.connect()
            except DBAPIError as error:
                if not is_unavailable(error):
                    raise
                if not self._outage.wait(_first_line(error)):
                    raise DatabaseUnavailableError(self._message(error)) from error
            else:
                break
        self._outage.end()
        with connection.execution_options(read_only=read_only) as connection:
            yield connection

    @contextmanager
    def _transaction(self, connection: Connection) -> Iterator[RootTransaction]:
        try:
            with connection.begin() as transaction:
                yield transaction
        except DBAPIError as error:
            if not is_unavailable(error):
                raise
            raise ConnectionLostError(self._message(error)) from error

    def _commit(self, connection: Connection, transaction: RootTransaction) -> None:
        """Commit; if the connection is lost meanwhile, ask the server if it did."""
        if self.is_sqlite or not self._outage.seconds:
            transaction.commit()
            return
        number = transaction_id(connection)
        try:
            transaction.commit()
        except DBAPIError as error:
            if number is None or not is_unavailable(error) or not self._is_committed(number):
                raise

    def _is_committed(self, number: str) -> bool:
        try:
            return self._commit_status(number)
        except ConnectionLostError as error:
            # It may be committed, so it must not be repeated.
            raise DatabaseUnavailableError(str(error)) from error

    @repeatable
    def _commit_status(self, number: str) -> bool:
        with self.read() as connection:
            return is_committed(connection, number)

    def _message(self, error: DBAPIError) -> str:
        return f"{self._outage.server} does not respond: {_first_line(error)}"


def _name_of(url: URL) -> str:
    """A database in messages, without user and password."""
    if url.get_backend_name() == "sqlite":
        return f"the database {url.database}"
    return f"the database {url.database} at {url.host or 'this machine'}"


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]


def _spend_on_statement(
    _connection: Any, _cursor: Any, _statement: Any, values: Any, _context: Any, many: Any
) -> None:
    for _ in values if many else [values]:
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
        engine = open_postgres(url)
        event.listen(engine, "checkout", _spend_on_ping)  # no other event reports the ping
        return Database(engine, PostgresFullText(), seams)
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
    bound = _bound(list(sets), binds, connection.dialect)
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


def _bound(sets: Sequence[Values], binds: Binds, dialect: Dialect) -> list[Any]:
    """The values of each set as the driver takes them, converted column by column.

    Many rows take a third of the time that they take one by one.
    """
    if not binds:
        return [() if dialect.positional else {} for _ in sets]
    columns = (
        [process(values[name]) for values in sets] if process else [v[name] for v in sets]
        for name, process in binds
    )
    rows = zip(*columns, strict=True)
    if dialect.positional:
        return list(rows)
    names = [name for name, _ in binds]
    return [dict(zip(names, row, strict=True)) for row in rows]


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
        # PostgreSQL refuses a statement that updates a row twice.
        rows = list({tuple(row[name] for name in by): row for row in rows}.values())
        statement = _upsert(table, tuple(rows[0]), connection.dialect.name, by)
        _insert_rows(connection, statement, rows)


def _insert_rows(connection: Connection, statement: Any, rows: Sequence[Values]) -> None:
    """Insert rows by a statement for one row."""
    text, _, binds = _prepared(statement, connection.dialect)
    if connection.dialect.name == "sqlite":
        insert_rows(connection, text, _bound(rows, binds, connection.dialect))
        return
    values_of_rows = _bound(rows, binds, connection.dialect)
    for rows_text, values in rows_in_statements(text, values_of_rows):
        connection.exec_driver_sql(rows_text, values)


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
