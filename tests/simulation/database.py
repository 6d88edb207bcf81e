"""A real SQLite file in a simulation: its transactions are moments, and may fail or be the last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event, insert
from sqlalchemy.exc import OperationalError

from fonds.embed.current import ensure_current
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database, open_database
from fonds.stores.plugins import ensure_tables
from fonds.stores.sqlite_fulltext import SqliteFullText
from fonds.stores.tables import users
from fonds.testing import FakeSource, ManualClock
from tests import servers
from tests.simulation.scheduler import KilledError, Scheduler
from tests.simulation.weather import Weather
from tests.upload_papers import USERS
from tests.upload_world import ON


class SeededDatabase(Database):
    """Writers follow one another; `watch` is called after each, before anybody else moves.

    One that `is_shared` stands for a server that several machines use: sources are claimed by
    lease, and the answer to a commit may be lost.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        weather: Weather,
        *,
        is_shared: bool = False,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(_emptied(), SqliteFullText(), Seams(durable=self._committing))
        self._scheduler = scheduler
        self._weather = weather
        self._is_shared = is_shared
        self.watch = watch
        self.has_lost_answers = False

    @property
    def is_sqlite(self) -> bool:
        """Whether one machine has it for itself."""
        return not self._is_shared

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction at one moment."""
        weather = self._weather
        weather.pass_by("begin")
        self._require_up("BEGIN")
        with self._scheduler.atomic(), super().write() as connection:
            yield connection
        self._scheduler.check(self.watch)
        weather.pass_by("  committed")
        if self._is_shared and weather.harms(weather.lose):
            self._scheduler.note("  the answer is lost")
            self.has_lost_answers = True
            raise _failure("COMMIT", "the server closed the connection")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """What stands there at one moment."""
        self._weather.pass_by("read")
        if self._is_shared:
            self._require_up("SELECT")
        with super().read() as connection:
            yield connection

    def rows(self, query: str) -> list[Any]:
        """What stands in the file now, past all weather."""
        connection = self.engine.raw_connection()
        try:
            cursor = connection.cursor()
            cursor.execute(query)
            return list(cursor.fetchall())
        finally:
            connection.close()

    def _committing(self, _operation: str, _subject: str) -> None:
        process = self._scheduler.current.process
        process.require_alive()
        if process is not self._scheduler.outside:
            self._require_up("COMMIT")
            if self._weather.harms(self._weather.crash):
                self._scheduler.note("  killed at the commit")
                process.kill()
                raise KilledError

    def _require_up(self, statement: str) -> None:
        if self._weather.harms(self._weather.refuse):
            self._scheduler.note(f"  {statement} fails")
            raise _failure(statement, "disk I/O error")


def _failure(statement: str, cause: str) -> OperationalError:
    return OperationalError(statement, {}, Exception(cause))


def _emptied() -> Engine:
    """The engine of this process, on a file that is as good as new."""
    engine = _engine()
    engine.dispose()
    file = Path(str(engine.url.database))
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    shutil.copyfile(make_template(), file)
    return engine


@cache
def _engine() -> Engine:
    """One for all seeds: statements are compiled for each engine anew."""
    file = servers.run_folder() / f"simulation-{os.getpid()}.db"
    engine = open_database(f"sqlite:///{file}", seams=Seams()).engine

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")  # no plug is pulled here

    return engine


@cache
def make_template() -> Path:
    """A file with all tables, two users and a model for vectors."""
    file = servers.run_folder() / f"simulation-template-{os.getpid()}.db"
    shutil.copyfile(servers.sqlite_template(), file)
    seams = Seams(clock=ManualClock())
    database = open_database(f"sqlite:///{file}", seams=seams)
    ensure_tables(database, "fake", FakeSource().info.tables)
    ensure_current(database, seams, Settings(embedder=ON["embedder"]))
    rows = [{"id": user, "name": str(user), "created_at": seams.clock.now()} for user in USERS]
    with database.write() as connection:
        connection.execute(insert(users), rows)
    database.close()
    return file
