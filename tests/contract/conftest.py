"""What a contract is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import servers

from fonds.library import Library, open_library
from fonds.seams import Seams
from fonds.stores.database import Database, open_database
from fonds.testing import ManualClock


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


@pytest.fixture
def clock() -> ManualClock:
    """A clock that moves when it is told to."""
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> Iterator[Library]:
    """A library without a document, at the time of that clock."""
    given: dict[str, Any] = {}
    if request.param == "postgres":
        given["database"] = request.getfixturevalue("postgres_database")
    else:
        servers.sqlite_database(tmp_path / "fonds.db")
    with open_library(tmp_path, seams=Seams(clock=clock), **given) as opened:
        yield opened
