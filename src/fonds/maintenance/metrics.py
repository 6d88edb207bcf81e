"""The metrics of a library in Prometheus' text format.

They are computed from the database, so that every process reports the same. Labels have few values:
a source, a status, a stage, a queue, a model, the class of an error, and users by id while they are
few. No message and no name of a user, task or document is a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import BigInteger, ColumnElement, Connection, Integer, Table, cast, func, select

from fonds.embed.client import open_breakers
from fonds.maintenance.disk import free_space
from fonds.runs.commands import LEASES
from fonds.runs.state import RunStatus
from fonds.settings import Settings
from fonds.stores import leases as queues
from fonds.stores.tables import (
    embedding_batches,
    embedding_generations,
    ingestion_citation_queue,
    ingestion_commands,
    ingestion_embedding_queue,
    ingestion_normalization_queue,
    ingestion_runs,
    ingestion_source_state,
    ingestion_stages,
    ingestion_tasks,
)
from fonds.uploads.statistics import UploadStatistics, upload_statistics
from fonds.uploads.usage import Costs, Distribution, Storage, StorageUsage, distribution_columns

SECONDS: Final = (1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400)
QUEUES: Final[Mapping[str, Table]] = {
    "normalization": ingestion_normalization_queue,
    "citation": ingestion_citation_queue,
    "embedding": ingestion_embedding_queue,
}

_run: Final = ingestion_runs.c
_stage: Final = ingestion_stages.c


@dataclass(frozen=True, kw_only=True, slots=True)
class StageTotals:
    """Totals of one stage over all runs of a source."""

    items: int
    seconds: float
    waited: float
    """The part of the seconds that requests waited for rate limits."""
    retries: int


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueState:
    """The state of a queue."""

    waiting: int
    given_up: int
    oldest: float
    """Seconds since the first waiting row was queued; 0 if none is waiting."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingUsage:
    """All requests to a model."""

    texts: int
    tokens: int
    requests: int
    retries: int
    cost: float
    """USD"""
    is_left_alone: bool
    """True while a process does not use its endpoint, as it kept failing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStatistics:
    """Statistics of runs, queues and embedding."""

    runs: Mapping[tuple[str, str], int]
    """By source and status."""
    durations: Mapping[str, Distribution]
    """Seconds of runs that have ended, by source."""
    stages: Mapping[tuple[str, str], StageTotals]
    """By source and stage."""
    since_success: Mapping[str, float]
    """Seconds, by source; without those that never succeeded."""
    open_errors: Mapping[str, int]
    queues: Mapping[str, QueueState]
    commands: QueueState
    """Requests of operators; none is given up."""
    embedded: Mapping[str, EmbeddingUsage]
    """By model."""


def run_statistics(connection: Connection, now: datetime) -> RunStatistics:
    """Statistics of runs, queues and embedding, from the database."""
    return RunStatistics(
        runs=_runs(connection),
        durations=_durations(connection),
        stages=_stages(connection),
        since_success=_since_success(connection, now),
        open_errors=_open_errors(connection),
        queues={name: _queue(connection, table, now) for name, table in QUEUES.items()},
        commands=_commands(connection, now),
        embedded=_embedded(connection, now),
    )


def _runs(connection: Connection) -> dict[tuple[str, str], int]:
    query = select(_run.source, _run.status, func.count()).group_by(_run.source, _run.status)
    return {(source, status): count for source, status, count in connection.execute(query)}


def _durations(connection: Connection) -> dict[str, Distribution]:
    took = _milliseconds(connection, _run.started_at, _run.finished_at)
    durations = (
        select(_run.source, took.label("took")).where(_run.status != RunStatus.RUNNING).cte()
    )
    # SQLite would compute a duration again for each comparison.
    durations = durations.prefix_with("MATERIALIZED")
    columns = distribution_columns(durations.c.took, SECONDS, unit=1000)
    query = select(durations.c.source, *columns).group_by(durations.c.source)
    return {
        row[0]: Distribution.read(iter(row[1:]), SECONDS, unit=1000)
        for row in connection.execute(query)
    }


def _milliseconds(
    connection: Connection, started: ColumnElement[Any], ended: ColumnElement[Any]
) -> ColumnElement[int]:
    if connection.dialect.name == "sqlite":
        days = func.julianday(ended) - func.julianday(started)
        return cast(func.max(func.round(days * 86_400_000), 0), Integer)
    seconds = func.date_part("epoch", ended.op("-")(started))
    return cast(func.greatest(func.round(seconds * 1000), 0), BigInteger)


def _stages(connection: Connection) -> dict[tuple[str, str], StageTotals]:
    key = (_run.source, _stage.stage)
    sums = (_stage["items"], _stage.seconds, _stage.waited_seconds, _stage.retries)
    query = (
        select(*key, *map(func.sum, sums))
        .join_from(ingestion_stages, ingestion_runs, _run.id == _stage.run_id)
        .group_by(*key)
    )
    return {
        (source, stage): StageTotals(
            items=int(items), seconds=seconds, waited=waited, retries=int(retries)
        )
        for source, stage, items, seconds, waited, retries in connection.execute(query)
    }


def _since_success(connection: Connection, now: datetime) -> dict[str, float]:
    state = ingestion_source_state.c
    query = select(state.source, state.last_success_at).where(state.last_success_at.is_not(None))
    return {source: _age(time, now) for source, time in connection.execute(query)}


def _open_errors(connection: Connection) -> dict[str, int]:
    task = ingestion_tasks.c
    is_open = (task.stage == "errored") & task.resolved_at.is_(None)
    query = select(task.source, func.count()).where(is_open).group_by(task.source)
    return {source: count for source, count in connection.execute(query)}  # noqa: C416 — rows


def _queue(connection: Connection, queue: Table, now: datetime) -> QueueState:
    waits = queue.c.attempts < queues.MAX_ATTEMPTS
    # Row numbers are in the order of queueing, and indexed.
    first = select(queue.c.enqueued_at).where(waits).order_by(queue.c.id).limit(1)
    oldest: datetime | None = connection.scalar(first)
    return QueueState(
        **queues.depth(connection, queue), oldest=0.0 if oldest is None else _age(oldest, now)
    )


def _commands(connection: Connection, now: datetime) -> QueueState:
    table = ingestion_commands.c
    query = select(func.count(), func.min(table.requested_at)).where(
        table.finished_at.is_(None), LEASES.is_free(now)
    )
    waiting, oldest = connection.execute(query).one()
    return QueueState(
        waiting=waiting, given_up=0, oldest=0.0 if oldest is None else _age(oldest, now)
    )


def _embedded(connection: Connection, now: datetime) -> dict[str, EmbeddingUsage]:
    batch, made = embedding_batches.c, embedding_generations.c
    alone = open_breakers(connection, now)
    sums = [
        func.coalesce(func.sum(batch[name]), 0)
        for name in ("texts", "tokens", "requests", "retries", "cost")
    ]
    query = (
        select(made.name, *sums)
        .outerjoin_from(embedding_generations, embedding_batches, batch.generation == made.id)
        .group_by(made.name)
    )
    return {
        name: EmbeddingUsage(
            texts=int(texts),
            tokens=int(tokens),
            requests=int(requests),
            retries=int(retries),
            cost=float(cost),
            is_left_alone=name in alone,
        )
        for name, texts, tokens, requests, retries, cost in connection.execute(query)
    }


def _age(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since) / timedelta(seconds=1))


CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
"""The media type of `render`."""

T = TypeVar("T")
Samples = Iterable[tuple[Sequence[str], T]]
"""Label values, each with the value of the sample."""


def render_families(families: Iterable[Metric]) -> str:
    """Families in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    return generate_latest(registry).decode()


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def only(value: T) -> list[tuple[Sequence[str], T]]:
    """A value without labels."""
    return [((), value)]


