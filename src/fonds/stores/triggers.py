"""Parts of the schema that are not tables: the full-text index, and triggers that check states.

The moves that triggers allow come from the tables of states that the code uses as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final, TypeVar

State = TypeVar("State", bound=StrEnum)


def full_text_index(dialect: str) -> tuple[str, ...]:
    """The index over the words of `document_chunk_buffer`."""
    return _SQLITE_INDEX if dialect == "sqlite" else _POSTGRES_INDEX


_SQLITE_INDEX: Final = (
    """\
CREATE VIRTUAL TABLE chunk_index USING fts5(
    title, headings, text, content='', contentless_delete=1,
    tokenize='porter unicode61 remove_diacritics 2'
)""",
)

_POSTGRES_INDEX: Final = (
    """\
CREATE TABLE chunk_index (
    id INTEGER PRIMARY KEY REFERENCES document_chunk_buffer (id) ON DELETE CASCADE,
    words TSVECTOR NOT NULL
)""",
    "CREATE INDEX ix_chunk_index_words ON chunk_index USING gin (words)",
)


def run_triggers(dialect: str, moves: Mapping[State, Collection[State]]) -> list[str]:
    """Triggers that forbid to change the status of a finished run in `ingestion_runs`.

    `moves` has all statuses, each with those that may follow it.
    """
    unfinished = [status for status, after in moves.items() if after]
    assert all(set(moves) == {status, *moves[status]} for status in unfinished), (
        "these triggers let a run that is not finished take any status"
    )
    is_finished = " AND ".join(f"OLD.status <> '{status}'" for status in unfinished)
    templates = _SQLITE_RUNS if dialect == "sqlite" else _POSTGRES_RUNS
    return [template.format(is_finished=is_finished) for template in templates]


_SQLITE_RUNS: Final = (
    """\
CREATE TRIGGER ingestion_runs_moves BEFORE UPDATE OF status ON ingestion_runs
WHEN {is_finished} AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'a finished run does not change its status'); END""",
)

_POSTGRES_RUNS: Final = (
    """\
CREATE FUNCTION ingestion_runs_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a finished run does not change its status'
        USING ERRCODE = 'check_violation';
END $$""",
    """\
CREATE TRIGGER ingestion_runs_moves BEFORE UPDATE OF status ON ingestion_runs
FOR EACH ROW WHEN ({is_finished} AND NEW.status <> OLD.status)
EXECUTE FUNCTION ingestion_runs_moves()""",
)


def upload_triggers(
    dialect: str, moves: Mapping[State, Collection[State]], initial: Collection[State]
) -> list[str]:
    """Triggers that allow only `moves` in `upload_jobs`, and write an event for each.

    The first state of a job must be one of `initial`.
    """
    # Sets have no order, and equal moves must result in equal triggers.
    allowed = [(state, after) for state in moves for after in moves if after in moves[state]]
    words = {
        "initial": ", ".join(f"'{state}'" for state in initial),
        "initial_in_words": " or ".join(initial),
        "allowed": ", ".join(f"'{state} {after}'" for state, after in allowed),
    }
    templates = _SQLITE_UPLOADS if dialect == "sqlite" else _POSTGRES_UPLOADS
    return [template.format(**words) for template in templates]


_SQLITE_UPLOADS: Final = (
    """\
CREATE TRIGGER upload_jobs_begin BEFORE INSERT ON upload_jobs
WHEN NEW.status NOT IN ({initial})
BEGIN SELECT RAISE(ABORT, 'an upload job begins as {initial_in_words}'); END""",
    """\
CREATE TRIGGER upload_jobs_move BEFORE UPDATE OF status ON upload_jobs
WHEN NEW.status <> OLD.status AND OLD.status || ' ' || NEW.status NOT IN ({allowed})
BEGIN SELECT RAISE(ABORT, 'an upload job cannot move like this'); END""",
    """\
CREATE TRIGGER upload_jobs_began AFTER INSERT ON upload_jobs
BEGIN
    INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
    VALUES (NEW.job_id, NULL, NEW.status, NEW.updated_at, NEW.moved_by, NEW.moved_why);
END""",
    """\
CREATE TRIGGER upload_jobs_moved AFTER UPDATE OF status ON upload_jobs
WHEN NEW.status <> OLD.status
BEGIN
    INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
    VALUES (NEW.job_id, OLD.status, NEW.status, NEW.updated_at, NEW.moved_by, NEW.moved_why);
END""",
)

_POSTGRES_UPLOADS: Final = (
    """\
CREATE FUNCTION check_upload_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status NOT IN ({initial}) THEN
            RAISE EXCEPTION 'an upload job begins as {initial_in_words}'
                USING ERRCODE = 'check_violation';
        END IF;
    ELSIF NEW.status <> OLD.status
        AND OLD.status || ' ' || NEW.status NOT IN ({allowed}) THEN
        RAISE EXCEPTION 'an upload job cannot move like this: % to %',
            OLD.status, NEW.status USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$""",
    """\
CREATE FUNCTION record_upload_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before text := NULL;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        before := OLD.status;
    END IF;
    IF before IS DISTINCT FROM NEW.status THEN
        INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
        VALUES (NEW.job_id, before, NEW.status, NEW.updated_at, NEW.moved_by, NEW.moved_why);
    END IF;
    RETURN NULL;
END $$""",
    """\
CREATE TRIGGER upload_jobs_move BEFORE INSERT OR UPDATE ON upload_jobs
FOR EACH ROW EXECUTE FUNCTION check_upload_move()""",
    """\
CREATE TRIGGER upload_jobs_moved AFTER INSERT OR UPDATE OF status ON upload_jobs
FOR EACH ROW EXECUTE FUNCTION record_upload_move()""",
)
