from __future__ import annotations

import asyncio
import os
import re
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.support import servers
from tests.unit.cli.conftest import Fonds, Publishers

from fonds.cli.queues import drain_queues
from fonds.demo.bundle import FEEDS
from fonds.demo.http import Response
from fonds.library import Library, open_library
from fonds.runs.overview import log_lines
from fonds.runs.schedule import scheduled
from fonds.runs.state import Run, RunRequest, RunStatus
from fonds.shards.inbox import waiting
from fonds.shards.index import open_index
from fonds.shards.verify import verify
from fonds.sources.registry import SourceRegistry, builtin_sources

REGISTER = "www.federalregister.gov"
TEXT = "/documents/full_text/xml/2026/01/12/2026-00101.xml"
BROKEN = Response(body=b"<RULE><P>[red]</RULE>", media_type="text/xml")
FIRST_DAY = ["--since", "2026-01-12", "--until", "2026-01-12"]


@pytest.fixture
def troubled(fonds: Fonds, publishers: Publishers, empty: Path) -> str:
    """A library in which one task has failed."""
    publishers.spoil(REGISTER, TEXT, BROKEN)
    home = str(empty)
    assert fonds("backfill", "federal_register", *FIRST_DAY, "--home", home).code == 3
    return home


def test_status_shows_every_source_on_a_line(fonds: Fonds) -> None:
    outcome = fonds("status")
    assert outcome.code == 0
    headings, *lines = outcome.out.splitlines()
    assert headings.split()[:3] == ["source", "documents", "gone"]
    shown = {line.split()[0]: line.split()[1:4] for line in lines}
    assert sorted(shown) == sorted(builtin_sources())
    assert shown["federal_register"] == ["23", "0", "success"]
    assert {shown[name][2] for name in FEEDS} == {"success"}
    assert {shown[name][2] for name in SourceRegistry().codes()} == {"–"}


def test_status_as_json_tells_checked_from_changed(fonds: Fonds) -> None:
    rows = fonds("status", "--json").json
    assert all(
        set(row)
        == {
            "source",
            "documents",
            "gone",
            "last_status",
            "last_run_at",
            "last_success_at",
            "last_failure_at",
            "last_change_at",
            "last_seen_key",
            "open_errors",
            "next_run_at",
        }
        for row in rows
    )
    due = {row["source"]: row["next_run_at"] for row in rows}
    assert all(datetime.fromisoformat(due[name]).tzinfo for name in FEEDS)


def test_status_of_one_source_adds_its_runs(fonds: Fonds, troubled: str) -> None:
    outcome = fonds("status", "--source", "federal_register", "--home", troubled)
    assert outcome.code == 0
    assert "latest runs" in outcome.out
    assert "backfill  partial" in outcome.out
    detail = fonds("status", "--source", "federal_register", "--json", "--home", troubled).json
    assert set(detail) == {"overview", "custom", "runs", "errors"}
    assert detail["overview"]["open_errors"] == 1
    assert detail["runs"][0]["status"] == "partial"
    assert detail["errors"][0]["task_key"] == "fr:2026-00101"


def test_status_of_one_source_shows_its_last_success_and_its_state(fonds: Fonds) -> None:
    lines = fonds("status", "--source", "legislators").out.splitlines()
    start = lines.index("state")
    assert lines[start + 1].split() == [
        *("last", "success", "(UTC)", "watermark", "custom", "state"),
    ]
    assert re.match(r"\d{4}-\d\d-\d\d", lines[start + 2])
    assert isinstance(fonds("status", "--source", "bills", "--json").json["custom"], dict)


def test_status_of_an_empty_library_is_all_dashes(fonds: Fonds, empty: Path) -> None:
    outcome = fonds("status", "--home", str(empty))
    assert outcome.code == 0
    assert re.search(r"^federal_register +0 +0 +–", outcome.out, re.MULTILINE)


def test_errors_name_task_stage_and_cause(fonds: Fonds, troubled: str) -> None:
    outcome = fonds("errors", "federal_register", "--home", troubled)
    assert outcome.code == 0
    _, line = outcome.out.splitlines()
    assert line.split()[:3] == ["fr:2026-00101", "parse", "1"]
    assert "not well-formed XML" in line
    (row,) = fonds("errors", "federal_register", "--json", "--home", troubled).json
    assert set(row) == {
        "task_key",
        "error_stage",
        "error_type",
        "error",
        "attempts",
        "finished_at",
    }


def test_no_errors_are_said_to_be_none(fonds: Fonds) -> None:
    outcome = fonds("errors", "legislators")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "no failed tasks\n")
    assert fonds("errors", "legislators", "--json").json == []


