"""A copy of a database is the same library, on the other kind of database and back."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.exc import DBAPIError
from tests.support import servers
from tests.support.libraries.demo import copy_demo_library
from tests.support.libraries.every_table import crowd, odd_values, rows

from fonds.errors import SchemaError, StoreError, UsageError
from fonds.exchange.database_copy import Copied, copy, database_address
from fonds.library import Library, open_library
from fonds.schema import current_version
from fonds.seams import Seams
from fonds.stores.database import Database, open_database
from fonds.stores.tables import documents, ingestion_logs, metadata, upload_jobs
from fonds.testing import Saboteur

QUESTION = "wildfire smoke"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Copies:
    """A library, its copy on PostgreSQL, and the copy of that."""

    home: Path
    server: str
    back: Path
    told: tuple[Copied, Copied]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Copies]:
    folder = tmp_path_factory.mktemp("copies")
    home = copy_demo_library(folder)
    with open_library(home) as library:
        crowd(library)
    back = folder / "back"
    with servers.postgres_database(postgres_url, is_bare=True) as server:
        there = copy(database_address(str(home)), server)
        again = copy(server, database_address(str(back)))
        yield Copies(home, server, back, (there, again))


@contextmanager
def opened(address: str, seams: Seams | None = None) -> Iterator[Database]:
    database = open_database(address, seams=seams or Seams())
    try:
        yield database
    finally:
        database.close()


@contextmanager
def reading(address: str) -> Iterator[Connection]:
    with opened(database_address(address)) as database, database.read() as connection:
        yield connection


def test_there_and_back_gives_the_same_rows_in_all_tables(copies: Copies) -> None:
    with reading(str(copies.home)) as here, reading(copies.server) as there:
        expected = rows(here)
        assert rows(there) == expected
    with reading(str(copies.back)) as back:
        assert rows(back) == expected
    assert set(expected) == set(metadata.tables)
    assert [name for name, some in expected.items() if not some] == []


def test_what_is_told_of_both_copies_is_the_same_and_true(copies: Copies) -> None:
    there, again = copies.told
    assert there == again
    with reading(copies.server) as connection:
        counted = {name: len(some) for name, some in rows(connection).items()}
    assert {name: table.rows for name, table in there.tables.items()} == counted
    assert there.passages > 400
    assert there.vectors > 400


def test_the_schema_of_a_copy_is_the_schema(copies: Copies) -> None:
    query = text("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'vec%' ORDER BY 2")
    with reading(str(copies.home)) as here, reading(str(copies.back)) as back:
        assert set(back.execute(query)) == set(here.execute(query))


def test_the_copy_on_the_server_has_all_constraints_and_triggers(
    copies: Copies, postgres_database: str
) -> None:
    queries = [
        text(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        ),
        text(
            "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger"
            " WHERE NOT tgisinternal"
        ),
    ]
    with reading(copies.server) as there, reading(postgres_database) as fresh:
        for query in queries:
            missing = set(map(tuple, fresh.execute(query))) - set(map(tuple, there.execute(query)))
            assert missing == set()


@pytest.mark.parametrize("place", ["server", "back"])
def test_a_copy_is_searched_like_the_library(copies: Copies, place: str) -> None:
    given: dict[str, Any] = {"database": copies.server} if place == "server" else {}
    with open_library(copies.home) as library, open_library(copies.back, **given) as copied:
        assert found(copied, "semantic") == found(library, "semantic")
        lexical = found(copied, "lexical")
        assert lexical[:2]
        if place == "back":
            assert lexical == found(library, "lexical")


def found(library: Library, mode: str) -> list[str]:
    hits = library.search(QUESTION, mode=mode, limit=10)  # type: ignore[arg-type]
    return [hit.citation.citation_string for hit in hits]


@pytest.mark.parametrize("place", ["server", "back"])
def test_a_copy_goes_on_numbering_where_the_library_was(copies: Copies, place: str) -> None:
    address = database_address(str(getattr(copies, place)))
    with opened(address) as database, database.engine.connect() as connection:
        run = connection.scalar(select(ingestion_logs.c.run_id).limit(1))
        last = max(connection.scalars(select(ingestion_logs.c.id)))
        line = {"run_id": run, "level": "info", "message": "x", "logged_at": None}
        line["logged_at"] = connection.scalar(select(ingestion_logs.c.logged_at).limit(1))
        added = connection.execute(
            insert(ingestion_logs).values(line).returning(ingestion_logs.c.id)
        )
        assert added.scalar_one() == last + 1
        # The last row of these is gone; its number is not given out again.
        odd = connection.execute(insert(odd_values).values(words="x").returning(odd_values.c.id))
        assert odd.scalar_one() == 7
        connection.rollback()


@pytest.mark.parametrize("place", ["server", "back"])
def test_the_guards_of_a_copy_are_up(copies: Copies, place: str) -> None:
    address = database_address(str(getattr(copies, place)))
    with opened(address) as database:
        complete = upload_jobs.c.status == "complete"
        with pytest.raises(DBAPIError, match="cannot move"), database.write() as connection:
            connection.execute(update(upload_jobs).where(complete).values(status="chunking"))
        with pytest.raises(DBAPIError), database.write() as connection:
            connection.execute(insert(odd_values).values(parent=4711))


# What is refused --------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A database with a few rows."""
    address = servers.sqlite_database(tmp_path / "small.db")
    with opened(address) as database, database.write() as connection:
        for name in ("one", "two"):
            row = {"source": name, "fingerprint": "x"}
            connection.execute(metadata.tables["table_versions"].insert().values(row))
    return address


