"""Libraries for tests that ingest codes, on any database, and a simulated kill of a process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import delete, inspect, text
from tests.support.libraries.notes import FAST
from tests.unit.codes.trees import Item, Shape, pages_of, publish

from fonds.library import Library, open_library
from fonds.seams import Seams
from fonds.stores.tables import ingestion_leases
from fonds.testing import ManualClock, Saboteur


class KilledError(BaseException):
    """The process has ended; no durable operation happens after it."""


@dataclass
class Killer:
    """A `Seams.durable` for a process that is killed at its nth durable operation."""

    at: int
    count: int = 0

    def __call__(self, operation: str, subject: str) -> None:
        self.count += 1
        if self.count >= self.at:
            raise KilledError(f"{operation} {subject}")


@dataclass
class LibraryFactory:
    """Creates empty libraries on one kind of database, one after the other."""

    folder: Path
    empty_home: Path
    database: str
    """The URL of a PostgreSQL database; empty for SQLite."""
    count: int = 0

    def renew(self) -> None:
        """Create an empty library, which replaces the previous one."""
        self.count += 1
        if self.database:
            self.home.mkdir()
            with self.open() as library:
                _truncate(library)
        else:
            shutil.copytree(self.empty_home, self.home)

    @property
    def home(self) -> Path:
        return self.folder / f"library-{self.count}"

    @contextmanager
    def open(self, durable: Callable[[str, str], None] | None = None) -> Iterator[Library]:
        seams = Seams(clock=ManualClock(), durable=durable or Saboteur())
        options: dict[str, Any] = {"database": self.database, "allow_private": True, **FAST}
        with open_library(self.home, seams=seams, **options) as library:
            yield library

    def publish(self, unit: Item, shape: Shape, name: str = "site") -> Path:
        """Write the pages of a unit to a new folder."""
        folder = self.folder / f"{name}-{self.count}"
        return publish(folder, pages_of([unit], shape))

    def expire_leases(self) -> None:
        """Remove the leases of a killed process, as if they had expired."""
        with self.open() as library, library.database.write() as connection:
            connection.execute(delete(ingestion_leases))


def _truncate(library: Library) -> None:
    with library.database.write() as connection:
        tables = set(inspect(connection).get_table_names()) - {"alembic_version"}
        connection.execute(text(f"TRUNCATE {', '.join(sorted(tables))} RESTART IDENTITY CASCADE"))
