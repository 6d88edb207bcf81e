"""Creates the declared schema in an empty database, and upgrades an older one by revisions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Table, create_mock_engine, inspect, select, text
from sqlalchemy.schema import CreateTable

from fonds import ids
from fonds.errors import MissingLibraryError, SchemaError
from fonds.runs import state as runs
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sites.tables import website_tables
from fonds.sources.registry import builtin_sources
from fonds.stores.database import Database, open_database, repeatable, sqlite_file
from fonds.stores.tables import core_tables, metadata, table_versions
from fonds.stores.triggers import full_text_index, run_triggers, upload_triggers
from fonds.uploads import states as uploads

if TYPE_CHECKING:
    from alembic.config import Config

HEAD: Final = "0031"
"""The revision that declared tables have."""
MIGRATIONS: Final = files("fonds.stores") / "migrations"
BETWEEN: Final = ";\n\n"
"""Separates the statements of a script."""


def require_current(database: Database) -> None:
    """SchemaError if the schema is older or newer; it is created in an empty database."""
    version = current_version(database)
    if version is None:
        upgrade(database)
    elif version != HEAD:
        raise mismatch(version, "the database")


def require_library(settings: Settings) -> None:
    """MissingLibraryError if the settings name no library; no file or folder is created."""
    file = sqlite_file(settings.database_url)
    if file is None or file.is_file():
        database = open_database(
            settings.database_url, seams=Seams(outage_seconds=settings.outage_seconds)
        )
        try:
            if current_version(database) is not None:
                return
        finally:
            database.close()
    where = f"there is no library at {file}" if file else "the database is empty"
    raise MissingLibraryError(
        f"{where}; name another folder with --home, create a library with `fonds init`, or try "
        "`fonds --home demo-library demo`"
    )


@repeatable
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


@repeatable
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


@repeatable
def current_version(database: Database) -> str | None:
    """The revision of a database, or None if it is empty."""
    with database.read() as connection:
        return version_of(connection)


def version_of(connection: Connection) -> str | None:
    """The revision of a database by a connection, or None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def advice(version: str) -> str:
    """The advice for a database whose revision is not `HEAD`."""
    if version > HEAD:
        return "install a newer fonds"
    if not _has_revision(version):
        return "it cannot be upgraded; create a new library and fill that one"
    return "run `fonds db upgrade` first"


def require_upgradable(version: str, where: str) -> None:
    """SchemaError for a database that cannot be upgraded to `HEAD`."""
    if version > HEAD or not _has_revision(version):
        raise mismatch(version, where)


def mismatch(version: str, where: str) -> SchemaError:
    """The error for a database whose revision is not `HEAD`, with advice."""
    return SchemaError(
        f"{where} is at version {version}, and this program at {HEAD}: {advice(version)}"
    )


def run_revisions(connection: Connection) -> None:
    """Run the revisions that are missing, in the caller's transaction."""
    from alembic import command  # noqa: PLC0415 — takes 80 ms, and only upgrades need it

    command.upgrade(alembic_config(connection), HEAD)


def alembic_config(connection: Connection, **attributes: Any) -> Config:
    """Settings for the commands of Alembic."""
    from alembic.config import Config  # noqa: PLC0415 — as above

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes.update(attributes, connection=connection)
    return config


def _has_revision(version: str) -> bool:
    revisions = (MIGRATIONS / "versions").iterdir()
    return any(file.name.startswith(f"{version}_") for file in revisions)
