"""A library as its users see it, comparable with another: no moments, no generated names.

What must hold of a library at every moment, also right after a process was killed.
"""

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
from fonds.selftest.scenario import INDEX, OUTPUT, told_by_crawl
from fonds.shards.index import open_index
from fonds.shards.verify import verify
from fonds.sources.registry import builtin_sources
from fonds.stores.columns import Timestamp
from fonds.stores.revisions import current_version
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
"""Sorted lines by what they tell of: a table, the blobs, an index, what a search finds."""

INDEXES: Final = "indexes/"
QUESTIONS: Final = ("overtime salary threshold", "lead in drinking water", "a request for a record")
FOUND: Final = 200
SHOWN: Final = 3
"""Lines of a kind that are told of each difference."""

# How often something was tried, by whom and when: a killed process leaves more of it.
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
# Plans, packs and pages tell when they were asked for.
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}(?:Z|\+00:00)")
_MOMENT_IN_BYTES: Final = re.compile(_MOMENT.pattern.encode())


def state_of(library: Library) -> dict[str, list[str]]:
    """Everything that must be the same, however often the library was interrupted."""
    return {
        **rows_of(library),
        "how sources stand": sorted(_standings(library)),
        "how uploads moved": sorted(_moves(library)),
        "blobs": sorted(blobs_of(library)),
        "output of a crawl": sorted(_output(library)),
        "index": sorted(_index(library)),
        "found": sorted(_found(library)),
    }


def differences(expected: State, found: State) -> Iterator[str]:
    """What is missing and what is too much, some of each kind."""
    for part in sorted(expected.keys() | found.keys()):
        before, after = list(expected.get(part, ())), list(found.get(part, ()))
        if before == after:
            continue
        for sign, lines in (
            ("missing", _without(before, after)),
            ("extra", _without(after, before)),
        ):
            for line in islice(lines, SHOWN):
                yield f"{part}: {sign}: {line}"
            if len(lines) > SHOWN:
                yield f"{part}: {sign}: {len(lines) - SHOWN:,} more"


def _without(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    return sorted((Counter(lines) - Counter(others)).elements())


# Rows -------------------------------------------------------------------------------------


def rows_of(library: Library) -> dict[str, list[str]]:
    """All tables but those of history, rows sorted; of a moment only whether there is one."""
    builtin_sources()  # they bring their tables
    with library.database.read() as connection:
        there = set(inspect(connection).get_table_names())
        tables = [table for table in metadata.sorted_tables if table.name in there - HISTORY]
        return {
            table.name: sorted(
                _MOMENT.sub("", json.dumps(_visible(table, row), sort_keys=True, default=str))
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


def _standings(library: Library) -> Iterator[str]:
    """Of each source how its last run ended, how far it came, and what failed for good."""
    run, state, task = ingestion_runs.c, ingestion_source_state.c, ingestion_tasks.c
    last = select(run.source, func.max(run.started_at).label("at")).group_by(run.source).subquery()
    ended = select(run.source, run.status).join(
        last, (run.source == last.c.source) & (run.started_at == last.c.at)
    )
    failed = select(task.source, task.task_key, task.error).where(
        task.stage == "errored", task.resolved_at.is_(None)
    )
    with library.database.read() as connection:
        for source, status in connection.execute(ended):
            yield f"{source}: the last run ended as {status}"
        for row in connection.execute(select(state.source, state.last_seen_key, state.custom)):
            yield f"{row.source}: up to {row.last_seen_key}, {json.dumps(row.custom)}"
        for source, key, error in connection.execute(failed):
            yield f"{source}: {key} failed: {error}"


def _moves(library: Library) -> Iterator[str]:
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
    """Keys and hashes of all objects that are not of an index."""
    for info in library.blobs.list():
        if not info.key.startswith(INDEXES):
            data = _MOMENT_IN_BYTES.sub(b"", library.blobs.get(info.key))
            yield f"{info.key} {hashlib.sha256(data).hexdigest()}"


def _index(library: Library) -> Iterator[str]:
    """Objects and keys of an index; its records tell when they were noted, and by whom first."""
    index = open_index(library.blobs, INDEX)
    yield from verify(index).problems
    for info in library.blobs.list(INDEXES):
        yield info.key
        if info.key.endswith(".usv"):
            for line in library.blobs.get(info.key).splitlines():
                yield f"{info.key}: {index.schema.decode(line)['domain']}"


def _output(library: Library) -> Iterator[str]:
    """The files of a crawl, and what it says of them."""
    told = told_by_crawl(library)
    if told is not None:
        yield f"{told.total_pdfs_discovered} PDFs, {told.errors}"
        yield from (f"{one.original_url}: {one.local_path}" for one in told.downloaded_files)
    folder = library.settings.home / OUTPUT
    for path in sorted(folder.rglob("*.pdf")):
        yield f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _found(library: Library) -> Iterator[str]:
    (user,) = _users(library) or (None,)
    for question in QUESTIONS:
        for mode in ("lexical", "semantic"):
            for hit in library.search(question, mode=mode, limit=FOUND, owner=user):
                yield f"{mode} {question!r}: {hit.id}"


def _users(library: Library) -> list[Any]:
    with library.database.read() as connection:
        return list(connection.scalars(select(users.c.id)))


# A full disk is the user's; and it says nothing of what a kill did.
_NOT_OURS: Final = {"disk"}


def problems(library: Library, *, is_done: bool) -> Iterator[str]:
    """What is wrong; `is_done` is what the last process said when it ended."""
    if current_version(library.database) is None:
        return  # it was never made
    for finding in examine(library.settings, seams=library.seams):
        if finding.status is Health.FAIL and finding.check not in _NOT_OURS:
            yield f"doctor: {finding.check}: {finding.found}"
    yield from _rows(library)
    yield from _runs(library, is_done=is_done)
    yield from _files(library)
    if library.blobs.head(open_index(library.blobs, INDEX).layout.descriptor):
        yield from (f"index: {each}" for each in verify(open_index(library.blobs, INDEX)).problems)


def _rows(library: Library) -> Iterator[str]:
    document, chunk = documents.c, document_chunk_buffer.c
    bare = select(document.id).where(document.uid.not_in(select(chunk.document_id)))
    with library.database.read() as connection:
        yield from (f"{each} has no passage" for each in connection.scalars(bare))
        if library.database.is_sqlite:
            for row in connection.execute(text("PRAGMA foreign_key_check")):
                yield f"a row of {row[0]} refers to none of {row[2]}"


def _runs(library: Library, *, is_done: bool) -> Iterator[str]:
    run = ingestion_runs.c
    many = select(run.source, func.count()).where(run.status == RunStatus.RUNNING)
    with library.database.read() as connection:
        for source, count in connection.execute(many.group_by(run.source)):
            # Whoever could not write that it failed is taken for dead by the next.
            if is_done or count > 1:
                yield f"{count} runs of {source} seem to go on, and none does"


def _files(library: Library) -> Iterator[str]:
    there = {info.key for info in library.blobs.list()}
    file, job = fetched_files.c, upload_jobs.c
    with library.database.read() as connection:
        referred = set(references(connection))
        # The file of an upload is named when it is announced, and comes later.
        referred -= set(connection.scalars(select(job.raw_path).where(job.arrived_at.is_(None))))
        fetched = connection.execute(select(file.blob_key, file.sha256)).all()
    yield from (f"{key} is referred to, and not there" for key in sorted(referred - there))
    for key, sha256 in fetched:
        if key in there and hashlib.sha256(library.blobs.get(key)).hexdigest() != sha256:
            yield f"{key} is not what was fetched"
