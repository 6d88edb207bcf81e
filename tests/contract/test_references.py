"""How rows find the rows of other sources that they refer to, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Table, event, insert, select
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.library import Library
from fonds.model import ParsedRecord
from fonds.stores.columns import bulk_reference, position
from fonds.stores.records import insert_records, link_references, update_records
from fonds.stores.tables import document_aliases, metadata


@pytest.fixture
def remarks() -> Iterator[Table]:
    """A table whose rows refer to notes, by id or by any other name."""
    table = Table(
        "fake_remarks",
        metadata,
        position(),
        *bulk_reference("note", "fake_notes", "The note.", via_aliases=True),
        info={"plugin": True},
    )
    yield table
    metadata.remove(table)


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 3)


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice, remarks: Table
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    with note_library(tmp_path, office.server, database=address) as library:
        with library.database.write() as connection:
            metadata.create_all(connection, tables=[remarks])
        yield library


def remark(number: int, reference: str | None) -> ParsedRecord:
    payload = {"ord": number, "note_ref": reference}
    return ParsedRecord(source="fake", table="fake_remarks", key=str(number), payload=payload)


def give_alias(connection: Connection, alias: str, *documents: str) -> None:
    rows = [{"alias": alias, "document_id": document} for document in documents]
    connection.execute(insert(document_aliases), rows)


def links(connection: Connection, table: Table) -> dict[int, str | None]:
    rows = connection.execute(select(table.c.ord, table.c.note_id))
    return {row.ord: row.note_id for row in rows}


def test_a_reference_to_a_row_that_is_held_is_linked_as_it_is_inserted(
    library: Library, remarks: Table
) -> None:
    ingest(library)
    with library.database.write() as connection:
        give_alias(connection, "third note", "fake:3")
        given = [remark(1, "fake:1"), remark(2, "third note"), remark(3, None), remark(4, "fake:9")]
        insert_records(connection, given, [remarks])
        assert links(connection, remarks) == {1: "fake:1", 2: "fake:3", 3: None, 4: None}


def test_a_reference_waits_for_its_row_and_is_linked_by_the_run_that_brings_it(
    library: Library, remarks: Table
) -> None:
    with library.database.write() as connection:
        insert_records(connection, [remark(1, "fake:1"), remark(2, "fake:9")], [remarks])
        assert links(connection, remarks) == {1: None, 2: None}
    ingest(library)
    with library.database.write() as connection:
        assert links(connection, remarks) == {1: "fake:1", 2: None}
        assert link_references(connection) == 0


def test_a_reference_by_another_name_is_linked_once_that_name_is_known(
    library: Library, remarks: Table
) -> None:
    ingest(library)
    with library.database.write() as connection:
        insert_records(connection, [remark(1, "second note"), remark(2, "second note")], [remarks])
        assert link_references(connection) == 0
        give_alias(connection, "second note", "fake:2")
        assert link_references(connection) == 2
        assert links(connection, remarks) == {1: "fake:2", 2: "fake:2"}


def test_a_name_that_two_rows_share_links_to_neither(library: Library, remarks: Table) -> None:
    ingest(library)
    with library.database.write() as connection:
        give_alias(connection, "a note", "fake:1", "fake:2")
        insert_records(connection, [remark(1, "a note")], [remarks])
        assert link_references(connection) == 0
        assert links(connection, remarks) == {1: None}


def test_an_id_wins_over_the_same_text_as_a_name_of_another(
    library: Library, remarks: Table
) -> None:
    ingest(library)
    with library.database.write() as connection:
        give_alias(connection, "fake:1", "fake:2")
        insert_records(connection, [remark(1, "fake:1")], [remarks])
        assert links(connection, remarks) == {1: "fake:1"}


def test_a_changed_reference_is_linked_anew(library: Library, remarks: Table) -> None:
    ingest(library)
    with library.database.write() as connection:
        connection.execute(insert(remarks), {"ord": 1, "note_ref": "fake:1", "note_id": "fake:1"})
        update_records(connection, [remark(1, "fake:2")], [remarks])
        assert links(connection, remarks) == {1: None}
        assert link_references(connection) == 1
        assert links(connection, remarks) == {1: "fake:2"}


def test_linking_never_reads_a_large_table_whole(library: Library, remarks: Table) -> None:
    if not library.database.is_sqlite:
        pytest.skip("PostgreSQL chooses by statistics, and this table is empty")
    ingest(library)
    asked: list[tuple[str, Any]] = []

    def note_down(*call: Any) -> None:
        asked.append((call[2], call[3]))

    with library.database.write() as connection:
        connection.execute(insert(remarks), {"ord": 1, "note_ref": "fake:1"})
        event.listen(library.database.engine, "before_cursor_execute", note_down)
        assert link_references(connection) == 1
        event.remove(library.database.engine, "before_cursor_execute", note_down)
        about = [call for call in asked if "fake_remarks" in call[0]]
        plans = [_plan(connection, statement, values) for statement, values in about]
    assert len(plans) == 2
    for plan in plans:
        assert "ix_fake_remarks_note_id_note_ref" in plan
        assert "SCAN" not in plan


def _plan(connection: Connection, statement: str, values: Any) -> str:
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
    return "; ".join(str(row[3]) for row in rows)
