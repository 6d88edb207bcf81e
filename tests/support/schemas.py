"""What a database is made of, to be compared: tables, indexes, triggers, functions and comments.

The order of columns is left out: a revision can only add one behind the others.
"""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import Connection, text

_SQLITE: Final = """
SELECT type || ' ' || name, sql FROM sqlite_master
WHERE sql IS NOT NULL AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
AND name NOT LIKE 'sqlite~_%' ESCAPE '~'
"""

_POSTGRES: Final = """
WITH ours AS (
    SELECT oid, relname, relkind FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace
)
SELECT 'column ' || relname || '.' || attname,
    concat_ws(' ', format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'NOT NULL' END,
        pg_get_expr(adbin, adrelid), attidentity, col_description(ours.oid, attnum))
FROM pg_attribute JOIN ours ON attrelid = ours.oid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'constraint ' || conname || ' of ' || relname, pg_get_constraintdef(pg_constraint.oid)
FROM pg_constraint JOIN ours ON conrelid = ours.oid
UNION ALL
SELECT 'index ' || relname, pg_get_indexdef(oid) FROM ours WHERE relkind = 'i'
UNION ALL
SELECT 'table ' || relname, coalesce(obj_description(oid, 'pg_class'), '')
FROM ours WHERE relkind NOT IN ('i', 'c')
UNION ALL
SELECT 'trigger ' || tgname || ' of ' || relname, pg_get_triggerdef(pg_trigger.oid)
FROM pg_trigger JOIN ours ON tgrelid = ours.oid WHERE NOT tgisinternal
UNION ALL
SELECT 'function ' || proname, pg_get_functiondef(pg_proc.oid)
FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND prolang <> (
    SELECT oid FROM pg_language WHERE lanname = 'c')
"""


def structure(connection: Connection) -> dict[str, str | list[str]]:
    """Definitions by kind and name, each in one spelling."""
    if connection.dialect.name == "sqlite":
        return {name: _definition(sql) for name, sql in connection.execute(text(_SQLITE))}
    return {name: _one_line(sql) for name, sql in connection.execute(text(_POSTGRES))}


def _definition(sql: str) -> str | list[str]:
    """A table's columns and constraints in the order of the alphabet; anything else as it is."""
    line = _one_line(sql)
    if not line.startswith("CREATE TABLE"):
        return line
    head, _, rest = line.partition("(")
    body, _, tail = rest.rpartition(")")
    body = re.sub(r"CONSTRAINT \w+ ", "", body)  # no statement of SQLite names a constraint
    return [head.replace('"', "").strip(), *sorted(_items(body)), tail.strip()]


def _items(body: str) -> list[str]:
    """What stands between the commas that are in no parentheses."""
    items, depth = [""], 0
    for character in body:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [item.strip() for item in items]


def _one_line(sql: str) -> str:
    return re.sub(r"(?<=\() | (?=\))", "", re.sub(r"\s+", " ", sql)).strip()
