"""Codes from the top down: codes, editions, and one level of a tree at a time.

Looking at a code that is held: its editions, its units, and its tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, select

from fonds import ids
from fonds.catalog.changes import ListPage
from fonds.errors import UnknownDocumentError
from fonds.sources.jurisdiction import CodeInfo
from fonds.sources.registry import SourceRegistry
from fonds.stores.database import Database, from_row
from fonds.stores.sqlite import select_in
from fonds.stores.tables import code_units, nodes


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEdition:
    """One edition of a code, as far as it is held."""

    source: str
    version: str
    units: int
    complete: int
    nodes: int
    sections: int
    is_newest: bool
    """Whether a search looks at any of its units."""


def editions(database: Database, source: str | None = None) -> list[StoredEdition]:
    """All editions that are held, or those of one code; of each code the oldest first."""
    table = code_units.c
    columns = (table.source, table.version, table.unit, table.nodes, table.shards)
    query = select(*columns, table.state, table.is_newest)
    if source is not None:
        query = query.where(table.source == source)
    with database.read() as connection:
        rows: Sequence[Any] = connection.execute(query.order_by(table.source, table.version)).all()
    units_by_edition: dict[tuple[str, str], list[Row[Any]]] = {}
    for row in rows:
        units_by_edition.setdefault((row.source, row.version), []).append(row)
    listed = [
        _edition(source, version, units) for (source, version), units in units_by_edition.items()
    ]
    return sorted(listed, key=lambda edition: (edition.source, ids.edition_order(edition.version)))


def _edition(source: str, version: str, rows: Sequence[Row[Any]]) -> StoredEdition:
    """A unit that was taken in by its parts counts once, and is complete when they all are."""
    units: dict[str, list[Row[Any]]] = {}
    for row in rows:
        units.setdefault(row.unit.partition("/")[0], []).append(row)
    for name, parts in units.items():
        whole = [row for row in parts if row.unit == name]
        units[name] = whole or parts
    return StoredEdition(
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
        rows = [row for row in _below(connection, start, depth) if row.id != root]
    if not rows:
        raise UnknownDocumentError(f"nothing is held below {start}; see `fonds code list`")
    return _branches(rows)


def _below(connection: Connection, start: str, depth: int) -> list[Row[Any]]:
    """The node itself and those so many levels below, each level in the publisher's order."""
    rows = list(connection.execute(_outline_nodes().where(nodes.c.id == start)))
    level = [start]
    for _ in range(depth):
        children = in_order(select_in(connection, _outline_nodes(), nodes.c.parent, level))
        if not children:
            break
        rows += children
        level = [row.id for row in children]
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
    branches = {row.id: Branch(row.id, row.kind, row.label, [], row.status) for row in rows}
    tops: list[Branch] = []
    for branch in branches.values():
        above = branches.get(ids.tree_parent(branch.id) or "")
        (above.children if above else tops).append(branch)
    return tops


