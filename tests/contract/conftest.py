"""What a contract is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import servers

from fonds.seams import Seams
from fonds.stores.database import Database, open_database


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with all tables and no row."""
    if request.param == "postgres":
        address = request.getfixturevalue("postgres_database")
    else:
        address = servers.sqlite_database(tmp_path / "fonds.db")
    database = open_database(address, seams=Seams())
    yield database
    database.close()
