"""Doctor, prune and metrics as processes, on the demo library; a run that is watched as it goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.libraries.demo import FONDS, copy_demo_library
from tests.support.libraries.notes import NoteOffice, ingest, note_library, rows
from tests.support.upstreams.misbehaving import MisbehavingServer, Request, Response

from fonds.library import open_library

KILLED = -9
PATIENCE = 60.0
PRUNING = """
import sys
from datetime import timedelta
from pathlib import Path
from fonds.library import open_library
from fonds.seams import Seams
from fonds.testing import Saboteur
from fonds.maintenance.findings import MaintenanceTarget
from fonds.maintenance.prune import prune

with open_library(Path(sys.argv[1]), seams=Seams(durable=Saboteur(kill_at=int(sys.argv[2])))) as it:
    clock = it.seams.clock
    patient = MaintenanceTarget(
        settings=it.settings, seams=it.seams, database=it.database, blobs=it.blobs,
        began=(clock.now(), clock.monotonic()),
    )
    list(prune(patient, older_than=timedelta(days=30), apply=True))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_demo_library(tmp_path)


def fonds(home: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    return subprocess.run(
        [FONDS, "--home", home, *args],
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def findings(home: Path) -> dict[str, Any]:
    return {one["check"]: one for one in json.loads(fonds(home, "doctor", "--json").stdout)}


def blobs(home: Path) -> set[str]:
    folder = home / "blobs" / "corpus"
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def an_old_orphan(home: Path, name: str) -> None:
    path = home / "blobs" / "corpus" / "bills" / "listings" / name
    path.write_bytes(b"nobody needs me")
    moment = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    os.utime(path, (moment, moment))


def test_doctor_says_what_to_do_and_fails_only_for_what_is_broken(home: Path) -> None:
    well = fonds(home, "doctor")
    assert (well.returncode, well.stderr) == (0, "")
    assert well.stdout.endswith(" 0 failed\n")
    with (home / "fonds.toml").open("a") as file:
        file.write('engine = "kubernetes"\n')
    sick = fonds(home, "doctor")
    assert sick.returncode == 1
    assert "fail  engine" in sick.stdout
    assert "→ correct FONDS_ENGINE" in sick.stdout


def test_doctor_tells_no_password(home: Path) -> None:
    address = "postgresql://somebody:open-sesame@127.0.0.1:1/fonds"
    told = fonds(home, "doctor", FONDS_DATABASE=address)
    assert told.returncode == 1
    assert "sesame" not in told.stdout + told.stderr


def test_prune_takes_nothing_that_the_demo_needs(home: Path) -> None:
    before = blobs(home)
    for path in (home / "blobs").rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))
    an_old_orphan(home, "orphan")
    said = json.loads(fonds(home, "prune", "--json").stdout)
    assert blobs(home) == before | {"bills/listings/orphan"}
    done = json.loads(fonds(home, "prune", "--apply", "--json").stdout)
    assert (said["applied"], done["applied"]) == (False, True)
    assert said["heaps"] == done["heaps"]
    assert blobs(home) == before, "the demo fetched nothing in vain"
    assert findings(home)["full text"]["status"] == "ok"
    assert fonds(home, "verify", "fr:2026-00101").returncode == 0


def test_prune_that_is_killed_loses_nothing_and_goes_on(home: Path) -> None:
    before = blobs(home)
    for number in range(4):
        an_old_orphan(home, f"orphan-{number}")
    # Three commits for the history, then one operation for each file.
    killed = subprocess.run(
        [sys.executable, "-c", PRUNING, home, "6"], capture_output=True, timeout=120, check=False
    )
    assert killed.returncode == KILLED, killed.stderr
    left = blobs(home) - before
    assert before <= blobs(home)
    assert 0 < len(left) < 4
    assert fonds(home, "prune", "--apply").returncode == 0
    assert blobs(home) == before


def test_prune_refuses_a_span_that_is_none(home: Path) -> None:
    refused = fonds(home, "prune", "--older-than", "a while")
    assert refused.returncode == 2
    assert "30d, 8w or 12h" in refused.stderr


def test_metrics_are_printed_for_a_file(home: Path) -> None:
    told = fonds(home, "metrics")
    assert told.returncode == 0
    assert 'fonds_runs_total{source="usc",status="success"} 1.0' in told.stdout
    assert 'fonds_stage_items_total{source="federal_register",stage="load"} 23.0' in told.stdout


def test_json_lines_name_the_run_they_come_from(home: Path) -> None:
    nobody = "http://127.0.0.1:1"
    hosts = f"raw.githubusercontent.com={nobody},unitedstates.github.io={nobody}"
    quick = {"FONDS_HOSTS": hosts, "FONDS_ALLOW_PRIVATE": "1", "FONDS_RETRIES": "1"}
    logging = {"FONDS_LOG_FORMAT": "json", "FONDS_LOG_LEVEL": "info"}
    ended = fonds(home, "run", "legislators", **quick, **logging)
    lines = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    events = [line["event"] for line in lines]
    assert events[0] == "run began"
    assert events[-1].startswith("run ended: ")
    assert len({line["run"] for line in lines if "run" in line}) == 1


# A run that is watched --------------------------------------------------------------------


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 3)


def test_lines_and_figures_are_seen_while_the_run_goes_on(
    tmp_path: Path, office: NoteOffice
) -> None:
    seen = threading.Event()

    def slow(_request: Request) -> Response:
        assert seen.wait(PATIENCE), "nobody saw the run"
        return Response(b"{}", content_type="application/json")

    office.server.route("/notes/1.json", slow)
    with note_library(tmp_path, office.server, timeout=PATIENCE) as library:
        running = threading.Thread(target=ingest, args=[library])
        running.start()
        try:
            with open_library(tmp_path) as other:
                _await_line(other, "fetching began")
                (found,) = rows(other, "SELECT status, discovered_count FROM ingestion_runs")
                stages = rows(other, "SELECT stage FROM ingestion_stages")
        finally:
            seen.set()
            running.join()
    assert found == {"status": "running", "discovered_count": 3}
    assert {row["stage"] for row in stages} >= {"discover", "fetch"}


def _await_line(library: Any, message: str) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.2)):
        if {"message": message} in rows(library, "SELECT message FROM ingestion_logs"):
            return
        pause.wait(0.2)
    pytest.fail(f"{message!r} was not seen while the run went on")
