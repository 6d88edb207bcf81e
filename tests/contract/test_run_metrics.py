"""How Prometheus reads the figures of runs, queues and embedding, on every database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert
from tests.support.uploads.statistics import batch, generation

from fonds.embed.client import Breaker, breaker_recorder
from fonds.maintenance.metrics import render
from fonds.settings import Settings
from fonds.stores.database import Database
from fonds.stores.tables import (
    embedding_generations,
    ingestion_commands,
    ingestion_embedding_queue,
    ingestion_runs,
    ingestion_source_state,
    ingestion_stages,
    ingestion_tasks,
)
from fonds.testing import ManualClock

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def exposed(database: Database) -> str:
    with database.read() as connection:
        return render(connection, NOW, Settings(home=Path.cwd()))


def samples(database: Database) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(exposed(database))
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[f"fonds_{name}", frozenset(labels.items())]


def add(database: Database, table: Any, **columns: Any) -> None:
    with database.write() as connection:
        connection.execute(insert(table).values(**columns))


def run(database: Database, source: str, status: str, took: float | None) -> Any:
    run_id = uuid4()
    add(
        database,
        ingestion_runs,
        id=run_id,
        source=source,
        mode="incremental",
        status=status,
        started_at=ago(10_000),
        finished_at=None if took is None else ago(10_000 - took),
        config={},
    )
    return run_id


def stage(database: Database, run_id: Any, name: str, **columns: Any) -> None:
    values = {"items": 0, "seconds": 0.0, "waited_seconds": 0.0, "retries": 0, **columns}
    add(
        database,
        ingestion_stages,
        run_id=run_id,
        stage=name,
        began_at=ago(9),
        ended_at=ago(1),
        **values,
    )


def queued(database: Database, record: str, attempts: int, seconds: float) -> None:
    add(
        database,
        ingestion_embedding_queue,
        table_name="documents",
        record_id=record,
        input_sha="x",
        enqueued_at=ago(seconds),
        attempts=attempts,
    )


def test_free_space_of_the_home_folder_is_told(database: Database) -> None:
    assert value(samples(database), "disk_free_bytes", disk="home") > 0


def test_empty_library_exposes_nothing_but_zeros(database: Database) -> None:
    found = samples(database)
    assert {value for (name, _), value in found.items() if name != "fonds_disk_free_bytes"} == {0}


def test_runs_are_told_by_source_and_status_with_their_durations(database: Database) -> None:
    run(database, "bills", "success", 0.5)
    run(database, "bills", "success", 4000)
    run(database, "bills", "failed", 20)
    run(database, "bills", "running", None)
    run(database, "crs", "success", 1.25)
    found = samples(database)
    assert value(found, "runs_total", source="bills", status="success") == 2
    assert value(found, "runs_total", source="bills", status="failed") == 1
    assert value(found, "running_runs", source="bills") == 1
    assert ("fonds_running_runs", frozenset({("source", "crs")})) not in found
    assert value(found, "run_duration_seconds_count", source="bills") == 3
    assert value(found, "run_duration_seconds_sum", source="bills") == 4020.5
    assert value(found, "run_duration_seconds_bucket", source="bills", le="1.0") == 1
    assert value(found, "run_duration_seconds_bucket", source="bills", le="60.0") == 2
    assert value(found, "run_duration_seconds_bucket", source="bills", le="14400.0") == 3
    assert value(found, "run_duration_seconds_sum", source="crs") == 1.25


def test_stages_are_added_up_over_runs(database: Database) -> None:
    for _ in range(2):
        made = run(database, "bills", "success", 60)
        stage(database, made, "fetch", items=7, seconds=2.5, waited_seconds=1.5, retries=3)
        stage(database, made, "load", items=5, seconds=0.25)
    found = samples(database)
    fetch = {"source": "bills", "stage": "fetch"}
    assert value(found, "stage_items_total", **fetch) == 14
    assert value(found, "stage_seconds_total", **fetch) == 5
    assert value(found, "rate_limit_wait_seconds_total", **fetch) == 3
    assert value(found, "request_retries_total", **fetch) == 6
    assert value(found, "stage_seconds_total", source="bills", stage="load") == 0.5


def test_successes_and_standing_errors_are_told_by_source(database: Database) -> None:
    made = run(database, "bills", "partial", 60)
    for source, when in (("bills", ago(3600)), ("crs", None)):
        state = {"source": source, "last_run_at": ago(60), "custom": {}}
        add(database, ingestion_source_state, last_success_at=when, **state)
    for key, resolved in (("a", None), ("b", None), ("c", NOW)):
        task = {"run_id": made, "source": "bills", "task_key": key, "stage": "errored"}
        add(database, ingestion_tasks, started_at=NOW, resolved_at=resolved, **task)
    found = samples(database)
    assert value(found, "seconds_since_success", source="bills") == 3600
    assert ("fonds_seconds_since_success", frozenset({("source", "crs")})) not in found
    assert value(found, "open_errors", source="bills") == 2


def test_queues_tell_what_waits_for_how_long_and_what_was_given_up(database: Database) -> None:
    queued(database, "dead", 5, 9000)
    queued(database, "first", 4, 600)
    queued(database, "second", 0, 300)
    commands = {"command": "run", "source": "bills", "args": {}, "requested_by": "somebody"}
    add(database, ingestion_commands, requested_at=ago(90), finished_at=ago(80), **commands)
    add(database, ingestion_commands, requested_at=ago(45), **commands)
    found = samples(database)
    assert value(found, "queue_depth", queue="embedding") == 2
    assert value(found, "queue_oldest_seconds", queue="embedding") == 600
    assert value(found, "queue_given_up", queue="embedding") == 1
    assert value(found, "queue_depth", queue="citation") == 0
    assert value(found, "queue_depth", queue="command") == 1
    assert value(found, "queue_oldest_seconds", queue="command") == 45


def test_embedding_is_told_by_model_with_its_breaker(database: Database) -> None:
    made = generation(database)
    batch(database, made, {"fr:1": 2000}, retries=1)
    with database.read() as connection:
        model = connection.execute(embedding_generations.select()).one().name
    clock = ManualClock(moment=NOW)
    breaker = Breaker(clock, failures=2)
    breaker.on_change = breaker_recorder(database, model, clock)
    breaker.failed("503")
    assert value(samples(database), "embedding_breaker_open", model=model) == 0
    breaker.failed("503")
    found = samples(database)
    assert value(found, "embedding_breaker_open", model=model) == 1
    assert value(found, "embedding_tokens_total", model=model) == 2000
    assert value(found, "embedding_retries_total", model=model) == 1
    assert value(found, "embedding_cost_dollars_total", model=model) == 500
    breaker.succeeded()
    assert value(samples(database), "embedding_breaker_open", model=model) == 0


def test_every_metric_is_ours_explained_and_told_once(database: Database) -> None:
    run(database, "bills", "success", 60)
    families = list(text_string_to_metric_families(exposed(database)))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    for family in families:
        assert family.name.startswith("fonds_")
        assert family.documentation.endswith(".")