def test_logs_are_found_by_the_start_of_a_run_and_by_source(fonds: Fonds, troubled: str) -> None:
    runs = fonds("status", "--source", "federal_register", "--json", "--home", troubled)
    run_id = runs.json["runs"][0]["id"]
    by_run = fonds("logs", run_id[:8], "--home", troubled)
    assert "not well-formed XML" in by_run.out
    assert "task=fr:2026-00101 stage=parse" in by_run.out
    by_source = fonds("logs", "--source", "federal_register", "--home", troubled)
    assert by_source.out == by_run.out
    lines = fonds("logs", run_id, "--json", "--tail", "1", "--home", troubled).json
    assert [set(line) for line in lines] == [{"run_id", "logged_at", "level", "message", "context"}]


def test_errors_without_a_source_lists_those_of_all_sources(fonds: Fonds, troubled: str) -> None:
    outcome = fonds("errors", "--home", troubled)
    assert outcome.code == 0
    headings, line = outcome.out.splitlines()
    assert headings.split() == ["source", "task", "stage", "tries", "error"]
    assert line.split()[:4] == ["federal_register", "fr:2026-00101", "parse", "1"]
    (row,) = fonds("errors", "--json", "--home", troubled).json
    assert (row["source"], row["task_key"]) == ("federal_register", "fr:2026-00101")


def test_logs_without_a_run_shows_the_latest_one(fonds: Fonds, troubled: str) -> None:
    assert fonds("run", "legislators", "--home", troubled).code == 0
    latest = fonds("logs", "--home", troubled)
    assert (latest.code, latest.out) == (
        0,
        fonds("logs", "--source", "legislators", "--home", troubled).out,
    )
    assert re.match(r"run [0-9a-f]{8} of legislators, success, started 2", latest.err)


def test_log_is_followed_until_its_run_has_ended(empty: Path) -> None:
    with open_library(empty) as library:
        database, clock = library.database, library.seams.clock
        run = Run(source="gao", request=RunRequest(), database=database, clock=clock)
        run.start()
        run.log("info", "one")
        run.show(lambda _connection: None)

        def log_more(_seconds: float) -> None:
            run.log("info", "two")
            run.finish(RunStatus.SUCCESS)

        lines = [line.message for line in log_lines(database, str(run.id)[:8], 1, wait=log_more)]
    assert lines[:2] == ["one", "two"]
    assert len(lines) == 3
    assert "success" in lines[2]


def test_log_of_a_run_that_has_ended_is_followed_to_its_end(fonds: Fonds, troubled: str) -> None:
    followed = fonds("logs", "--follow", "--source", "federal_register", "--home", troubled)
    assert followed.code == 0
    assert "of federal_register, partial" in followed.err
    assert followed.out == fonds("logs", "--source", "federal_register", "--home", troubled).out


def test_logs_of_a_library_without_runs_is_empty(fonds: Fonds, empty: Path) -> None:
    outcome = fonds("logs", "--home", str(empty))
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "no log lines\n")


def test_logs_of_a_run_without_trouble_tell_its_stages_and_its_end(fonds: Fonds) -> None:
    lines = fonds("logs", "--source", "legislators").out.splitlines()
    assert " info  run began  mode=backfill " in lines[0]
    assert sum(" began  stage=" in line for line in lines) == 4
    assert " info  run ended: success  discovered=5 " in lines[-1]


