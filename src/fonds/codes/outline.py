"""Looking at a code that is held: its editions, its units, and its tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from fonds import ids
from fonds.errors import UnknownDocumentError
from fonds.stores.batches import select_in
from fonds.stores.database import Database
from fonds.stores.tables import code_units, nodes


@dataclass(frozen=True, kw_only=True, slots=True)
class EditionHeld:
    """One edition of a code, as far as it is held."""

    source: str
    version: str
    units: int
    complete: int
    nodes: int
    sections: int
    is_newest: bool
    """Whether a search looks at any of its units."""


def editions(database: Database, source: str | None = None) -> list[EditionHeld]:
    """All editions that are held, or those of one code; of each code the oldest first."""
    table = code_units.c
    columns = (table.source, table.version, table.unit, table.nodes, table.shards)
    query = select(*columns, table.state, table.is_newest)
    if source is not None:
        query = query.where(table.source == source)
    with database.read() as connection:
        rows: Sequence[Any] = connection.execute(query.order_by(table.source, table.version)).all()
    found: dict[tuple[str, str], list[Row[Any]]] = {}
    for row in rows:
        found.setdefault((row.source, row.version), []).append(row)
    held = [_edition(source, version, units) for (source, version), units in found.items()]
    return sorted(held, key=lambda one: (one.source, ids.edition_order(one.version)))


def _edition(source: str, version: str, rows: Sequence[Row[Any]]) -> EditionHeld:
    """A unit that was taken in by its parts counts once, and is complete when they all are."""
    units: dict[str, list[Row[Any]]] = {}
    for row in rows:
        units.setdefault(row.unit.partition("/")[0], []).append(row)
    for name, parts in units.items():
        whole = [row for row in parts if row.unit == name]
        units[name] = whole or parts
    return EditionHeld(
        source=source,
        version=version,
        units=len(units),
        complete=sum(all(row.state == "complete" for row in parts) for parts in units.values()),
        nodes=sum(row.nodes for parts in units.values() for row in parts),
        sections=sum(row.shards for parts in units.values() for row in parts),
        is_newest=any(row.is_newest for row in rows),
    )


@dataclass(slots=True)
class Branch:
    """A node with those below it."""

    id: str
    kind: str
    label: str
    children: list[Branch]
    status: str | None = None


def tree(
    database: Database, source: str, version: str, top: str | None = None, *, depth: int
) -> list[Branch]:
    """The units of an edition, or one node, and so many levels below, in the publisher's order."""
    root = ids.tree_root(source, version)
    start = top or root
    with database.read() as connection:
        rows = _below(connection, start, depth)
    if not rows:
        raise UnknownDocumentError(f"nothing is held below {start}; see `fonds code list`")
    return _branches(rows)


def _below(connection: Connection, start: str, depth: int) -> list[Row[Any]]:
    """The node itself and those so many levels below, each level in the publisher's order."""
    rows = list(connection.execute(_outline_nodes().where(nodes.c.id == start)))
    level = [start]
    for _ in range(depth):
        found = in_order(select_in(connection, _outline_nodes(), nodes.c.parent, level))
        if not found:
            break
        rows += found
        level = [row.id for row in found]
    return rows


def _outline_nodes() -> Select[Any]:
    table = nodes.c
    return select(table.id, table.kind, table.label, table.status, table.unit, table.position)


def in_order(rows: Iterable[Row[Any]]) -> list[Row[Any]]:
    """Nodes in the publisher's order, by `unit` and `position`.

    Units have no place among each other but their numbers; within one, the position tells.
    """
    return sorted(rows, key=lambda row: (ids.edition_order(row.unit), row.position))


def _branches(rows: Sequence[Row[Any]]) -> list[Branch]:
    """A node whose parent was not asked for is a top; a parent may be of another unit's making."""
    known = {row.id: Branch(row.id, row.kind, row.label, [], row.status) for row in rows}
    tops: list[Branch] = []
    for branch in known.values():
        above = known.get(ids.tree_parent(branch.id) or "")
        (above.children if above else tops).append(branch)
    return tops
