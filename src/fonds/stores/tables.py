"""The core tables. The tables of a source are declared in its module, on the same `metadata`."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from fonds.stores.columns import Identity, Json, Timestamp

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _partial(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


def _lease_columns() -> tuple[Column[Any], Column[Any]]:
    return Column("lease_owner", Text), Column("lease_until", Timestamp)


# Documents --------------------------------------------------------------------------------

documents: Final = Table(
    "documents",
    metadata,
    Column("id", Text, primary_key=True, comment="Canonical id, e.g. fr:2026-08558."),
    Column("uid", Identity, nullable=False, unique=True, comment="UUIDv5 of id."),
    Column("source", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("summary", Text),
    Column("unit", Text, comment="code_units.id, of a section of a code; else NULL."),
    Column("owner", Identity, comment="User an upload belongs to; NULL is public."),
    Column("source_url", Text, nullable=False, comment="The page a person would open."),
    Column("source_org", Text, nullable=False, comment="The issuing body."),
    Column("published_at", Text, comment="ISO 8601."),
    Column("retrieved_at", Timestamp, nullable=False),
    Column("raw_path", Text, nullable=False, comment="Blob key of the file the record is from."),
    Column("raw_sha256", Text, nullable=False),
    Column("citation_string", Text, nullable=False),
    Column("body_raw_path", Text, comment="Blob key of the body's raw bytes."),
    Column("body_raw_format", Text),
    Column("body_raw_sha256", Text),
    Column("body_text", Text, comment="Normalized Markdown."),
    Column("body_text_sha256", Text),
    Column("body_normalized_at", Timestamp),
    Column("body_normalizer_version", Text, comment="name@semver"),
    Column("body_map", Json, comment="Section labels and page marks by offset into body_text."),
    Column("content_sha256", Text, nullable=False, comment="Over all a record says."),
    Column("recipe", Text, nullable=False, comment="Normalizer and chunker that derived the rest."),
    Column("task_key", Text, comment="The input this document was last loaded from."),
    Column("updated_at", Timestamp, nullable=False),
    Column("gone_at", Timestamp, comment="When the publisher was seen to have withdrawn it."),
    Column("bundle", Text, comment="Root and key of the bundle it is from; NULL: fetched here."),
    CheckConstraint("citation_string <> ''", name="cited"),
    CheckConstraint("source_url <> '' AND source_org <> ''", name="provenance"),
    CheckConstraint(
        "body_raw_format IS NULL OR body_raw_format IN ('html', 'xml', 'pdf', 'text')",
        name="body_raw_format",
    ),
    Index("ix_documents_source_published_at", "source", "published_at"),
    Index("ix_documents_source_task_key", "source", "task_key"),
    Index("ix_documents_body_normalizer_version", "body_normalizer_version"),
    Index("ix_documents_unit", "unit"),
    # Citations contain titles, some of which are too long for a B-tree of PostgreSQL.
    Index("ix_documents_citation_string", "citation_string", postgresql_using="hash"),
    _partial("ix_documents_gone_at", "gone_at", where="gone_at IS NOT NULL"),
)

document_versions: Final = Table(
    "document_versions",
    metadata,
    Column("document_id", ForeignKey("documents.id"), primary_key=True),
    Column("content_sha256", Text, primary_key=True),
    Column("raw_sha256", Text, nullable=False),
    Column("archive_key", Text, nullable=False),
    Column("body_raw_sha256", Text),
    Column("body_archive_key", Text),
    Column("body_text_sha256", Text),
    Column("first_seen_at", Timestamp, nullable=False),
    Column("last_seen_at", Timestamp, nullable=False),
    Column("source", Text, comment="documents.source"),
    Index("ix_document_versions_first_seen_at", "first_seen_at", "document_id"),
    Index("ix_document_versions_source", "source", "first_seen_at", "document_id"),
)

document_aliases: Final = Table(
    "document_aliases",
    metadata,
    Column("alias", Text, primary_key=True),
    Column("document_id", ForeignKey("documents.id"), primary_key=True),
    Column("edition", Text),
    Index("ix_document_aliases_document_id", "document_id"),
)

citation_edges: Final = Table(
    "citation_edges",
    metadata,
    Column(
        "from_document_id",
        ForeignKey("documents.id", ondelete="CASCADE"),
        primary_key=True,
        comment="The document that cites.",
    ),
    Column("start", Integer, primary_key=True, autoincrement=False, comment="In body_text."),
    Column("end", Integer, nullable=False, comment="In body_text, exclusive."),
    Column("locator", Json, nullable=False, comment="Of the passage that contains it."),
    Column("raw", Text, nullable=False, comment="As the document writes it."),
    Column("kind", Text, nullable=False, comment="usc, cfr, public_law, bill, fr, case, …"),
    Column("target", Text, nullable=False, comment="As document_aliases would have it."),
    Column("pinpoint", Text, comment="The place within the target: (a)(1), a page."),
    Column(
        "to_document_id",
        ForeignKey("documents.id", ondelete="SET NULL"),
        comment="The document cited, once it is held.",
    ),
    Index("ix_citation_edges_target", "target", "to_document_id"),
    Index("ix_citation_edges_to_document_id", "to_document_id", "target"),
)

# Codes ------------------------------------------------------------------------------------

code_units: Final = Table(
    "code_units",
    metadata,
    Column("id", Text, primary_key=True, comment="Its root node: usc/2024/root/title-42."),
    Column("source", Text, nullable=False),
    Column("version", Text, nullable=False, comment="The edition: the publisher's stamp."),
    Column("unit", Text, nullable=False, comment="Its name in every edition: title-42."),
    Column("label", Text, nullable=False),
    Column("published_at", Text, comment="ISO 8601; the day of the text."),
    Column("plan_key", Text, nullable=False, comment="Blob key of the plan."),
    Column("input_sha256", Text, nullable=False, comment="Over the pages that were walked."),
    Column("nodes", Integer, nullable=False),
    Column("shards", Integer, nullable=False, comment="Leaves among them."),
    Column("bytes", BigInteger, nullable=False, comment="Of the bodies, as far as planned."),
    Column("state", Text, nullable=False, comment="planned, partial, complete"),
    Column("is_newest", Boolean, nullable=False, comment="Searched unless another is asked for."),
    Column("planned_at", Timestamp, nullable=False),
    Column("completed_at", Timestamp),
    CheckConstraint("state IN ('planned', 'partial', 'complete')", name="state"),
    Index("ix_code_units_source_unit", "source", "unit", "version"),
)

nodes: Final = Table(
    "nodes",
    metadata,
    Column("id", Text, primary_key=True, comment="Hierarchical: the parent is a strict prefix."),
    Column("source", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("path", Text, nullable=False, comment="The segments below the edition's root."),
    Column(
        "body_ref", Text, comment="<pack>#<offset>+<length>; NULL: no text of its own, or missing."
    ),
    Column("unit", Text, nullable=False, comment="code_units.id"),
    Column("position", Integer, nullable=False, comment="In reading order, within the unit."),
    Column("status", Text, comment="repealed, reserved, …; `missing: ` and why; NULL is in force."),
    Column("created_at", Integer, nullable=False, comment="Unix seconds."),
    Column("parent", Text, nullable=False, comment="The id above: id without its last segment."),
    Index("ix_nodes_source_version", "source", "version"),
    Index("ix_nodes_unit_position", "unit", "position"),
    Index("ix_nodes_parent", "parent", "unit", "position"),
)

# Passages and vectors ---------------------------------------------------------------------

document_chunk_buffer: Final = Table(
    "document_chunk_buffer",
    metadata,
    Column("id", Integer, primary_key=True, comment="Row of the full-text index."),
    Column("chunk_id", Identity, nullable=False, unique=True),
    Column("document_id", Identity, nullable=False, comment="documents.uid"),
    Column("chunk_ord", Integer, nullable=False),
    Column("chunker_name", Text, nullable=False),
    Column("chunker_version", Text, nullable=False),
    Column("chunk_sha", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("meta", Json, nullable=False, comment="start, end, tokens, locator"),
    Column("created_at", Timestamp, nullable=False),
    Index("ix_document_chunk_buffer_document_id", "document_id", "chunk_ord"),
    Index("ix_document_chunk_buffer_chunk_sha", "chunk_sha"),
    sqlite_autoincrement=True,
)

embedding_models: Final = Table(
    "embedding_models",
    metadata,
    Column("name", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("dims", Integer, nullable=False),
    Column("price", Float, nullable=False, comment="USD for a million tokens."),
)

document_vector_buffer: Final = Table(
    "document_vector_buffer",
    metadata,
    Column("document_id", Identity, nullable=False),
    Column(
        "chunk_id",
        ForeignKey("document_chunk_buffer.chunk_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("embed_model", Text, primary_key=True),
    Column("embed_version", Text, primary_key=True),
    Column("vector", LargeBinary, nullable=False, comment="float32, little-endian"),
    Column("vector_sha", Text, nullable=False, comment="sha256 of the base64 of vector"),
    Column("created_at", Timestamp, nullable=False),
    Index("ix_document_vector_buffer_document_id", "document_id", "embed_model", "embed_version"),
)

embedding_generations: Final = Table(
    "embedding_generations",
    metadata,
    Column("id", Integer, primary_key=True, comment="Its vector index is named after it."),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("embedder", Text, nullable=False, comment="How the model is opened: wordllama, …"),
    Column("created_at", Timestamp, nullable=False),
    Column("filled_at", Timestamp, comment="When every passage first had a vector of it."),
    ForeignKeyConstraint(
        ["name", "version"], ["embedding_models.name", "embedding_models.version"]
    ),
    UniqueConstraint("name", "version"),
    sqlite_autoincrement=True,
)

embedding_choice: Final = Table(
    "embedding_choice",
    metadata,
    Column("id", Integer, primary_key=True, comment="Always 1: there is one choice."),
    Column("generation", ForeignKey("embedding_generations.id"), nullable=False),
    Column("previous", ForeignKey("embedding_generations.id"), comment="What a rollback takes."),
    Column("chosen_at", Timestamp, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)

embedding_batches: Final = Table(
    "embedding_batches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", Identity, nullable=False, comment="One call of `fonds embed`."),
    Column("generation", ForeignKey("embedding_generations.id"), nullable=False, index=True),
    Column("texts", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("requests", Integer, nullable=False, comment="Retries included."),
    Column("retries", Integer, nullable=False),
    Column("cost", Float, nullable=False, comment="USD"),
    Column("created_at", Timestamp, nullable=False),
    sqlite_autoincrement=True,
)

embedding_costs: Final = Table(
    "embedding_costs",
    metadata,
    Column("batch_id", ForeignKey("embedding_batches.id", ondelete="CASCADE"), primary_key=True),
    Column("document_id", Text, primary_key=True, comment="documents.id"),
    Column("texts", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("cost", Float, nullable=False, comment="Its share of the batch, in USD."),
    Index("ix_embedding_costs_document_id", "document_id"),
)

# Uploads ----------------------------------------------------------------------------------

UPLOAD_STATUSES: Final = (
    "uploaded",
    "parse_queued",
    "parsed",
    "parse_validated",
    "chunking",
    "chunks_stored",
    "embedding_queued",
    "embedding_in_progress",
    "embeddings_stored",
    "complete",
    "failed_parse",
    "failed_chunking",
    "failed_embedding",
)


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


upload_jobs: Final = Table(
    "upload_jobs",
    metadata,
    Column("job_id", Identity, primary_key=True),
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("document_id", Identity, nullable=False, comment="documents.uid, in the end."),
    Column("status", Text, nullable=False, comment="Illegal moves are refused by a trigger."),
    Column("name", Text, nullable=False, comment="Of the file, as the user calls it."),
    Column("format", Text, nullable=False, comment="pdf, docx, html, markdown, text"),
    Column("bytes", BigInteger, nullable=False, comment="Of the file."),
    Column("raw_sha256", Text, nullable=False, comment="Of the file."),
    Column("raw_path", Text, nullable=False, comment="Blob key of the file."),
    Column("parser", Text, nullable=False, comment="local, llamaparse"),
    Column("submission", Json, comment="At an outside parser: its id, when it was asked."),
    Column("parsed_path", Text, comment="Blob key of the Markdown."),
    Column("parsed_sha256", Text),
    Column("parsed_bytes", BigInteger),
    Column("parsed_by", Text, comment="name@version of what made the Markdown."),
    Column("chunks_version", Text, nullable=False, comment="chunker@semver"),
    Column("embed_model", Text),
    Column("embed_version", Text),
    Column("progress", Json, comment="chunks_total, chunks_done, embeds_total, embeds_done"),
    Column("retry_count", Integer, nullable=False, server_default=text("0")),
    Column("next_attempt_at", Timestamp, comment="Not to be worked on before."),
    Column("takeovers", Integer, nullable=False, server_default=text("0")),
    Column("reprocessed", Integer, nullable=False, server_default=text("0")),
    Column("last_error", Json, comment="stage, type, message, at"),
    *_lease_columns(),
    Column("moved_by", Text, nullable=False, comment="Who made the last move: the event says so."),
    Column("moved_why", Text, nullable=False),
    Column("arrived_at", Timestamp, comment="When the file was there, as it was announced."),
    Column("parsed_at", Timestamp),
    Column("chunked_at", Timestamp),
    Column("first_embedded_at", Timestamp),
    Column("completed_at", Timestamp),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    # The last column, as it may be long and SQLite reads through it to later columns.
    Column("parsed_map", Json, comment="As documents.body_map will have it."),
    CheckConstraint(_one_of("status", UPLOAD_STATUSES), name="status"),
    CheckConstraint("bytes >= 0 AND retry_count >= 0", name="counts"),
    Index("idx_upload_jobs_status", "status", "created_at"),
    Index("idx_upload_jobs_document", "document_id", unique=True),
    Index("ix_upload_jobs_user_id", "user_id", "created_at", "job_id"),
    Index("ix_upload_jobs_parsed_sha256", "user_id", "parsed_sha256"),
    _partial("ix_upload_jobs_announced", "user_id", where="status = 'uploaded'"),
)

upload_events: Final = Table(
    "upload_events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job_id", ForeignKey("upload_jobs.job_id", ondelete="CASCADE"), nullable=False),
    Column("from_status", Text, comment="NULL: the job began."),
    Column("to_status", Text, nullable=False),
    Column("at", Timestamp, nullable=False),
    Column("by", Text, nullable=False),
    Column("why", Text, nullable=False),
    Index("ix_upload_events_job_id", "job_id", "id"),
    sqlite_autoincrement=True,
)

upload_errors: Final = Table(
    "upload_errors",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job_id", ForeignKey("upload_jobs.job_id", ondelete="CASCADE"), nullable=False),
    Column("stage", Text, nullable=False, comment="parse, chunking, embedding"),
    Column("type", Text, nullable=False, comment="Name of the error, to group by."),
    Column("message", Text, nullable=False),
    Column("is_final", Boolean, nullable=False, comment="Whether the job failed by it."),
    Column("at", Timestamp, nullable=False),
    Index("ix_upload_errors_job_id", "job_id"),
    sqlite_autoincrement=True,
)

upload_deletions: Final = Table(
    "upload_deletions",
    metadata,
    Column("job_id", Identity, primary_key=True),
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("document_id", Identity, nullable=False, comment="What documents.uid was."),
    Column("status", Text, nullable=False, comment="Of the job, at its deletion."),
    Column("bytes", BigInteger, nullable=False, comment="Of the file."),
    Column("parsed_path", Text, comment="Blob key of the Markdown, until that is removed."),
    Column("deleted_at", Timestamp, nullable=False),
    Column("deleted_by", Text, nullable=False),
    Column("sweep_until", Timestamp, comment="A process is removing the files."),
    Column("finished_at", Timestamp, comment="When no file could come back any more."),
    _partial("ix_upload_deletions_open", "document_id", where="finished_at IS NULL"),
    comment="Uploads that their users deleted, without their content.",
)

webhook_nonces: Final = Table(
    "webhook_nonces",
    metadata,
    Column("webhook_id", Text, primary_key=True),
    Column("received_at", Timestamp, nullable=False, index=True),
)

# Users ------------------------------------------------------------------------------------

TOKEN_SCOPES: Final = ("user", "admin", "service")

users: Final = Table(
    "users",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Timestamp, nullable=False),
    CheckConstraint("name <> ''", name="named"),
)

api_tokens: Final = Table(
    "api_tokens",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("user_id", ForeignKey("users.id"), nullable=False, index=True),
    Column("label", Text, nullable=False, comment="What it is for."),
    Column("scope", Text, nullable=False),
    Column("token_sha256", Text, nullable=False, unique=True, comment="It is stored nowhere else."),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp),
    Column("revoked_at", Timestamp),
    CheckConstraint(_one_of("scope", TOKEN_SCOPES), name="scope"),
)

login_sessions: Final = Table(
    "login_sessions",
    metadata,
    Column("session_sha256", Text, primary_key=True, comment="Of what the cookie contains."),
    Column("token_id", ForeignKey("api_tokens.id"), nullable=False, index=True),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False, index=True),
    comment="Browsers that are logged in; logging out deletes the row.",
)

login_limits: Final = Table(
    "login_limits",
    metadata,
    Column("client", Text, primary_key=True, comment="The address of a client."),
    Column("remaining", Float, nullable=False, comment="Attempts that it had left then."),
    Column("updated_at", Timestamp, nullable=False, index=True),
)

server_values: Final = Table(
    "server_values",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Json, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    comment="What all servers of a library have in common, such as the secret that signs.",
)

idempotency_keys: Final = Table(
    "idempotency_keys",
    metadata,
    Column("user_id", ForeignKey("users.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_sha256", Text, nullable=False, comment="Over method, path and body."),
    Column("status", Integer, comment="Of the answer; NULL while it is being made."),
    Column("answer", Json),
    Column("created_at", Timestamp, nullable=False, index=True),
)

# Ingestion --------------------------------------------------------------------------------

RUN_STATUSES: Final = ("running", "success", "partial", "failed", "cancelled")
RUN_MODES: Final = ("incremental", "backfill", "manual")
TASK_STAGES: Final = ("discovered", "fetched", "parsed", "loaded", "errored")
LOG_LEVELS: Final = ("debug", "info", "warn", "error")


def _count(name: str) -> Column[Any]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


ingestion_runs: Final = Table(
    "ingestion_runs",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("source", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("started_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp),
    _count("discovered_count"),
    _count("fetched_count"),
    _count("parsed_count"),
    _count("inserted_count"),
    _count("updated_count"),
    _count("skipped_count"),
    _count("error_count"),
    _count("gone_count"),
    Column("config", Json, nullable=False),
    Column("error_summary", Text),
    CheckConstraint(_one_of("mode", RUN_MODES), name="mode"),
    CheckConstraint(_one_of("status", RUN_STATUSES), name="status"),
    CheckConstraint("(status = 'running') = (finished_at IS NULL)", name="finished"),
    Index("ix_ingestion_runs_source_started", "source", "started_at"),
    Index("ix_ingestion_runs_started", "started_at", "id"),
    _partial(
        "ix_ingestion_runs_status", "status", "started_at", where="status IN ('running', 'failed')"
    ),
)

ingestion_logs: Final = Table(
    "ingestion_logs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("ingestion_runs.id", ondelete="CASCADE"), nullable=False),
    Column("logged_at", Timestamp, nullable=False),
    Column("level", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("context", Json),
    CheckConstraint(_one_of("level", LOG_LEVELS), name="level"),
    Index("ix_ingestion_logs_run", "run_id", "logged_at"),
    _partial("ix_ingestion_logs_errors", "run_id", "logged_at", where="level = 'error'"),
    sqlite_autoincrement=True,
)

ingestion_tasks: Final = Table(
    "ingestion_tasks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("ingestion_runs.id", ondelete="CASCADE"), nullable=False),
    Column("source", Text, nullable=False),
    Column("task_key", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("started_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp),
    Column("error", Text, comment="What went wrong, for people."),
    Column("error_type", Text, comment="Name of the error, to group by."),
    Column("error_stage", Text, comment="fetch, parse, load or discover"),
    Column("task", Json, comment="The task itself while it is errored, for the next run."),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("resolved_at", Timestamp, comment="When a later run loaded it, or it was dismissed."),
    CheckConstraint(_one_of("stage", TASK_STAGES), name="stage"),
    UniqueConstraint("run_id", "task_key"),
    Index("ix_ingestion_tasks_run", "run_id", "stage"),
    _partial(
        "ix_ingestion_tasks_open_errors",
        "source",
        "task_key",
        where="stage = 'errored' AND resolved_at IS NULL",
    ),
    sqlite_autoincrement=True,
)

ingestion_source_state: Final = Table(
    "ingestion_source_state",
    metadata,
    Column("source", Text, primary_key=True),
    Column("last_run_at", Timestamp),
    Column("last_success_at", Timestamp),
    Column("last_seen_key", Text),
    Column("custom", Json, nullable=False),
)

ingestion_inputs: Final = Table(
    "ingestion_inputs",
    metadata,
    Column("source", Text, primary_key=True),
    Column("task_key", Text, primary_key=True),
    Column("input_sha256", Text, nullable=False, comment="Over the bytes and parameters."),
    Column("recipe", Text, nullable=False, comment="Version of everything that read them."),
    Column("fingerprint", Text, comment="Of the listing's entry, where there is one."),
    Column("records", Integer, nullable=False, comment="How many it yielded."),
    Column("validated_at", Timestamp, nullable=False, comment="Last asked for upstream."),
    Column("task", Json, comment="Its parameters, and its parts with their archived files."),
    Column("bundle", Text, comment="Root and key of the bundle it is from; NULL: fetched here."),
)

loaded_bundles: Final = Table(
    "loaded_bundles",
    metadata,
    Column("root", Text, primary_key=True, comment="The hash over its content."),
    Column("address", Text, nullable=False, comment="Without secrets."),
    Column("key", Text, comment="The public key that signed it; NULL: unsigned."),
    Column("made_at", Timestamp, comment="As its maker states; NULL: it does not."),
    Column("sources", Json, comment="Those it was made of; NULL: all of its library."),
    Column("has_raw", Boolean, nullable=False, comment="It contains the publishers' bytes."),
    Column("began_at", Timestamp, nullable=False),
    Column("loaded_at", Timestamp, comment="When all of it was loaded."),
    Index("ix_loaded_bundles_address", "address", "began_at"),
    comment="Bundles of other libraries that were loaded into this one.",
)

fetched_files: Final = Table(
    "fetched_files",
    metadata,
    Column("source", Text, primary_key=True),
    Column("url", Text, primary_key=True),
    Column("blob_key", Text, nullable=False, index=True),
    Column("sha256", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("media_type", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("retrieved_at", Timestamp, nullable=False),
)


def _queue(name: str, *columns: Column[Any]) -> Table:
    return Table(
        name,
        metadata,
        Column("id", Integer, primary_key=True),
        Column("table_name", Text, nullable=False),
        Column("record_id", Text, nullable=False),
        *columns,
        Column("input_sha", Text, nullable=False),
        Column("enqueued_at", Timestamp, nullable=False),
        Column("attempts", Integer, nullable=False, server_default=text("0")),
        Column("last_attempt_at", Timestamp),
        Column("last_error", Text),
        *_lease_columns(),
        UniqueConstraint("table_name", "record_id"),
        _partial(f"{name}_pending", "id", where="attempts < 5"),
        sqlite_autoincrement=True,
    )


ingestion_normalization_queue: Final = _queue(
    "ingestion_normalization_queue",
    Column("raw_path", Text, nullable=False),
    Column("raw_format", Text, nullable=False),
)

ingestion_embedding_queue: Final = _queue("ingestion_embedding_queue")

ingestion_citation_queue: Final = _queue("ingestion_citation_queue")

ingestion_commands: Final = Table(
    "ingestion_commands",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("command", Text, nullable=False),
    Column("source", Text),
    Column("args", Json, nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("requested_at", Timestamp, nullable=False),
    Column("claimed_by", Text),
    Column("lease_until", Timestamp),
    Column("finished_at", Timestamp),
    Column("outcome", Text),
    Column("run_id", Identity, comment="ingestion_runs.id of the run that came of it."),
    _partial("ix_ingestion_commands_open", "id", where="finished_at IS NULL"),
    sqlite_autoincrement=True,
)

RUN_STAGES: Final = ("discover", "fetch", "parse", "load")

ingestion_stages: Final = Table(
    "ingestion_stages",
    metadata,
    Column(
        "run_id",
        ForeignKey(
            "ingestion_runs.id",
            name="fk_ingestion_stages_run_id_ingestion_runs",
            ondelete="CASCADE",
        ),
        primary_key=True,
    ),
    Column("stage", Text, primary_key=True),
    Column("began_at", Timestamp, nullable=False),
    Column("ended_at", Timestamp, nullable=False, comment="When it last did something."),
    _count("items"),
    Column("seconds", Float, nullable=False, comment="Spent on them, added up."),
    Column("waited_seconds", Float, nullable=False, comment="Of them, for a host's rate limit."),
    _count("retries"),
    CheckConstraint(_one_of("stage", RUN_STAGES), name="stage"),
    comment="What each stage of a run took.",
)

ingestion_audits: Final = Table(
    "ingestion_audits",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("audited_at", Timestamp, nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("expected", Integer, nullable=False, comment="Documents that the upstream lists."),
    Column("missing", Integer, nullable=False, comment="Of them, not held."),
    Column("open_errors", Integer, nullable=False, comment="Failures that were open then."),
    Column("findings", Json, nullable=False, comment="By list of the upstream, some of each."),
    Index("ix_ingestion_audits_source", "source", "audited_at"),
    comment="What audits found.",
    sqlite_autoincrement=True,
)

ingestion_leases: Final = Table(
    "ingestion_leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("lease_until", Timestamp, nullable=False),
)

table_versions: Final = Table(
    "table_versions",
    metadata,
    Column("source", Text, primary_key=True, comment="A plugin that brought its own tables."),
    Column("fingerprint", Text, nullable=False, comment="Of the tables' columns."),
)

core_tables: Final = tuple(metadata.tables.values())
