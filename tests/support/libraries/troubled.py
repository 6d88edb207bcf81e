"""What operators look at, some of everything: a library in which not all is well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy import Connection, insert, update
from tests.support.libraries.uploads import announce, make_user

from fonds.library import Library
from fonds.runs import commands
from fonds.shards.compiler import Locks
from fonds.shards.inbox import put
from fonds.shards.index import open_index
from fonds.sites.tables import site_addresses, websites
from fonds.sources.registry import SourceRegistry
from fonds.stores.tables import (
    ingestion_audits,
    ingestion_embedding_queue,
    ingestion_logs,
    ingestion_runs,
    ingestion_source_state,
    ingestion_stages,
    ingestion_tasks,
    upload_jobs,
)

HOSTILE: Final = '<script>alert("x")</script> \u202e{{ 7 * 7 }} \u0007'
"""What a publisher might answer, and a log repeat."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Where to look."""

    failed: UUID
    """A run that failed, with stages, tasks and a log."""
    command: int
    """A command that waits."""


def make_trouble(library: Library) -> Trouble:
    """Fill a library with a history of two months."""
    now = library.seams.clock.now()
    with library.database.write() as connection:
        for day in range(60, 0, -1):
            status = "partial" if day % 13 == 0 else "cancelled" if day == 7 else "success"
            _run(connection, "federal_register", now - timedelta(days=day, hours=3), status)
        # Whatever the library has run before, this was the last.
        failed = _run(connection, "federal_register", now, "failed")
        _details(connection, failed, now)
        _run(connection, "bills", now - timedelta(days=5), "partial")
        _state(connection, now - timedelta(days=1))
        _website(connection, now)
        connection.execute(insert(ingestion_audits), [_audit(now)])
        connection.execute(insert(ingestion_embedding_queue), _queue(now))
        command = _commands(connection, failed, now)
    _uploads(library, now)
    _indexes(library)
    return Trouble(failed=failed, command=command)


def _run(connection: Connection, source: str, at: datetime, status: str) -> UUID:
    day = at.timetuple().tm_yday
    row = {
        "id": uuid4(),
        "source": source,
        "mode": "backfill" if day % 17 == 0 else "incremental",
        "status": status,
        "started_at": at,
        "finished_at": at + timedelta(seconds=100 + 7 * (day % 20)),
        "discovered_count": 120 + day % 9,
        "fetched_count": 120,
        "parsed_count": 118,
        "inserted_count": 40 + 11 * (day % 7),
        "updated_count": day % 30,
        "skipped_count": 3,
        "error_count": 4 if status in {"partial", "failed"} else 0,
        "config": {"mode": "incremental"},
        "error_summary": "the publisher answers 503 Service Unavailable to everything"
        if status == "failed"
        else None,
    }
    connection.execute(insert(ingestion_runs).values(row))
    run_id: UUID = row["id"]  # type: ignore[assignment]  # a row holds anything
    return run_id


def _details(connection: Connection, run_id: UUID, at: datetime) -> None:
    begun = ((0, 30, "discover"), (4, 150, "fetch"), (20, 155, "parse"), (40, 170, "load"))
    stages = [
        {
            "run_id": run_id,
            "stage": stage,
            "began_at": at + timedelta(seconds=began),
            "ended_at": at + timedelta(seconds=ended),
            "items": 120,
            "seconds": (ended - began) * 0.8,
            "waited_seconds": 31.5 if stage == "fetch" else 0.0,
            "retries": 7 if stage == "fetch" else 0,
        }
        for began, ended, stage in begun
    ]
    connection.execute(insert(ingestion_stages), stages)
    connection.execute(insert(ingestion_tasks), [_task(run_id, at, n) for n in range(70)])
    levels = ("info", "info", "warn", "error")
    lines = [
        {
            "run_id": run_id,
            "logged_at": at + timedelta(seconds=n),
            "level": levels[n % 4],
            "message": f"line {n}: {HOSTILE}" if n == 3 else f"line {n}: something was done",
            "context": {"stage": "fetch", "task": f"fr:2026-{n:05}"},
        }
        for n in range(24)
    ]
    connection.execute(insert(ingestion_logs), lines)


def _task(run_id: UUID, at: datetime, number: int) -> dict[str, Any]:
    is_broken = number % 10 == 0
    return {
        "run_id": run_id,
        "source": "federal_register",
        "task_key": f"fr:2026-{number:05}",
        "stage": "errored" if is_broken else "loaded",
        "started_at": at,
        "finished_at": at + timedelta(seconds=number),
        "error": f"503 Service Unavailable {HOSTILE}" if is_broken else None,
        "error_type": ("UpstreamDownError" if number < 50 else "MalformedError")
        if is_broken
        else None,
        "error_stage": ("fetch" if number < 50 else "parse") if is_broken else None,
        "attempts": 3 if is_broken else 1,
    }


