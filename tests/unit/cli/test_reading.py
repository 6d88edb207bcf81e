from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.unit.cli.conftest import Fonds

from fonds.demo.bundle import DATA
from fonds.library import open_library
from fonds.results import Citation
from fonds.sources.registry import builtin_sources

REGISTER = DATA / "www.federalregister.gov"
PEOPLE = DATA / "unitedstates.github.io" / "congress-legislators"
RULE = REGISTER / "2026-01-12" / "2026-00101.json"


def test_sources_are_listed_with_publisher_and_schedule(fonds: Fonds) -> None:
    outcome = fonds("sources")
    assert outcome.code == 0
    headings, *lines = outcome.out.splitlines()
    assert headings.split() == ["source", "publisher", "schedule", "after"]
    assert [line.split()[0] for line in lines] == sorted(builtin_sources())


def test_sources_as_json_name_their_tables(fonds: Fonds) -> None:
    listed = fonds("sources", "--json").json
    assert all(
        set(source)
        == {
            "name",
            "title",
            "organisation",
            "schedule",
            "depends_on",
            "tables",
            "published_at",
        }
        for source in listed
    )
    by_name = {source["name"]: source for source in listed}
    assert by_name["committees"]["depends_on"] == ["legislators"]
    assert "fr_documents" in by_name["federal_register"]["tables"]


# Search -----------------------------------------------------------------------------------


def test_search_prints_title_passage_and_citation(fonds: Fonds) -> None:
    outcome = fonds("search", "salary threshold for executive employees", "--limit", "1")
    assert outcome.code == 0
    assert outcome.out.startswith("1. Defining and Delimiting the Exemptions")
    assert "91 Fed. Reg. 1201 (Jan. 12, 2026).  fr:2026-00101\n" in outcome.out
    assert "https://www.federalregister.gov/documents/2026/01/12/2026-00101/" in outcome.out


def test_search_as_json_is_a_list_of_retrieval_results(fonds: Fonds) -> None:
    results = fonds("search", "lead service line", "--json", "--limit", "3").json
    assert len(results) == 3
    for result in results:
        assert set(result) - {"passages", "more_passages"} == {"id", "snippet", "citation"}
        assert set(result["citation"]) == {
            "title",
            "organization",
            "url",
            "published_at",
            "citation_string",
            "locator",
        }
        assert set(result["citation"]["locator"]) == {"heading_path", "section", "page"}
    assert results[0]["citation"]["published_at"].startswith("2026-")


def test_search_filters_by_source_and_day(fonds: Fonds) -> None:
    people = fonds("search", "senate", "--source", "legislators", "--json").json
    assert people
    assert all(result["id"].split(":")[0] in {"legislator", "executive"} for result in people)
    late = fonds("search", "the rule", "--since", "2026-02-17", "--until", "2026-02-17", "--json")
    assert {result["citation"]["published_at"] for result in late.json} == {"2026-02-17"}


def test_search_that_finds_nothing_says_so_and_is_no_failure(fonds: Fonds) -> None:
    outcome = fonds("search", "zzyzx")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "nothing found\n")
    assert fonds("search", "zzyzx", "--json").json == []


def test_search_inside_a_document_prints_its_passages_only(fonds: Fonds) -> None:
    (best, *_) = fonds("search", "lead service line", "--json").json
    inside = fonds("search", "lead service line", "--in", best["id"], "--json").json
    assert {result["id"] for result in inside} == {best["id"]}
    assert all("passages" not in result for result in inside)
    missing = fonds("search", "lead", "--in", "fr:1900-1")
    assert missing.code != 0
    assert "fr:1900-1" in missing.err


def test_one_passage_of_each_document_is_printed_where_that_is_asked_for(fonds: Fonds) -> None:
    results = fonds("search", "lead service line", "--json", "--per-document", "1").json
    assert all("passages" not in result for result in results)


def test_search_in_an_empty_library_says_that_it_is_empty(fonds: Fonds, empty: Path) -> None:
    outcome = fonds("search", "water", "--home", str(empty))
    assert outcome.code == 0
    assert f"the library in {empty} is empty; fill it with `fonds bootstrap`" in outcome.err


