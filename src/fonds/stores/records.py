"""Checks and writes the rows of a source's own tables; rows that a record lost are deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    String,
    Table,
    and_,
    bindparam,
    delete,
    func,
    select,
    update,
)

from fonds.errors import MalformedError
from fonds.model import ParsedRecord
from fonds.stores.columns import Identity, Timestamp
from fonds.stores.database import insert_many
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import document_aliases, metadata

_PYTHON_TYPES: Final = (
    (Boolean, bool),
    (Integer, int),
    (Float, (int, float)),
    (String, str),
    (LargeBinary, bytes),
    (Timestamp, datetime),
    (Identity, UUID),
)
"""Of columns; any value that is not listed is JSON."""


class _ColumnRule(NamedTuple):
    types: type | tuple[type, ...]
    is_required: bool
    limit: int | None
    """The first integer that is too large for the column on PostgreSQL."""


def check_record(record: ParsedRecord) -> None:
    """MalformedError if a row, or one below it, does not fit its table.

    SQLite would store a text in a column of integers, and drop a field that has no column.
    """
    table = metadata.tables[record.table]
    rules, required = _rules(table)
    for name, value in record.payload.items():
        rule = rules.get(name)
        if rule is None:
            raise MalformedError(f"{record.table} has no column {name!r}")
        if value is not None and not _fits(rule, value):
            raise MalformedError(
                f"{record.table}.{name} does not take the {type(value).__name__} {value!r:.60}"
            )
    for name in required:
        if record.payload.get(name) is None:
            raise MalformedError(f"{record.table}.{name} has no value")
    for child in record.children:
        check_record(child)


def _fits(rule: _ColumnRule, value: Any) -> bool:
    if not isinstance(value, rule.types):
        return False
    if rule.limit is None or not isinstance(value, int):
        return True
    return not isinstance(value, bool) and -rule.limit <= value < rule.limit


@cache
def _rules(table: Table) -> tuple[Mapping[str, _ColumnRule], tuple[str, ...]]:
    """The rule of each column, and the columns that need a value."""
    rules = {column.name: _rule(column) for column in table.c if "resolves" not in column.info}
    return rules, tuple(name for name, rule in rules.items() if rule.is_required)


def _rule(column: Column[Any]) -> _ColumnRule:
    types = next((types for kind, types in _PYTHON_TYPES if isinstance(column.type, kind)), object)
    limit = None
    if isinstance(column.type, Integer):
        limit = 1 << (63 if isinstance(column.type, BigInteger) else 31)
    has_value = column.nullable or column.server_default is not None or column.name == "task_key"
    return _ColumnRule(types, not has_value, limit)


def insert_records(
    connection: Connection, records: Sequence[ParsedRecord], tables: Sequence[Table]
) -> None:
    """Insert the rows of new records; `tables` has parents first."""
    rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        _collect(record, rows)
    for table in tables:
        if table.name in rows:
            insert_many(connection, table, _linked(connection, table, rows[table.name]))


def update_records(
    connection: Connection, records: Sequence[ParsedRecord], tables: Sequence[Table]
) -> None:
    """Update the rows of changed records, and replace the rows below them.

    The document of a record may have been loaded without it, from a bundle without bytes.
    """
    by_table: dict[str, list[ParsedRecord]] = defaultdict(list)
    for record in records:
        by_table[record.table].append(record)
    new: list[ParsedRecord] = []
    for name, changed in by_table.items():
        parent = metadata.tables[name]
        existing = _existing_rows(connection, parent, [record.payload for record in changed])
        rows = [record for record in changed if key_of(parent, record.payload) in existing]
        new += [record for record in changed if key_of(parent, record.payload) not in existing]
        _update(connection, parent, [record.payload for record in rows])
        _delete_below(connection, parent, [record.key for record in rows], tables)
    updated = [record for record in records if record not in new] if new else records
    children = [child for record in updated for child in record.children]
    insert_records(connection, [*new, *children], tables)


def merge_rows(
    connection: Connection, records: Sequence[ParsedRecord], task_key: str
) -> tuple[int, int]:
    """Write records that are not documents; returns how many were inserted and updated."""
    inserted = updated = 0
    by_table: dict[str, list[ParsedRecord]] = defaultdict(list)
    for record in records:
        by_table[record.table].append(record)
    for name, group in by_table.items():
        table = metadata.tables[name]
        rows = [_stamped(table, record.payload, task_key) for record in group]
        existing = _existing_rows(connection, table, rows)
        new = [row for row in rows if key_of(table, row) not in existing]
        changed = [
            row
            for row in rows
            if (old := existing.get(key_of(table, row))) is not None
            and any(old[column] != value for column, value in row.items())
        ]
        insert_many(connection, table, _linked(connection, table, new))
        _update(connection, table, changed)
        inserted, updated = inserted + len(new), updated + len(changed)
    return inserted, updated


def drop_unyielded(
    connection: Connection, tables: Iterable[Table], task_key: str, yielded: Collection[Any]
) -> int:
    """Delete the rows of a task whose keys it has not `yielded` again; returns how many."""
    dropped = 0
    for table in tables:
        if "task_key" not in table.c:
            continue
        columns = list(table.primary_key.columns)
        query = select(*columns).where(table.c.task_key == task_key)
        stale = [
            tuple(row)
            for row in connection.execute(query)
            if (table.name, tuple(row)) not in yielded
        ]
        for key in stale:
            same = (column == value for column, value in zip(columns, key, strict=True))
            connection.execute(delete(table).where(and_(*same)))
        dropped += len(stale)
    return dropped


def link_references(connection: Connection) -> int:
    """Set every reference whose parent has been loaded since; returns how many."""
    return sum(
        _link(connection, table, column)
        for table in metadata.tables.values()
        for column in _references(table)
    )


def key_of(table: Table, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The primary key of a row, as a tuple."""
    return tuple(row[column.name] for column in table.primary_key.columns)


