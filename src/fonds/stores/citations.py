"""Citations between documents: written for each document, linked through the names of others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, delete, select, text, update

from fonds import ids
from fonds.stores.database import insert_many
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import citation_edges, document_aliases, documents


def take_turn(connection: Connection) -> None:
    """Let only one transaction at a time write edges, so that none misses another's names.

    Two that ran side by side could each write a half of a link that the other cannot see.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE citation_edges IN SHARE ROW EXCLUSIVE MODE"))


def replace_edges(connection: Connection, edges: Mapping[str, Sequence[Mapping[str, Any]]]) -> int:
    """Give documents, by id, the citations found in them, each with the document it leads to.

    Says how many of them lead to one.
    """
    for batch in batched(edges):
        held = citation_edges.c.from_document_id.in_(batch)
        connection.execute(delete(citation_edges).where(held))
    named = resolve(connection, {row["target"] for found in edges.values() for row in found})
    rows = [
        {**row, "to_document_id": named.get(row["target"])}
        for found in edges.values()
        for row in found
    ]
    insert_many(connection, citation_edges, rows)
    return sum(row["to_document_id"] is not None for row in rows)


def link(connection: Connection, document_ids: Collection[str]) -> int:
    """Point the edges that cite these documents, by a name they have or had, where they belong.

    Says how many edges changed. Only edges with such a name are looked at.
    """
    edges, aliases = citation_edges.c, document_aliases.c
    names = select_in(connection, select(aliases.alias), aliases.document_id, [*document_ids])
    targets = {row.alias for row in names}
    led_here = select(edges.target).distinct()
    former = select_in(connection, led_here, edges.to_document_id, [*document_ids])
    targets |= {row.target for row in former}
    named = resolve(connection, targets)
    pointing = select(edges.target, edges.to_document_id).distinct()
    wrong = [
        row
        for row in select_in(connection, pointing, edges.target, sorted(targets))
        if row.to_document_id != named.get(row.target)
    ]
    return sum(_point(connection, row, named.get(row.target)) for row in wrong)


def _point(connection: Connection, row: Row[Any], document_id: str | None) -> int:
    edges = citation_edges.c
    same = edges.to_document_id.is_not_distinct_from(row.to_document_id)
    statement = update(citation_edges).where(edges.target == row.target, same)
    return connection.execute(statement.values(to_document_id=document_id)).rowcount


def resolve(connection: Connection, targets: Collection[str]) -> dict[str, str]:
    """The document each target names; a target that names several equally well is left out.

    Uploads are never named. Documents their publisher has withdrawn only count where no other
    has the name, and of several editions the newest counts.
    """
    aliases = document_aliases.c
    query = (
        select(
            aliases.alias,
            aliases.document_id,
            aliases.edition,
            documents.c.gone_at,
            documents.c.published_at,
        )
        .join(documents, documents.c.id == aliases.document_id)
        .where(visible_to(None))
    )
    named: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in select_in(connection, query, aliases.alias, sorted(targets)):
        named[row.alias].append(row)
    chosen = {target: _choose(rows) for target, rows in named.items()}
    return {target: best for target, best in chosen.items() if best is not None}


def _choose(rows: Sequence[Row[Any]]) -> str | None:
    current = [row for row in rows if row.gone_at is None] or rows
    newest = max(map(_age, current))
    best = [row for row in current if _age(row) == newest]
    return best[0].document_id if len(best) == 1 else None


def _age(row: Row[Any]) -> tuple[Any, ...]:
    """What editions of one section are compared by; documents without any are equally old."""
    if row.edition is None:
        return ()
    return (row.published_at or "", ids.edition_order(row.edition))


def edges_from(
    connection: Connection, document_id: str, *, owner: UUID | None = None
) -> Sequence[Row[Any]]:
    """All that a document cites beside itself, in its own order.

    What a user may not see is not held, as far as they can tell.
    """
    edges = citation_edges.c
    others = edges.to_document_id.is_distinct_from(document_id)
    found = (each for each in edges if each.name != "to_document_id")
    query: Select[Any] = (
        select(*found, documents.c.id.label("to_document_id"), documents.c.title)
        .outerjoin(documents, (documents.c.id == edges.to_document_id) & visible_to(owner))
        .where(edges.from_document_id == document_id, others)
        .order_by(edges.start)
    )
    return connection.execute(query).all()


def edges_to(
    connection: Connection, document_id: str, limit: int, *, owner: UUID | None = None
) -> Sequence[Row[Any]]:
    """The citations of a document in others that a user may see, newest documents first."""
    edges = citation_edges.c
    query = (
        select(
            citation_edges,
            documents.c.title,
            documents.c.published_at,
            documents.c.citation_string,
        )
        .join(documents, documents.c.id == edges.from_document_id)
        .where(edges.to_document_id == document_id, edges.from_document_id != document_id)
        .where(visible_to(owner))
        .order_by(documents.c.published_at.desc(), edges.from_document_id, edges.start)
        .limit(limit)
    )
    return connection.execute(query).all()
