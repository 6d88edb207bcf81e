"""Tables that come with a plugin: created if missing, refused if they are not what it declares."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Table, select
from sqlalchemy.schema import CreateTable

from fonds import ids
from fonds.errors import SchemaError
from fonds.stores.database import Database
from fonds.stores.tables import metadata, table_versions


def ensure_tables(database: Database, source: str, tables: Sequence[Table]) -> None:
    """Create a plugin's tables at first sight; later declarations must be the same."""
    fingerprint = ids.json_sha256([str(CreateTable(table)) for table in tables])
    query = select(table_versions.c.fingerprint).where(table_versions.c.source == source)
    with database.read() as connection:
        held = connection.scalar(query)
    if held is None:
        with database.write() as connection:
            metadata.create_all(connection, tables=list(tables))
            row = {"source": source, "fingerprint": fingerprint}
            connection.execute(table_versions.insert().values(row))
    elif held != fingerprint:
        raise SchemaError(
            f"the tables of the plugin {source} are not the ones this database was made with; "
            "its author has to say how to bring them up to date"
        )