def _state(connection: Connection, success: datetime) -> None:
    table = ingestion_source_state
    late = success - timedelta(days=9)
    of = {"federal_register": success, "bills": late}
    for source, moment in of.items():
        row = {"last_run_at": moment, "last_success_at": moment, "last_seen_key": "2026-02-27"}
        held = connection.execute(update(table).where(table.c.source == source).values(row))
        if not held.rowcount:
            connection.execute(insert(table).values(source=source, custom={}, **row))


def _website(connection: Connection, now: datetime) -> None:
    site = {
        "id": "tokyo",
        "name": f"Tokyo {HOSTILE}",
        "base_url": "https://www.tokyo.example.jp/",
        "enabled": True,
        "rendered": False,
        "standing": {
            "state": "active",
            "strategy": {"strategy_type": "links"},
            "best": 0.9,
            "scores": [0.9, 0.3],
        },
        "updated_at": now,
    }
    connection.execute(insert(websites).values(site))
    address = {
        "website_id": "tokyo",
        "key": "k" * 32,
        "url": "https://www.tokyo.example.jp/a.pdf",
        "kind": "pdf",
        "state": "failed",
        "crawl_id": uuid4(),
        "depth": 1,
        "turn": 0,
        "place": 1,
        "trail": [],
        "updated_at": now,
    }
    connection.execute(insert(site_addresses).values(address))


def _audit(now: datetime) -> dict[str, Any]:
    return {
        "source": "federal_register",
        "audited_at": now - timedelta(days=2),
        "requested_by": "maria",
        "expected": 25,
        "missing": 2,
        "open_errors": 7,
        "findings": {
            "lists": 12,
            "short": [
                {
                    "list": "2026-02",
                    "expected": 9,
                    "missing": 2,
                    "names": ["fr:2026-00201", "fr:2026-00202"],
                }
            ],
            "failures": [{"task": "fr:2026-00010", "cause": f"503 {HOSTILE}"}],
            "unlinked": {"agency_id": {"rows": 3, "names": ["a-17"]}},
        },
    }


def _queue(now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "table_name": "fr_documents",
            "record_id": f"fr:2026-{number:05}",
            "input_sha": "",
            "enqueued_at": now - timedelta(hours=30),
            "attempts": 9 if number < 3 else 1,
            "last_attempt_at": now - timedelta(minutes=number),
            "last_error": f"429 Too Many Requests {HOSTILE}" if number < 8 else None,
        }
        for number in range(14)
    ]


def _commands(connection: Connection, run_id: UUID, now: datetime) -> int:
    earlier = now - timedelta(hours=2)
    asked = partial(
        commands.submit, connection, registry=SourceRegistry(), requested_by="maria", now=earlier
    )
    first = asked("backfill", "bills", {"since": "2026-01-01"})
    held = commands.claim(connection, "elsewhere:1", earlier, ["backfill"])
    assert held is not None
    outcome = "partial: 12 discovered, 8 inserted, 4 errors"
    commands.finish(connection, first, "elsewhere:1", outcome, run_id=run_id, now=earlier)
    return asked("run", "federal_register", {"recheck": True})


def _uploads(library: Library, now: datetime) -> None:
    user = make_user(library)
    for number, status in enumerate(("parse_queued", "chunking", "failed_parse")):
        job = announce(library, user, b"text %d" % number, f"paper {number} {HOSTILE}.txt"[:80])
        table = upload_jobs.c
        moved = update(upload_jobs).where(table.job_id == job.job_id)
        with library.database.write() as connection:
            for step in _way(status):
                values = {"status": step, "arrived_at": now - timedelta(hours=5 - number)}
                connection.execute(moved.values(values))


def _way(status: str) -> list[str]:
    """The database takes no step that a job cannot take."""
    if status == "chunking":
        return ["parse_queued", "parsed", "parse_validated", "chunking"]
    return ["parse_queued", status] if status != "parse_queued" else [status]


def _indexes(library: Library) -> None:
    index = open_index(library.blobs, "domains")
    put(index, {"domain": "epa.gov", "updated_at": library.seams.clock.now()})
    Locks(index, library.seams.clock, "tester").take("0a")
    library.blobs.put("indexes/Not-One/x.usv", b"?")
