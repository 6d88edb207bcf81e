"""Statements that stand ready: values arrive as their columns want them, on every database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select

from fonds.stores.database import Database, insert_ignoring, insert_many, run, upsert
from fonds.stores.tables import document_chunk_buffer, users
from fonds.stores.tables import ingestion_embedding_queue as queue

MOMENT = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)
NAMED = select(users.c.name).where(
    users.c.id == bindparam("of"), users.c.created_at <= bindparam("now"), users.c.name != "nobody"
)


def _user(name: str) -> dict[str, Any]:
    return {"id": uuid4(), "name": name, "created_at": MOMENT}


def _waiting(**columns: Any) -> dict[str, Any]:
    told = {"table_name": "documents", "record_id": "a", "input_sha": "one"}
    return {**told, "enqueued_at": MOMENT, **columns}


def test_rows_are_read_as_they_were_given(database: Database) -> None:
    row = {
        "id": 1,
        "chunk_id": uuid4(),
        "document_id": uuid4(),
        "chunk_ord": 0,
        "chunker_name": "c",
        "chunker_version": "1",
        "chunk_sha": "s",
        "text": "50 % of it: %s, ?",
        "meta": {"tokens": 3},
        "created_at": MOMENT,
    }
    rows = [row, {**row, "id": 2, "chunk_id": uuid4(), "chunk_ord": 1}]
    with database.write() as connection:
        insert_many(connection, document_chunk_buffer, rows)
        held = connection.execute(select(document_chunk_buffer).order_by("id"))
        assert [one._asdict() for one in held] == rows


@pytest.mark.parametrize(
    ("name", "now", "found"),
    [
        ("ann", MOMENT, ["ann"]),
        ("ann", MOMENT.replace(year=2025), []),
        ("nobody", MOMENT, []),
    ],
)
def test_values_are_bound_beside_those_that_stand_in_the_statement(
    database: Database, name: str, now: datetime, found: list[str]
) -> None:
    user = _user(name)
    with database.write() as connection:
        insert_many(connection, users, [_user("bob"), user])
        assert run(connection, NAMED, {"of": user["id"], "now": now}).scalars().all() == found


def test_value_that_was_forgotten_is_no_null(database: Database) -> None:
    with database.read() as connection, pytest.raises(KeyError, match="now"):
        run(connection, NAMED, {"of": UUID(int=1)})


def test_key_that_is_taken_is_left_or_overwritten_by_the_given_columns(database: Database) -> None:
    keys = ["table_name", "record_id"]
    with database.write() as connection:
        upsert(connection, queue, [_waiting(attempts=3)], keys=keys)
        insert_ignoring(connection, queue, [_waiting(attempts=4, input_sha="two")])
        (held,) = connection.execute(select(queue)).all()
        assert (held.attempts, held.input_sha, held.last_error) == (3, "one", None)
        upsert(connection, queue, [_waiting(last_error="no luck", input_sha="two")], keys=keys)
        (held,) = connection.execute(select(queue)).all()
        assert (held.attempts, held.input_sha, held.last_error) == (3, "two", "no luck")
