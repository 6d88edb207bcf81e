"""The schema's history, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

import fonds.sites.tables  # noqa: F401 — its tables are part of the schema
from fonds.errors import SchemaError
from fonds.seams import Seams
from fonds.sources.registry import builtin_sources
from fonds.stores.database import Database, open_database
from fonds.stores.schema import HEAD, current_version, require_current, upgrade
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


def test_empty_database_is_filled_and_the_second_upgrade_does_nothing(database: Database) -> None:
    assert current_version(database) is None
    require_current(database)
    assert current_version(database) == HEAD
    upgrade(database)
    assert current_version(database) == HEAD


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


def _pretend(database: Database, version: str) -> None:
    with database.write() as connection:
        connection.execute(
            text("UPDATE alembic_version SET version_num = :version"), {"version": version}
        )


def _is_ours(item: object, name: str | None, kind: str, *_: object) -> bool:
    """Neither a plugin's tables nor the full-text index, which is not a table everywhere."""
    plugin = kind == "table" and bool(getattr(item, "info", {}).get("plugin"))
    return not plugin and not (name or "").startswith(("chunk_index", "ix_chunk_index"))
