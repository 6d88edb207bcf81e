"""Libraries to ingest codes into, on any database, and a process that is killed meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
class Shelf:
    """Libraries on one kind of database, one after the other, each empty at first."""

    folder: Path
    empty: Path
    database: str
    """Empty for SQLite."""
    count: int = 0

    def renew(self) -> None:
        """Begin with an empty library."""
        self.count += 1
        if self.database:
            self.home.mkdir()
            with self.open() as library:
                _truncate(library)
        else:
            shutil.copytree(self.empty, self.home)

    @property
    def home(self) -> Path:
        return self.folder / f"library-{self.count}"

    @contextmanager
    def open(self, durable: Callable[[str, str], None] | None = None) -> Iterator[Library]:
        seams = Seams(clock=ManualClock(), durable=durable or Saboteur())
        options = {"database": self.database, "allow_private": True, **FAST}
        with open_library(self.home, seams=seams, **options) as library:
            yield library

    def publish(self, described: Item, shape: Shape, name: str = "site") -> Path:
        """A folder of its own for every publication."""
        folder = self.folder / f"{name}-{self.count}"
        return publish(folder, pages_of([described], shape))

    def bury(self) -> None:
        """Wait until nobody believes any more that the killed process works."""
        with self.open() as library, library.database.write() as connection:
            connection.execute(delete(ingestion_leases))


def _truncate(library: Library) -> None:
    with library.database.write() as connection:
        known = set(inspect(connection).get_table_names()) - {"alembic_version"}
        connection.execute(text(f"TRUNCATE {', '.join(sorted(known))} RESTART IDENTITY CASCADE"))
