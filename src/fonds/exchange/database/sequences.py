"""The last number that a database has given out for each table: none is given out twice."""

from __future__ import annotations

from sqlalchemy import Connection, Table, func, select, text


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