MAX_CHILDREN: Final = 500
"""Of a node, shown at once."""
_UNITS: Final = 10
"""Next to a unit that are looked at for a leaf; some are reserved and have none."""
_LAST: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """A code of which something is held."""

    name: str
    title: str
    jurisdiction: str
    unit: str
    """The name of a unit: `title`, `act`."""
    language: str
    editions: tuple[StoredEdition, ...]
    """The newest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A place in the tree of an edition."""

    id: str
    kind: str
    label: str
    status: str | None
    """`repealed`, `reserved`, …; None is in force."""
    is_leaf: bool
    """Whether it has a text, a document of the same id, and nothing below it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodePosition:
    """A node with what is above it, beside it, and a page of what is below it."""

    source: str
    version: str
    node: Node | None
    """None is the root of the edition."""
    above: tuple[Node, ...]
    """Outermost first, without the root."""
    children: ListPage[Node]
    previous: Node | None
    """Of a leaf: the one before it, in reading order."""
    next: Node | None


def codes(database: Database, registry: SourceRegistry) -> list[Code]:
    """All codes that are held, each with its editions."""
    by_code: dict[str, list[StoredEdition]] = {}
    for edition in editions(database):
        by_code.setdefault(edition.source, []).append(edition)
    return [_code(name, listed, registry) for name, listed in by_code.items()]


def code(database: Database, registry: SourceRegistry, name: str) -> Code:
    """One code with its editions."""
    listed = editions(database, name)
    if not listed:
        raise UnknownDocumentError(f"no code {name!r} is held; see `fonds code list`")
    return _code(name, listed, registry)


def code_position(
    database: Database, path: str, *, limit: int = MAX_CHILDREN, offset: int = 0
) -> CodePosition:
    """The node of an id, or the root of an edition: `usc/119-36`."""
    source, version, *below = [*path.strip("/").split("/", 3), ""]
    root = f"{source}/{version}/root"
    limit = min(limit, MAX_CHILDREN)
    with database.read() as connection:
        if below in ([""], ["root", ""]):
            return _root(connection, source, version, limit, offset)
        row = connection.execute(_nodes().where(nodes.c.id == path.strip("/"))).one_or_none()
        if row is None:
            raise UnknownDocumentError(f"no code that is held has {path!r}; see `fonds code list`")
        previous, following = _neighbours(connection, row) if _is_leaf(row) else (None, None)
        return CodePosition(
            source=row.source,
            version=row.version,
            node=_node(row),
            above=_above(connection, row.id, root),
            children=_children(connection, row.id, limit, offset),
            previous=previous,
            next=following,
        )


def _root(
    connection: Connection, source: str, version: str, limit: int, offset: int
) -> CodePosition:
    children = _children(connection, f"{source}/{version}/root", limit, offset)
    if not children.total:
        raise UnknownDocumentError(
            f"of {source!r} no edition {version!r} is held; see `fonds code list`"
        )
    return CodePosition(
        source=source,
        version=version,
        node=None,
        above=(),
        children=children,
        previous=None,
        next=None,
    )


def _children(connection: Connection, parent: str, limit: int, offset: int) -> ListPage[Node]:
    """A page of the nodes directly below a node; deeper ones are not read."""
    table = nodes.c
    children = select(table.id, table.unit, table.position).where(table.parent == parent)
    every = in_order(connection.execute(children))
    displayed = [row.id for row in every[offset : offset + limit]]
    rows = {row.id: row for row in select_in(connection, _nodes(), table.id, displayed)}
    return ListPage(
        items=tuple(_node(rows[each]) for each in displayed),
        next_offset=offset + limit if offset + limit < len(every) else None,
        total=len(every),
    )


def _above(connection: Connection, node_id: str, root: str) -> tuple[Node, ...]:
    names = []
    above = ids.tree_parent(node_id)
    while above is not None and above != root:
        names.append(above)
        above = ids.tree_parent(above)
    rows = {row.id: row for row in select_in(connection, _nodes(), nodes.c.id, names)}
    return tuple(_node(rows[name]) for name in reversed(names) if name in rows)


def _neighbours(connection: Connection, row: Row[Any]) -> tuple[Node | None, Node | None]:
    """The leaves before and after one, those of the units next to its own included."""
    before = _nearest(connection, row.unit, before=row.position)
    after = _nearest(connection, row.unit, after=row.position)
    if before is not None and after is not None:
        return before, after
    unit = code_units.c
    query = select(unit.id).where(unit.source == row.source, unit.version == row.version)
    units = sorted(connection.scalars(query), key=ids.edition_order)
    at = units.index(row.unit) if row.unit in units else len(units)
    if before is None:
        earlier = units[max(0, at - _UNITS) : at][::-1]
        nearest = (_nearest(connection, each, before=_LAST) for each in earlier)
        before = next((leaf for leaf in nearest if leaf is not None), None)
    if after is None:
        nearest = (_nearest(connection, each, after=-1) for each in units[at + 1 : at + _UNITS])
        after = next((leaf for leaf in nearest if leaf is not None), None)
    return before, after


def _nearest(
    connection: Connection, unit: str, *, before: int | None = None, after: int | None = None
) -> Node | None:
    table = nodes.c
    leaves = _nodes().where(table.unit == unit, table.body_ref.is_not(None)).limit(1)
    if before is not None:
        leaves = leaves.where(table.position < before).order_by(table.position.desc())
    else:
        leaves = leaves.where(table.position > after).order_by(table.position)
    row = connection.execute(leaves).one_or_none()
    return None if row is None else _node(row)


def _nodes() -> Select[Any]:
    table = nodes.c
    return select(
        table.id,
        table.source,
        table.version,
        table.kind,
        table.label,
        table.status,
        table.unit,
        table.position,
        table.body_ref,
    )


def _node(row: Row[Any]) -> Node:
    return from_row(Node, row, is_leaf=_is_leaf(row))


def _is_leaf(row: Row[Any]) -> bool:
    return row.body_ref is not None


def _code(name: str, listed: Sequence[StoredEdition], registry: SourceRegistry) -> Code:
    source = registry.codes().get(name)
    info: CodeInfo | None = source.info if source else None
    return Code(
        name=name,
        title=info.title if info else name,
        jurisdiction=info.jurisdiction if info else "",
        unit=info.unit if info else "unit",
        language=info.language if info else "",
        editions=tuple(
            sorted(listed, key=lambda edition: ids.edition_order(edition.version), reverse=True)
        ),
    )
