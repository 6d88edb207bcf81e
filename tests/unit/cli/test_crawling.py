"""`fonds crawl` and `fonds site …` as somebody types them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Fonds
from tests.zoo import SITES, Zoo, serve

TABLE = next(site for site in SITES if site.id == "register-table")
APOLOGIES = next(site for site in SITES if site.id == "commission-apologies")


@pytest.fixture
def fonds(fonds: Fonds, empty: Path, monkeypatch: pytest.MonkeyPatch) -> Fonds:
    """The command on a library of the test's own, that may crawl this machine hastily."""
    for name, value in {"HOME": str(empty), "RATE_FACTOR": "0", "HOSTS": ""}.items():
        monkeypatch.setenv(f"FONDS_{name}", value)
    return fonds


@pytest.fixture
def zoo() -> Iterator[Zoo]:
    with serve([TABLE, APOLOGIES]) as served:
        yield served


@pytest.fixture
def config(zoo: Zoo, tmp_path: Path) -> str:
    file = tmp_path / "sites.json"
    file.write_text(json.dumps(zoo.configuration()))
    return str(file)


def test_a_crawl_tells_what_came_of_each_website(fonds: Fonds, config: str, tmp_path: Path) -> None:
    done = fonds("crawl", config, "--output", str(tmp_path / "output"))
    assert done.code == 3, done.err
    assert "site-register-table: success in" in done.out
    assert f"{len(TABLE.listed)} new" in done.out
    assert "site-commission-apologies: partial" in done.out
    assert "a web page was served instead of a PDF" in done.out
    assert "metadata.json" in done.err


def test_one_website_of_several_is_crawled(fonds: Fonds, config: str, tmp_path: Path) -> None:
    output = str(tmp_path / "output")
    done = fonds("crawl", config, "--output", output, "--site", TABLE.id, "--json")
    assert done.code == 0, done.err
    (report,) = done.json["websites"]
    assert report["counts"]["inserted"] == len(TABLE.listed)


def test_a_dry_run_names_what_would_be_fetched_and_leaves_nothing_behind(
    fonds: Fonds, config: str, zoo: Zoo, tmp_path: Path
) -> None:
    command = ("crawl", config, "--output", str(tmp_path / "output"), "--dry-run")
    done = fonds(*command, "--site", TABLE.id, "--json")
    listed = {zoo.base(TABLE) + truth.path: truth for truth in TABLE.listed}
    assert {one["url"] for one in done.json} == set(listed)
    for one in done.json:
        assert one["organization"] == listed[one["url"]].organization
        assert one["period"] == listed[one["url"]].period
    assert not (tmp_path / "output").exists()
    assert not [one for one in zoo.requests if one.path in {t.path for t in TABLE.listed}]
    assert fonds("site", "list", "--json").json == []


def test_a_probe_shows_the_strategy_and_what_it_matches(fonds: Fonds, zoo: Zoo) -> None:
    found = fonds("site", "probe", zoo.start(TABLE), "--json").json
    assert found["strategy"]["confidence"] > 0.5
    assert len(found["matches"]) == len(TABLE.listed)
    shown = fonds("site", "probe", zoo.start(TABLE)).out
    assert "confidence" in shown
    assert f"{len(TABLE.listed)} PDFs" in shown


def test_websites_that_were_crawled_are_listed_shown_and_run_as_sources(
    fonds: Fonds, config: str, tmp_path: Path
) -> None:
    fonds("crawl", config, "--output", str(tmp_path / "output"))
    rows = {row["id"]: row for row in fonds("site", "list", "--json").json}
    assert rows[TABLE.id]["pdfs"] == len(TABLE.listed)
    assert rows[TABLE.id]["strategy_state"] == "active"
    shown = fonds("site", "show", APOLOGIES.id)
    assert "2 failed" in shown.out
    assert "a web page was served instead of a PDF" in shown.out
    source = f"site-{TABLE.id}"
    assert fonds("run", source, "--json").json["counts"]["skipped"] == len(TABLE.listed)
    assert fonds("status", "--source", source, "--json").json["overview"]["documents"] == len(
        TABLE.listed
    )
    assert fonds("audit", source, "--json").json["missing"] == 0
    assert len(fonds("errors", f"site-{APOLOGIES.id}", "--json").json) == 2
    assert fonds("search", "soa", "--source", source, "--json").json


