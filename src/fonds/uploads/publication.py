"""The end of a job: its document appears, whole and findable, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from fonds import ids
from fonds.citations.uploads import cite_upload
from fonds.model import Archived, Body, Document, NormalizedBody
from fonds.normalize.registry import get_normalizer
from fonds.runs.derive import recipe_of
from fonds.stores.database import Database
from fonds.stores.documents import Writing, ask_for_vectors, publish_document
from fonds.stores.embedding import Vector
from fonds.stores.staging import publish_passages, publish_rows, searched, staged
from fonds.stores.vectors import Generation
from fonds.uploads.files import raw_format_of
from fonds.uploads.gates import check_embedded
from fonds.uploads.jobs import Job
from fonds.uploads.moving import Way, moving
from fonds.uploads.parsing import MARKDOWN, read_parsed
from fonds.uploads.states import JobStatus
from fonds.uploads.workbench import Workbench

SOURCE: Final = "uploads"


@dataclass(frozen=True, kw_only=True, slots=True)
class InHand:
    """Passages and vectors that were stored in this very transaction."""

    rows: Sequence[Mapping[str, Any]]
    """Of the chunk buffer."""
    generation: Generation
    """The one that is searched."""
    vectors: Mapping[int, Vector]
    """By the number of a row; each has one."""


def finalize(bench: Workbench, job: Job) -> Job:
    """`embeddings_stored` → `complete`."""
    text = read_parsed(bench.shelf.blobs, job)
    with moving(bench.shelf.database, job) as way:
        publish(way, bench, text)
    return way.job


def publish(way: Way, bench: Workbench, text: NormalizedBody, hand: InHand | None = None) -> None:
    """The document appears, if every passage that was cut is there with its vector."""
    job, now = way.job, bench.shelf.seams.clock.now()
    way.move(
        JobStatus.COMPLETE,
        why="the document can be found",
        now=now,
        completed_at=now,
        lease_owner=None,
        lease_until=None,
    )
    writing = _writing(bench, job, text)
    if hand is not None:  # of a job that is held, and whose vectors were counted here
        publish_document(way.connection, writing, now)
        _publish_in_hand(way.connection, bench.shelf.database, job, hand)
        return
    way.hold()  # of two who believe to have the job, the second waits here and loses
    publish_document(way.connection, writing, now)
    _check_counts(way.connection, job)
    there = searched(way.connection)
    publish_passages(
        way.connection, bench.shelf.database, there.generations, job.document_id, job.name
    )
    made_by = (job.embed_model, job.embed_version)
    if there.current and (there.current.name, there.current.version) != made_by:
        ask_for_vectors(way.connection, writing, now)  # another model was chosen meanwhile


def _check_counts(connection: Connection, job: Job) -> None:
    assert job.embed_model is not None
    assert job.embed_version is not None
    count = staged(connection, job.document_id, job.embed_model, job.embed_version)
    check_embedded(count.passages, count.vectors, (job.progress or {}).get("chunks_total", 0))


def _publish_in_hand(connection: Connection, database: Database, job: Job, hand: InHand) -> None:
    vectors = [(row, vector.data) for row, vector in hand.vectors.items()]
    publish_rows(connection, database, job.name, hand.rows, {hand.generation: vectors})


def _writing(bench: Workbench, job: Job, text: NormalizedBody) -> Writing:
    document_id = ids.upload_id(job.document_id)
    raw = Archived(
        url=f"/api/documents/{document_id}/raw",
        key=job.raw_path,
        sha256=job.raw_sha256,
        size=job.bytes,
        retrieved_at=job.created_at,
    )
    body = _body(job, raw, text)
    document = Document(
        id=document_id,
        source=SOURCE,
        kind="upload",
        title=job.name,
        source_url=raw.url,
        source_org="Upload",
        citation_string=cite_upload(
            name=job.name, sha256=job.raw_sha256, uploaded=job.created_at.date()
        ),
        raw=raw,
        body=body,
        owner=str(job.user_id),
    )
    return Writing(
        document=document,
        content_sha256=ids.json_sha256([job.name, job.raw_sha256, job.parsed_sha256]),
        body_text_sha256=ids.text_sha256(text.markdown),
        recipe=recipe_of(body.normalizer, bench.shelf.chunker),
        task_key=job.raw_path,
    )


def _body(job: Job, raw: Archived, text: NormalizedBody) -> Body:
    """What the text can be made from again: the file, or what a parser outside made of it."""
    assert job.parsed_path is not None
    assert job.parsed_sha256 is not None
    if job.parser == "local":
        form = raw_format_of(job.format)
        return Body(archived=raw, format=form, normalizer=job.parsed_by, normalized=text)
    parsed = Archived(
        url=raw.url,
        key=job.parsed_path,
        sha256=job.parsed_sha256,
        size=job.parsed_bytes or 0,
        retrieved_at=job.updated_at,
    )
    return Body(
        archived=parsed, format="text", normalizer=get_normalizer(MARKDOWN).label, normalized=text
    )