def test_logs_of_a_source_that_never_ran_are_said_to_be_empty(fonds: Fonds, empty: Path) -> None:
    outcome = fonds("logs", "--source", "legislators", "--home", str(empty))
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "no log lines\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["logs", "ab", "--source", "legislators"],
        ["logs", "no-such-run"],
        ["logs", "--source", "nosuch"],
        ["logs", ""],
        ["errors", "nosuch"],
        ["status", "--source", "nosuch"],
        ["audit", "nosuch"],
        ["audit", "legislators", "--since", "x"],
        ["dismiss", "legislators", "nothing"],
        ["dismiss", "nosuch", "x"],
        ["dismiss", "legislators"],
    ],
)
def test_senseless_question_is_a_usage_error(fonds: Fonds, arguments: list[str]) -> None:
    outcome = fonds(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err


def test_dismissed_task_stands_no_longer(fonds: Fonds, troubled: str) -> None:
    outcome = fonds("dismiss", "federal_register", "fr:2026-00101", "--home", troubled)
    assert (outcome.code, outcome.err) == (0, "dismissed 1\n")
    assert fonds("errors", "federal_register", "--json", "--home", troubled).json == []


def test_schedule_says_when_sources_are_due(fonds: Fonds) -> None:
    outcome = fonds("schedule")
    assert outcome.code == 0
    assert re.search(r"^federal_register +10 10 \* \* 1-5 +20", outcome.out, re.MULTILINE)
    rows = fonds("schedule", "--json").json
    fields = {"source", "schedule", "next", "is_included"}
    assert [set(row) for row in rows] == [fields] * len(builtin_sources())
    assert all(row["is_included"] for row in rows)


def test_schedule_shows_which_sources_are_left_out(
    fonds: Fonds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FONDS_SCHEDULED_SOURCES", "gao,crs")
    rows = {row["source"]: row for row in fonds("schedule", "--json").json}
    assert {name for name, row in rows.items() if row["is_included"]} == {"gao", "crs"}
    assert rows["gao"]["next"]
    assert rows["federal_register"]["next"] is None
    assert re.search(r"^federal_register .* left out +$", fonds("schedule").out, re.MULTILINE)
    # What is shown elsewhere is not limited.
    assert {"gao", "federal_register"} <= {row["source"] for row in fonds("status", "--json").json}


def test_scheduler_of_an_unknown_source_is_a_usage_error(
    fonds: Fonds, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fonds("scheduler", "--source", "nosuch").code == 2
    monkeypatch.setenv("FONDS_SCHEDULED_SOURCES", "nosuch")
    assert fonds("schedule").code == 2


@pytest.mark.parametrize("options", [["--source", "gao"], []])
def test_scheduler_runs_only_the_sources_it_is_limited_to(empty: Path, options: list[str]) -> None:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    variables = {"FONDS_HOME": str(empty), "FONDS_SCHEDULED_SOURCES": "crs" if options else "gao"}
    with subprocess.Popen(
        [servers.fonds_command(), "scheduler", *options],
        env={**inherited, **variables},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "scheduler started for gao; stop it with Ctrl-C\n"
        process.terminate()
    with open_library(empty) as library:
        included = scheduled(library.sources, ["gao"])
    assert [source.info.name for source in included] == ["gao"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["federal_register", "--since", "2026-01-01", "--until", "2026-02-28"],
        ["legislators"],
        ["committees"],
    ],
)
def test_audit_of_a_complete_library_ends_with_0(fonds: Fonds, arguments: list[str]) -> None:
    outcome = fonds("audit", *arguments)
    assert outcome.code == 0
    assert " 0 missing, 0 failed tasks" in outcome.out


def test_audit_names_what_is_missing_and_ends_with_3(fonds: Fonds, troubled: str) -> None:
    outcome = fonds("audit", "federal_register", *FIRST_DAY, "--home", troubled)
    assert outcome.code == 3
    assert "1 missing, 1 failed tasks" in outcome.out
    assert "  2026-01-12: 1 of 5: fr:2026-00101\n" in outcome.out
    found = fonds("audit", "federal_register", *FIRST_DAY, "--json", "--home", troubled)
    assert found.code == 3
    assert set(found.json) == {"expected", "missing", "open_errors", "audit"}
    assert (found.json["expected"], found.json["missing"]) == (5, 1)
    assert set(found.json["audit"]) == {"source", "scopes", "failures", "unlinked"}


def test_audit_counts_a_withdrawn_document_as_missing(fonds: Fonds, home: Path) -> None:
    with open_library(home) as library, library.database.write() as connection:
        withdrawn = "UPDATE documents SET gone_at = updated_at WHERE id = 'legislator:H901001'"
        connection.execute(text(withdrawn))
    outcome = fonds("audit", "legislators", "--home", str(home))
    assert outcome.code == 3
    assert "legislators-current: 1 of 8: legislator:H901001" in outcome.out


def test_audit_of_an_upstream_that_is_down_fails(fonds: Fonds, publishers: Publishers) -> None:
    path = "/api/v1/issues/2026-01-12.json"
    publishers.spoil(REGISTER, path, Response(body=b"<html>Sorry</html>"))
    outcome = fonds("audit", "federal_register", *FIRST_DAY)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("error: ")


def test_what_the_scheduler_does_every_hour_leaves_no_queue(fonds: Fonds, empty: Path) -> None:
    assert fonds("run", "gao", "--home", str(empty)).code == 0
    queues = [f"ingestion_{name}_queue" for name in ("normalization", "citation", "embedding")]
    with open_library(empty) as library:
        assert all(_waiting(library, queue) for queue in queues)
        index = open_index(library.blobs, "domains")
        recorded = {key for key, _ in waiting(index)}
        assert recorded
        asyncio.run(drain_queues(library))
        assert not any(_waiting(library, queue) for queue in queues)
        assert not list(waiting(index))
        assert verify(index).records == len(recorded)


def _waiting(library: Library, queue: str) -> int:
    with library.database.read() as connection:
        return connection.scalar(text(f"SELECT count(*) FROM {queue}")) or 0
