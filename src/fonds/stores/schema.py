"""The schema's version: bringing a database up to it, and refusing to work on another."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from sqlalchemy import Connection, inspect, text

from fonds.errors import SchemaError
from fonds.stores.database import Database

HEAD: Final = "0025"
MIGRATIONS: Final = files("fonds.stores") / "migrations"
BETWEEN: Final = ";\n\n"
"""What stands between the statements of a schema that is written down as a whole."""


def upgrade(database: Database) -> None:
    """Run the migrations that are missing, all in one transaction."""
    with database.write() as connection:
        upgrade_within(connection)


def upgrade_within(connection: Connection, to: str = HEAD) -> None:
    """Run the migrations that are missing in the caller's transaction."""
    if to == HEAD and _make_whole(connection):
        return
    # Alembic takes a fifth of a second to import, which no other command needs.
    from alembic import command  # noqa: PLC0415 — see above
    from alembic.config import Config  # noqa: PLC0415 — see above

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def _make_whole(connection: Connection) -> bool:
    """Make in one go what all migrations make of a file of SQLite that is empty."""
    whole = MIGRATIONS / f"{HEAD}.sql"
    if connection.dialect.name != "sqlite" or not whole.is_file():
        return False
    if connection.scalar(text("SELECT count(*) FROM sqlite_master")):
        return False
    for statement in whole.read_text("utf-8").split(BETWEEN):
        connection.exec_driver_sql(statement)
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
    return True


def current_version(database: Database) -> str | None:
    """The revision a database is at, or None when it is empty."""
    with database.read() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return version


def require_current(database: Database) -> None:
    """Refuse to work on an older or newer schema; an empty database is filled first."""
    version = current_version(database)
    if version is None:
        upgrade(database)
    elif version < HEAD:
        raise SchemaError(f"the database is at version {version}: run `fonds db upgrade` first")
    elif version > HEAD:
        raise SchemaError(
            f"the database is at version {version} and this program at {HEAD}: install a newer one"
        )