def gauge(name: str, about: str, values: Samples[float], labels: Sequence[str] = ()) -> Metric:
    """A family of values that go up and down."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def counter(name: str, about: str, values: Samples[float], labels: Sequence[str] = ()) -> Metric:
    """A family of values that only go up; `_total` is added to its name."""
    family = CounterMetricFamily(name, about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def histogram(
    name: str, about: str, values: Samples[Distribution], labels: Sequence[str] = ()
) -> Metric:
    """A family of distributions."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for key, distribution in values:
        buckets = [(str(float(bound)), count) for bound, count in distribution.buckets]
        family.add_metric(key, [*buckets, ("+Inf", distribution.count)], distribution.sum)
    return family


ALL_USERS: Final = "all"
"""The label of the total if there are too many users for one each."""


def upload_families(connection: Connection, now: datetime) -> Iterator[Metric]:
    """The metrics of uploads."""
    statistics = upload_statistics(connection, now)
    yield from _jobs(statistics)
    yield from _errors(statistics)
    yield from _costs(statistics.costs)
    yield from _storage(statistics.storage)


def _jobs(statistics: UploadStatistics) -> Iterator[Metric]:
    statuses = [((status.value,), count) for status, count in statistics.jobs.items()]
    yield gauge("fonds_upload_jobs", "Jobs by status.", statuses, ["status"])
    yield histogram(
        "fonds_upload_duration_seconds",
        "Time from the arrival of a file until it was parsed, cut, had a vector, was complete.",
        [((name,), value) for name, value in statistics.durations.items()],
        ["milestone"],
    )
    queue, again = statistics.queue, statistics.reprocessing
    yield gauge("fonds_upload_due_jobs", "Jobs that a worker could take.", only(queue.due))
    yield gauge(
        "fonds_upload_queue_lag_seconds",
        "How long the first job that is due has waited.",
        only(queue.lag),
    )
    oldest_wait = queue.oldest.seconds if queue.oldest else 0
    yield gauge(
        "fonds_upload_longest_wait_seconds",
        "How long ago the file of the oldest open job came.",
        only(oldest_wait),
    )
    yield gauge(
        "fonds_upload_repeated_jobs", "Jobs that were retried or sent back.", only(again.repeated)
    )
    yield gauge("fonds_upload_repeated_ratio", "Their share of all jobs.", only(again.rate))


