"""The figures of uploads as Prometheus reads them.

Labels have few values: a status, a stage, the class of an error, and users by their id as long as
they are few. No name of a user or a document and no message is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from prometheus_client.metrics_core import Metric
from sqlalchemy import Connection

from fonds.runs.exposition import counter, exposed, gauge, histogram, only
from fonds.uploads.consumption import Costs, Storage, Stored
from fonds.uploads.telemetry import UploadFigures, figures

ALL_USERS: Final = "all"
"""Stands for a user's id where there are too many of them."""


def render_uploads(connection: Connection, now: datetime) -> str:
    """The figures of uploads in Prometheus' text format."""
    return exposed(upload_families(connection, now))


def upload_families(connection: Connection, now: datetime) -> Iterator[Metric]:
    """The figures of uploads."""
    told = figures(connection, now)
    yield from _jobs(told)
    yield from _errors(told)
    yield from _costs(told.costs)
    yield from _storage(told.storage)


def _jobs(told: UploadFigures) -> Iterator[Metric]:
    statuses = [((status.value,), count) for status, count in told.jobs.items()]
    yield gauge("fonds_upload_jobs", "Jobs by where they stand.", statuses, ["status"])
    yield histogram(
        "fonds_upload_duration_seconds",
        "Time from the arrival of a file until it was parsed, cut, had a vector, was complete.",
        [((name,), spread) for name, spread in told.durations.items()],
        ["milestone"],
    )
    queue, again = told.queue, told.reprocessing
    yield gauge("fonds_upload_due_jobs", "Jobs that a worker could take.", only(queue.due))
    yield gauge(
        "fonds_upload_queue_lag_seconds",
        "How long the first job that is due has waited.",
        only(queue.lag),
    )
    longest = queue.longest.seconds if queue.longest else 0
    yield gauge(
        "fonds_upload_longest_wait_seconds",
        "How long ago the file of the oldest open job came.",
        only(longest),
    )
    yield gauge(
        "fonds_upload_repeated_jobs", "Jobs that were retried or sent back.", only(again.repeated)
    )
    yield gauge("fonds_upload_repeated_ratio", "Their share of all jobs.", only(again.rate))


def _errors(told: UploadFigures) -> Iterator[Metric]:
    counts = [
        ((one.stage, one.type, "true" if one.is_final else "false"), one.count)
        for one in told.errors
    ]
    yield counter(
        "fonds_upload_errors",
        "Errors of jobs; final: the job failed.",
        counts,
        ["stage", "type", "final"],
    )
    entered = [((one.stage,), one.entered) for one in told.stages]
    yield gauge("fonds_upload_stage_jobs", "Jobs that came to a stage.", entered, ["stage"])
    rates = [((one.stage,), one.rate) for one in told.stages]
    yield gauge(
        "fonds_upload_stage_error_ratio", "Share of them that met an error.", rates, ["stage"]
    )


def _costs(told: Costs) -> Iterator[Metric]:
    yield histogram(
        "fonds_upload_batch_tokens", "Tokens by batch sent to a model.", only(told.batches)
    )
    yield histogram("fonds_upload_document_tokens", "Tokens by document.", only(told.documents))
    yield counter("fonds_upload_cost_dollars", "Price of all tokens.", only(told.total.cost))
    yield counter(
        "fonds_upload_requests", "Requests to a model, repeated ones too.", only(told.requests)
    )
    yield counter(
        "fonds_upload_request_retries", "Requests that were repeated.", only(told.retries)
    )
    yield counter(
        "fonds_upload_repeated_tokens",
        "Tokens in batches with repeated requests, or after an error in embedding.",
        only(told.repeated.tokens),
    )
    yield counter("fonds_upload_repeated_cost_dollars", "Price of these.", only(told.repeated.cost))


def _storage(told: Storage) -> Iterator[Metric]:
    users = {str(one.user_id): one.stored for one in told.by_user}
    if told.users > len(told.by_user):
        users = {ALL_USERS: told.total}
    yield gauge(
        "fonds_upload_user_storage_bytes",
        "Stored files and texts by user.",
        _bytes(users),
        ["user", "content"],
    )
    formats = _bytes(told.by_format)
    yield gauge(
        "fonds_upload_format_storage_bytes",
        "Stored bytes by format of file.",
        formats,
        ["format", "content"],
    )


def _bytes(stored: Mapping[str, Stored]) -> Iterator[tuple[tuple[str, str], int]]:
    for name, one in stored.items():
        yield (name, "raw"), one.raw
        yield (name, "parsed"), one.parsed
