"""Copying a library's database: every row, of one moment, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Connection, Float, Numeric, Table, inspect, select
from sqlalchemy.exc import DBAPIError

from fonds.errors import SchemaError, StoreError, UsageError
from fonds.exchange.addresses import shown
from fonds.exchange.database.endpoints import open_source, open_target, require_empty
from fonds.exchange.database.guards import put_aside
from fonds.exchange.database.indexes import index_vectors, index_words
from fonds.exchange.database.sequences import last_number, set_last_number
from fonds.exchange.database.tallies import Tally
from fonds.exchange.snapshot import Snapshot, snapshot
from fonds.schema import upgrade_within
from fonds.seams import Seams
from fonds.sites.tables import websites
from fonds.sources.registry import builtin_sources, plugin_sources
from fonds.stores.database import Database, insert_many
from fonds.stores.revisions import version_of
from fonds.stores.tables import metadata

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
        given = Tally()
        for rows in _batches(_rows(self._held, table, given)):
            self._insert(table, rows)
            self._watch(table.name, given.rows)
        number = last_number(self._held.connection, table)
        set_last_number(self._connection, table, number or 0)
        taken = Tally()
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


def _rows(held: Snapshot, table: Table, tally: Tally) -> Iterator[dict[str, Any]]:
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
