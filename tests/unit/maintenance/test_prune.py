"""What may go goes, and nothing else does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert
from tests.support import servers
from tests.support.uploads.statistics import job, user

from fonds import ids
from fonds.maintenance.findings import MaintenanceTarget
from fonds.maintenance.prune import Prunable, hints, prune
from fonds.maintenance.references import remove
from fonds.runs.locks import lock_source
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sites.tables import site_addresses
from fonds.stores.blobs import open_blobs
from fonds.stores.database import Database, open_database
from fonds.stores.tables import (
    code_units,
    document_versions,
    documents,
    fetched_files,
    ingestion_commands,
    ingestion_logs,
    ingestion_normalization_queue,
    ingestion_runs,
    ingestion_tasks,
    nodes,
)
from fonds.testing import ManualClock, Saboteur
from fonds.uploads.states import JobStatus

NOW: Final = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
"""Whatever is written during a test is two days old by this clock."""
MONTH: Final = timedelta(days=30)


@contextmanager
def ill(home: Path, seams: Seams | None = None) -> Iterator[MaintenanceTarget]:
    seams = seams or Seams(clock=ManualClock(moment=NOW))
    kept = Settings(home=home)
    file = home / "fonds.db"
    address = f"sqlite:///{file}" if file.exists() else servers.sqlite_database(file)
    database = open_database(address, seams=seams)
    try:
        yield MaintenanceTarget(
            settings=kept,
            seams=seams,
            database=database,
            blobs=open_blobs(kept.blobs_url, seams=seams),
            began=(NOW, 0.0),
        )
    finally:
        database.close()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[MaintenanceTarget]:
    with ill(tmp_path) as patient:
        yield patient


def pruned(patient: MaintenanceTarget, *, apply: bool = True) -> dict[str, Prunable]:
    return {heap.name: heap for heap in prune(patient, older_than=MONTH, apply=apply)}


def keys(patient: MaintenanceTarget) -> set[str]:
    return {info.key for info in patient.blobs.list()}


# Rows that refer to a blob ----------------------------------------------------------------


def _document(connection: Connection, **keys: Any) -> str:
    known = f"fake:{uuid4()}"
    row = {
        "id": known,
        "uid": ids.document_uid(known),
        "source": "fake",
        "kind": "note",
        "title": "Note",
        "source_url": "https://notes.example/1",
        "source_org": "The Note Office",
        "retrieved_at": NOW,
        "raw_path": "corpus/fake/elsewhere",
        "raw_sha256": "0",
        "citation_string": "Note 1.",
        "content_sha256": "0",
        "recipe": "fake@1",
        "updated_at": NOW,
        **keys,
    }
    connection.execute(insert(documents).values(row))
    return known


def _version(connection: Connection, **keys: Any) -> None:
    known = _document(connection)
    row = {
        "document_id": known,
        "content_sha256": "0",
        "raw_sha256": "0",
        "archive_key": "corpus/fake/elsewhere",
        "first_seen_at": NOW,
        "last_seen_at": NOW,
        **keys,
    }
    connection.execute(insert(document_versions).values(row))


def _fetched(connection: Connection, key: str) -> None:
    row = {"source": "fake", "url": f"https://notes.example/{key}", "blob_key": key}
    more = {"sha256": "0", "size": 1, "retrieved_at": NOW}
    connection.execute(insert(fetched_files).values(**row, **more))


def _waiting(connection: Connection, key: str) -> None:
    row = {"table_name": "documents", "record_id": key, "raw_path": key, "raw_format": "pdf"}
    more = {"input_sha": "0", "enqueued_at": NOW}
    connection.execute(insert(ingestion_normalization_queue).values(**row, **more))


def _run(connection: Connection, moment: datetime) -> Any:
    run_id = uuid4()
    row = {"id": run_id, "source": "fake", "mode": "manual", "status": "success", "config": {}}
    connection.execute(insert(ingestion_runs).values(**row, started_at=moment, finished_at=moment))
    return run_id


def _task(connection: Connection, **columns: Any) -> None:
    moment = columns.setdefault("finished_at", NOW)
    row = {"run_id": _run(connection, moment), "source": "fake", "task_key": str(uuid4())}
    connection.execute(insert(ingestion_tasks).values(**row, started_at=moment, **columns))


def _failed(connection: Connection, key: str) -> None:
    _task(connection, stage="errored", task={"origin": {"key": key}})


def _page(connection: Connection, key: str) -> None:
    row = {"website_id": "tokyo", "key": key, "url": key, "kind": "page", "state": "waiting"}
    more = {"crawl_id": uuid4(), "depth": 0, "turn": 0, "place": 0, "trail": []}
    origin = f'{{"key": "{key}"}}'
    connection.execute(insert(site_addresses).values(**row, **more, origin=origin, updated_at=NOW))


def _node(connection: Connection, key: str) -> None:
    row = {"id": f"code/1/root/{key}", "source": "fake", "version": "1", "kind": "section"}
    more = {"label": "1", "path": key, "unit": "u", "position": 0, "created_at": 0, "parent": "u"}
    connection.execute(insert(nodes).values(**row, **more, body_ref=f"{key}#5+7"))


def _plan(connection: Connection, key: str) -> None:
    _unit(connection, str(uuid4()), plan_key=key)


def _unit(connection: Connection, version: str, **columns: Any) -> None:
    row = {"id": f"fake/{version}/root/u", "source": "fake", "version": version, "unit": "u"}
    more = {"label": "U", "input_sha256": "0", "nodes": 1, "shards": 1, "bytes": 1}
    last = {"state": "complete", "is_newest": True, "planned_at": NOW, "plan_key": "elsewhere"}
    connection.execute(insert(code_units).values({**row, **more, **last, **columns}))


REFERENCES: Final = {
    "document": lambda connection, key: _document(connection, raw_path=key),
    "body": lambda connection, key: _document(connection, body_raw_path=key),
    "section": lambda connection, key: _document(connection, body_raw_path=f"{key}#12+34"),
    "version": lambda connection, key: _version(connection, archive_key=key),
    "body of a version": lambda connection, key: _version(connection, body_archive_key=key),
    "fetched file": _fetched,
    "normalization": _waiting,
    "failed task": _failed,
    "page of a crawl": _page,
    "node": _node,
    "plan": _plan,
}
FREE: Final = ("nothing", "resolved failure", "young")
ELSEWHERE: Final = ("index", "stranger")

kinds = st.sampled_from([*REFERENCES, *FREE, *ELSEWHERE])


def furnish(patient: MaintenanceTarget, drawn: list[str]) -> dict[str, str]:
    """A blob for each kind of reference drawn; what each is, by its key."""
    made = {}
    with patient.database.write() as connection:
        for number, kind in enumerate(drawn):
            key = f"corpus/{'site-tokyo' if kind == 'page of a crawl' else 'fake'}/files/{number}"
            if kind in ELSEWHERE:
                key = f"{'indexes/domains' if kind == 'index' else 'pdfs'}/{number}"
            made[key] = kind
            patient.blobs.create(key, b"bytes")
            if kind in REFERENCES:
                REFERENCES[kind](connection, key)
            elif kind == "resolved failure":
                task = {"origin": {"key": key}}
                _task(connection, stage="errored", task=task, resolved_at=NOW)
            elif kind == "young":
                path = patient.blobs.local_path(key)
                assert path is not None
                os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    return made


@settings(max_examples=25)
@given(drawn=st.lists(kinds, min_size=1, max_size=25))
def test_exactly_what_nothing_refers_to_goes(drawn: list[str]) -> None:
    with TemporaryDirectory() as folder, ill(Path(folder)) as patient:
        made = furnish(patient, drawn)
        free = {key for key, kind in made.items() if kind in {"nothing", "resolved failure"}}
        said = pruned(patient, apply=False)["unreferenced files"]
        assert (said.count, said.bytes) == (len(free), 5 * len(free))
        assert keys(patient) == set(made), "a dry run changes nothing"
        done = pruned(patient)["unreferenced files"]
        assert (done.count, done.left) == (len(free), 0)
        assert keys(patient) == set(made) - free


@pytest.mark.parametrize("kind", REFERENCES)
def test_every_kind_of_reference_keeps_its_file(patient: MaintenanceTarget, kind: str) -> None:
    (key,) = furnish(patient, [kind])
    assert pruned(patient)["unreferenced files"].count == 0
    assert keys(patient) == {key}


def test_edition_of_a_code_is_kept_whole(patient: MaintenanceTarget) -> None:
    with patient.database.write() as connection:
        _unit(connection, "119-36")
    for key in ("119-36/packs/1/u/00001", "119-36/title-53.xml", "119-3/title-53.xml"):
        patient.blobs.create(f"corpus/fake/{key}", b"x")
    assert pruned(patient)["unreferenced files"].examples == ("corpus/fake/119-3/title-53.xml",)
    assert len(keys(patient)) == 2


def test_source_that_is_being_run_is_left_alone(patient: MaintenanceTarget) -> None:
    made = furnish(patient, ["nothing", "nothing"])
    clock = patient.seams.clock
    with lock_source(patient.database, patient.settings.home, "fake", clock):
        heap = pruned(patient)["unreferenced files"]
        assert (heap.count, heap.left) == (0, 2)
        assert keys(patient) == set(made)
    assert pruned(patient)["unreferenced files"].count == 2


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_prune_that_is_stopped_in_the_middle_loses_nothing(tmp_path: Path, fail_at: int) -> None:
    with ill(tmp_path) as patient:
        made = furnish(patient, ["nothing", "document", "nothing", "version", "nothing"])
        with patient.database.write() as connection:
            _logged(connection, NOW - timedelta(days=40))
    saboteur = Saboteur(fail_at=fail_at)
    seams = Seams(clock=ManualClock(moment=NOW), durable=saboteur)
    with ill(tmp_path, seams) as patient, pytest.raises(Exception, match="sabotaged"):
        pruned(patient)
    with ill(tmp_path) as patient:
        needed = {key for key, kind in made.items() if kind != "nothing"}
        assert needed <= keys(patient)
        pruned(patient)
        assert keys(patient) == needed


# Everything else --------------------------------------------------------------------------


def _logged(connection: Connection, moment: datetime) -> None:
    row = {"run_id": _run(connection, moment), "level": "info", "message": "run began"}
    connection.execute(insert(ingestion_logs).values(**row, logged_at=moment))


def count(database: Database, table: str) -> int:
    with database.read() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def test_old_history_is_deleted_and_open_errors_stay(
    patient: MaintenanceTarget,
) -> None:
    old, young = NOW - timedelta(days=31), NOW - timedelta(days=29)
    command = {"command": "run", "args": {}, "requested_by": "somebody", "requested_at": old}
    with patient.database.write() as connection:
        for moment in (old, old, young):
            _logged(connection, moment)
            _task(connection, stage="loaded", finished_at=moment)
        _task(connection, stage="errored", finished_at=old)
        for finished in (old, young, None):
            connection.execute(insert(ingestion_commands).values(finished_at=finished, **command))
    said = pruned(patient, apply=False)
    assert [said[name].count for name in ("log lines", "tasks", "commands")] == [2, 2, 1]
    assert count(patient.database, "ingestion_logs") == 3
    assert pruned(patient)["tasks"] == said["tasks"]
    assert count(patient.database, "ingestion_logs") == 1
    assert count(patient.database, "ingestion_tasks") == 2
    assert count(patient.database, "ingestion_commands") == 2
    assert count(patient.database, "ingestion_runs") == 7, "runs are kept for good"


def aged(path: Path, days: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"1234567")
    moment = (NOW - timedelta(days=days)).timestamp()
    os.utime(path, (moment, moment))
    return path


def test_leftovers_and_old_pages_go_and_younger_ones_stay(patient: MaintenanceTarget) -> None:
    home = patient.settings.home
    gone = [
        aged(home / "tmp" / "fetch-1", 1.5),
        aged(home / "blobs" / ".tmp" / "abc", 1.5),
        aged(home / "cache" / "pages" / "ab" / "page", 31),
    ]
    stay = [aged(home / "tmp" / "fetch-2", 0.5), aged(home / "cache" / "pages" / "new", 29)]
    said = pruned(patient, apply=False)
    assert (said["temporary files"].count, said["temporary files"].bytes) == (2, 14)
    assert all(path.exists() for path in gone)
    pruned(patient)
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in stay)


def test_staged_bytes_go_with_the_job_that_waited_for_them(patient: MaintenanceTarget) -> None:
    owner = user(patient.database)
    waits = job(patient.database, owner, JobStatus.UPLOADED)
    ended = job(patient.database, owner, JobStatus.PARSE_QUEUED)
    names = {one: f"incoming/{owner}/{one}" for one in (waits.job_id, ended.job_id, uuid4())}
    for key in names.values():
        patient.blobs.create(key, b"x")
    assert pruned(patient)["staged uploads"].count == 2
    assert keys(patient) == {names[waits.job_id]}


def test_text_of_an_upload_stays_while_its_job_may_come_upon_it(patient: MaintenanceTarget) -> None:
    owner = user(patient.database)
    done = job(patient.database, owner, JobStatus.COMPLETE)
    working = job(patient.database, owner, JobStatus.PARSE_QUEUED)
    for document in (done.document_id, working.document_id):
        patient.blobs.create(f"parsed/{owner}/{document}.md@12345678", b"x")
    assert pruned(patient)["unreferenced files"].count == 1
    assert keys(patient) == {f"parsed/{owner}/{working.document_id}.md@12345678"}


def test_object_that_changed_since_it_was_looked_at_stays(patient: MaintenanceTarget) -> None:
    patient.blobs.create("corpus/fake/a", b"old")
    (info,) = patient.blobs.list()
    patient.blobs.put("corpus/fake/a", b"new")
    assert not remove(patient.blobs, info)
    assert keys(patient) == {"corpus/fake/a"}


def test_small_database_needs_no_hint(patient: MaintenanceTarget) -> None:
    assert list(hints(patient)) == []
