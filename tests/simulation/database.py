"""A real SQLite file in a simulation: its transactions are moments, and may fail or be the last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from pysqlite3 import dbapi2
from sqlalchemy import Connection, Engine, event, insert
from sqlalchemy.exc import OperationalError

from fonds.embed.worker import ensure_current
from fonds.schema import ensure_plugin_tables
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database, open_database
from fonds.stores.fulltext import SqliteFullText
from fonds.stores.tables import users
from fonds.testing import FakeSource, ManualClock
from tests.simulation.scheduler import KilledError, Scheduler
from tests.simulation.weather import Weather
from tests.support import servers
from tests.support.uploads.files import USERS
from tests.support.uploads.world import ON

STATEMENTS: Final = 500
"""More than are asked for, so that each is compiled once: all tables are read twice."""


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
        file = _file()
        file.renew()
        super().__init__(file.engine, SqliteFullText(), Seams(durable=self._committing))
        self._file = file
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
        return list(self._file.witness.execute(query).fetchall())

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


class _File:
    """The file of this process, one world after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.engine = _engine(path)
        """One for all worlds: statements are compiled for each engine anew."""
        self.witness = self._opened()
        """Sees what is committed, and costs a third of what a connection from a pool does."""

    def renew(self) -> None:
        """Make it as good as new."""
        self.engine.dispose()
        self.witness.close()
        for ending in ("-wal", "-shm"):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
        shutil.copyfile(make_template(), self._path)
        self.witness = self._opened()

    def _opened(self) -> Any:
        return dbapi2.connect(
            self._path, isolation_level=None, check_same_thread=False, cached_statements=STATEMENTS
        )


@cache
def _file() -> _File:
    return _File(servers.run_folder() / f"simulation-{os.getpid()}.db")


def _engine(path: Path) -> Engine:
    engine = open_database(f"sqlite:///{path}", seams=Seams()).engine

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
    ensure_plugin_tables(database, "fake", FakeSource().info.tables)
    ensure_current(database, seams, Settings(embedder=ON["embedder"]))
    rows = [{"id": user, "name": str(user), "created_at": seams.clock.now()} for user in USERS]
    with database.write() as connection:
        connection.execute(insert(users), rows)
    database.close()
    return file
