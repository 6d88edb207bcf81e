"""Where a copy comes from and goes to: the home of a library, a file of SQLite, a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from fonds.errors import SchemaError, UsageError
from fonds.exchange.addresses import shown
from fonds.seams import Seams
from fonds.settings import read_settings
from fonds.stores.database import Database, open_database
from fonds.stores.revisions import HEAD, current_version, mismatch

_FILES: Final = (".db", ".sqlite", ".sqlite3")
_BESIDE: Final = ("", "-wal", "-shm", "-journal")


def database_address(given: str) -> str:
    """The address of a database that somebody names by it, by its file, or by a library's home."""
    if "://" in given:
        return given
    path = Path(given)
    if path.suffix in _FILES or path.is_file():
        return f"sqlite:///{path.absolute()}"
    return read_settings({"home": path}, environ={}).database_url


@contextmanager
def open_source(address: str, *, seams: Seams) -> Iterator[Database]:
    """The database that is copied: it is there, and has this program's schema."""
    url = _url(address)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise UsageError(f"there is no database at {shown(address)}")
    database = open_database(address, seams=seams)
    try:
        _require_head(current_version(database), shown(address))
        yield database
    finally:
        database.close()


@contextmanager
def open_target(address: str, *, seams: Seams) -> Iterator[Database]:
    """A database to be filled. A file of SQLite gets its name when the block ends well."""
    url = _url(address)
    if url.get_backend_name() != "sqlite":
        database = open_database(address, seams=seams)
        try:
            yield database
        finally:
            database.close()
        return
    file = Path(url.database or "")
    if any(_beside(file, end).exists() for end in _BESIDE):
        raise UsageError(
            f"there is a database at {file} already; name a file, or a home, that has none"
        )
    with _renamed(file, seams) as draft:
        database = open_database(f"sqlite:///{draft.absolute()}", seams=seams)
        try:
            yield database
        finally:
            database.close()


def require_empty(version: str | None, rows: int, where: str) -> None:
    """Refuse to copy to where something is, or tables are of another version."""
    if version is None:
        return
    _require_head(version, where)
    if rows:
        raise UsageError(f"the database at {where} is not empty; a copy goes to one that is")


def _require_head(version: str | None, where: str) -> None:
    if version == HEAD:
        return
    if version is None:
        raise SchemaError(f"the database at {where} holds no library")
    raise mismatch(version, f"the database at {where}")


def _url(address: str) -> URL:
    try:
        return make_url(address)
    except ArgumentError:
        raise UsageError(f"{shown(address)} is not the address of a database") from None


@contextmanager
def _renamed(file: Path, seams: Seams) -> Iterator[Path]:
    """A file under another name, and under its own once it is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = _beside(file, ".copying")
    for end in _BESIDE:  # what a copy that was killed has left
        _beside(draft, end).unlink(missing_ok=True)
    try:
        yield draft
        _sync(draft)
        seams.durable("database.rename", file.name)
        draft.rename(file)
        _sync(file.parent)
    finally:
        for end in _BESIDE:
            _beside(draft, end).unlink(missing_ok=True)


def _beside(file: Path, end: str) -> Path:
    return file.with_name(file.name + end)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
