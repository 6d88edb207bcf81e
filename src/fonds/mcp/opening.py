"""A library opened for reading: it must be there, and nothing is written to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from fonds.errors import SchemaError, SettingsError
from fonds.library import Library
from fonds.schema import require_current
from fonds.settings import Settings
from fonds.stores.revisions import current_version


@contextmanager
def open_for_reading(settings: Settings) -> Iterator[Library]:
    """The library as it is; an error where there is none, instead of an empty one."""
    _require_file(settings)
    library = Library(settings)
    try:
        if library.database.is_sqlite:
            event.listen(library.database.engine, "connect", _forbid_writing)
        if current_version(library.database) is None:
            raise SchemaError("the database is empty: fill it with `fonds bootstrap` first")
        require_current(library.database)
        yield library
    finally:
        library.close()


def _require_file(settings: Settings) -> None:
    try:
        url = make_url(settings.database_url)
    except ArgumentError:
        return  # opening it says what is wrong
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).is_file():
        raise SettingsError(
            f"there is no library at {url.database}: name one with --home, "
            "or fill this one with `fonds bootstrap` first"
        )


def _forbid_writing(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA query_only = ON")
