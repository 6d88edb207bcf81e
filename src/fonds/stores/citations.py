"""Citations between documents: stored by citing document, linked by the aliases of the cited."""

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


def lock_edges(connection: Connection) -> None:
    """Let only one transaction at a time write edges.

    Of two concurrent ones, each could write a half of a link that the other cannot see.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE citation_edges IN SHARE ROW EXCLUSIVE MODE"))


def replace_edges(connection: Connection, edges: Mapping[str, Sequence[Mapping[str, Any]]]) -> int:
    """Store the citations in some documents, by id, each with the document it points to.

    Returns how many point to a document.
    """
    for batch in batched(edges):
        is_stale = citation_edges.c.from_document_id.in_(batch)
        connection.execute(delete(citation_edges).where(is_stale))
    target_ids = resolve(
        connection, {row["target"] for citations in edges.values() for row in citations}
    )
    rows = [
        {**row, "to_document_id": target_ids.get(row["target"])}
        for citations in edges.values()
        for row in citations
    ]
    insert_many(connection, citation_edges, rows)
    return sum(row["to_document_id"] is not None for row in rows)


def link(connection: Connection, document_ids: Collection[str]) -> int:
    """Update the edges that cite these documents by an alias that they have or had.

    Returns how many edges changed.
    """
    edges, aliases = citation_edges.c, document_aliases.c
    names = select_in(connection, select(aliases.alias), aliases.document_id, [*document_ids])
    targets = {row.alias for row in names}
    cited = select(edges.target).distinct()
    linked = select_in(connection, cited, edges.to_document_id, [*document_ids])
    targets |= {row.target for row in linked}
    target_ids = resolve(connection, targets)
    pointing = select(edges.target, edges.to_document_id).distinct()
    wrong = [
        row
        for row in select_in(connection, pointing, edges.target, sorted(targets))
        if row.to_document_id != target_ids.get(row.target)
    ]
    return sum(_point(connection, row, target_ids.get(row.target)) for row in wrong)


def _point(connection: Connection, row: Row[Any], document_id: str | None) -> int:
    edges = citation_edges.c
    same = edges.to_document_id.is_not_distinct_from(row.to_document_id)
    statement = update(citation_edges).where(edges.target == row.target, same)
    return connection.execute(statement.values(to_document_id=document_id)).rowcount


def resolve(connection: Connection, targets: Collection[str]) -> dict[str, str]:
    """The document that each target names; ambiguous targets are left out.

    Uploads are never cited. Withdrawn documents count only if no other document has the name, and
    of several editions the newest counts.
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
    target_ids: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in select_in(connection, query, aliases.alias, sorted(targets)):
        target_ids[row.alias].append(row)
    chosen = {target: _choose(rows) for target, rows in target_ids.items()}
    return {target: best for target, best in chosen.items() if best is not None}


def _choose(rows: Sequence[Row[Any]]) -> str | None:
    current = [row for row in rows if row.gone_at is None] or rows
    newest = max(map(_age, current))
    best = [row for row in current if _age(row) == newest]
    return best[0].document_id if len(best) == 1 else None


def _age(row: Row[Any]) -> tuple[Any, ...]:
    """The order of the editions of a section; documents without editions are equal."""
    if row.edition is None:
        return ()
    return (row.published_at or "", ids.edition_order(row.edition))


def edges_from(
    connection: Connection, document_id: str, *, owner: UUID | None = None
) -> Sequence[Row[Any]]:
    """The citations in a document, except of itself, in its order.

    Documents that the user may not see look as if they were not in the library.
    """
    edges = citation_edges.c
    others = edges.to_document_id.is_distinct_from(document_id)
    columns = (each for each in edges if each.name != "to_document_id")
    query: Select[Any] = (
        select(*columns, documents.c.id.label("to_document_id"), documents.c.title)
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
