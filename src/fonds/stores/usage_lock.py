"""A lock next to an SQLite database: shared by all that use its library, exclusive to replace it.

It is an flock, which the kernel releases however a process ends. PostgreSQL needs none: it is
restored into a new database.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final, Self

from fonds.errors import LibraryBusyError
from fonds.stores.permissions import PRIVATE_FILE

_SUFFIX: Final = "-lock"


class UsageLock:
    """The lock on a library, until it is closed."""

    def __init__(self, database: Path, *, exclusive: bool) -> None:
        """LibraryBusyError if another process replaces the library, or else uses it."""
        self._file: int | None = None
        path = database.with_name(database.name + _SUFFIX)
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        except OSError:
            if exclusive:
                raise
            return  # on a file system that is mounted read-only, nothing replaces it
        try:
            fcntl.flock(self._file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise LibraryBusyError(_IN_USE if exclusive else _BEING_REPLACED) from error

    def close(self) -> None:
        """Release the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


_IN_USE: Final = (
    "the library is in use: stop its servers, schedulers, workers and runs, and try again; "
    "nothing was changed"
)
_BEING_REPLACED: Final = "the library is being restored from a back-up; try again when it is done"
