"""Uploads as tests make them: a library on any store, a user, a file put where it belongs."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, select
from tests.support import servers
from tests.support.engines import InlineEngine

from fonds.library import Library, open_library
from fonds.seams import Seams
from fonds.stores.tables import document_chunk_buffer, document_vector_buffer, users
from fonds.uploads.intake import UploadRequest, begin_upload, complete_upload, staging_key
from fonds.uploads.jobs import Job, job_of
from fonds.uploads.resources import WorkerResources
from fonds.uploads.worker import UploadWorker

TEXT = """# Flood policy

## Cover

The insurer pays for damage by water up to the sum insured.

## Excess

The first 500 dollars of each claim are paid by the insured.
"""


@contextmanager
def upload_library(
    home: Path, *, seams: Seams | None = None, **overrides: Any
) -> Iterator[Library]:
    """A library whose vectors cost nothing."""
    if "database" not in overrides and not (home / "fonds.db").exists():
        home.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(servers.sqlite_template(), home / "fonds.db")
    settings = {"embedder": "hashing:32", "outage_seconds": 0.0, **overrides}
    with open_library(home, seams=seams, **settings) as library:
        yield library


def make_user(library: Library, name: str = "") -> UUID:
    """Somebody who may upload."""
    user_id = uuid4()
    row = {"id": user_id, "name": name or str(user_id), "created_at": library.seams.clock.now()}
    with library.database.write() as connection:
        connection.execute(insert(users).values(row))
    return user_id


def announce(library: Library, user: UUID, data: bytes, name: str = "policy.md") -> Job:
    """The first half of an upload."""
    claim = UploadRequest(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
    return begin_upload(library.context, library.settings, user, claim)


def send(library: Library, user: UUID, data: bytes, name: str = "policy.md") -> Job:
    """All of it: announced, put, completed."""
    job = announce(library, user, data, name)
    library.blobs.put(staging_key(job), data)
    return complete_upload(library.context, library.settings, job)


def inline_resources(library: Library) -> WorkerResources:
    """The resources of a worker that reads harmless files without another process."""
    return WorkerResources(context=library.context, engine=InlineEngine())


def work(library: Library, **options: Any) -> None:
    """A worker, until nothing is left to do."""
    UploadWorker(inline_resources(library), poll=0.01, **options).drain()


def now_of(library: Library, job: Job) -> Job:
    """The job as it stands."""
    with library.database.read() as connection:
        found = job_of(connection, job.document_id)
    assert found is not None
    return found


def stored(library: Library) -> dict[str, list[Any]]:
    """All passages and vectors, comparable between libraries."""
    chunk, vector = document_chunk_buffer.c, document_vector_buffer.c
    passages = select(chunk.document_id, chunk.chunk_ord, chunk.chunk_sha, chunk.text, chunk.meta)
    vectors = select(vector.chunk_id, vector.embed_model, vector.embed_version, vector.vector_sha)
    with library.database.read() as connection:
        return {
            "passages": sorted(map(repr, connection.execute(passages))),
            "vectors": sorted(map(repr, connection.execute(vectors))),
        }
