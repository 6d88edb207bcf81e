"""Back-ups of a SQLite database that is in use, and their restoration; both may be killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pysqlite3.dbapi2 as sqlite

from fonds.errors import StoreError, UsageError
from fonds.schema import current_version, require_upgradable
from fonds.seams import Seams
from fonds.stores.database import Database
from fonds.stores.folder import sync_path
from fonds.stores.permissions import make_private_file, make_private_folder
from fonds.stores.usage_lock import UsageLock

_PARTIAL: Final = ".partial"


def back_up(database: Database, to: Path, seams: Seams) -> None:
    """Copy a snapshot of the database into a new file, which is complete or does not exist."""
    _require_file(database)
    if to.exists():
        raise UsageError(f"{to} exists, and a back-up is never overwritten: name a new file")
    make_private_folder(to.parent)
    partial = to.with_name(to.name + _PARTIAL)
    partial.unlink(missing_ok=True)
    make_private_file(partial)
    with _driver(database) as source, closing(sqlite.connect(str(partial))) as copy:
        _copy(source, copy)
    sync_path(partial)
    seams.durable("blob.rename", str(to))
    partial.rename(to)
    sync_path(to.parent)


def restore(database: Database, copy: Path, seams: Seams, *, replace: bool = False) -> str:
    """Fill the database from a back-up, and return its schema's version.

    The contents of a library are replaced only if `replace` is true, and never while a process uses
    it. It is one transaction: if the process is killed, the database is unchanged.
    """
    file = _require_file(database)
    if not copy.is_file():
        raise UsageError(f"there is no file {copy}")
    with UsageLock(file, exclusive=True):
        if not replace and current_version(database) is not None:
            raise UsageError(f"there is a library at {file}: pass --replace to lose its contents")
        return _restore(database, copy, seams)


def _restore(database: Database, copy: Path, seams: Seams) -> str:
    # Immutable, so that SQLite creates no files next to it.
    address = f"{copy.absolute().as_uri()}?immutable=1"
    with closing(sqlite.connect(address, uri=True)) as source, _driver(database) as target:
        version = _checked(source, copy)
        seams.durable("commit", "sqlite")
        _copy(source, target)
    return version


def _require_file(database: Database) -> Path:
    if not database.is_sqlite or database.engine.url.database is None:
        raise UsageError("this library is on PostgreSQL: use pg_dump and pg_restore")
    return Path(database.engine.url.database)


def _copy(source: Any, target: Any) -> None:
    # All pages in one step: from one snapshot, in one transaction.
    try:
        source.backup(target)
    except sqlite.DatabaseError as error:
        raise StoreError(f"the database could not be copied: {error}") from error


@contextmanager
def _driver(database: Database) -> Iterator[Any]:
    with closing(database.engine.raw_connection()) as pooled:
        yield pooled.driver_connection


def _checked(source: Any, copy: Path) -> str:
    """The schema version of a back-up; an error if it is damaged or cannot be upgraded."""
    try:
        (result,) = source.execute("PRAGMA quick_check(1)").fetchone()
        (version,) = source.execute("SELECT version_num FROM alembic_version").fetchone()
    except (sqlite.DatabaseError, TypeError) as error:
        raise StoreError(f"{copy} is not a back-up of a library: {error}") from error
    if result != "ok":
        raise StoreError(f"{copy} is damaged, and nothing was restored: {result}")
    require_upgradable(version, str(copy))
    return str(version)
