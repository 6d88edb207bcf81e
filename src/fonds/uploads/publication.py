"""The end of a job: its document appears, whole and findable, or not at all."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from fonds import ids
from fonds.citations.uploads import cite_upload
from fonds.model import Archived, Body, Document, NormalizedBody
from fonds.normalize.registry import get_normalizer
from fonds.runs.derive import recipe_of
from fonds.stores.documents import Writing, ask_for_vectors, publish_document
from fonds.stores.staging import publish_passages, staged
from fonds.stores.vectors import current_generation
from fonds.uploads.files import raw_format_of
from fonds.uploads.gates import check_embedded
from fonds.uploads.jobs import Job, move
from fonds.uploads.parsing import MARKDOWN, read_parsed
from fonds.uploads.states import Status
from fonds.uploads.workbench import Workbench

SOURCE: Final = "uploads"


def finalize(bench: Workbench, job: Job) -> Job:
    """Publish the document, if every passage that was cut is there with its vector."""
    shelf, now = bench.shelf, bench.shelf.seams.clock.now()
    writing = _writing(bench, job, read_parsed(shelf.blobs, job))
    with shelf.database.write() as connection:
        # First the move: of two who believe to have the job, the second waits for it and loses.
        moved = move(
            connection,
            job,
            Status.COMPLETE,
            by=job.lease_owner or "fonds",
            why="the document can be found",
            now=now,
            completed_at=now,
            lease_owner=None,
            lease_until=None,
        )
        _check_counts(connection, job)
        publish_document(connection, writing, now)
        publish_passages(
            connection, shelf.database.fulltext, shelf.database.vectors, job.document_id, job.name
        )
        searched = current_generation(connection)
        if searched and (searched.name, searched.version) != (job.embed_model, job.embed_version):
            ask_for_vectors(connection, writing, now)  # another model was chosen meanwhile
        return moved


def _check_counts(connection: Connection, job: Job) -> None:
    assert job.embed_model is not None
    assert job.embed_version is not None
    count = staged(connection, job.document_id, job.embed_model, job.embed_version)
    check_embedded(count.passages, count.vectors, (job.progress or {}).get("chunks_total", 0))


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
