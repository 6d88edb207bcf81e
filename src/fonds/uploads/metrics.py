"""The figures of uploads as Prometheus reads them.

Labels have few values: a status, a stage, the class of an error, and users by their id as long as
they are few. No name of a user or a document and no message is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection

from fonds.uploads.consumption import Costs, Storage, Stored
from fonds.uploads.distribution import Distribution
from fonds.uploads.telemetry import UploadFigures, figures

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
"""What `render` gives, as HTTP calls it."""
ALL_USERS: Final = "all"
"""Stands for a user's id where there are too many of them."""

T = TypeVar("T")
_Samples = Iterable[tuple[Sequence[str], T]]
"""Values by those of their labels."""


def render(connection: Connection, now: datetime) -> str:
    """The figures of uploads in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Told(figures(connection, now)))
    return generate_latest(registry).decode()


class _Told(Collector):
    def __init__(self, told: UploadFigures) -> None:
        self._told = told

    def collect(self) -> Iterator[Metric]:
        yield from _jobs(self._told)
        yield from _errors(self._told)
        yield from _costs(self._told.costs)
        yield from _storage(self._told.storage)


def _jobs(told: UploadFigures) -> Iterator[Metric]:
    statuses = [((status.value,), count) for status, count in told.jobs.items()]
    yield _gauge("jobs", "Jobs by where they stand.", statuses, ["status"])
    yield _histogram(
        "duration_seconds",
        "Time from the arrival of a file until it was parsed, cut, had a vector, was complete.",
        [((name,), spread) for name, spread in told.durations.items()],
        ["milestone"],
    )
    queue, again = told.queue, told.reprocessing
    yield _gauge("due_jobs", "Jobs that a worker could take.", _only(queue.due))
    yield _gauge(
        "queue_lag_seconds", "How long the first job that is due has waited.", _only(queue.lag)
    )
    longest = queue.longest.seconds if queue.longest else 0
    yield _gauge(
        "longest_wait_seconds", "How long ago the file of the oldest open job came.", _only(longest)
    )
    yield _gauge("repeated_jobs", "Jobs that were retried or sent back.", _only(again.repeated))
    yield _gauge("repeated_ratio", "Their share of all jobs.", _only(again.rate))


def _errors(told: UploadFigures) -> Iterator[Metric]:
    counts = [
        ((one.stage, one.type, "true" if one.is_final else "false"), one.count)
        for one in told.errors
    ]
    yield _counter(
        "errors", "Errors of jobs; final: the job failed.", counts, ["stage", "type", "final"]
    )
    entered = [((one.stage,), one.entered) for one in told.stages]
    yield _gauge("stage_jobs", "Jobs that came to a stage.", entered, ["stage"])
    rates = [((one.stage,), one.rate) for one in told.stages]
    yield _gauge("stage_error_ratio", "Share of them that met an error.", rates, ["stage"])


def _costs(told: Costs) -> Iterator[Metric]:
    yield _histogram("batch_tokens", "Tokens by batch sent to a model.", _only(told.batches))
    yield _histogram("document_tokens", "Tokens by document.", _only(told.documents))
    yield _counter("cost_dollars", "Price of all tokens.", _only(told.total.cost))
    yield _counter("requests", "Requests to a model, repeated ones too.", _only(told.requests))
    yield _counter("request_retries", "Requests that were repeated.", _only(told.retries))
    yield _counter(
        "repeated_tokens",
        "Tokens in batches with repeated requests, or after an error in embedding.",
        _only(told.repeated.tokens),
    )
    yield _counter("repeated_cost_dollars", "Price of these.", _only(told.repeated.cost))


def _storage(told: Storage) -> Iterator[Metric]:
    users = {str(one.user_id): one.stored for one in told.by_user}
    if told.users > len(told.by_user):
        users = {ALL_USERS: told.total}
    yield _gauge(
        "user_storage_bytes", "Stored files and texts by user.", _bytes(users), ["user", "content"]
    )
    formats = _bytes(told.by_format)
    yield _gauge(
        "format_storage_bytes", "Stored bytes by format of file.", formats, ["format", "content"]
    )


def _bytes(stored: Mapping[str, Stored]) -> Iterator[tuple[tuple[str, str], int]]:
    for name, one in stored.items():
        yield (name, "raw"), one.raw
        yield (name, "parsed"), one.parsed


# Families ---------------------------------------------------------------------------------


def _only(value: T) -> list[tuple[Sequence[str], T]]:
    return [((), value)]


def _gauge(
    name: str,
    about: str,
    values: _Samples[float],
    labels: Sequence[str] = (),
) -> Metric:
    family = GaugeMetricFamily(f"fonds_upload_{name}", about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _counter(
    name: str,
    about: str,
    values: _Samples[float],
    labels: Sequence[str] = (),
) -> Metric:
    family = CounterMetricFamily(f"fonds_upload_{name}", about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _histogram(
    name: str,
    about: str,
    values: _Samples[Distribution],
    labels: Sequence[str] = (),
) -> Metric:
    family = HistogramMetricFamily(f"fonds_upload_{name}", about, labels=labels)
    for key, spread in values:
        buckets = [(str(float(bound)), count) for bound, count in spread.buckets]
        family.add_metric(key, [*buckets, ("+Inf", spread.count)], spread.sum)
    return family
