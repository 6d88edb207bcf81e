from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import func, select, text

from fonds.errors import SchemaError, StoreError, UsageError
from fonds.exchange.backup import back_up, restore
from fonds.schema import HEAD, current_version, upgrade
from fonds.seams import Seams
from fonds.stores.database import Database, insert_many, open_database
from fonds.stores.tables import embedding_models as models

SEAMS = Seams()
PAIR = 2


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    database = open_database(f"sqlite:///{path}", seams=SEAMS)
    try:
        yield database
    finally:
        database.close()


def add(database: Database, *names: str) -> None:
    rows = [{"name": name, "version": "1", "dims": 1, "price": 0.0} for name in names]
    with database.write() as connection:
        insert_many(connection, models, rows)


def held(database: Database) -> list[str]:
    with database.read() as connection:
        return list(connection.scalars(select(models.c.name).order_by(models.c.name)))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Database]:
    with opened(tmp_path / "fonds.db") as database:
        upgrade(database)
        yield database


def test_what_was_backed_up_comes_back(library: Database, tmp_path: Path) -> None:
    add(library, "early")
    back_up(library, tmp_path / "new" / "copy.db", SEAMS)
    add(library, "late")
    assert restore(library, tmp_path / "new" / "copy.db", SEAMS, replace=True) == HEAD
    assert held(library) == ["early"]
    add(library, "after")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["copy.db"]


def test_a_lost_database_comes_back(library: Database, tmp_path: Path) -> None:
    add(library, "early")
    back_up(library, tmp_path / "copy.db", SEAMS)
    with opened(tmp_path / "other.db") as other:
        restore(other, tmp_path / "copy.db", SEAMS)
        assert held(other) == ["early"]
        assert current_version(other) == HEAD


def test_a_copy_made_while_others_write_holds_whole_transactions(
    library: Database, tmp_path: Path
) -> None:
    ended, began = Event(), Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            add(library, f"{number}a", f"{number}b")
            began.set()
            number += 1

    writer = Thread(target=write)
    writer.start()
    try:
        assert began.wait(30)
        copies = [tmp_path / f"{number}.db" for number in range(5)]
        for copy in copies:
            back_up(library, copy, SEAMS)
    finally:
        ended.set()
        writer.join()
    for copy in copies:
        with opened(copy) as database, database.read() as connection:
            assert connection.scalar(text("PRAGMA integrity_check")) == "ok"
            assert (connection.scalar(select(func.count()).select_from(models)) or 0) % PAIR == 0


def test_no_back_up_is_overwritten(library: Database, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine")
    with pytest.raises(UsageError, match="name a new file"):
        back_up(library, tmp_path / "copy.db", SEAMS)
    assert (tmp_path / "copy.db").read_text() == "mine"


@pytest.mark.parametrize("cut", [0, 100, 5000, 100_000])
def test_a_copy_that_is_cut_off_is_not_restored(
    library: Database, tmp_path: Path, cut: int
) -> None:
    copy = tmp_path / "copy.db"
    back_up(library, copy, SEAMS)
    copy.write_bytes(copy.read_bytes()[:cut])
    add(library, "late")
    with pytest.raises(StoreError):
        restore(library, copy, SEAMS, replace=True)
    assert held(library) == ["late"]


def test_a_copy_of_a_newer_program_is_not_restored(library: Database, tmp_path: Path) -> None:
    back_up(library, tmp_path / "copy.db", SEAMS)
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        copy.execute("UPDATE alembic_version SET version_num = '9999'")
    copy.close()
    with pytest.raises(SchemaError, match="install a newer fonds"):
        restore(library, tmp_path / "copy.db", SEAMS, replace=True)


# The system kills a process that writes more into a file than it may.
_KILLED = """
import resource, signal, sys
from pathlib import Path
from fonds.seams import Seams
from fonds.exchange import backup
from fonds.stores.database import open_database
database = open_database(f"sqlite:///{sys.argv[1]}", seams=Seams())
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, 20_000_000))
backup.restore(database, Path(sys.argv[2]), Seams(), replace=True)
"""


def test_a_restore_that_is_killed_while_it_writes_leaves_what_was_there(
    library: Database, tmp_path: Path
) -> None:
    with library.write() as connection:
        connection.execute(text("CREATE TABLE ballast (data BLOB)"))
        connection.execute(text("INSERT INTO ballast VALUES (zeroblob(60000000))"))
    copy = tmp_path / "copy.db"
    back_up(library, copy, SEAMS)
    with library.write() as connection:
        connection.execute(text("DROP TABLE ballast"))
    add(library, "late")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path / "fonds.db"), str(copy)],
        check=False,
    )
    assert done.returncode == -signal.SIGXFSZ
    assert held(library) == ["late"]
    restore(library, copy, SEAMS, replace=True)
    assert held(library) == []
