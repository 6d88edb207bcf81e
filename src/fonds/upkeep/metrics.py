"""All figures of a library as Prometheus reads them.

Labels have few values: a source, a status, a stage, a queue, a model. No message and no name of a
task or document is told. What counts is in the database, so every process tells the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.metrics_core import Metric
from sqlalchemy import Connection

from fonds.runs.exposition import counter, exposed, gauge, histogram
from fonds.runs.state import RunStatus
from fonds.upkeep.figures import QueueState, RunFigures, run_figures
from fonds.uploads import metrics as uploads


def render(connection: Connection, now: datetime) -> str:
    """All figures in Prometheus' text format."""
    return exposed([*families(connection, now), *uploads.upload_families(connection, now)])


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
