from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Fonds, Publishers

from fonds.demo.http import Response
from fonds.library import open_library
from fonds.runs.queue_status import backlogs
from fonds.sources import registry
from fonds.sources.base import Key
from fonds.sources.registry import SourceRegistry
from fonds.testing import FakeSource

REGISTER = "www.federalregister.gov"
PEOPLE = "unitedstates.github.io"
TEXT = "/documents/full_text/xml/2026/01/12/2026-00101.xml"
CURRENT = "/congress-legislators/legislators-current.yaml"
TWO_DAYS = ["--since", "2026-01-12", "--until", "2026-01-13"]
APOLOGY = Response(body=b"<html><p>Back soon</p></html>", media_type="text/html")
DOWN = Response(status=HTTPStatus.SERVICE_UNAVAILABLE)

REPORT = {"run_id", "source", "status", "counts", "seconds", "error_summary", "skipped"}
COUNTS = {"discovered", "fetched", "parsed", "inserted", "updated", "skipped", "error", "gone"}


def test_run_that_finds_everything_ends_with_0(fonds: Fonds, empty: Path) -> None:
    outcome = fonds("run", "legislators", "--home", str(empty))
    assert outcome.code == 0
    assert outcome.out.startswith("legislators: success in ")
    assert outcome.out.endswith(" s: 5 found, 5 fetched, 22 new\n")
    assert outcome.err == ""


def test_backfill_fills_a_range_of_days_and_no_more(fonds: Fonds, empty: Path) -> None:
    outcome = fonds("backfill", "federal_register", *TWO_DAYS, "--json", "--home", str(empty))
    assert outcome.code == 0
    report = outcome.json
    assert set(report) == REPORT
    assert set(report["counts"]) == COUNTS
    assert (report["source"], report["status"]) == ("federal_register", "success")
    with open_library(empty) as library:
        assert library.document("fr:2026-00124")
        assert library.search("lead service lines", since="2026-01-14") == []


def test_backfill_with_an_end_says_what_lies_between_it_and_the_next_run(
    fonds: Fonds, empty: Path
) -> None:
    day = ["--since", "2026-01-12", "--until", "2026-01-12", "--home", str(empty)]
    first = fonds("backfill", "federal_register", *day)
    assert "loaded of the days from 2026-01-13 on: none." in first.err
    assert "`fonds backfill federal_register --since 2026-01-13` fills" in first.err
    assert "continues as a first run" in first.err
    later = fonds("backfill", "federal_register", "--since", "2026-02-17", "--home", str(empty))
    assert later.err == ""
    second = fonds("backfill", "federal_register", *day)
    assert "documents, the first of 2026-02-17." in second.err
    assert "--since 2026-01-13 --until 2026-02-17` fills" in second.err
    assert "continues from 2026-" in second.err


def test_second_backfill_finds_everything_unchanged(fonds: Fonds, home: Path) -> None:
    counts = fonds("backfill", "federal_register", *TWO_DAYS, "--json", f"--home={home}").json[
        "counts"
    ]
    assert counts["skipped"] > 0
    assert (counts["inserted"], counts["updated"]) == (0, 0)


def test_partial_run_ends_with_3_and_says_where_to_look(
    fonds: Fonds, publishers: Publishers, empty: Path
) -> None:
    publishers.spoil(REGISTER, TEXT, APOLOGY)
    outcome = fonds("backfill", "federal_register", *TWO_DAYS, "--home", str(empty))
    assert outcome.code == 3
    first, second = outcome.out.splitlines()
    assert first.startswith("federal_register: partial in ")
    assert first.endswith("1 errors")
    assert second.startswith("  fr:2026-00101: an HTML page instead of XML")
    assert second.endswith("(see: fonds errors federal_register)")
    publishers.mend()
    assert fonds("backfill", "federal_register", *TWO_DAYS, "--home", str(empty)).code == 0


def test_failed_run_ends_with_1_and_next_to_a_good_one_with_3(
    fonds: Fonds, publishers: Publishers, empty: Path
) -> None:
    for name in ("committees-current", "committees-historical", "committee-membership-current"):
        publishers.spoil(PEOPLE, f"/congress-legislators/{name}.yaml", DOWN)
    outcome = fonds("run", "committees", "--json", "--home", str(empty))
    assert (outcome.code, outcome.json["status"]) == (1, "failed")
    assert "503" in outcome.json["error_summary"]
    assert fonds("bootstrap", "committees", "--home", str(empty)).code == 3


def test_retries_are_not_news(fonds: Fonds, publishers: Publishers, empty: Path) -> None:
    publishers.spoil(PEOPLE, CURRENT, DOWN)
    outcome = fonds("run", "legislators", "--home", str(empty))
    assert (outcome.code, outcome.err) == (3, "")


