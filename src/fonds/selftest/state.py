"""The comparable state of a library, without times and generated ids, and its invariants."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import Table, func, inspect, select, text

from fonds.library import Library
from fonds.maintenance.doctor import examine
from fonds.maintenance.findings import Health
from fonds.maintenance.references import references
from fonds.runs.state import RunStatus
from fonds.schema import current_version
from fonds.selftest.scenario import INDEX, OUTPUT, crawl_metadata
from fonds.shards.index import open_index
from fonds.shards.verify import verify
from fonds.sources.registry import builtin_sources
from fonds.stores.columns import Timestamp
from fonds.stores.tables import (
    document_chunk_buffer,
    documents,
    fetched_files,
    ingestion_runs,
    ingestion_source_state,
    ingestion_tasks,
    metadata,
    upload_events,
    upload_jobs,
    users,
)

State = Mapping[str, Sequence[str]]
"""Sorted lines by part: a table, the blobs, an index, search results."""

INDEXES: Final = "indexes/"
QUERIES: Final = ("overtime salary threshold", "lead in drinking water", "a request for a record")
SEARCH_LIMIT: Final = 200
MAX_LINES: Final = 3
"""Lines displayed for each difference."""

# Tables of attempts and logs, which have more rows after a kill.
HISTORY: Final = {
    "embedding_batches",
    "embedding_costs",
    "ingestion_commands",
    "ingestion_leases",
    "ingestion_logs",
    "ingestion_runs",
    "ingestion_source_state",
    "ingestion_stages",
    "ingestion_tasks",
    "upload_errors",
    "upload_events",
}
_GENERATED: Final = {
    "document_chunk_buffer": {"id"},
    "ingestion_citation_queue": {"id"},
    "ingestion_embedding_queue": {"id"},
    "ingestion_normalization_queue": {"id"},
    "nodes": {"created_at"},
    "site_addresses": {"crawl_id", "place"},
    "websites": {"output", "standing"},
    "upload_jobs": {
        "job_id",
        "takeovers",
        "retry_count",
        "last_error",
        "lease_owner",
        "moved_by",
        "moved_why",
    },
}
# Plans, packs and pages contain the time of their request.
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}(?:Z|\+00:00)")
_TIMESTAMP_BYTES: Final = re.compile(_TIMESTAMP.pattern.encode())


def state_of(library: Library) -> dict[str, list[str]]:
    """Everything that must be equal, regardless of interruptions."""
    return {
        **rows_of(library),
        "state of sources": sorted(_source_states(library)),
        "events of uploads": sorted(_upload_events(library)),
        "blobs": sorted(blobs_of(library)),
        "output of a crawl": sorted(_output(library)),
        "index": sorted(_index(library)),
        "search results": sorted(_search_results(library)),
    }


def differences(expected: State, actual: State) -> Iterator[str]:
    """Missing and extra lines, some of each kind."""
    for part in sorted(expected.keys() | actual.keys()):
        before, after = list(expected.get(part, ())), list(actual.get(part, ()))
        if before == after:
            continue
        for sign, lines in (
            ("missing", _without(before, after)),
            ("extra", _without(after, before)),
        ):
            for line in islice(lines, MAX_LINES):
                yield f"{part}: {sign}: {line}"
            if len(lines) > MAX_LINES:
                yield f"{part}: {sign}: {len(lines) - MAX_LINES:,} more"


def _without(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    return sorted((Counter(lines) - Counter(others)).elements())


# Rows -------------------------------------------------------------------------------------


def rows_of(library: Library) -> dict[str, list[str]]:
    """All tables except those of history, as sorted rows; times only as null or not."""
    builtin_sources()  # registers their tables
    with library.database.read() as connection:
        existing = set(inspect(connection).get_table_names())
        tables = [table for table in metadata.sorted_tables if table.name in existing - HISTORY]
        return {
            table.name: sorted(
                _TIMESTAMP.sub("", json.dumps(_visible(table, row), sort_keys=True, default=str))
                for row in connection.execute(select(table)).mappings()
            )
            for table in tables
        }


def _visible(table: Table, row: Mapping[Any, Any]) -> dict[str, Any]:
    generated = _GENERATED.get(table.name, set())
    return {
        name: value is not None if isinstance(table.c[name].type, Timestamp) else value
        for name, value in row.items()
        if name not in generated
    }


def _source_states(library: Library) -> Iterator[str]:
    """The last run, watermark and open errors of each source."""
    run, state, task = ingestion_runs.c, ingestion_source_state.c, ingestion_tasks.c
    last = select(run.source, func.max(run.started_at).label("at")).group_by(run.source).subquery()
    last_status = select(run.source, run.status).join(
        last, (run.source == last.c.source) & (run.started_at == last.c.at)
    )
    failed = select(task.source, task.task_key, task.error).where(
        task.stage == "errored", task.resolved_at.is_(None)
    )
    with library.database.read() as connection:
        for source, status in connection.execute(last_status):
            yield f"{source}: the last run ended as {status}"
        for row in connection.execute(select(state.source, state.last_seen_key, state.custom)):
            yield f"{row.source}: up to {row.last_seen_key}, {json.dumps(row.custom)}"
        for source, key, error in connection.execute(failed):
            yield f"{source}: {key} failed: {error}"


def _upload_events(library: Library) -> Iterator[str]:
    event, job = upload_events.c, upload_jobs.c
    query = select(users.c.name, job.name, event.from_status, event.to_status)
    joined = query.join_from(upload_events, upload_jobs, event.job_id == job.job_id).join(
        users, users.c.id == job.user_id
    )
    with library.database.read() as connection:
        for user, name, before, after in connection.execute(joined):
            yield f"{user}: {name}: {before} → {after}"


# Blobs ------------------------------------------------------------------------------------


def blobs_of(library: Library) -> Iterator[str]:
    """Keys and hashes of all objects outside indexes."""
    for info in library.blobs.list():
        if not info.key.startswith(INDEXES):
            data = _TIMESTAMP_BYTES.sub(b"", library.blobs.get(info.key))
            yield f"{info.key} {hashlib.sha256(data).hexdigest()}"


def _index(library: Library) -> Iterator[str]:
    """Objects and keys of an index; other fields of its records vary with time."""
    index = open_index(library.blobs, INDEX)
    yield from verify(index).problems
    for info in library.blobs.list(INDEXES):
        yield info.key
        if info.key.endswith(".usv"):
            for line in library.blobs.get(info.key).splitlines():
                yield f"{info.key}: {index.schema.decode(line)['domain']}"


def _output(library: Library) -> Iterator[str]:
    """The files and metadata of a crawl."""
    metadata = crawl_metadata(library)
    if metadata is not None:
        yield f"{metadata.total_pdfs_discovered} PDFs, {metadata.errors}"
        yield from (f"{file.original_url}: {file.local_path}" for file in metadata.downloaded_files)
    folder = library.settings.home / OUTPUT
    for path in sorted(folder.rglob("*.pdf")):
        yield f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _search_results(library: Library) -> Iterator[str]:
    (user,) = _users(library) or (None,)
    for query in QUERIES:
        for mode in ("lexical", "semantic"):
            for hit in library.search(query, mode=mode, limit=SEARCH_LIMIT, owner=user):
                yield f"{mode} {query!r}: {hit.id}"


def _users(library: Library) -> list[Any]:
    with library.database.read() as connection:
        return list(connection.scalars(select(users.c.id)))


# A full disk is a problem of the machine, not an effect of a kill.
_IGNORED_CHECKS: Final = {"disk"}


def problems(library: Library, *, is_done: bool) -> Iterator[str]:
    """Violated invariants; `is_done` if the last process reported success."""
    if current_version(library.database) is None:
        return  # it was not created yet
    for finding in examine(library.settings, seams=library.seams):
        if finding.status is Health.FAIL and finding.check not in _IGNORED_CHECKS:
            yield f"doctor: {finding.check}: {finding.found}"
    yield from _rows(library)
    yield from _runs(library, is_done=is_done)
    yield from _files(library)
    if library.blobs.head(open_index(library.blobs, INDEX).layout.descriptor):
        yield from (f"index: {each}" for each in verify(open_index(library.blobs, INDEX)).problems)


def _rows(library: Library) -> Iterator[str]:
    document, chunk = documents.c, document_chunk_buffer.c
    without_passages = select(document.id).where(document.uid.not_in(select(chunk.document_id)))
    with library.database.read() as connection:
        yield from (
            f"{document_id} has no passages" for document_id in connection.scalars(without_passages)
        )
        if library.database.is_sqlite:
            for row in connection.execute(text("PRAGMA foreign_key_check")):
                yield f"a row of {row[0]} refers to a missing row of {row[2]}"


def _runs(library: Library, *, is_done: bool) -> Iterator[str]:
    run = ingestion_runs.c
    running = select(run.source, func.count()).where(run.status == RunStatus.RUNNING)
    with library.database.read() as connection:
        for source, count in connection.execute(running.group_by(run.source)):
            # A run that could not record its failure is marked as failed by the next one.
            if is_done or count > 1:
                yield f"{count} runs of {source} have the status running, but none is"


def _files(library: Library) -> Iterator[str]:
    existing = {info.key for info in library.blobs.list()}
    file, job = fetched_files.c, upload_jobs.c
    with library.database.read() as connection:
        referenced = set(references(connection))
        # The key of an upload is stored when it is announced, before the file arrives.
        referenced -= set(connection.scalars(select(job.raw_path).where(job.arrived_at.is_(None))))
        fetched = connection.execute(select(file.blob_key, file.sha256)).all()
    yield from (f"{key} is referenced but missing" for key in sorted(referenced - existing))
    for key, sha256 in fetched:
        if key in existing and hashlib.sha256(library.blobs.get(key)).hexdigest() != sha256:
            yield f"{key} differs from the fetched file"
