"""Removal of a document with everything that was derived from it. The caller owns the transaction.

Only uploads are removed: what a publisher withdraws stays, with the time at which it went.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection, delete

from fonds.stores.citations import lock_edges
from fonds.stores.fulltext import FullText
from fonds.stores.passages import remove_passages
from fonds.stores.tables import (
    document_aliases,
    document_versions,
    documents,
    ingestion_citation_queue,
    ingestion_embedding_queue,
    ingestion_normalization_queue,
)


def remove_document(
    connection: Connection, fulltext: FullText, document_id: str, uid: UUID
) -> None:
    """Remove a document, published or only staged, with its passages, vectors and citations.

    Citations of it by other documents stay and lead nowhere. Rows in queues go too, so that work
    in progress on it is not stored.
    """
    lock_edges(connection)
    for queue in (
        ingestion_normalization_queue,
        ingestion_embedding_queue,
        ingestion_citation_queue,
    ):
        own = (queue.c.table_name == "documents") & (queue.c.record_id == document_id)
        connection.execute(delete(queue).where(own))
    remove_passages(connection, fulltext, uid)
    for table in (document_aliases, document_versions):
        connection.execute(delete(table).where(table.c.document_id == document_id))
    connection.execute(delete(documents).where(documents.c.id == document_id))