def _errors(statistics: UploadStatistics) -> Iterator[Metric]:
    counts = [
        ((error.stage, error.type, "true" if error.is_final else "false"), error.count)
        for error in statistics.errors
    ]
    yield counter(
        "fonds_upload_errors",
        "Errors of jobs; final: the job failed.",
        counts,
        ["stage", "type", "final"],
    )
    entered = [((stage.stage,), stage.entered) for stage in statistics.stages]
    yield gauge("fonds_upload_stage_jobs", "Jobs that came to a stage.", entered, ["stage"])
    rates = [((stage.stage,), stage.rate) for stage in statistics.stages]
    yield gauge(
        "fonds_upload_stage_error_ratio", "Share of them that met an error.", rates, ["stage"]
    )


def _costs(costs: Costs) -> Iterator[Metric]:
    yield histogram(
        "fonds_upload_batch_tokens", "Tokens by batch sent to a model.", only(costs.batches)
    )
    yield histogram("fonds_upload_document_tokens", "Tokens by document.", only(costs.documents))
    yield counter("fonds_upload_cost_dollars", "Price of all tokens.", only(costs.total.cost))
    yield counter(
        "fonds_upload_requests", "Requests to a model, repeated ones too.", only(costs.requests)
    )
    yield counter(
        "fonds_upload_request_retries", "Requests that were repeated.", only(costs.retries)
    )
    yield counter(
        "fonds_upload_repeated_tokens",
        "Tokens in batches with repeated requests, or after an error in embedding.",
        only(costs.repeated.tokens),
    )
    yield counter(
        "fonds_upload_repeated_cost_dollars", "Price of these.", only(costs.repeated.cost)
    )


def _storage(storage: Storage) -> Iterator[Metric]:
    users = {str(user.user_id): user.stored for user in storage.by_user}
    if storage.users > len(storage.by_user):
        users = {ALL_USERS: storage.total}
    yield gauge(
        "fonds_upload_user_storage_bytes",
        "Stored files and texts by user.",
        _bytes(users),
        ["user", "content"],
    )
    formats = _bytes(storage.by_format)
    yield gauge(
        "fonds_upload_format_storage_bytes",
        "Stored bytes by format of file.",
        formats,
        ["format", "content"],
    )