def test_bootstrap_runs_sources_after_those_they_depend_on(fonds: Fonds, empty: Path) -> None:
    reports = fonds("bootstrap", "committees", "--json", "--home", str(empty)).json
    assert [report["source"] for report in reports] == ["legislators", "committees"]
    assert all(set(report) == REPORT for report in reports)


def test_bootstrap_reads_texts_before_it_extracts_citations_and_makes_vectors(
    fonds: Fonds, empty: Path
) -> None:
    outcome = fonds("bootstrap", "gao", "--home", str(empty))
    assert (outcome.code, outcome.err) == (0, "")
    with open_library(empty) as library:
        texts = library.document("gao:GAO-26-107521")
        assert texts["body_text"]
        with library.database.read() as connection:
            queues = backlogs(connection, library.seams.clock.now())
            assert not [queue.queue for queue in queues if queue.waiting or queue.given_up]


def test_bootstrap_is_partial_while_anything_waits(
    fonds: Fonds, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FONDS_EMBEDDER", "openai:unknown")
    outcome = fonds("bootstrap", "taxonomy", "crs", "--home", str(empty))
    assert outcome.code == 3
    assert "crs: success" in outcome.out
    assert "have no vectors yet: `fonds embed`" in outcome.err


def test_bootstrap_includes_federal_law_and_names_the_other_codes(
    fonds: Fonds, empty: Path
) -> None:
    feeds = [f"--without={name}" for name in SourceRegistry().feeds()]
    outcome = fonds("bootstrap", *feeds, "--home", str(empty), "--json")
    assert {report["source"] for report in outcome.json} == {"usc", "cfr"}
    assert "codes left out: cgs, dc, de, jp; `fonds code ingest CODE` gets each" in outcome.err


def test_bootstrap_leaves_out_what_others_depend_on_if_it_is_told_to(
    fonds: Fonds, empty: Path
) -> None:
    arguments = ("committees", "--without", "legislators", "--home", str(empty), "--json")
    assert [each["source"] for each in fonds("bootstrap", *arguments).json] == ["committees"]


def test_bootstrap_of_one_source_is_a_list_too(fonds: Fonds, empty: Path) -> None:
    reports = fonds("bootstrap", "legislators", "--json", "--home", str(empty)).json
    assert [report["source"] for report in reports] == ["legislators"]


def test_a_source_without_its_key_is_skipped_by_bootstrap_and_refused_by_run(
    fonds: Fonds, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = FakeSource()
    key = Key(setting="data_gov_key", signup="https://api.data.gov/signup/")
    locked.info = replace(locked.info, key=key)
    monkeypatch.setattr(registry, "plugin_sources", lambda: {"fake": locked})
    outcome = fonds("bootstrap", "legislators", "fake", "--home", str(empty))
    assert outcome.code == 3
    assert "fake: skipped: fake needs a key: set data_gov_key" in outcome.out
    assert "legislators: success" in outcome.out
    assert fonds("bootstrap", "fake", "--home", str(empty)).code == 3
    refused = fonds("run", "fake", "--home", str(empty))
    assert (refused.code, "FONDS_DATA_GOV_KEY" in refused.err) == (2, True)


def test_recorded_run_is_replayed_without_its_upstream(
    fonds: Fonds, publishers: Publishers, tmp_path: Path
) -> None:
    recording = str(tmp_path / "run.warc.gz")
    first = fonds("run", "legislators", "--record", recording, "--home", str(tmp_path / "a"))
    assert first.code == 0
    publishers.spoil(PEOPLE, CURRENT, DOWN)
    again = fonds("run", "legislators", "--replay", recording, "--home", str(tmp_path / "b"))
    assert again.code == 0
    assert "22 new" in again.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nosuch"], "there is no source 'nosuch'; there are: bills, cbo, "),
        (["bootstrap", "nosuch"], "there is no source 'nosuch'"),
        (["backfill", "federal_register", "--since", "2026-13-01"], "invalid day '2026-13-01'"),
        (["backfill", "federal_register", "--until", "soon"], "invalid day 'soon'"),
        (
            ["backfill", "legislators", "--congresses", "118"],
            "legislators has no option --congresses",
        ),
        (["backfill", "legislators", "--congresses", "x"], "'x' is not a list of numbers"),
        (["run", "legislators", "--record", "a", "--replay", "b"], "cannot be combined"),
        (["run", "legislators", "--replay", "missing.warc"], "missing.warc"),
        (["run", "legislators", "--bogus"], "No such option: --bogus"),
        (["run"], "Missing argument 'SOURCE'"),
    ],
)
def test_senseless_request_is_a_usage_error(
    fonds: Fonds, arguments: list[str], message: str
) -> None:
    outcome = fonds(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
