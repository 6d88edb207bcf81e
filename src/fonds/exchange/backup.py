"""A SQLite database copied while it is being written, and put back; both safe to kill."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pysqlite3.dbapi2 as sqlite

from fonds.errors import StoreError, UsageError
from fonds.seams import Seams
from fonds.stores.database import Database
from fonds.stores.revisions import current_version, require_upgradable

_PARTIAL: Final = ".partial"


def back_up(database: Database, to: Path, seams: Seams) -> None:
    """Copy the database as it is at one moment into a new file, which is whole or not there."""
    _require_file(database)
    if to.exists():
        raise UsageError(f"{to} is there already, and no back-up is overwritten: name a new file")
    if current_version(database) is None:
        raise UsageError("there is no library here yet, and nothing to back up")
    to.parent.mkdir(parents=True, exist_ok=True)
    partial = to.with_name(to.name + _PARTIAL)
    partial.unlink(missing_ok=True)
    with _driver(database) as held, closing(sqlite.connect(str(partial))) as copy:
        _copy(held, copy)
    _make_durable(partial)
    seams.durable("blob.rename", str(to))
    partial.rename(to)
    _make_durable(to.parent)


def restore(database: Database, copy: Path, seams: Seams) -> str:
    """Put a back-up in the place of all that the database holds, and say its schema's version.

    It is one transaction: a process that is killed meanwhile leaves what was there.
    """
    _require_file(database)
    if not copy.is_file():
        raise UsageError(f"there is no file {copy}")
    # Immutable, as nobody writes to it: SQLite then leaves nothing beside it either.
    address = f"{copy.absolute().as_uri()}?immutable=1"
    with closing(sqlite.connect(address, uri=True)) as held, _driver(database) as target:
        version = _checked(held, copy)
        seams.durable("commit", "sqlite")
        _copy(held, target)
    return version


def _require_file(database: Database) -> None:
    if not database.is_sqlite:
        raise UsageError("this library is on PostgreSQL: use pg_dump and pg_restore")


def _copy(held: Any, into: Any) -> None:
    # All pages in one step: under one view of the one, in one transaction of the other.
    try:
        held.backup(into)
    except sqlite.DatabaseError as error:
        raise StoreError(f"the database could not be copied: {error}") from error


@contextmanager
def _driver(database: Database) -> Iterator[Any]:
    with closing(database.engine.raw_connection()) as pooled:
        yield pooled.driver_connection


def _checked(held: Any, copy: Path) -> str:
    """The version of a back-up that is whole and can be brought up to date."""
    try:
        (said,) = held.execute("PRAGMA quick_check(1)").fetchone()
        (version,) = held.execute("SELECT version_num FROM alembic_version").fetchone()
    except (sqlite.DatabaseError, TypeError) as error:
        raise StoreError(f"{copy} is no back-up of a library: {error}") from error
    if said != "ok":
        raise StoreError(f"{copy} is damaged, and nothing was restored: {said}")
    require_upgradable(version, str(copy))
    return str(version)


def _make_durable(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
