"""What holds for every command."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import typer.main
from tests.support.libraries.demo import demo
from tests.unit.cli.conftest import Fonds

from fonds.cli.main import app
from fonds.demo.bundle import FEEDS


def _commands() -> list[str]:
    """Every command by its name, those of groups included."""
    groups = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    below = {name: getattr(group, "commands", None) for name, group in groups.items()}
    return sorted(
        name if parts is None else f"{name} {part}"
        for name, parts in below.items()
        for part in parts or [""]
    )


@pytest.mark.parametrize("command", _commands())
def test_every_command_shows_an_example_of_itself(fonds: Fonds, command: str) -> None:
    outcome = fonds(*command.split(), "--help")
    assert outcome.code == 0
    assert f"Example: fonds {command}" in outcome.out or any(
        f"{start}{command}" in outcome.out
        for start in ("Examples: fonds ", "Example: fonds --home library ", "demo-library ")
    )


def test_home_may_stand_before_and_after_the_command(fonds: Fonds, tmp_path: Path) -> None:
    for number, arguments in enumerate(
        (
            ["--home", "{}", "init"],
            ["init", "--home", "{}"],
            ["--home={}", "init"],
            ["init", "--home={}"],
        )
    ):
        home = tmp_path / str(number)
        outcome = fonds(*[argument.format(home) for argument in arguments])
        assert (outcome.code, outcome.out) == (0, f"the library is in {home}\n")
        assert (home / "fonds.db").is_file()


def test_words_after_two_dashes_are_no_options(fonds: Fonds) -> None:
    outcome = fonds("search", "--", "--home")
    assert outcome.code == 0
    assert "--home" not in outcome.err


@pytest.mark.parametrize(
    "arguments", [["nosuch"], ["--bogus", "status"], ["status", "--home"], ["db", "nosuch"]]
)
def test_unknown_command_or_option_is_a_usage_error(fonds: Fonds, arguments: list[str]) -> None:
    outcome = fonds(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err


def test_malformed_setting_is_a_usage_error_that_names_it(
    fonds: Fonds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FONDS_TIMEOUT", "soon")
    outcome = fonds("status")
    assert outcome.code == 2
    assert outcome.err.startswith("error: FONDS_TIMEOUT: 'soon' is not a valid value")


@pytest.mark.parametrize("command", ["run legislators", "init"])
def test_home_that_cannot_be_created_is_an_error_without_a_traceback(
    fonds: Fonds, tmp_path: Path, command: str
) -> None:
    (tmp_path / "file").touch()
    outcome = fonds(*command.split(), "--home", str(tmp_path / "file" / "library"))
    assert outcome.code == 1
    assert "Not a directory" in outcome.err + outcome.out


@pytest.mark.parametrize("command", ["status", "run legislators", "search x", "db upgrade"])
def test_file_that_is_no_database_is_an_error_without_a_traceback(
    fonds: Fonds, tmp_path: Path, command: str
) -> None:
    (tmp_path / "fonds.db").write_text("words, and more words " * 100)
    outcome = fonds(*command.split(), "--home", str(tmp_path))
    assert outcome.code == 1
    assert outcome.err == "error: file is not a database; run `fonds doctor` for details\n"


def test_server_that_does_not_answer_is_an_error_without_a_traceback(
    fonds: Fonds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FONDS_DATABASE", "postgresql://somebody:secret@127.0.0.1:1/fonds")
    monkeypatch.setenv("FONDS_OUTAGE_SECONDS", "0")
    outcome = fonds("status")
    assert outcome.code == 1
    assert outcome.err.startswith("error: the database fonds at 127.0.0.1 does not respond")
    assert "secret" not in outcome.err


# The library itself -----------------------------------------------------------------------


def test_doctor_finds_a_good_library_well(fonds: Fonds) -> None:
    outcome = fonds("doctor")
    assert outcome.code == 0
    assert outcome.out.endswith(" 0 failed\n")
    findings = fonds("doctor", "--json").json
    assert {frozenset(finding) for finding in findings} == {
        frozenset({"group", "check", "status", "found", "advice"})
    }


def test_doctor_advises_what_to_do_about_an_empty_home(fonds: Fonds, tmp_path: Path) -> None:
    (tmp_path / "fonds.db").touch()
    outcome = fonds("doctor", "--home", str(tmp_path))
    assert outcome.code == 1
    assert "no tables yet" in outcome.out
    assert "run `fonds init`" in outcome.out


READING: Final = (
    *(
        "search x",
        "show fr:1",
        "changes --since 2026-01-01",
        "cite fr:1",
        "cites fr:1",
        "cited-by fr:1",
    ),
    *("resolve fr:1", "check-quote text --cite fr:1", "verify fr:1", "status", "errors", "logs"),
    *("commands", "metrics", "prune", "audit gao", "dismiss gao task", "doctor", "mcp", "serve"),
    *("worker --drain", "scheduler", "site list", "code tree usc 2024", "embed", "embed-status"),
    *("token list", "export --format csv --to elsewhere", "bundle create --to elsewhere"),
    *("normalize --drain", "renormalize", "citations", "db backup copy.db", "index stats domains"),
)


@pytest.mark.parametrize("command", READING)
def test_reading_never_creates_a_library(
    fonds: Fonds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = fonds("--home", "nowhere", *command.split())
    assert outcome.code in {1, 2}
    assert not list(tmp_path.iterdir())
    assert "nowhere" in outcome.err + outcome.out


def test_what_there_is_without_a_library_is_listed_without_creating_one(
    fonds: Fonds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("sources", "schedule", "code list"):
        outcome = fonds("--home", "nowhere", *command.split(), "--json")
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.json
    assert not list(tmp_path.iterdir())


def test_error_for_a_missing_library_says_what_to_do(fonds: Fonds, tmp_path: Path) -> None:
    outcome = fonds("--home", str(tmp_path / "nowhere"), "search", "x")
    for advice in (str(tmp_path / "nowhere"), "fonds init", "--home", "demo"):
        assert advice in outcome.err


def test_doctor_finds_a_file_that_is_no_database(fonds: Fonds, tmp_path: Path) -> None:
    (tmp_path / "fonds.db").write_text("words, and more words " * 100)
    outcome = fonds("doctor", "--home", str(tmp_path))
    assert outcome.code == 1
    assert "file is not a database" in outcome.out


def test_database_is_upgraded_from_nothing_and_from_the_current_version(
    fonds: Fonds, tmp_path: Path
) -> None:
    for _ in range(2):
        outcome = fonds("db", "upgrade", "--home", str(tmp_path))
        assert outcome.code == 0
        assert outcome.out.startswith("the database is at version ")


def test_demo_ingests_searches_and_says_how_to_go_on() -> None:
    outcome = demo()
    assert outcome.code == 0
    assert outcome.out.count(": success in ") == len(FEEDS) + 1
    assert "\nusc: success in " in outcome.out
    assert "53 U.S.C. § 103 (2026).  usc/119-36/root/title-53/" in outcome.out
    assert "PDFs: 6 read\ncitations: " in outcome.out
    assert "91 Fed. Reg. 1201 (Jan. 12, 2026).  fr:2026-00101" in outcome.out
    assert f'fonds --home {outcome.home} search "wildfire smoke"\n' in outcome.out
    assert outcome.out.endswith(f"fonds --home {outcome.home} serve\n")
    # Nothing waits, neither in a queue nor in the inbox of the index.
    assert outcome.err.count(" have no ") == 0
    index = Path(outcome.home) / "blobs/indexes/domains"
    assert list(index.glob("shards/*.usv"))
    assert not list(index.glob("*.usv"))
