"""The routes of those who operate the library."""

from __future__ import annotations

from typing import Final

ADMIN: Final = (
    "GET /api/admin/ingestion/runs/{run_id}/logs/stream",
    "GET /api/admin/ingestion/sources",
    "GET /api/admin/ingestion/sources/{name}",
    "GET /api/admin/ingestion/runs",
    "GET /api/admin/ingestion/runs/{run_id}",
    "GET /api/admin/ingestion/runs/{run_id}/logs",
    "GET /api/admin/ingestion/runs/{run_id}/tasks",
    "GET /api/admin/ingestion/runs/{run_id}/errors",
    "POST /api/admin/ingestion/sources/{name}/run",
    "POST /api/admin/ingestion/sources/{name}/backfill",
    "POST /api/admin/ingestion/sources/{name}/retry",
    "POST /api/admin/ingestion/sources/{name}/audit",
    "POST /api/admin/ingestion/runs/{run_id}/cancel",
    "POST /api/admin/ingestion/queues/{queue}/drain",
    "POST /api/admin/ingestion/commands",
    "GET /api/admin/ingestion/commands",
    "GET /api/admin/ingestion/commands/{command_id}",
    "GET /api/admin/ingestion/embedding/queue",
    "GET /api/admin/ingestion/normalization/queue",
    "GET /api/admin/ingestion/citations/queue",
    "GET /api/admin/ingestion/uploads",
    "GET /api/admin/ingestion/sites",
    "GET /api/admin/ingestion/indexes",
    "GET /api/admin/ingestion/audits",
)
"""For operators alone: tests/contract/test_admin_api.py."""
