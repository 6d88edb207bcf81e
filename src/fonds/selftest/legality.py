"""What must hold of a library at every moment, also right after a process was killed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from sqlalchemy import func, select, text

from fonds.library import Library
from fonds.runs.state import RunStatus
from fonds.selftest.story import INDEX
from fonds.shards.index import open_index
from fonds.shards.verify import verify
from fonds.stores.revisions import current_version
from fonds.stores.tables import (
    document_chunk_buffer,
    documents,
    fetched_files,
    ingestion_runs,
    upload_jobs,
)
from fonds.upkeep.doctor import examine
from fonds.upkeep.findings import Health
from fonds.upkeep.references import references

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
