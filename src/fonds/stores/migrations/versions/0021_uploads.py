"""Users and their tokens; uploads: jobs whose moves the database checks and keeps a record of."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Identity, Json, Timestamp

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_MOVES: Final = {
    "uploaded": ("parse_queued", "failed_parse"),
    "parse_queued": ("parsed", "failed_parse"),
    "parsed": ("parse_validated", "failed_parse"),
    "parse_validated": ("chunking", "failed_chunking"),
    "chunking": ("chunks_stored", "failed_chunking"),
    "chunks_stored": ("embedding_queued", "failed_embedding"),
    "embedding_queued": ("embedding_in_progress", "failed_embedding"),
    "embedding_in_progress": ("embeddings_stored", "failed_embedding"),
    "embeddings_stored": ("complete", "failed_embedding"),
    "failed_parse": ("uploaded", "parse_queued"),
    "failed_chunking": ("parse_validated",),
    "failed_embedding": ("chunks_stored",),
}
_LEGAL: Final = ", ".join(f"'{one} {two}'" for one, after in _MOVES.items() for two in after)


def upgrade() -> None:
    op.drop_table("upload_jobs")  # nothing ever wrote to it
    _create_users()
    _create_webhook_nonces()
    _create_api_tokens()
    _create_idempotency_keys()
    _create_upload_jobs()
    _create_upload_errors()
    _create_upload_events()
    if op.get_bind().dialect.name == "sqlite":
        _guard_moves_on_sqlite()
    else:
        _guard_moves_on_postgresql()


def _guard_moves_on_sqlite() -> None:
    op.execute("""
        CREATE TRIGGER upload_jobs_begin BEFORE INSERT ON upload_jobs
        WHEN NEW.status NOT IN ('uploaded', 'parse_queued')
        BEGIN SELECT RAISE(ABORT, 'an upload job begins as uploaded or parse_queued'); END
    """)
    op.execute(f"""
        CREATE TRIGGER upload_jobs_move BEFORE UPDATE OF status ON upload_jobs
        WHEN NEW.status <> OLD.status AND OLD.status || ' ' || NEW.status NOT IN ({_LEGAL})
        BEGIN SELECT RAISE(ABORT, 'an upload job cannot move like this'); END
    """)
    op.execute("""
        CREATE TRIGGER upload_jobs_began AFTER INSERT ON upload_jobs
        BEGIN
            INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
            VALUES (NEW.job_id, NULL, NEW.status, NEW.updated_at, NEW.moved_by, NEW.moved_why);
        END
    """)
    op.execute("""
        CREATE TRIGGER upload_jobs_moved AFTER UPDATE OF status ON upload_jobs
        WHEN NEW.status <> OLD.status
        BEGIN
            INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
            VALUES (NEW.job_id, OLD.status, NEW.status, NEW.updated_at, NEW.moved_by,
                    NEW.moved_why);
        END
    """)


def _guard_moves_on_postgresql() -> None:
    op.execute(f"""
        CREATE FUNCTION check_upload_move() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'INSERT' THEN
                IF NEW.status NOT IN ('uploaded', 'parse_queued') THEN
                    RAISE EXCEPTION 'an upload job begins as uploaded or parse_queued'
                        USING ERRCODE = 'check_violation';
                END IF;
            ELSIF NEW.status <> OLD.status
                AND OLD.status || ' ' || NEW.status NOT IN ({_LEGAL}) THEN
                RAISE EXCEPTION 'an upload job cannot move like this: % to %',
                    OLD.status, NEW.status USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$
    """)
    op.execute("""
        CREATE FUNCTION record_upload_move() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            before text := NULL;
        BEGIN
            IF TG_OP = 'UPDATE' THEN
                before := OLD.status;
            END IF;
            IF before IS DISTINCT FROM NEW.status THEN
                INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
                VALUES (NEW.job_id, before, NEW.status, NEW.updated_at, NEW.moved_by,
                        NEW.moved_why);
            END IF;
            RETURN NULL;
        END $$
    """)
    op.execute("""
        CREATE TRIGGER upload_jobs_move BEFORE INSERT OR UPDATE ON upload_jobs
        FOR EACH ROW EXECUTE FUNCTION check_upload_move()
    """)
    op.execute("""
        CREATE TRIGGER upload_jobs_moved AFTER INSERT OR UPDATE OF status ON upload_jobs
        FOR EACH ROW EXECUTE FUNCTION record_upload_move()
    """)


def _create_users() -> None:
    op.create_table(
        "users",
        sa.Column("id", Identity(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.CheckConstraint("name <> ''", name=op.f("ck_users_named")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )


def _create_webhook_nonces() -> None:
    op.create_table(
        "webhook_nonces",
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("received_at", Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhook_nonces")),
    )
    op.create_index(
        op.f("ix_webhook_nonces_received_at"), "webhook_nonces", ["received_at"], unique=False
    )


def _create_api_tokens() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", Identity(), nullable=False),
        sa.Column("user_id", Identity(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False, comment="What it is for."),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("token_sha256", sa.Text(), nullable=False, comment="It is stored nowhere else."),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.Column("expires_at", Timestamp(), nullable=True),
        sa.Column("revoked_at", Timestamp(), nullable=True),
        sa.CheckConstraint(
            "scope IN ('user', 'admin', 'service')", name=op.f("ck_api_tokens_scope")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_api_tokens_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("token_sha256", name=op.f("uq_api_tokens_token_sha256")),
    )
    op.create_index(op.f("ix_api_tokens_user_id"), "api_tokens", ["user_id"], unique=False)


def _create_idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("user_id", Identity(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column(
            "request_sha256", sa.Text(), nullable=False, comment="Over method, path and body."
        ),
        sa.Column(
            "status",
            sa.Integer(),
            nullable=True,
            comment="Of the answer; NULL while it is being made.",
        ),
        sa.Column("answer", Json, nullable=True),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_idempotency_keys_user_id")
        ),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(
        op.f("ix_idempotency_keys_created_at"), "idempotency_keys", ["created_at"], unique=False
    )


def _create_upload_jobs() -> None:
    op.create_table(
        "upload_jobs",
        sa.Column("job_id", Identity(), nullable=False),
        sa.Column("user_id", Identity(), nullable=False),
        sa.Column("document_id", Identity(), nullable=False, comment="documents.uid, in the end."),
        sa.Column(
            "status", sa.Text(), nullable=False, comment="Illegal moves are refused by a trigger."
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="Of the file, as the user calls it."),
        sa.Column("format", sa.Text(), nullable=False, comment="pdf, docx, html, markdown, text"),
        sa.Column("bytes", sa.BigInteger(), nullable=False, comment="Of the file."),
        sa.Column("raw_sha256", sa.Text(), nullable=False, comment="Of the file."),
        sa.Column("raw_path", sa.Text(), nullable=False, comment="Blob key of the file."),
        sa.Column("parser", sa.Text(), nullable=False, comment="local, llamaparse"),
        sa.Column(
            "submission",
            Json,
            nullable=True,
            comment="At an outside parser: its id, when it was asked.",
        ),
        sa.Column("parsed_path", sa.Text(), nullable=True, comment="Blob key of the Markdown."),
        sa.Column("parsed_sha256", sa.Text(), nullable=True),
        sa.Column("parsed_bytes", sa.BigInteger(), nullable=True),
        sa.Column(
            "parsed_by", sa.Text(), nullable=True, comment="name@version of what made the Markdown."
        ),
        sa.Column("chunks_version", sa.Text(), nullable=False, comment="chunker@semver"),
        sa.Column("embed_model", sa.Text(), nullable=True),
        sa.Column("embed_version", sa.Text(), nullable=True),
        sa.Column(
            "progress",
            Json,
            nullable=True,
            comment="chunks_total, chunks_done, embeds_total, embeds_done",
        ),
        sa.Column("retry_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "next_attempt_at", Timestamp(), nullable=True, comment="Not to be worked on before."
        ),
        sa.Column("takeovers", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("reprocessed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", Json, nullable=True, comment="stage, type, message, at"),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", Timestamp(), nullable=True),
        sa.Column(
            "moved_by",
            sa.Text(),
            nullable=False,
            comment="Who made the last move: the event says so.",
        ),
        sa.Column("moved_why", sa.Text(), nullable=False),
        sa.Column(
            "arrived_at",
            Timestamp(),
            nullable=True,
            comment="When the file was there, as it was announced.",
        ),
        sa.Column("parsed_at", Timestamp(), nullable=True),
        sa.Column("chunked_at", Timestamp(), nullable=True),
        sa.Column("first_embedded_at", Timestamp(), nullable=True),
        sa.Column("completed_at", Timestamp(), nullable=True),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.Column("updated_at", Timestamp(), nullable=False),
        sa.Column("parsed_map", Json, nullable=True, comment="As documents.body_map will have it."),
        sa.CheckConstraint(
            "status IN ('uploaded', 'parse_queued', 'parsed', 'parse_validated', 'chunking', 'chunks_stored', 'embedding_queued', 'embedding_in_progress', 'embeddings_stored', 'complete', 'failed_parse', 'failed_chunking', 'failed_embedding')",
            name=op.f("ck_upload_jobs_status"),
        ),
        sa.CheckConstraint("bytes >= 0 AND retry_count >= 0", name=op.f("ck_upload_jobs_counts")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_upload_jobs_user_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_upload_jobs")),
    )
    _create_indexes_of_upload_jobs()


def _create_indexes_of_upload_jobs() -> None:
    op.create_index("idx_upload_jobs_document", "upload_jobs", ["document_id"], unique=True)
    op.create_index("idx_upload_jobs_status", "upload_jobs", ["status", "created_at"], unique=False)
    op.create_index(
        "ix_upload_jobs_parsed_sha256", "upload_jobs", ["user_id", "parsed_sha256"], unique=False
    )
    op.create_index(
        "ix_upload_jobs_user_id", "upload_jobs", ["user_id", "created_at", "job_id"], unique=False
    )


def _create_upload_errors() -> None:
    op.create_table(
        "upload_errors",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", Identity(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False, comment="parse, chunking, embedding"),
        sa.Column("type", sa.Text(), nullable=False, comment="Name of the error, to group by."),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column(
            "is_final", sa.Boolean(), nullable=False, comment="Whether the job failed by it."
        ),
        sa.Column("at", Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["upload_jobs.job_id"],
            name=op.f("fk_upload_errors_job_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upload_errors")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_upload_errors_job_id", "upload_errors", ["job_id"], unique=False)


def _create_upload_events() -> None:
    op.create_table(
        "upload_events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", Identity(), nullable=False),
        sa.Column("from_status", sa.Text(), nullable=True, comment="NULL: the job began."),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("at", Timestamp(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["upload_jobs.job_id"],
            name=op.f("fk_upload_events_job_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upload_events")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_upload_events_job_id", "upload_events", ["job_id", "id"], unique=False)
