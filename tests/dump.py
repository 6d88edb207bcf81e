"""A database as its users see it: every row by its key, without what may differ between runs."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Table, inspect, select

from fonds.library import Library
from fonds.stores.tables import metadata

RUN_HISTORY = {
    "ingestion_runs",
    "ingestion_logs",
    "ingestion_stages",
    "ingestion_tasks",
    "ingestion_source_state",
    "ingestion_leases",
    "ingestion_commands",
}
CLOCK_COLUMNS = {
    "retrieved_at",
    "updated_at",
    "created_at",
    "enqueued_at",
    "body_normalized_at",
    "first_seen_at",
    "last_seen_at",
    "validated_at",
    "gone_at",
}
SURROGATE_KEYS = {
    ("document_chunk_buffer", "id"),
    ("ingestion_citation_queue", "id"),
    ("ingestion_embedding_queue", "id"),
    ("ingestion_normalization_queue", "id"),
}


def logical_dump(library: Library) -> dict[str, list[str]]:
    """All tables, rows sorted; whether a document is gone counts, but not since when."""
    with library.database.read() as connection:
        there = set(inspect(connection).get_table_names())
        tables = [t for t in metadata.sorted_tables if t.name in there - RUN_HISTORY]
        return {
            table.name: sorted(
                json.dumps(_visible(table, row._asdict()), sort_keys=True, default=str)
                for row in connection.execute(select(table))
            )
            for table in tables
        }


def _visible(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    shown = {
        name: value
        for name, value in row.items()
        if name not in CLOCK_COLUMNS and (table.name, name) not in SURROGATE_KEYS
    }
    return {**shown, "gone": row["gone_at"] is not None} if "gone_at" in row else shown
