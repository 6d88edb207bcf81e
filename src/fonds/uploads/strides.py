"""A small file all the way at once: what a worker has in hand is not written to be read again.

Each step of `stages` reads what it needs and ends in its own move, so that any worker goes on with
a job from wherever another left it. A file that our own normalizers read needs nobody else until
its vectors are asked for, and of a small one these are there in a moment too. So its text is
stored, checked and cut, its passages are checked and embedded, and then all moves from
`parse_queued` on, with what justifies them, are one transaction: up to `complete` for a small
document, up to `chunks_stored` for others, which go on step by step. A worker that has more to do
takes its next job in the transaction that ends one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import LeaseLostError
from fonds.model import NormalizedBody
from fonds.stores.passages import Passages, is_searched
from fonds.uploads.embedding import Answered, ask, batch_of_all, embedded, queued
from fonds.uploads.jobs import Job, Way, moving
from fonds.uploads.parsing import parsed, read_file
from fonds.uploads.resources import WorkerResources
from fonds.uploads.stages import (
    STEPS,
    InHand,
    chunking,
    chunks_stored,
    cut,
    drop_copy,
    publish,
    validated,
)
from fonds.uploads.states import JobStatus

SMALL: Final = 32
"""Passages that a model embeds so soon that nobody wants to be told what it is waited for."""


Then = Callable[[Connection], Job | None]
"""Claims the job that comes next."""


def take_forward(resources: WorkerResources, job: Job, then: Then) -> tuple[Job, Job | None]:
    """Take a job that is held by a lease as far as goes at once; where it ends, the next too."""
    if job.status is JobStatus.PARSE_QUEUED and job.parser == "local":
        return _through(resources, job, then)
    return STEPS[job.status](resources, job), None


def _through(resources: WorkerResources, job: Job, then: Then) -> tuple[Job, Job | None]:
    stored, stored_at = read_file(resources, job), resources.context.seams.clock.now()
    try:
        text = stored.text()
        passages = cut(resources, job, text)
        answered = _asked(resources, job, passages)
        with moving(resources.context.database, job) as way:
            parsed(way, stored, stored_at)
            validated(way, resources)
            chunking(way, resources)
            way.hold()
            rows = chunks_stored(way, resources, passages)
            if answered is not None and rows:
                _end(way, resources, text, rows, answered)
            way.arrive()
            ahead = then(way.connection) if way.status is JobStatus.COMPLETE else None
    except (LeaseLostError, SQLAlchemyError):
        raise
    except Exception:  # noqa: BLE001 — the step it belongs to meets it again, and tells
        with moving(resources.context.database, job) as way:
            parsed(way, stored, stored_at)
        return way.job, None
    drop_copy(resources, stored.path, way.job)
    if answered is not None and way.status is not JobStatus.CHUNKS_STORED and answered.cause:
        raise answered.cause
    return way.job, ahead


def _asked(resources: WorkerResources, job: Job, passages: Passages) -> Answered | None:
    """None where the passages are left to the steps: many, or the first that a model sees."""
    model = resources.opened_model
    if model is None or len(passages.chunks) > SMALL or resources.stop.is_set():
        return None
    batch = batch_of_all(model, resources, job, passages)
    return ask(resources, batch) if batch is not None else None


def _end(
    way: Way,
    resources: WorkerResources,
    text: NormalizedBody,
    rows: list[dict[str, Any]],
    answered: Answered,
) -> None:
    """From `chunks_stored` on, unless another model was chosen meanwhile."""
    generation = answered.model.generation
    if not is_searched(way.connection, generation):
        return
    numbered = [
        one._replace(row=row["id"]) for one, row in zip(answered.passages, rows, strict=True)
    ]
    queued(way, resources, answered.model)
    ours = embedded(way, resources, replace(answered, passages=numbered))
    if way.status is JobStatus.EMBEDDINGS_STORED:
        publish(way, resources, text, InHand(rows=rows, generation=generation, vectors=ours))
