"""The schema's history, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Select, literal_column, select, table, text
from tests.support import servers
from tests.support.schemas import structure

import fonds.sites.tables  # noqa: F401 — its tables are part of the schema
from fonds.errors import SchemaError
from fonds.schema import create
from fonds.seams import Seams
from fonds.sources.registry import builtin_sources
from fonds.stores.database import Database, open_database
from fonds.stores.schema import (
    HEAD,
    MIGRATIONS,
    current_version,
    require_current,
    upgrade,
    upgrade_within,
)
from fonds.stores.tables import metadata


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    address = f"sqlite:///{tmp_path / 'fonds.db'}"
    if request.param == "postgres":
        address = request.getfixturevalue("bare_postgres_database")
    database = open_database(address, seams=Seams())
    yield database
    database.close()


def test_migrations_add_up_to_the_declared_tables(database: Database) -> None:
    builtin_sources()
    upgrade(database)
    with database.engine.connect() as connection:
        options = {"include_object": _is_ours, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_declarations_make_what_the_migrations_make(
    database: Database, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = f"sqlite:///{tmp_path / 'migrated.db'}"
    with ExitStack() as stack:
        if not database.is_sqlite:
            server = request.getfixturevalue("postgres_url")
            address = stack.enter_context(servers.postgres_database(server, is_bare=True))
        migrated = open_database(address, seams=Seams())
        with migrated.write() as connection:
            upgrade_within(connection, to="0001")
            upgrade_within(connection)
        with database.write() as connection:
            create(connection)
        with database.read() as one, migrated.read() as other:
            assert structure(one) == structure(other)
        migrated.close()


def test_empty_database_is_filled_and_the_second_upgrade_does_nothing(database: Database) -> None:
    assert current_version(database) is None
    require_current(database)
    assert current_version(database) == HEAD
    upgrade(database)
    assert current_version(database) == HEAD


def test_an_empty_file_gets_at_once_what_the_migrations_make_one_by_one(tmp_path: Path) -> None:
    at_once = open_database(f"sqlite:///{tmp_path / 'at-once.db'}", seams=Seams())
    one_by_one = open_database(f"sqlite:///{tmp_path / 'one-by-one.db'}", seams=Seams())
    upgrade(at_once)
    with one_by_one.write() as connection:
        upgrade_within(connection, to="0001")
        upgrade_within(connection)
    assert (MIGRATIONS / f"{HEAD}.sql").is_file(), "run scripts/make-schema"
    held, wanted = _contents(at_once), _contents(one_by_one)
    assert held == wanted, "run scripts/make-schema"
    at_once.close()
    one_by_one.close()


def test_older_database_is_refused_with_the_command_that_helps(database: Database) -> None:
    upgrade(database)
    _pretend(database, "0000")
    with pytest.raises(SchemaError, match="fonds db upgrade"):
        require_current(database)


def test_database_of_a_newer_program_is_refused(database: Database) -> None:
    upgrade(database)
    _pretend(database, "9999")
    with pytest.raises(SchemaError, match="install a newer"):
        require_current(database)


def _contents(database: Database) -> dict[str, object]:
    """Everything in a file of SQLite but the counters that have counted nothing yet."""
    with database.read() as connection:
        made = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master")
        schema = {row.name: tuple(row) for row in made}
        tables = [name for name, (kind, *_) in schema.items() if kind == "table"]
        rows = {name: list(connection.execute(_all_of(name))) for name in tables}
    rows["sqlite_sequence"] = [row for row in rows["sqlite_sequence"] if row.seq]
    return {"schema": schema, "rows": rows}


def _all_of(name: str) -> Select[Any]:
    return select(literal_column("*")).select_from(table(name))


def _pretend(database: Database, version: str) -> None:
    with database.write() as connection:
        connection.execute(
            text("UPDATE alembic_version SET version_num = :version"), {"version": version}
        )


def _is_ours(item: object, name: str | None, kind: str, *_: object) -> bool:
    """Neither a plugin's tables nor the full-text index, which is not a table everywhere."""
    plugin = kind == "table" and bool(getattr(item, "info", {}).get("plugin"))
    return not plugin and not (name or "").startswith(("chunk_index", "ix_chunk_index"))
