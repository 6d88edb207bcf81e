"""What is particular to SQLite."""

from __future__ import annotations

import pysqlite3.dbapi2
from hypothesis import given
from hypothesis import strategies as st

from fonds.stores.sqlite import ROWS_PER_STATEMENT, in_statements

INSERT = "INSERT INTO seen VALUES (?, ?) ON CONFLICT DO UPDATE SET told = excluded.told"


@given(st.lists(st.tuples(st.integers(0, 50), st.text()), max_size=150))
def test_rows_in_few_statements_leave_what_one_after_the_other_would(
    rows: list[tuple[int, str]],
) -> None:
    statements = list(in_statements(INSERT, rows))
    connection = pysqlite3.dbapi2.connect(":memory:")
    connection.execute("CREATE TABLE seen (number INTEGER PRIMARY KEY, told TEXT)")
    for statement, values in statements:
        connection.execute(statement, values)
    assert dict(connection.execute("SELECT * FROM seen")) == dict(rows)
    assert len(statements) == -(-len(rows) // ROWS_PER_STATEMENT)
    connection.close()
