"""All figures of a library as Prometheus reads them.

Labels have few values: a source, a status, a stage, a queue, a model. No message and no name of a
task or document is told. What counts is in the database, so every process tells the same.

Figures of runs, queues and embedding, computed from rows: any process can tell them.

None of them is counted over documents or passages; what grows is the number of runs.

Figures in the words of Prometheus: families of samples, and the text they are told in.

The figures of uploads as Prometheus reads them.

Labels have few values: a status, a stage, the class of an error, and users by their id as long as
they are few. No name of a user or a document and no message is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import BigInteger, ColumnElement, Connection, Integer, Table, cast, func, select

from fonds.embed.client import left_alone
from fonds.runs.commands import LEASES
from fonds.runs.state import RunStatus
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
    """What a stage of a source's runs took in all."""

    items: int
    seconds: float
    waited: float
    """Seconds of them, for the turn at a host."""
    retries: int


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueState:
    """How a queue stands."""

    waiting: int
    given_up: int
    oldest: float
    """Seconds since the first that waits was queued; 0 where none does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingUsage:
    """What was asked of a model, ever."""

    texts: int
    tokens: int
    requests: int
    retries: int
    cost: float
    """USD"""
    is_left_alone: bool
    """Whether some process has found its endpoint failing, and waits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFigures:
    """How runs, queues and embedding are doing."""

    runs: Mapping[tuple[str, str], int]
    """By source and status."""
    durations: Mapping[str, Distribution]
    """Seconds of runs that have ended, by source."""
    stages: Mapping[tuple[str, str], StageTotals]
    """By source and stage."""
    since_success: Mapping[str, float]
    """Seconds, by source; those that never succeeded are not told."""
    open_errors: Mapping[str, int]
    queues: Mapping[str, QueueState]
    commands: QueueState
    """What operators asked for; none is given up."""
    embedded: Mapping[str, EmbeddingUsage]
    """By model."""


