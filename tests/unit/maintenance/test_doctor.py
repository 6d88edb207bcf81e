"""What the doctor finds, and what it advises."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, Final
from uuid import uuid4

import pytest
from sqlalchemy import insert
from tests.support import servers
from tests.support.uploads.statistics import job, user

from fonds.embed.client import breaker_recorder
from fonds.maintenance import checks
from fonds.maintenance.doctor import examine
from fonds.maintenance.findings import Finding, Health, sized
from fonds.runs.locks import lock_source
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sites.tables import websites
from fonds.stores.database import Database, open_database
from fonds.stores.server_values import HIDDEN_CLIENTS
from fonds.stores.tables import (
    ingestion_commands,
    ingestion_embedding_queue,
    ingestion_leases,
    ingestion_runs,
    ingestion_source_state,
    ingestion_tasks,
    server_values,
)
from fonds.testing import ManualClock
from fonds.uploads.states import JobStatus

NOW: Final = datetime(2026, 3, 10, 12, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    servers.sqlite_database(tmp_path / "fonds.db")
    return Settings(home=tmp_path)


def looked(settings: Settings, seams: Seams | None = None) -> dict[str, Finding]:
    seams = seams or Seams(clock=ManualClock(moment=NOW))
    found: dict[str, Finding] = {}
    for finding in examine(settings, seams=seams):
        worse = found.get(finding.check)
        if worse is None or worse.status is Health.OK:
            found[finding.check] = finding
    return found


def damage(settings: Settings, act: Callable[[Database], None]) -> None:
    database = open_database(settings.database_url, seams=Seams())
    try:
        act(database)
    finally:
        database.close()


def add(settings: Settings, table: Any, **columns: Any) -> None:
    def act(database: Database) -> None:
        with database.write() as connection:
            connection.execute(insert(table).values(**columns))

    damage(settings, act)


def a_run(settings: Settings, started: datetime, source: str = "bills") -> Any:
    run_id = uuid4()
    row = {"id": run_id, "source": source, "mode": "manual", "status": "running", "config": {}}
    add(settings, ingestion_runs, started_at=started, **row)
    return run_id


def test_new_library_is_well_in_every_respect(settings: Settings) -> None:
    found = looked(settings)
    assert {finding.status for finding in found.values()} <= {Health.OK}
    assert len(found) >= 20
    assert {finding.group for finding in found.values()} == {
        "files",
        "database",
        "work",
        "surroundings",
    }


def test_doctor_leaves_nothing_behind(settings: Settings) -> None:
    looked(settings)
    files = [path for path in settings.home.rglob("*") if path.is_file()]
    assert {path.name.partition("-")[0] for path in files if ".locks" not in path.parts} == {
        "fonds.db"
    }


@pytest.mark.parametrize(
    ("version", "advice"), [("0003", "it cannot be upgraded"), ("9999", "install a newer fonds")]
)
def test_other_schema_ends_the_examination(settings: Settings, version: str, advice: str) -> None:
    def act(database: Database) -> None:
        with database.write() as connection:
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{version}'")

    damage(settings, act)
    found = looked(settings)
    assert found["schema"].status is Health.FAIL
    assert found["schema"].advice.startswith(advice)
    assert "runs" not in found


def test_page_that_was_overwritten_is_found(settings: Settings) -> None:
    file = settings.home / "fonds.db"
    with sqlite3.connect(file) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'ingestion_runs'"
        (page,) = connection.execute(query).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with file.open("r+b") as damaged:
        damaged.seek((page - 1) * size)
        damaged.write(b"\xff" * size)
    assert looked(settings)["integrity"].status is Health.FAIL


def test_index_that_lacks_passages_is_found(settings: Settings) -> None:
    def act(database: Database) -> None:
        with database.write() as connection:
            connection.exec_driver_sql(
                "INSERT INTO document_chunk_buffer (chunk_id, document_id, chunk_ord, chunker_name,"
                " chunker_version, chunk_sha, text, meta, created_at) VALUES"
                " ('a', 'b', 0, 'c', '1', 'x', 'x', '{}', '2026-03-10T12:00:00.000Z')"
            )

    damage(settings, act)
    found = looked(settings)["full text"]
    assert (found.status, found.found) == (Health.FAIL, "0 of 1 passages indexed")


def test_run_whose_process_is_gone_is_told_from_one_that_goes_on(settings: Settings) -> None:
    a_run(settings, ago(minutes=5))
    gone = looked(settings)["runs"]
    assert (gone.status, gone.found) == (Health.WARN, "the process of a run is dead: bills")

    def act(database: Database) -> None:
        with lock_source(database, settings.home, "bills", ManualClock()):
            assert looked(settings)["runs"].found == "1 in progress"

    damage(settings, act)


def test_run_that_takes_suspiciously_long_is_named(settings: Settings) -> None:
    a_run(settings, ago(hours=13))

    def act(database: Database) -> None:
        with lock_source(database, settings.home, "bills", ManualClock()):
            assert looked(settings)["runs"].found == "more than 12 hours: bills"

    damage(settings, act)


def test_failed_tasks_are_a_warning_and_counted_by_source(settings: Settings) -> None:
    run_id = a_run(settings, NOW)
    row = {"run_id": run_id, "source": "bills", "stage": "errored", "started_at": NOW}
    for key in ("a", "b"):
        add(settings, ingestion_tasks, task_key=key, **row)
    found = looked(settings)["errors"]
    assert (found.status, found.found) == (Health.WARN, "failed tasks: bills 2")
    assert "`fonds errors`" in found.advice


def test_what_a_queue_gave_up_or_leaves_waiting_is_told(settings: Settings) -> None:
    row = {"table_name": "documents", "input_sha": "x"}
    add(settings, ingestion_embedding_queue, record_id="a", enqueued_at=ago(days=3), **row)
    waits = looked(settings)["embedding queue"]
    assert (waits.status, waits.found) == (Health.WARN, "1 wait, the first for 3 days")
    gave_up = {"record_id": "b", "attempts": 5, "enqueued_at": NOW}
    add(settings, ingestion_embedding_queue, **gave_up, **row)
    assert looked(settings)["embedding queue"].found == "1 were given up, 1 wait"


def test_command_that_nobody_takes_is_told(settings: Settings) -> None:
    row = {"command": "run", "source": "bills", "args": {}, "requested_by": "somebody"}
    add(settings, ingestion_commands, requested_at=ago(seconds=30), **row)
    assert looked(settings)["commands"].status is Health.OK
    add(settings, ingestion_commands, requested_at=ago(minutes=7), **row)
    found = looked(settings)["commands"]
    assert (found.status, found.found) == (Health.WARN, "2 wait, the first for 7 minutes")


def test_upload_that_no_worker_takes_is_told(settings: Settings) -> None:
    def act(database: Database) -> None:
        job(database, user(database), JobStatus.PARSE_QUEUED, moved=ago(minutes=30))

    damage(settings, act)
    found = looked(settings)["uploads"]
    assert (found.status, found.advice) == (Health.WARN, "start `fonds worker`")


@pytest.mark.parametrize(
    ("key", "success", "words"),
    [
        ("2026-06-01", ago(hours=1), "in the future: bills"),
        ("2026-03-12", ago(hours=1), "1 sources, none late"),
        ("not a day", ago(hours=1), "1 sources, none late"),
        ("2026-03-01", ago(days=9), "behind their schedule: bills"),
        ("2026-03-01", None, "behind their schedule: bills"),
    ],
)
def test_watermarks_ahead_of_their_time_and_behind_are_told(
    settings: Settings, key: str, success: datetime | None, words: str
) -> None:
    row = {"source": "bills", "last_run_at": success or ago(days=9), "custom": {}}
    add(settings, ingestion_source_state, last_success_at=success, last_seen_key=key, **row)
    assert looked(settings)["watermarks"].found.startswith(words)


def test_lease_of_a_dead_process_and_a_failing_endpoint_are_told(settings: Settings) -> None:
    add(settings, ingestion_leases, name="ingest-crs", owner="x:1", lease_until=ago(minutes=9))
    assert looked(settings)["leases"].found == "their owners are dead: ingest-crs"

    def act(database: Database) -> None:
        with database.write() as connection:
            connection.exec_driver_sql("DELETE FROM ingestion_leases")
        breaker_recorder(database, "small-model", ManualClock(moment=NOW))(30.0)

    damage(settings, act)
    assert looked(settings)["leases"].found == "the endpoint of small-model kept failing"


def test_row_from_the_future_and_a_jumping_clock_are_told(settings: Settings) -> None:
    class Jumping(ManualClock):
        def now(self) -> datetime:
            self.moment += timedelta(minutes=1)
            return self.moment

    assert "seconds off" in looked(settings, Seams(clock=Jumping(moment=NOW)))["clock"].found
    a_run(settings, NOW + timedelta(hours=2))
    assert looked(settings)["clock"].found == "a row is dated 2026-03-10 14:00 UTC"


def test_file_of_a_killed_process_is_told(settings: Settings) -> None:
    left = settings.home / "tmp" / "fetch-123"
    left.parent.mkdir()
    left.write_bytes(b"x" * 2048)
    os.utime(left, (ago(days=2).timestamp(),) * 2)
    found = looked(settings)["left behind"]
    assert (found.status, found.found) == (Health.WARN, "1 temporary files, 2 KiB")
    assert left.exists()


def test_proxy_that_hides_clients_is_a_warning_for_a_day(settings: Settings) -> None:
    value = {"peer": "172.18.0.1", "trace": "HTTP/1.0"}
    add(settings, server_values, name=HIDDEN_CLIENTS, value=value, updated_at=ago(hours=23))
    finding = looked(settings)["clients"]
    assert finding.status is Health.WARN
    assert "172.18.0.1" in finding.found
    assert "FONDS_TRUSTED_PROXIES=172.18.0.1" in finding.advice
    tomorrow = Seams(clock=ManualClock(moment=NOW + timedelta(hours=2)))
    assert looked(settings, tomorrow)["clients"].status is Health.OK


def test_blobs_that_cannot_be_written_fail_and_the_rest_is_looked_at(settings: Settings) -> None:
    (settings.home / "blobs").mkdir()
    (settings.home / "blobs" / "doctor").write_text("in the way")
    found = looked(settings)
    assert found["blobs"].status is Health.FAIL
    assert found["schema"].status is Health.OK


def test_store_that_accepts_connections_and_never_answers_is_named_within_the_deadline(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "DEADLINE_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = f"endpoint={endpoint}&allow_http=true&region=x&skip_signature=true"
        found = looked(replace(settings, blobs=f"s3://bucket?{options}"))
    assert found["blobs"].status is Health.FAIL
    assert found["blobs"].found.startswith("no file could be written within ")
    assert found["blobs"].found.endswith(": s3://bucket")
    assert "the store hangs" in found["blobs"].advice
    assert found["schema"].status is Health.OK
    assert "disk use" not in found


@pytest.mark.parametrize(
    ("engine", "words"),
    [("kubernetes", "'kubernetes' is not one of: local, ray"), ("ray:127.0.0.1:1", "ray")],
)
def test_engine_that_does_not_exist_or_answer_fails(
    settings: Settings, engine: str, words: str
) -> None:
    found = looked(replace(settings, engine=engine))["engine"]
    assert found.status is Health.FAIL
    assert words in found.found.lower()
    assert "FONDS_ENGINE" in found.advice


def test_cluster_that_hangs_is_named_within_the_deadline(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "DEADLINE_SECONDS", 0.1)
    released = Event()
    monkeypatch.setattr(checks, "open_engine", lambda _address: released.wait(30))
    try:
        found = looked(settings)["engine"]
    finally:
        released.set()
    assert (found.status, found.found[:20]) == (Health.FAIL, "local did not answer")


def test_model_without_its_key_and_website_without_a_browser_are_told(settings: Settings) -> None:
    site = {"id": "tokyo", "name": "Tokyo", "base_url": "https://tokyo.example", "enabled": True}
    add(settings, websites, rendered=True, updated_at=NOW, **site)
    given = replace(settings, embedder="openai:small", browser="no-such-program")
    found = looked(given)
    assert found["model"].found == "openai:small without a key"
    assert found["browser"].found == "none, and 1 websites need one"


def test_use_is_told_by_source_and_only_as_far_as_it_is_counted(settings: Settings) -> None:
    folder = settings.home / "blobs" / "corpus" / "bills"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / str(number)).write_bytes(b"x" * 1024)
    assert "bills 3 KiB" in looked(settings)["disk use"].found


SIZES: Final = {
    0: "0 bytes",
    1023: "1023 bytes",
    1536: "1.5 KiB",
    5 << 20: "5 MiB",
    1023 << 20: "1023 MiB",
    3 << 40: "3 TiB",
    5 << 50: "5120 TiB",
}


@pytest.mark.parametrize("count", SIZES)
def test_sizes_are_told_in_words(count: int) -> None:
    assert sized(count) == SIZES[count]