def _collect(record: ParsedRecord, rows: dict[str, list[Mapping[str, Any]]]) -> None:
    rows[record.table].append(record.payload)
    for child in record.children:
        _collect(child, rows)


def _full(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """All columns of a row, so that the rows of one statement have the same columns."""
    return {name: row.get(name) for name in _own_columns(table)}


def _own_columns(table: Table) -> list[str]:
    return [column.name for column in table.c if "resolves" not in column.info]


def _references(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if "resolves" in column.info]


def _linked(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Full rows, with references set whose parent is stored.

    Set at the end of a run, millions of them would need one long transaction.
    """
    full = [_full(table, row) for row in rows]
    for column in _references(table):
        stated = column.info["resolves"]
        parent_keys = _resolved(connection, column, {row[stated] for row in full} - {None})
        for row in full:
            row[column.name] = parent_keys.get(row[stated])
    return full


def _stamped(table: Table, row: Mapping[str, Any], task_key: str) -> dict[str, Any]:
    return {**row, "task_key": task_key} if "task_key" in table.c else dict(row)


def _update(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    keys = [column.name for column in table.primary_key.columns]
    values: dict[str, Any] = {
        name: bindparam(f"new_{name}") for name in _own_columns(table) if name not in keys
    }
    # A reference may have changed; it is linked again with the others.
    values |= {column.name: None for column in _references(table)}
    same = (table.c[name] == bindparam(f"new_{name}") for name in keys)
    connection.execute(
        update(table).where(and_(*same)).values(values),
        [{f"new_{k}": value for k, value in _full(table, row).items()} for row in rows],
    )


def _delete_below(
    connection: Connection, parent: Table, keys: Sequence[str], tables: Sequence[Table]
) -> None:
    for table in reversed(tables):
        column = _owner_column(table, parent)
        if column is not None:
            for batch in batched(keys):
                connection.execute(delete(table).where(column.in_(batch)))


def _owner_column(table: Table, parent: Table) -> Column[Any] | None:
    """The foreign key to `parent` of rows that belong to its records, if there is one."""
    if table is parent:
        return None
    for column in table.c:
        if "resolves" not in column.info and column.references(parent.c["id"]):
            return column
    return None


def _existing_rows(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    first = next(iter(table.primary_key.columns))
    values = sorted({row[first.name] for row in rows})
    existing = (row._asdict() for row in select_in(connection, select(table), first, values))
    return {key_of(table, row): row for row in existing}


def _link(connection: Connection, table: Table, column: Column[Any]) -> int:
    reference = table.c[column.info["resolves"]]
    waiting = select(reference).where(column.is_(None), reference.is_not(None)).distinct()
    parent_keys = _resolved(connection, column, set(connection.scalars(waiting)))
    own_ids = [stated for stated, key in parent_keys.items() if stated == key]
    linked = 0
    for batch in batched(own_ids):
        stated_here = column.is_(None) & reference.in_(batch)
        statement = update(table).where(stated_here).values({column.name: reference})
        linked += connection.execute(statement).rowcount
    for alias in parent_keys.keys() - set(own_ids):
        stated_here = column.is_(None) & (reference == alias)
        statement = update(table).where(stated_here).values({column.name: parent_keys[alias]})
        linked += connection.execute(statement).rowcount
    return linked


def _resolved(
    connection: Connection, column: Column[Any], references: Collection[Any]
) -> dict[Any, Any]:
    """The keys of the rows that references point to, as far as they are stored."""
    (key,) = column.foreign_keys
    stated_keys = sorted(references)
    matches = select_in(connection, select(key.column), key.column, stated_keys)
    parent_keys = {parent: parent for (parent,) in matches}
    if column.info.get("via_aliases"):
        unresolved = [name for name in stated_keys if name not in parent_keys]
        parent_keys |= _resolved_aliases(connection, key.column, unresolved)
    return parent_keys


def _resolved_aliases(
    connection: Connection, parent: Column[Any], aliases: Sequence[str]
) -> dict[Any, Any]:
    # A name that two parents share is ambiguous.
    query = (
        select(document_aliases.c.alias, func.min(parent).label("key"))
        .join(parent.table, parent == document_aliases.c.document_id)
        .group_by(document_aliases.c.alias)
        .having(func.count() == 1)
    )
    matches = select_in(connection, query, document_aliases.c.alias, aliases)
    return {row.alias: row.key for row in matches}