def test_a_target_that_is_not_empty_is_refused(small: str, postgres_database: str) -> None:
    copy(small, postgres_database)
    with pytest.raises(UsageError, match="is not empty"):
        copy(small, postgres_database)
    with pytest.raises(UsageError, match="already"):
        copy(small, small)


def test_a_target_with_tables_but_no_row_is_taken(small: str, postgres_database: str) -> None:
    assert copy(small, postgres_database).tables["table_versions"].rows == 2


def test_a_server_is_not_copied_to_itself(postgres_database: str) -> None:
    with pytest.raises(UsageError, match="to itself"):
        copy(postgres_database, postgres_database)


def test_tables_of_something_else_are_not_written_beside(
    small: str, bare_postgres_database: str
) -> None:
    with opened(bare_postgres_database) as database, database.write() as connection:
        connection.execute(text("CREATE TABLE theirs (id integer)"))
    with pytest.raises(UsageError, match="tables of another program"):
        copy(small, bare_postgres_database)


@pytest.mark.parametrize(
    ("version", "advice"), [("0001", "create a new library"), ("9999", "newer fonds")]
)
def test_another_version_is_refused_on_either_side(
    small: str, postgres_database: str, tmp_path: Path, version: str, advice: str
) -> None:
    with opened(postgres_database) as database, database.write() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))
    for source, target in ((small, postgres_database), (postgres_database, tmp_path / "new.db")):
        with pytest.raises(SchemaError, match=advice):
            copy(source, database_address(str(target)))
    assert not (tmp_path / "new.db").exists()


def test_tables_of_a_plugin_that_is_not_installed_are_not_left_out(
    small: str, tmp_path: Path
) -> None:
    with opened(small) as database, database.write() as connection:
        connection.execute(text("CREATE TABLE harbour_notices (id integer)"))
    with pytest.raises(SchemaError, match="harbour_notices; install the plugin"):
        copy(small, database_address(str(tmp_path / "new.db")))


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no database"):
        copy(database_address(str(tmp_path / "nowhere")), "sqlite:////x.db")
    with pytest.raises(UsageError, match="not the address"):
        copy("no words://", "sqlite:////x.db")


def test_a_row_that_the_other_database_cannot_hold_is_named_by_its_table(
    small: str, postgres_database: str
) -> None:
    with opened(small) as database, database.write() as connection:
        row = {"source": "with a \0 in it", "fingerprint": "a secret"}
        connection.execute(metadata.tables["table_versions"].insert().values(row))
    with pytest.raises(StoreError, match="a row of table_versions was rejected") as refused:
        copy(small, postgres_database)
    assert "secret" not in str(refused.value)
    with reading(postgres_database) as connection:
        assert connection.scalar(text("SELECT count(*) FROM table_versions")) == 0


# What happens meanwhile -------------------------------------------------------------------


def test_what_is_written_meanwhile_is_not_in_the_copy(small: str, tmp_path: Path) -> None:
    with opened(small) as writer:

        def write(_table: str, _rows: int) -> None:
            with writer.write() as connection:
                connection.execute(text("DELETE FROM table_versions"))
                connection.execute(text("INSERT INTO embedding_models VALUES ('late', '1', 1, 0)"))

        copied = copy(small, database_address(str(tmp_path / "new.db")), watch=write)
    assert copied.tables["table_versions"].rows == 2
    assert copied.tables["embedding_models"].rows == 0


def test_a_copy_that_fails_at_any_durable_operation_leaves_nothing(
    small: str, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "fonds.db"
    saboteur = Saboteur()
    copy(small, database_address(str(tmp_path / "whole.db")), seams=Seams(durable=saboteur))
    assert [name for name, _ in saboteur.operations] == ["commit", "database.rename"]
    for place in (1, 2):
        seams = Seams(durable=Saboteur(fail_at=place))
        with pytest.raises(OSError, match="sabotaged"):
            copy(small, database_address(str(target)), seams=seams)
        assert list(target.parent.iterdir()) == []
    assert copy(small, database_address(str(target))).tables["table_versions"].rows == 2


KILLED = """
import os, signal, sys
from fonds.exchange.database_copy import copy
copy(sys.argv[1], sys.argv[2], watch=lambda table, rows: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_copy_that_is_killed_can_be_made_again(
    small: str, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    target = database_address(str(tmp_path / "new.db"))
    if kind == "postgres":
        target = request.getfixturevalue("bare_postgres_database")
    killed = subprocess.run([sys.executable, "-c", KILLED, small, target], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "new.db").exists()
    assert copy(small, target).tables["table_versions"].rows == 2
    with opened(target) as database:
        assert current_version(database) is not None
    assert [each.name for each in tmp_path.iterdir() if "copying" in each.name] == []


def test_a_copy_from_sqlite_to_sqlite_is_the_same(copies: Copies, tmp_path: Path) -> None:
    told = copy(database_address(str(copies.home)), database_address(str(tmp_path / "new.db")))
    assert told == copies.told[0]
    with reading(str(copies.home)) as here, reading(str(tmp_path / "new.db")) as there:
        assert rows(there) == rows(here)
        assert there.scalar(select(documents.c.id).limit(1)) is not None
