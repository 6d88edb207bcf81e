"""PostgreSQL's connections: how they are opened, and what their errors say about the server."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError

from fonds.stores.sqlite import ROWS_PER_STATEMENT, batched

_CONNECT_ARGS: Final = {
    "connect_timeout": 10,
    # A server that was switched off is noticed after a minute, not after hours.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}

_UNAVAILABLE: Final = frozenset(
    {
        "53300",  # too many connections
        "57P01",  # the server shuts down
        "57P02",  # another process of the server crashed
        "57P03",  # the server starts or shuts down
        "57P05",  # the session was idle for too long
    }
)
_CONNECTION_EXCEPTIONS: Final = "08"
"""The beginning of the codes of failed and lost connections."""
_TEMPORARY: Final = ("starting up", "shutting down", "recovery", "not yet accepting", "connections")
"""In refusals of connections that have no code: the server is there, and may accept one later."""
_STATUS_SECONDS: Final = 0.1


def open_postgres(url: URL) -> Engine:
    """An engine whose connections are checked before they are used."""
    arguments = {name: value for name, value in _CONNECT_ARGS.items() if name not in url.query}
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args=arguments
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get("read_only"):
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    return engine


def is_unavailable(error: DBAPIError) -> bool:
    """True if a connection was lost, or could not be made and may be made later."""
    if error.connection_invalidated:
        return True
    original: Any = error.orig
    if not type(original).__module__.startswith("psycopg"):
        return False  # of SQLite, which has no server
    if state := getattr(original, "sqlstate", None):
        return state in _UNAVAILABLE or state.startswith(_CONNECTION_EXCEPTIONS)
    if not isinstance(error, OperationalError):
        return False
    message = str(original)
    if "FATAL" in message:  # an answer of the server, such as that a password is wrong
        return any(words in message for words in _TEMPORARY)
    return "no password supplied" not in message


def transaction_id(connection: Connection) -> str | None:
    """The number of a transaction; None if it has written nothing."""
    query = "SELECT pg_current_xact_id_if_assigned()::text"
    number: str | None = connection.exec_driver_sql(query).scalar()
    return number


def is_committed(connection: Connection, number: str) -> bool:
    """True if a transaction was committed; waits for one that is still being committed."""
    query = text("SELECT pg_xact_status(CAST(:number AS xid8))")
    while (status := connection.scalar(query, {"number": number})) == "in progress":
        time.sleep(_STATUS_SECONDS)
    return bool(status == "committed")


_VALUES: Final = re.compile(r"(?<= VALUES )\(.*\)(?= ON CONFLICT|$)", re.DOTALL)
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")


def rows_in_statements(
    text: str, rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Statements with many rows each, from a statement that inserts one row by named parameters."""
    for batch in batched(rows, ROWS_PER_STATEMENT):
        values = {
            f"{name}_{number}": value
            for number, row in enumerate(batch)
            for name, value in row.items()
        }
        yield _for_rows(text, len(batch)), values


@cache
def _for_rows(text: str, rows: int) -> str:
    match = _VALUES.search(text)
    assert match is not None, text
    groups = [_PARAMETER.sub(rf"%(\1_{number})s", match[0]) for number in range(rows)]
    return text[: match.start()] + ", ".join(groups) + text[match.end() :]
