"""The revision of a database's schema, and its upgrade with Alembic."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, inspect, text

from fonds.errors import SchemaError
from fonds.stores.database import Database

if TYPE_CHECKING:
    from alembic.config import Config

HEAD: Final = "0025"
MIGRATIONS: Final = files("fonds.stores") / "migrations"


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
