"""A library with a row in every table, and every state that is hard to copy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    Text,
    select,
    text,
)
from tests.support.libraries.uploads import TEXT, announce, make_user, send, work

from fonds.errors import FondsError
from fonds.library import Library
from fonds.schema import ensure_plugin_tables
from fonds.stores.columns import Identity, Json, Timestamp
from fonds.stores.tables import metadata
from fonds.testing import FakeSource

MOMENT: Final = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
_VALUES: Final[dict[type[Any], Any]] = {
    Text: 'two\r\nlines,\t"quotes", ünïcode 🦊, \'; -- \\ and an end',
    Integer: 7,
    Float: 0.1,
    Numeric: 1234.5,
    Boolean: False,
    LargeBinary: bytes(range(256)),
    Timestamp: MOMENT,
    Identity: UUID(int=5),
}
_CHOSEN: Final = {
    "kind": "pdf",
    "scope": "user",
    "stage": "load",
    "state": "failed",
    "source": "held",
    "record_id": "crs:R48481",
    "website_id": "tokyo",
    "base_url": "https://tokyo.example",
}
_JSON: Final = {"b": [1, 2.5, None, True], "aa": {"ü": "\u2028"}, "n": 10**15, "f": 1e22, "": ""}

odd_values: Final = Table(
    "odd_values",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("parent", ForeignKey("odd_values.id")),
    Column("words", Text),
    Column("number", Float),
    Column("amount", Numeric(16, 2, asdecimal=False)),
    Column("flag", Boolean),
    Column("data", LargeBinary),
    Column("moment", Timestamp),
    Column("identity", Identity),
    Column("tree", Json),
    info={"plugin": True},
    sqlite_autoincrement=True,
)
_ODD: Final[list[dict[str, Any]]] = [
    {"id": 1, "parent": 3, "words": "", "number": -0.1, "amount": 0.07, "tree": []},
    {"id": 2, "words": "NULL", "number": 5e-324, "amount": 12345678901234.56, "tree": ""},
    {"id": 3, "parent": 2, "words": "\\N", "number": 1e300, "amount": -1, "tree": 0},
    {"id": 4, "words": " \u00a0\ufeff\u202e", "number": 3, "amount": 5, "tree": False},
    {"id": 5, "data": b"", "moment": datetime(1, 1, 1, tzinfo=UTC), "tree": _JSON},
    {"id": 6, "data": b"\0\xff", "moment": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)},
]


def crowd(library: Library) -> None:
    """Put into every table what a library may hold, be it in the middle of something."""
    ensure_plugin_tables(library.database, "fake", FakeSource().info.tables)
    ensure_plugin_tables(library.database, "odd", [odd_values])
    anna, bert = make_user(library, "anna"), make_user(library, "bert")
    send(library, anna, TEXT.encode())
    try:
        send(library, bert, b"%PDF-1.4 broken", "broken.pdf")
    except FondsError:
        announce(library, bert, b"words to come", "later.txt")
    work(library)
    announce(library, anna, b"words to come", "later.txt")
    with library.database.write() as connection:
        for row in _ODD:
            connection.execute(odd_values.insert().values({**row, "parent": None}))
        for row in _ODD:
            of_it = odd_values.c.id == row["id"]
            connection.execute(odd_values.update().where(of_it).values(parent=row.get("parent")))
        connection.execute(text("DELETE FROM odd_values WHERE id = 6"))
        for table in metadata.sorted_tables:
            _fill(connection, table)


def rows(connection: Connection) -> dict[str, list[str]]:
    """Every row of every table, as its values."""
    return {
        table.name: sorted(repr(_bare(row._asdict())) for row in connection.execute(select(table)))
        for table in metadata.sorted_tables
    }


def _bare(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _sorted(value) for name, value in row.items()}


def _sorted(value: Any) -> Any:
    """JSON with its names in order: PostgreSQL has an order of its own."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fill(connection: Connection, table: Table) -> None:
    if connection.execute(select(table).limit(1)).first() is None:
        connection.execute(table.insert().values(_row(connection, table)))


def _row(connection: Connection, table: Table) -> dict[str, Any]:
    return {column.name: _value(connection, column) for column in table.c}


def _value(connection: Connection, column: Column[Any]) -> Any:
    for key in column.foreign_keys:
        return connection.scalar(select(key.column).limit(1))
    if str(column) == "websites.id":
        return _CHOSEN["website_id"]
    if column.name in _CHOSEN:
        return _CHOSEN[column.name]
    for kind, value in _VALUES.items():
        if isinstance(column.type, kind):
            return value
    return _JSON
