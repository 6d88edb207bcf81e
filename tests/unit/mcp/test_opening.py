"""A server reads a library that is there, and writes nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from fonds.errors import MissingLibraryError, SettingsError
from fonds.library import Library
from fonds.mcp.server import open_for_reading
from fonds.settings import read_settings


def test_library_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    home = tmp_path / "library"
    with (
        pytest.raises(MissingLibraryError, match="fonds init"),
        open_for_reading(read_settings({"home": home}, environ={})),
    ):
        pass
    assert not home.exists()


def test_empty_database_is_left_empty(tmp_path: Path) -> None:
    database = tmp_path / "fonds.db"
    database.touch()
    with (
        pytest.raises(MissingLibraryError, match="fonds init"),
        open_for_reading(read_settings({"home": tmp_path}, environ={})),
    ):
        pass
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()


def test_address_that_is_none_is_refused(tmp_path: Path) -> None:
    settings = read_settings({"home": tmp_path, "database": "nonsense"}, environ={})
    with pytest.raises(SettingsError, match="not a database URL"), open_for_reading(settings):
        pass


def test_empty_postgresql_database_is_left_empty(
    bare_postgres_database: str, tmp_path: Path
) -> None:
    settings = read_settings({"home": tmp_path, "database": bare_postgres_database}, environ={})
    for _ in range(2):
        with pytest.raises(MissingLibraryError, match="empty"), open_for_reading(settings):
            pass


def test_nothing_can_be_written(library: Library) -> None:
    with (
        pytest.raises(OperationalError, match="readonly"),
        library.database.write() as connection,
    ):
        connection.execute(text("DELETE FROM documents"))
