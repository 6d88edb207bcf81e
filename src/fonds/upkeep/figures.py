"""Figures of runs, queues and embedding, computed from rows: any process can tell them.

None of them is counted over documents or passages; what grows is the number of runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Integer, Table, cast, func, select

from fonds.embed.standstill import left_alone
from fonds.runs.state import RunStatus
from fonds.stores import queues
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
from fonds.uploads.distribution import Distribution, spread

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
class Embedded:
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
    embedded: Mapping[str, Embedded]
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
    columns = spread(spans.c.took, SECONDS, unit=1000)
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
    free = (table.lease_until.is_(None)) | (table.lease_until < now)
    query = select(func.count(), func.min(table.requested_at)).where(
        table.finished_at.is_(None), free
    )
    waiting, oldest = connection.execute(query).one()
    return QueueState(
        waiting=waiting, given_up=0, oldest=0.0 if oldest is None else _age(oldest, now)
    )


def _embedded(connection: Connection, now: datetime) -> dict[str, Embedded]:
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
        name: Embedded(
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