def _bytes(stored: Mapping[str, StorageUsage]) -> Iterator[tuple[tuple[str, str], int]]:
    for name, usage in stored.items():
        yield (name, "raw"), usage.raw
        yield (name, "parsed"), usage.parsed


def render(connection: Connection, now: datetime, settings: Settings) -> str:
    """All metrics in Prometheus' text format."""
    library = families(connection, now, settings)
    return render_families([*library, *upload_families(connection, now)])


def families(connection: Connection, now: datetime, settings: Settings) -> Iterator[Metric]:
    """The metrics of runs, queues, embedding, and the disks of this machine."""
    statistics = run_statistics(connection, now)
    yield from _run_metrics(statistics)
    yield from _stage_metrics(statistics.stages)
    yield from _queues({**statistics.queues, "command": statistics.commands})
    yield from _embedding(statistics.embedded)
    disks = [((disk.name,), float(disk.free)) for disk in free_space(settings)]
    about = "Free space on the disks of this machine: of the home folder, of blobs if on another."
    yield gauge("fonds_disk_free_bytes", about, disks, ["disk"])


def _run_metrics(statistics: RunStatistics) -> Iterator[Metric]:
    ended = [(key, count) for key, count in statistics.runs.items() if key[1] != RunStatus.RUNNING]
    yield counter("fonds_runs", "Runs that have ended.", ended, ["source", "status"])
    running = [
        ((source,), count)
        for (source, status), count in statistics.runs.items()
        if status == RunStatus.RUNNING
    ]
    yield gauge("fonds_running_runs", "Runs that have not ended.", running, ["source"])
    yield histogram(
        "fonds_run_duration_seconds",
        "How long runs took.",
        [((source,), value) for source, value in statistics.durations.items()],
        ["source"],
    )
    yield gauge(
        "fonds_seconds_since_success",
        "Time since a run last ended without a flaw.",
        [((source,), seconds) for source, seconds in statistics.since_success.items()],
        ["source"],
    )
    yield gauge(
        "fonds_open_errors",
        "Tasks that failed and were not made good.",
        [((source,), count) for source, count in statistics.open_errors.items()],
        ["source"],
    )


def _stage_metrics(stages: Mapping[tuple[str, str], StageTotals]) -> Iterator[Metric]:
    for name, about, field in (
        (
            "fonds_stage_items",
            "Tasks found, tasks fetched, records parsed, records loaded.",
            "items",
        ),
        ("fonds_stage_seconds", "Time spent on them, summed over concurrent work.", "seconds"),
        ("fonds_rate_limit_wait_seconds", "Time that requests waited for rate limits.", "waited"),
        ("fonds_request_retries", "Requests that were repeated.", "retries"),
    ):
        values = [(key, getattr(totals, field)) for key, totals in stages.items()]
        yield counter(name, about, values, ["source", "stage"])


def _queues(states: Mapping[str, QueueState]) -> Iterator[Metric]:
    for name, about, field in (
        ("fonds_queue_depth", "Rows that wait in a queue.", "waiting"),
        ("fonds_queue_oldest_seconds", "How long the first of them has waited.", "oldest"),
        ("fonds_queue_given_up", "Rows that failed too often to be tried again.", "given_up"),
    ):
        values = [((queue,), getattr(state, field)) for queue, state in states.items()]
        yield gauge(name, about, values, ["queue"])


def _embedding(usages: Mapping[str, EmbeddingUsage]) -> Iterator[Metric]:
    for name, about in (
        ("texts", "Passages that a model read."),
        ("tokens", "Tokens that a model read."),
        ("requests", "Requests to a model, repeated ones too."),
        ("retries", "Requests to a model that were repeated."),
    ):
        values = [((model,), float(getattr(usage, name))) for model, usage in usages.items()]
        yield counter(f"fonds_embedding_{name}", about, values, ["model"])
    costs = [((model,), usage.cost) for model, usage in usages.items()]
    yield counter("fonds_embedding_cost_dollars", "Price of all tokens.", costs, ["model"])
    breakers = [((model,), float(usage.is_left_alone)) for model, usage in usages.items()]
    yield gauge(
        "fonds_embedding_breaker_open",
        "1 while a process does not use the endpoint, as it kept failing.",
        breakers,
        ["model"],
    )