def test_a_website_is_recorded_replayed_and_filled_like_any_source(
    fonds: Fonds, config: str, tmp_path: Path, zoo: Zoo
) -> None:
    fonds("crawl", config, "--output", str(tmp_path / "output"), "--site", TABLE.id)
    source, recording = f"site-{TABLE.id}", tmp_path / "run.warc.gz"
    recorded = fonds("run", source, "--record", str(recording), "--json").json
    assert (recorded["status"], recorded["counts"]["skipped"]) == ("success", len(TABLE.listed))
    zoo.reset()
    replayed = fonds("run", source, "--replay", str(recording), "--json").json
    assert (replayed["status"], replayed["counts"]) == ("success", recorded["counts"])
    assert zoo.requests == []
    filled = fonds("backfill", source, "--json").json
    assert (filled["status"], filled["counts"]) == ("success", recorded["counts"])
    assert {one.path for one in zoo.requests} >= {truth.path for truth in TABLE.listed}
    runs = fonds("status", "--source", source, "--json").json["runs"]
    assert [run["mode"] for run in runs] == ["backfill", "incremental", "incremental", "manual"]


def test_a_website_is_run_among_other_sources(fonds: Fonds, config: str, tmp_path: Path) -> None:
    fonds("crawl", config, "--output", str(tmp_path / "output"), "--site", TABLE.id)
    (report,) = fonds("bootstrap", f"site-{TABLE.id}", "--json").json
    assert (report["status"], report["counts"]["skipped"]) == ("success", len(TABLE.listed))
    assert (
        "has no option --congresses"
        in fonds("backfill", f"site-{TABLE.id}", "--congresses", "118").err
    )


def test_a_strategy_is_shown_and_forgotten(fonds: Fonds, config: str, tmp_path: Path) -> None:
    fonds("crawl", config, "--output", str(tmp_path / "output"), "--site", TABLE.id)
    standing = json.loads(fonds("site", "strategy", TABLE.id, "--json").json)
    assert standing["state"] == "active"
    assert "confidence" in fonds("site", "strategy", TABLE.id).out
    fonds("site", "strategy", TABLE.id, "--forget")
    assert "no strategy is stored" in fonds("site", "strategy", TABLE.id).out


def test_a_crawl_that_is_over_has_nothing_left_to_be_resumed(
    fonds: Fonds, config: str, tmp_path: Path
) -> None:
    command = ("crawl", config, "--output", str(tmp_path / "output"), "--site", TABLE.id)
    fonds(*command)
    done = fonds(*command, "--resume")
    assert (done.code, "nothing left" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "sites.json: "),
        ('{"version": "1.0", "websites": []}', "websites: "),
        (
            '{"version": "1.0", "websites": [{"id": "A b", "name": "x", "base_url": "http://x/"}]}',
            "websites.0.id: ",
        ),
        (
            '{"version": "1.0", "websites": [{"id": "a", "name": "x", "base_url": "file:///x"}]}',
            "websites.0.base_url: ",
        ),
    ],
)
def test_a_configuration_that_is_wrong_is_refused_by_field(
    fonds: Fonds, tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "sites.json"
    file.write_text(text)
    done = fonds("crawl", str(file), "--output", str(tmp_path / "output"))
    assert done.code == 2
    assert told in done.err


def test_a_website_or_file_that_is_not_there_is_named(
    fonds: Fonds, config: str, tmp_path: Path
) -> None:
    output = str(tmp_path / "output")
    missing = fonds("crawl", str(tmp_path / "none.json"), "--output", output)
    assert (missing.code, "no such file" in missing.err) == (2, True)
    unknown = fonds("crawl", config, "--output", output, "--site", "mars")
    assert (unknown.code, "'mars'" in unknown.err) == (2, True)
    assert "fonds site list" in fonds("site", "show", "mars").err
    assert "to resume" in fonds("crawl", config, "--output", output, "--resume").err
