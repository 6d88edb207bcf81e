"""What is particular to SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pysqlite3.dbapi2
from hypothesis import given
from hypothesis import strategies as st

from fonds.stores.sqlite import insert_rows

INSERT = "INSERT INTO seen VALUES (?, ?) ON CONFLICT DO UPDATE SET told = excluded.told"


@given(st.lists(st.tuples(st.integers(0, 50), st.text()), max_size=70))
def test_rows_in_few_statements_leave_what_one_after_the_other_would(
    rows: list[tuple[int, str]],
) -> None:
    calls: list[str] = []
    connection = pysqlite3.dbapi2.connect(":memory:")
    connection.execute("CREATE TABLE seen (number INTEGER PRIMARY KEY, told TEXT)")
    insert_rows(_counting(connection.execute, calls), INSERT, rows)
    assert dict(connection.execute("SELECT * FROM seen")) == dict(rows)
    assert len(calls) <= len(rows) // 16 + 6
    connection.close()


def _counting(
    execute: Callable[[str, tuple[Any, ...]], object], calls: list[str]
) -> Callable[[str, tuple[Any, ...]], object]:
    def run(statement: str, values: tuple[Any, ...]) -> object:
        calls.append(statement)
        return execute(statement, values)

    return run
