"""The schema of the database: what all declarations together make of an empty one."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, create_mock_engine

from fonds.runs import state as runs
from fonds.sites.tables import website_tables
from fonds.sources.registry import builtin_sources
from fonds.stores.schema import HEAD
from fonds.stores.tables import core_tables, metadata
from fonds.stores.triggers import full_text_index, run_triggers, upload_triggers
from fonds.uploads import states as uploads

BETWEEN: Final = ";\n\n"
"""What separates statements that are written down together."""

_VERSION_TABLE: Final = """\
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


@cache
def statements(dialect: str) -> tuple[str, ...]:
    """What makes the schema, in order, on `sqlite` or `postgresql`.

    Compiling them takes longer than SQLite takes to run them.
    """
    return (
        _VERSION_TABLE,
        *_of_tables(dialect),
        *full_text_index(dialect),
        *run_triggers(dialect, runs.MOVES),
        *upload_triggers(dialect, uploads.MOVES, uploads.FIRST),
        f"INSERT INTO alembic_version VALUES ('{HEAD}')",  # noqa: S608 — a constant
    )


def _of_tables(dialect: str) -> list[str]:
    of_sources = [table for source in builtin_sources().values() for table in source.info.tables]
    compiled: list[str] = []

    def compile_statement(statement: Any, *_arguments: Any, **_more: Any) -> None:
        compiled.append(str(statement.compile(dialect=engine.dialect)).strip())

    # Where parameters are named, percent signs are not doubled.
    engine = create_mock_engine(f"{dialect}://", compile_statement, paramstyle="named")
    tables = [*core_tables, *website_tables, *of_sources]
    metadata.create_all(engine, tables=tables, checkfirst=False)
    return compiled


def create(connection: Connection) -> None:
    """Make the schema in an empty database."""
    if connection.dialect.name == "sqlite":
        for statement in statements("sqlite"):
            connection.exec_driver_sql(statement)
    else:
        # A server takes all of them at once if they have no parameters.
        script = BETWEEN.join(statements("postgresql"))
        connection.exec_driver_sql(script, execution_options={"no_parameters": True})