def run_figures(connection: Connection, now: datetime) -> RunFigures:
    """How runs, queues and embedding are doing, as the database has it."""
    return RunFigures(
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
    spans = select(_run.source, took.label("took")).where(_run.status != RunStatus.RUNNING).cte()
    # SQLite would compute a span anew wherever it is compared.
    spans = spans.prefix_with("MATERIALIZED")
    columns = distribution_columns(spans.c.took, SECONDS, unit=1000)
    query = select(spans.c.source, *columns).group_by(spans.c.source)
    return {
        row[0]: Distribution.read(iter(row[1:]), SECONDS, unit=1000)
        for row in connection.execute(query)
    }


def _milliseconds(
    connection: Connection, begun: ColumnElement[Any], ended: ColumnElement[Any]
) -> ColumnElement[int]:
    if connection.dialect.name == "sqlite":
        days = func.julianday(ended) - func.julianday(begun)
        return cast(func.max(func.round(days * 86_400_000), 0), Integer)
    seconds = func.date_part("epoch", ended.op("-")(begun))
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
    return {source: _age(moment, now) for source, moment in connection.execute(query)}


def _open_errors(connection: Connection) -> dict[str, int]:
    task = ingestion_tasks.c
    standing = (task.stage == "errored") & task.resolved_at.is_(None)
    query = select(task.source, func.count()).where(standing).group_by(task.source)
    return {source: count for source, count in connection.execute(query)}  # noqa: C416 — rows


def _queue(connection: Connection, queue: Table, now: datetime) -> QueueState:
    waits = queue.c.attempts < queues.MAX_ATTEMPTS
    # Rows are numbered in the order they were queued in, and the index is over numbers.
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
    alone = left_alone(connection, now)
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
"""What `exposed` gives, as HTTP calls it."""

T = TypeVar("T")
Samples = Iterable[tuple[Sequence[str], T]]
"""Values by those of their labels."""


class Spread(Protocol):
    """How values are spread: those not above each bound, all, and their sum."""

    @property
    def count(self) -> int:
        """All values."""
        ...

    @property
    def sum(self) -> float:
        """Of all values."""
        ...

    @property
    def buckets(self) -> tuple[tuple[int, int], ...]:
        """Bounds, and how many values are not above them."""
        ...


def exposed(families: Iterable[Metric]) -> str:
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
    """What goes up and down."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def counter(name: str, about: str, values: Samples[float], labels: Sequence[str] = ()) -> Metric:
    """What only goes up; `_total` is added to its name."""
    family = CounterMetricFamily(name, about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def histogram(name: str, about: str, values: Samples[Spread], labels: Sequence[str] = ()) -> Metric:
    """How values are spread."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for key, one in values:
        buckets = [(str(float(bound)), count) for bound, count in one.buckets]
        family.add_metric(key, [*buckets, ("+Inf", one.count)], one.sum)
    return family


ALL_USERS: Final = "all"
"""Stands for a user's id where there are too many of them."""


def render_uploads(connection: Connection, now: datetime) -> str:
    """The figures of uploads in Prometheus' text format."""
    return exposed(upload_families(connection, now))


def upload_families(connection: Connection, now: datetime) -> Iterator[Metric]:
    """The figures of uploads."""
    told = upload_statistics(connection, now)
    yield from _jobs(told)
    yield from _errors(told)
    yield from _costs(told.costs)
    yield from _storage(told.storage)


def _jobs(told: UploadStatistics) -> Iterator[Metric]:
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
    longest = queue.oldest.seconds if queue.oldest else 0
    yield gauge(
        "fonds_upload_longest_wait_seconds",
        "How long ago the file of the oldest open job came.",
        only(longest),
    )
    yield gauge(
        "fonds_upload_repeated_jobs", "Jobs that were retried or sent back.", only(again.repeated)
    )
    yield gauge("fonds_upload_repeated_ratio", "Their share of all jobs.", only(again.rate))


def _errors(told: UploadStatistics) -> Iterator[Metric]:
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


def _bytes(stored: Mapping[str, StorageUsage]) -> Iterator[tuple[tuple[str, str], int]]:
    for name, one in stored.items():
        yield (name, "raw"), one.raw
        yield (name, "parsed"), one.parsed


def render(connection: Connection, now: datetime) -> str:
    """All figures in Prometheus' text format."""
    return exposed([*families(connection, now), *upload_families(connection, now)])


def families(connection: Connection, now: datetime) -> Iterator[Metric]:
    """The figures of runs, queues and embedding."""
    told = run_figures(connection, now)
    yield from _run_metrics(told)
    yield from _stage_metrics(told)
    yield from _queues({**told.queues, "command": told.commands})
    yield from _embedding(told)


def _run_metrics(told: RunFigures) -> Iterator[Metric]:
    ended = [(key, count) for key, count in told.runs.items() if key[1] != RunStatus.RUNNING]
    yield counter("fonds_runs", "Runs that have ended.", ended, ["source", "status"])
    going = [
        ((source,), n) for (source, is_in), n in told.runs.items() if is_in == RunStatus.RUNNING
    ]
    yield gauge("fonds_running_runs", "Runs that have not ended.", going, ["source"])
    yield histogram(
        "fonds_run_duration_seconds",
        "How long runs took.",
        [((source,), spread) for source, spread in told.durations.items()],
        ["source"],
    )
    yield gauge(
        "fonds_seconds_since_success",
        "Time since a run last ended without a flaw.",
        [((source,), seconds) for source, seconds in told.since_success.items()],
        ["source"],
    )
    yield gauge(
        "fonds_open_errors",
        "Tasks that failed and were not made good.",
        [((source,), count) for source, count in told.open_errors.items()],
        ["source"],
    )


def _stage_metrics(told: RunFigures) -> Iterator[Metric]:
    labels = ["source", "stage"]
    totals = told.stages.items()
    yield counter(
        "fonds_stage_items",
        "Tasks found, tasks fetched, records parsed, records loaded.",
        [(key, one.items) for key, one in totals],
        labels,
    )
    yield counter(
        "fonds_stage_seconds",
        "Time spent on them, added up over what goes on at once.",
        [(key, one.seconds) for key, one in totals],
        labels,
    )
    yield counter(
        "fonds_rate_limit_wait_seconds",
        "Time that requests waited for their turn at a host.",
        [(key, one.waited) for key, one in totals],
        labels,
    )
    yield counter(
        "fonds_request_retries",
        "Requests that were repeated.",
        [(key, one.retries) for key, one in totals],
        labels,
    )


def _queues(told: Mapping[str, QueueState]) -> Iterator[Metric]:
    yield gauge(
        "fonds_queue_depth",
        "What waits in a queue.",
        [((name,), one.waiting) for name, one in told.items()],
        ["queue"],
    )
    yield gauge(
        "fonds_queue_oldest_seconds",
        "How long the first of them has waited.",
        [((name,), one.oldest) for name, one in told.items()],
        ["queue"],
    )
    yield gauge(
        "fonds_queue_given_up",
        "What failed too often to be tried again.",
        [((name,), one.given_up) for name, one in told.items()],
        ["queue"],
    )


def _embedding(told: RunFigures) -> Iterator[Metric]:
    amounts = {
        "texts": "Passages that a model read.",
        "tokens": "Tokens that a model read.",
        "requests": "Requests to a model, repeated ones too.",
        "retries": "Requests to a model that were repeated.",
    }
    models = told.embedded.items()
    for name, about in amounts.items():
        values = [((model,), float(getattr(one, name))) for model, one in models]
        yield counter(f"fonds_embedding_{name}", about, values, ["model"])
    costs = [((model,), one.cost) for model, one in models]
    yield counter("fonds_embedding_cost_dollars", "Price of all tokens.", costs, ["model"])
    yield gauge(
        "fonds_embedding_breaker_open",
        "Whether a process leaves the endpoint alone, as it kept failing.",
        [((model,), float(one.is_left_alone)) for model, one in models],
        ["model"],
    )