@pytest.mark.parametrize(
    "options",
    [
        ["--limit", "0"],
        ["--limit", "5000"],
        ["--limit", "many"],
        ["--since", "yesterday"],
        ["--until", "2026-02-30"],
        ["--source", "nosuch"],
    ],
)
def test_search_with_a_senseless_option_is_a_usage_error(fonds: Fonds, options: list[str]) -> None:
    outcome = fonds("search", "water", *options)
    assert outcome.code == 2
    assert outcome.err


def test_what_a_document_says_cannot_move_the_cursor_or_change_colours(
    fonds: Fonds, home: Path
) -> None:
    evil = "\x1b]0;owned\x07[red]Zzyzx\u202e[/bold]\\"
    with open_library(home) as library, library.database.write() as connection:
        connection.execute(
            text("UPDATE documents SET title = :title WHERE id = 'fr:2026-00101'"), {"title": evil}
        )
    for arguments in (["search", "overtime salary"], ["show", "fr:2026-00101"]):
        outcome = fonds(*arguments, "--home", str(home))
        assert outcome.code == 0
        assert "\ufffd]0;owned\ufffd[red]Zzyzx\ufffd[/bold]\\\n" in outcome.out
        assert "\x1b" not in outcome.out


# Show -------------------------------------------------------------------------------------


def test_show_prints_provenance_and_body(fonds: Fonds) -> None:
    outcome = fonds("show", "fr:2026-00101")
    assert outcome.code == 0
    head, _, body = outcome.out.partition("\n\n")
    for name in ("id", "cite", "publisher", "published", "page", "retrieved", "raw"):
        assert f"\n  {name} " in head
    assert "## SUMMARY:" in body


def test_show_knows_every_name_of_a_document(fonds: Fonds) -> None:
    by_id = fonds("show", "fr:2026-00101", "--json").json
    assert fonds("show", "91 FR 1201", "--json").json == by_id
    assert by_id["id"] == "fr:2026-00101"
    assert by_id["citation_string"] == "91 Fed. Reg. 1201 (Jan. 12, 2026)."
    assert by_id["raw_path"].startswith("corpus/federal_register/")
    assert set(by_id["citation"]) == set(Citation.model_fields)
    assert by_id["citation"]["citation_string"] == by_id["citation_string"]


def test_show_markdown_prints_the_body_and_nothing_else(fonds: Fonds) -> None:
    body = fonds("show", "fr:2026-00101", "--json").json["body_text"]
    assert fonds("show", "fr:2026-00101", "--markdown").out == f"{body}\n"


@pytest.mark.parametrize("name", ["fr:1999-1", "", "\udcff", "'; DROP TABLE documents"])
def test_show_of_an_unknown_name_is_a_usage_error(fonds: Fonds, name: str) -> None:
    outcome = fonds("show", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")


# Parse ------------------------------------------------------------------------------------


def test_parse_prints_one_record_a_line_and_touches_no_library(
    fonds: Fonds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FONDS_HOME", str(tmp_path / "nothing"))
    outcome = fonds("parse", "legislators", str(PEOPLE / "legislators-current.yaml"))
    assert outcome.code == 0
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert records[0]["key"] == "legislator:H901001"
    assert all(
        set(record) == {"source", "table", "key", "payload", "children", "document"}
        for record in records
    )
    assert list(tmp_path.iterdir()) == []


def test_parse_joins_files_that_differ_in_their_suffix(fonds: Fonds) -> None:
    both = fonds("parse", "federal_register", str(RULE), str(RULE.with_suffix(".xml")))
    (record,) = map(json.loads, both.out.splitlines())
    assert record["key"] == "fr:2026-00101"
    assert record["document"]["citation_string"] == "91 Fed. Reg. 1201 (Jan. 12, 2026)."
    assert record["document"]["body"]["normalized"]["markdown"]


def test_parse_of_a_wrong_file_names_it_and_goes_on(fonds: Fonds, tmp_path: Path) -> None:
    wrong = tmp_path / "a.xml"
    wrong.write_text("just words")
    outcome = fonds("parse", "federal_register", str(wrong), str(RULE))
    assert outcome.code == 1
    assert outcome.err.startswith(f"error: {wrong}: ")
    assert json.loads(outcome.out)["key"] == "fr:2026-00101"


def test_parse_of_a_missing_file_is_a_usage_error(fonds: Fonds, tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        outcome = fonds("parse", "federal_register", str(path))
        assert outcome.code == 2
        assert f"cannot read {path}" in outcome.err
