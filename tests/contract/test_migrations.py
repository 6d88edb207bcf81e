"""The schema on every database: made from declarations, and brought up to date by revisions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from tests.support import servers
from tests.support.schemas import structure

from fonds import schema
from fonds.errors import SchemaError
from fonds.runs import state as runs
from fonds.schema import (
    BETWEEN,
    HEAD,
    MIGRATIONS,
    alembic_config,
    create,
    current_version,
    ensure_plugin_tables,
    require_current,
    upgrade,
    upgrade_within,
)
from fonds.seams import Seams
from fonds.stores.database import Database, open_database
from fonds.stores.tables import RUN_STATUSES, UPLOAD_STATUSES, metadata
from fonds.testing import FakeSource
from fonds.uploads import states as uploads

SCHEMAS: Final = Path(__file__).parents[1] / "schemas"
RELEASED: Final = sorted({file.name.partition(".")[0] for file in SCHEMAS.glob("*.sql")})
NEXT: Final = '''"""A column more."""

import sqlalchemy as sa
from alembic import op

revision = "9000"
down_revision = "{head}"


def upgrade() -> None:
    op.add_column("users", sa.Column("nickname", sa.Text()))
    {then}
'''

MakeDatabase = Callable[[], Database]


@pytest.fixture(params=["sqlite", "postgres"])
def make_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeDatabase]:
    """Opens another empty database each time."""
    with ExitStack() as stack:

        def empty_database() -> Database:
            if request.param == "postgres":
                server = request.getfixturevalue("postgres_url")
                address = stack.enter_context(servers.postgres_database(server, is_bare=True))
            else:
                number = len(list(tmp_path.glob("*.db")))
                address = f"sqlite:///{tmp_path / f'{number}.db'}"
            database = open_database(address, seams=Seams())
            stack.callback(database.close)
            return database

        yield empty_database


@pytest.fixture
def database(make_database: MakeDatabase) -> Database:
    return make_database()


@pytest.fixture
def add_revision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Makes this program one that has a revision more, which ends with a statement."""

    def add(then: str) -> None:
        migrations = tmp_path / "migrations"
        shutil.copytree(str(MIGRATIONS), migrations)
        source = NEXT.format(head=HEAD, then=then)
        (migrations / "versions" / "9000_next.py").write_text(source)
        monkeypatch.setattr(schema, "MIGRATIONS", migrations)
        monkeypatch.setattr(schema, "HEAD", "9000")

    return add


def test_no_table_is_left_out_of_a_new_database(database: Database) -> None:
    upgrade(database)
    with database.engine.connect() as connection:
        options = {"include_object": _is_ours, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_empty_database_is_filled_and_the_second_upgrade_does_nothing(database: Database) -> None:
    assert current_version(database) is None
    require_current(database)
    assert current_version(database) == HEAD
    before = _structure(database)
    upgrade(database)
    assert _structure(database) == before


@pytest.mark.parametrize("revision", RELEASED)
def test_upgrade_of_a_released_schema_makes_what_declarations_make(
    make_database: MakeDatabase, revision: str
) -> None:
    released, declared = make_database(), make_database()
    file = SCHEMAS / f"{revision}.{released.engine.dialect.name}.sql"
    with released.write() as connection:
        create(connection, file.read_text("utf-8").split(BETWEEN))
        upgrade_within(connection)
    upgrade(declared)
    assert _structure(released) == _structure(declared), "run scripts/make-migration"


def test_newest_revision_is_the_one_of_the_program(database: Database) -> None:
    with database.read() as connection:
        scripts = ScriptDirectory.from_config(alembic_config(connection))
    assert scripts.get_heads() == [HEAD]


def test_tables_allow_the_states_of_the_code() -> None:
    assert set(RUN_STATUSES) == set(runs.MOVES) == set(runs.RunStatus)
    assert set(UPLOAD_STATUSES) == set(uploads.MOVES) == set(uploads.JobStatus)


def test_database_that_is_behind_is_refused_until_it_is_upgraded(
    database: Database, add_revision: Callable[[str], None]
) -> None:
    upgrade(database)
    add_revision("pass")
    with pytest.raises(SchemaError, match=rf"{HEAD}.* 9000: run `fonds db upgrade` first"):
        require_current(database)
    upgrade(database)
    require_current(database)
    with database.read() as connection:
        assert "nickname" in {column["name"] for column in inspect(connection).get_columns("users")}


def test_upgrade_that_fails_leaves_the_schema_as_it_was(
    database: Database, add_revision: Callable[[str], None]
) -> None:
    upgrade(database)
    add_revision("raise KeyboardInterrupt")
    before = _structure(database)
    with pytest.raises(KeyboardInterrupt):
        upgrade(database)
    assert _structure(database) == before
    assert current_version(database) == HEAD


@pytest.mark.parametrize("version", ["0001", "0024", "0024a", "elsewhere"])
def test_database_of_an_unknown_revision_is_refused_with_what_to_do(
    database: Database, version: str
) -> None:
    upgrade(database)
    _set_version(database, version)
    advice = "install a newer fonds" if version > HEAD else "create a new library"
    for attempt in (require_current, upgrade):
        with pytest.raises(SchemaError, match=f"at version {version}, .* {HEAD}: .*{advice}") as no:
            attempt(database)
        assert "\n" not in str(no.value)
    assert current_version(database) == version


def test_database_of_a_newer_program_is_refused(database: Database) -> None:
    upgrade(database)
    _set_version(database, "9999")
    with pytest.raises(SchemaError, match="install a newer"):
        require_current(database)


def test_tables_of_a_plugin_are_made_once_and_refused_when_they_have_changed(
    database: Database,
) -> None:
    upgrade(database)
    for _ in range(2):
        ensure_plugin_tables(database, "fake", FakeSource().info.tables)
    with database.read() as connection:
        assert inspect(connection).has_table("fake_notes")
    with pytest.raises(SchemaError, match="the tables of the plugin fake have changed"):
        ensure_plugin_tables(database, "fake", FakeSource().info.tables[:1])


def _structure(database: Database) -> dict[str, str | list[str]]:
    with database.read() as connection:
        return structure(connection)


def _set_version(database: Database, version: str) -> None:
    with database.write() as connection:
        connection.execute(
            text("UPDATE alembic_version SET version_num = :version"), {"version": version}
        )


def _is_ours(item: object, name: str | None, kind: str, *_: object) -> bool:
    """Neither a plugin's tables nor the full-text index, which is not a table everywhere."""
    plugin = kind == "table" and bool(getattr(item, "info", {}).get("plugin"))
    return not plugin and not (name or "").startswith(("chunk_index", "ix_chunk_index"))
