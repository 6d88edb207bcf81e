"""The core tables, the full-text index, and the rule that a finished run stays finished."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Identity, Json, Timestamp

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_document_chunk_buffer()
    _create_documents()
    _create_embedding_models()
    _create_fetched_files()
    _create_ingestion_commands()
    _create_ingestion_embedding_queue()
    _create_ingestion_inputs()
    _create_ingestion_leases()
    _create_ingestion_normalization_queue()
    _create_ingestion_runs()
    _create_ingestion_source_state()
    _create_nodes()
    _create_table_versions()
    _create_upload_jobs()
    _create_document_aliases()
    _create_document_vector_buffer()
    _create_document_versions()
    _create_ingestion_logs()
    _create_ingestion_tasks()
    _create_index_of_words()
    _forbid_moves_of_finished_runs()


def _create_document_chunk_buffer() -> None:
    op.create_table(
        "document_chunk_buffer",
        sa.Column("id", sa.Integer(), nullable=False, comment="Row of the full-text index."),
        sa.Column("chunk_id", Identity(), nullable=False),
        sa.Column("document_id", Identity(), nullable=False, comment="documents.uid"),
        sa.Column("chunk_ord", sa.Integer(), nullable=False),
        sa.Column("chunker_name", sa.Text(), nullable=False),
        sa.Column("chunker_version", sa.Text(), nullable=False),
        sa.Column("chunk_sha", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("meta", Json, nullable=False, comment="start, end, tokens, locator"),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document_chunk_buffer")),
        sa.UniqueConstraint("chunk_id", name=op.f("uq_document_chunk_buffer_chunk_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_document_chunk_buffer_chunk_sha", "document_chunk_buffer", ["chunk_sha"], unique=False
    )
    op.create_index(
        "ix_document_chunk_buffer_document_id",
        "document_chunk_buffer",
        ["document_id", "chunk_ord"],
        unique=False,
    )


def _create_documents() -> None:
    op.create_table(
        "documents",
        *_create_documents_first_columns(),
        *_create_documents_further_columns(),
        sa.CheckConstraint(
            "body_raw_format IS NULL OR body_raw_format IN ('html', 'xml', 'pdf', 'text')",
            name=op.f("ck_documents_body_raw_format"),
        ),
        sa.CheckConstraint("citation_string <> ''", name=op.f("ck_documents_cited")),
        sa.CheckConstraint(
            "source_url <> '' AND source_org <> ''", name=op.f("ck_documents_provenance")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
        sa.UniqueConstraint("uid", name=op.f("uq_documents_uid")),
    )
    op.create_index(
        "ix_documents_body_normalizer_version",
        "documents",
        ["body_normalizer_version"],
        unique=False,
    )
    op.create_index(
        "ix_documents_source_published_at", "documents", ["source", "published_at"], unique=False
    )
    op.create_index(
        "ix_documents_source_task_key", "documents", ["source", "task_key"], unique=False
    )


def _create_documents_first_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.Text(), nullable=False, comment="Canonical id, e.g. fr:2026-08558."),
        sa.Column("uid", Identity(), nullable=False, comment="UUIDv5 of id."),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column(
            "owner", Identity(), nullable=True, comment="User an upload belongs to; NULL is public."
        ),
        sa.Column("source_url", sa.Text(), nullable=False, comment="The page a person would open."),
        sa.Column("source_org", sa.Text(), nullable=False, comment="The issuing body."),
        sa.Column("published_at", sa.Text(), nullable=True, comment="ISO 8601."),
        sa.Column("retrieved_at", Timestamp(), nullable=False),
        sa.Column(
            "raw_path",
            sa.Text(),
            nullable=False,
            comment="Blob key of the file the record is from.",
        ),
        sa.Column("raw_sha256", sa.Text(), nullable=False),
        sa.Column("citation_string", sa.Text(), nullable=False),
        sa.Column(
            "body_raw_path", sa.Text(), nullable=True, comment="Blob key of the body's raw bytes."
        ),
    ]


def _create_documents_further_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("body_raw_format", sa.Text(), nullable=True),
        sa.Column("body_raw_sha256", sa.Text(), nullable=True),
        sa.Column("body_text", sa.Text(), nullable=True, comment="Normalized Markdown."),
        sa.Column("body_text_sha256", sa.Text(), nullable=True),
        sa.Column("body_normalized_at", Timestamp(), nullable=True),
        sa.Column("body_normalizer_version", sa.Text(), nullable=True, comment="name@semver"),
        sa.Column(
            "body_map",
            Json,
            nullable=True,
            comment="Section labels and page marks by offset into body_text.",
        ),
        sa.Column("content_sha256", sa.Text(), nullable=False, comment="Over all a record says."),
        sa.Column(
            "recipe",
            sa.Text(),
            nullable=False,
            comment="Normalizer and chunker that derived the rest.",
        ),
        sa.Column(
            "task_key",
            sa.Text(),
            nullable=True,
            comment="The input this document was last loaded from.",
        ),
        sa.Column("updated_at", Timestamp(), nullable=False),
        sa.Column(
            "gone_at",
            Timestamp(),
            nullable=True,
            comment="When the publisher was seen to have withdrawn it.",
        ),
    ]


def _create_embedding_models() -> None:
    op.create_table(
        "embedding_models",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("dims", sa.Integer(), nullable=False),
        sa.Column("price", sa.Float(), nullable=False, comment="USD for a million tokens."),
        sa.PrimaryKeyConstraint("name", "version", name=op.f("pk_embedding_models")),
    )


def _create_fetched_files() -> None:
    op.create_table(
        "fetched_files",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("blob_key", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("retrieved_at", Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("source", "url", name=op.f("pk_fetched_files")),
    )
    op.create_index(op.f("ix_fetched_files_blob_key"), "fetched_files", ["blob_key"], unique=False)


def _create_ingestion_commands() -> None:
    op.create_table(
        "ingestion_commands",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("args", Json, nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("requested_at", Timestamp(), nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("lease_until", Timestamp(), nullable=True),
        sa.Column("finished_at", Timestamp(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingestion_commands")),
        sqlite_autoincrement=True,
    )


def _create_ingestion_embedding_queue() -> None:
    op.create_table(
        "ingestion_embedding_queue",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("input_sha", sa.Text(), nullable=False),
        sa.Column("enqueued_at", Timestamp(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_attempt_at", Timestamp(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingestion_embedding_queue")),
        sa.UniqueConstraint(
            "table_name",
            "record_id",
            name=op.f("uq_ingestion_embedding_queue_table_name_record_id"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ingestion_embedding_queue_pending",
        "ingestion_embedding_queue",
        ["id"],
        unique=False,
        sqlite_where=sa.text("attempts < 5"),
        postgresql_where=sa.text("attempts < 5"),
    )


def _create_ingestion_inputs() -> None:
    op.create_table(
        "ingestion_inputs",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
        sa.Column(
            "input_sha256", sa.Text(), nullable=False, comment="Over the bytes and parameters."
        ),
        sa.Column(
            "recipe", sa.Text(), nullable=False, comment="Version of everything that read them."
        ),
        sa.Column(
            "fingerprint",
            sa.Text(),
            nullable=True,
            comment="Of the listing's entry, where there is one.",
        ),
        sa.Column("records", sa.Integer(), nullable=False, comment="How many it yielded."),
        sa.Column("validated_at", Timestamp(), nullable=False, comment="Last asked for upstream."),
        sa.PrimaryKeyConstraint("source", "task_key", name=op.f("pk_ingestion_inputs")),
    )


def _create_ingestion_leases() -> None:
    op.create_table(
        "ingestion_leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("lease_until", Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_ingestion_leases")),
    )


def _create_ingestion_normalization_queue() -> None:
    op.create_table(
        "ingestion_normalization_queue",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("raw_path", sa.Text(), nullable=False),
        sa.Column("raw_format", sa.Text(), nullable=False),
        sa.Column("input_sha", sa.Text(), nullable=False),
        sa.Column("enqueued_at", Timestamp(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_attempt_at", Timestamp(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingestion_normalization_queue")),
        sa.UniqueConstraint(
            "table_name",
            "record_id",
            name=op.f("uq_ingestion_normalization_queue_table_name_record_id"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ingestion_normalization_queue_pending",
        "ingestion_normalization_queue",
        ["id"],
        unique=False,
        sqlite_where=sa.text("attempts < 5"),
        postgresql_where=sa.text("attempts < 5"),
    )


def _create_ingestion_runs() -> None:
    op.create_table(
        "ingestion_runs",
        sa.Column("id", Identity(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("started_at", Timestamp(), nullable=False),
        sa.Column("finished_at", Timestamp(), nullable=True),
        sa.Column("discovered_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("fetched_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("parsed_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("inserted_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("updated_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("skipped_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("gone_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("config", Json, nullable=False),
        sa.Column("error_summary", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(status = 'running') = (finished_at IS NULL)", name=op.f("ck_ingestion_runs_finished")
        ),
        sa.CheckConstraint(
            "mode IN ('incremental', 'backfill', 'manual')", name=op.f("ck_ingestion_runs_mode")
        ),
        sa.CheckConstraint(
            "status IN ('running', 'success', 'partial', 'failed', 'cancelled')",
            name=op.f("ck_ingestion_runs_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingestion_runs")),
    )
    op.create_index(
        "ix_ingestion_runs_source_started", "ingestion_runs", ["source", "started_at"], unique=False
    )
    op.create_index(
        "ix_ingestion_runs_status",
        "ingestion_runs",
        ["status", "started_at"],
        unique=False,
        sqlite_where=sa.text("status IN ('running', 'failed')"),
        postgresql_where=sa.text("status IN ('running', 'failed')"),
    )


def _create_ingestion_source_state() -> None:
    op.create_table(
        "ingestion_source_state",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("last_run_at", Timestamp(), nullable=True),
        sa.Column("last_success_at", Timestamp(), nullable=True),
        sa.Column("last_seen_key", sa.Text(), nullable=True),
        sa.Column("custom", Json, nullable=False),
        sa.PrimaryKeyConstraint("source", name=op.f("pk_ingestion_source_state")),
    )


def _create_nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column(
            "id", sa.Text(), nullable=False, comment="Hierarchical: the parent is a strict prefix."
        ),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column(
            "body_ref", sa.Text(), nullable=True, comment="<pack>#<entry>; NULL for a container."
        ),
        sa.Column("created_at", sa.Integer(), nullable=False, comment="Unix seconds."),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
    )
    op.create_index("ix_nodes_source_version", "nodes", ["source", "version"], unique=False)


def _create_table_versions() -> None:
    op.create_table(
        "table_versions",
        sa.Column(
            "source", sa.Text(), nullable=False, comment="A plugin that brought its own tables."
        ),
        sa.Column("fingerprint", sa.Text(), nullable=False, comment="Of the tables' columns."),
        sa.PrimaryKeyConstraint("source", name=op.f("pk_table_versions")),
    )


def _create_upload_jobs() -> None:
    op.create_table(
        "upload_jobs",
        sa.Column("job_id", Identity(), nullable=False),
        sa.Column("user_id", Identity(), nullable=False),
        sa.Column("document_id", Identity(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("raw_path", sa.Text(), nullable=False),
        sa.Column("parsed_path", sa.Text(), nullable=True),
        sa.Column("parsed_sha256", sa.Text(), nullable=True),
        sa.Column("chunks_version", sa.Text(), nullable=False, comment="chunker@semver"),
        sa.Column("embed_model", sa.Text(), nullable=True),
        sa.Column("embed_version", sa.Text(), nullable=True),
        sa.Column("progress", Json, nullable=True),
        sa.Column("retry_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", Json, nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", Timestamp(), nullable=True),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.Column("updated_at", Timestamp(), nullable=False),
        sa.CheckConstraint(
            "status IN ('uploaded', 'parse_queued', 'parsed', 'parse_validated', 'chunking', 'chunks_stored', 'embedding_queued', 'embedding_in_progress', 'embeddings_stored', 'complete', 'failed_parse', 'failed_chunking', 'failed_embedding')",
            name=op.f("ck_upload_jobs_status"),
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_upload_jobs")),
    )
    op.create_index("idx_upload_jobs_document", "upload_jobs", ["document_id"], unique=False)
    op.create_index("idx_upload_jobs_status", "upload_jobs", ["status", "created_at"], unique=False)


def _create_document_aliases() -> None:
    op.create_table(
        "document_aliases",
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("edition", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_document_aliases_document_id")
        ),
        sa.PrimaryKeyConstraint("alias", "document_id", name=op.f("pk_document_aliases")),
    )
    op.create_index(
        "ix_document_aliases_document_id", "document_aliases", ["document_id"], unique=False
    )


def _create_document_vector_buffer() -> None:
    op.create_table(
        "document_vector_buffer",
        sa.Column("document_id", Identity(), nullable=False),
        sa.Column("chunk_id", Identity(), nullable=False),
        sa.Column("embed_model", sa.Text(), nullable=False),
        sa.Column("embed_version", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False, comment="float32, little-endian"),
        sa.Column(
            "vector_sha", sa.Text(), nullable=False, comment="sha256 of the base64 of vector"
        ),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chunk_id"],
            ["document_chunk_buffer.chunk_id"],
            name=op.f("fk_document_vector_buffer_chunk_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "chunk_id", "embed_model", "embed_version", name=op.f("pk_document_vector_buffer")
        ),
    )
    op.create_index(
        "ix_document_vector_buffer_document_id",
        "document_vector_buffer",
        ["document_id", "embed_model", "embed_version"],
        unique=False,
    )


def _create_document_versions() -> None:
    op.create_table(
        "document_versions",
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column("raw_sha256", sa.Text(), nullable=False),
        sa.Column("archive_key", sa.Text(), nullable=False),
        sa.Column("body_raw_sha256", sa.Text(), nullable=True),
        sa.Column("body_archive_key", sa.Text(), nullable=True),
        sa.Column("body_text_sha256", sa.Text(), nullable=True),
        sa.Column("first_seen_at", Timestamp(), nullable=False),
        sa.Column("last_seen_at", Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_document_versions_document_id")
        ),
        sa.PrimaryKeyConstraint("document_id", "content_sha256", name=op.f("pk_document_versions")),
    )


def _create_ingestion_logs() -> None:
    op.create_table(
        "ingestion_logs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", Identity(), nullable=False),
        sa.Column("logged_at", Timestamp(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("context", Json, nullable=True),
        sa.CheckConstraint(
            "level IN ('debug', 'info', 'warn', 'error')", name=op.f("ck_ingestion_logs_level")
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["ingestion_runs.id"],
            name=op.f("fk_ingestion_logs_run_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingestion_logs")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_ingestion_logs_errors",
        "ingestion_logs",
        ["run_id", "logged_at"],
        unique=False,
        sqlite_where=sa.text("level = 'error'"),
        postgresql_where=sa.text("level = 'error'"),
    )
    op.create_index(
        "ix_ingestion_logs_run", "ingestion_logs", ["run_id", "logged_at"], unique=False
    )


def _create_ingestion_tasks() -> None:
    op.create_table(
        "ingestion_tasks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", Identity(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("started_at", Timestamp(), nullable=False),
        sa.Column("finished_at", Timestamp(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True, comment="What went wrong, for people."),
        sa.Column(
            "error_type", sa.Text(), nullable=True, comment="Name of the error, to group by."
        ),
        sa.Column(
            "error_stage", sa.Text(), nullable=True, comment="fetch, parse, load or discover"
        ),
        sa.Column(
            "task",
            Json,
            nullable=True,
            comment="The task itself while it is errored, for the next run.",
        ),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "resolved_at",
            Timestamp(),
            nullable=True,
            comment="When a later run loaded it, or it was dismissed.",
        ),
        sa.CheckConstraint(
            "stage IN ('discovered', 'fetched', 'parsed', 'loaded', 'errored')",
            name=op.f("ck_ingestion_tasks_stage"),
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["ingestion_runs.id"],
            name=op.f("fk_ingestion_tasks_run_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingestion_tasks")),
        sa.UniqueConstraint("run_id", "task_key", name=op.f("uq_ingestion_tasks_run_id_task_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_ingestion_tasks_open_errors",
        "ingestion_tasks",
        ["source", "task_key"],
        unique=False,
        sqlite_where=sa.text("stage = 'errored' AND resolved_at IS NULL"),
        postgresql_where=sa.text("stage = 'errored' AND resolved_at IS NULL"),
    )
    op.create_index("ix_ingestion_tasks_run", "ingestion_tasks", ["run_id", "stage"], unique=False)


def _create_index_of_words() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE chunk_index USING fts5("
            "title, headings, text, content='', contentless_delete=1, "
            "tokenize='porter unicode61 remove_diacritics 2')"
        )
        return
    op.execute(
        "CREATE TABLE chunk_index ("
        "id INTEGER PRIMARY KEY REFERENCES document_chunk_buffer (id) ON DELETE CASCADE, "
        "words TSVECTOR NOT NULL)"
    )
    op.execute("CREATE INDEX ix_chunk_index_words ON chunk_index USING gin (words)")


def _forbid_moves_of_finished_runs() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            "CREATE TRIGGER ingestion_runs_moves BEFORE UPDATE OF status ON ingestion_runs "
            "WHEN OLD.status <> 'running' AND NEW.status <> OLD.status "
            "BEGIN SELECT RAISE(ABORT, 'a finished run does not change its status'); END"
        )
        return
    op.execute(
        "CREATE FUNCTION ingestion_runs_moves() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'a finished run does not change its status' "
        "USING ERRCODE = 'check_violation'; END $$"
    )
    op.execute(
        "CREATE TRIGGER ingestion_runs_moves BEFORE UPDATE OF status ON ingestion_runs "
        "FOR EACH ROW WHEN (OLD.status <> 'running' AND NEW.status <> OLD.status) "
        "EXECUTE FUNCTION ingestion_runs_moves()"
    )
