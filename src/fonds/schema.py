"""Creates the declared schema in an empty database, and upgrades an older one by revisions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, Table, create_mock_engine, select
from sqlalchemy.schema import CreateTable

from fonds import ids
from fonds.errors import SchemaError
from fonds.runs import state as runs
from fonds.sites.tables import website_tables
from fonds.sources.registry import builtin_sources
from fonds.stores.database import Database
from fonds.stores.revisions import (
    HEAD,
    current_version,
    mismatch,
    require_upgradable,
    run_revisions,
    version_of,
)
from fonds.stores.tables import core_tables, metadata, table_versions
from fonds.stores.triggers import full_text_index, run_triggers, upload_triggers
from fonds.uploads import states as uploads

BETWEEN: Final = ";\n\n"
"""Separates the statements of a script."""


def require_current(database: Database) -> None:
    """SchemaError if the schema is older or newer; it is created in an empty database."""
    version = current_version(database)
    if version is None:
        upgrade(database)
    elif version != HEAD:
        raise mismatch(version, "the database")


def upgrade(database: Database) -> None:
    """Create or upgrade the schema of a database in one transaction."""
    with database.write() as connection:
        upgrade_within(connection)


def upgrade_within(connection: Connection) -> None:
    """Create or upgrade the schema of a database in the caller's transaction."""
    version = version_of(connection)
    if version is None:
        create(connection, statements(connection.dialect.name))
    elif version != HEAD:
        require_upgradable(version, "the database")
        run_revisions(connection)


def create(connection: Connection, script: Sequence[str]) -> None:
    """Run the statements of `statements` in an empty database."""
    if connection.dialect.name == "sqlite":
        for statement in script:
            connection.exec_driver_sql(statement)
    else:
        # The server accepts several statements in one request if they have no parameters.
        options = {"no_parameters": True}
        connection.exec_driver_sql(BETWEEN.join(script), execution_options=options)


@cache
def statements(dialect: str) -> tuple[str, ...]:
    """The statements that create the schema on `sqlite` or `postgresql`, in order.

    Compiling them takes longer than SQLite takes to run them.
    """
    return (
        _VERSION_TABLE,
        *_table_statements(dialect),
        *full_text_index(dialect),
        *run_triggers(dialect, runs.MOVES),
        *upload_triggers(dialect, uploads.MOVES, uploads.INITIAL),
        f"INSERT INTO alembic_version VALUES ('{HEAD}')",  # noqa: S608 — a constant
    )


def _table_statements(dialect: str) -> list[str]:
    source_tables = [table for source in builtin_sources().values() for table in source.info.tables]
    compiled: list[str] = []

    def compile_statement(statement: Any, *_args: Any, **_kwargs: Any) -> None:
        compiled.append(str(statement.compile(dialect=engine.dialect)).strip())

    # With named parameters, percent signs are not doubled.
    engine = create_mock_engine(f"{dialect}://", compile_statement, paramstyle="named")
    tables = [*core_tables, *website_tables, *source_tables]
    metadata.create_all(engine, tables=tables, checkfirst=False)
    return compiled


_VERSION_TABLE: Final = """\
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


def ensure_plugin_tables(database: Database, source: str, tables: Sequence[Table]) -> None:
    """Create the tables of a plugin; SchemaError if their declaration has changed since."""
    fingerprint = ids.json_sha256([str(CreateTable(table)) for table in tables])
    query = select(table_versions.c.fingerprint).where(table_versions.c.source == source)
    with database.read() as connection:
        existing = connection.scalar(query)
    if existing is None:
        with database.write() as connection:
            metadata.create_all(connection, tables=list(tables))
            row = {"source": source, "fingerprint": fingerprint}
            connection.execute(table_versions.insert().values(row))
    elif existing != fingerprint:
        raise SchemaError(
            f"the tables of the plugin {source} have changed since this database was created; "
            "ask its author how to upgrade them"
        )
