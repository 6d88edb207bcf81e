"""Contributors and agents are told what is there; files for GitHub have the shape it expects."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ["CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
ISSUE_FORMS: Final = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FOR_GITHUB: Final = sorted(path for path in (ROOT / ".github").rglob("*") if path.is_file())
OTHERS: Final = [ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml", *FOR_GITHUB]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORDS_A_MINUTE: Final = 240

_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"`([^`\n]+)`")
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
_OUTWARD: Final = re.compile(r"\b\w+://|\bwww\.|[\w.]+@[\w-]+\.\w+", re.ASCII)
_PATH: Final = re.compile(r"(?:src|tests|docs|scripts|\.github)/[\w./-]+|[\w-]+\.(?:md|toml|cff)")


def _text(name: str | Path) -> str:
    return (ROOT / name).read_text("utf-8")


def _codes(text: str) -> list[str]:
    return [*_FENCE.findall(text), *_SPAN.findall(_FENCE.sub("", text))]


def _anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(_FENCE.sub("", _text(page)))
    return {re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-") for text in headings}


# Pages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_to_files_of_the_repository(page: str) -> None:
    for link in _LINK.findall(_FENCE.sub("", _text(page))):
        path, _, anchor = link.partition("#")
        target = (ROOT / path).resolve() if path else ROOT / page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


@pytest.mark.parametrize("name", [*PAGES, *(str(path.relative_to(ROOT)) for path in OTHERS)])
def test_no_address_is_given_while_the_project_has_none(name: str) -> None:
    assert _OUTWARD.findall(_text(name)) == []


@pytest.mark.parametrize("page", PAGES)
def test_files_and_folders_that_a_page_names_exist(page: str) -> None:
    # `<source>` stands for any; what is named up to there must exist.
    named = {path for code in _codes(_text(page)) for path in _PATH.findall(code)}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "AGENTS.md", ".github/PULL_REQUEST_TEMPLATE.md"]
)
def test_targets_of_make_that_a_page_names_exist(page: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", _text("Makefile"), re.MULTILINE))
    named = {name for code in _codes(_text(page)) for name in re.findall(r"\bmake ([\w-]+)", code)}
    assert {"test", "test-all"} <= named <= targets


def test_contributing_takes_five_minutes_to_read() -> None:
    assert len(_text("CONTRIBUTING.md").split()) <= 5 * WORDS_A_MINUTE


def test_contributing_describes_every_folder_of_the_tests() -> None:
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    folders |= {path.parents[1].name for path in (ROOT / "tests").glob("*/*/test_*.py")}
    described = set(re.findall(r"^\| `tests/(\w+)` \|", _text("CONTRIBUTING.md"), re.MULTILINE))
    assert described == folders


def test_contributing_explains_every_marker() -> None:
    registered = {marker.partition(":")[0] for marker in _pytest_options()["markers"]}
    assert registered <= set(_codes(_text("CONTRIBUTING.md")))


def test_contributing_lists_variables_that_tests_read() -> None:
    listed = re.findall(r"^\| `(FONDS_\w+)` \|", _text("CONTRIBUTING.md"), re.MULTILINE)
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    read = "".join(path.read_text("utf-8") for path in files if path != Path(__file__))
    assert listed
    assert [name for name in listed if f'"{name}"' not in read] == []


def test_contributing_says_that_no_workflow_has_been_run() -> None:
    assert "linted but not run yet" in _text("CONTRIBUTING.md")


def _pytest_options() -> dict[str, Any]:
    options: dict[str, Any] = PROJECT["tool"]["pytest"]["ini_options"]
    return options


# Hooks ------------------------------------------------------------------------------------


def hooks() -> list[dict[str, Any]]:
    (repository,) = yaml.safe_load(_text(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"
    found: list[dict[str, Any]] = repository["hooks"]
    return found


def test_hooks_are_the_commands_of_make_check() -> None:
    make = shutil.which("make") or pytest.skip("needs make")
    # What a make around this run says to those it starts is not meant for this one.
    variables = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    done = subprocess.run(
        [make, "--dry-run", "check"],
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    # An environment that is not up to date would be installed first, by its python.
    tools = re.compile(r"\.venv/bin/(?!python\b).*")
    commands = [line for line in done.stdout.splitlines() if tools.fullmatch(line)]
    assert commands
    assert [hook["entry"] for hook in hooks()] == commands


def test_hooks_fetch_nothing_and_see_the_whole_tree() -> None:
    keys = {"id", "name", "entry", "language", "types_or", "pass_filenames"}
    for hook in hooks():
        assert hook.keys() == keys
        assert hook["language"] == "system"
        assert hook["pass_filenames"] is False


# Citation ---------------------------------------------------------------------------------


def test_citation_says_what_the_package_says() -> None:
    citation = yaml.safe_load(_text("CITATION.cff"))
    project = PROJECT["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"]
    assert citation["title"] == project["name"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]


# Issues and pull requests -----------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [path for path in ISSUE_FORMS if path.stem != "config"], ids=lambda path: path.stem
)
def test_a_form_for_issues_has_the_shape_that_github_expects(form: Path) -> None:
    content = yaml.safe_load(_text(form))
    assert content.keys() == {"name", "description", "labels", "body"}
    # Labels that every repository has from the start.
    assert set(content["labels"]) <= {"bug", "enhancement"}
    questions = [part for part in content["body"] if part["type"] != "markdown"]
    assert questions
    assert len({question["id"] for question in questions}) == len(questions)
    for part in content["body"]:
        assert part.keys() <= {"type", "id", "attributes", "validations"}
        assert part["type"] in {"markdown", "textarea", "input", "checkboxes"}
        assert "value" in part["attributes"] or part["attributes"]["label"]
        assert part.get("validations", {}).keys() <= {"required"}


def test_security_reports_are_led_to_the_private_channel() -> None:
    assert (
        yaml.safe_load(_text(".github/ISSUE_TEMPLATE/config.yml"))["blank_issues_enabled"] is False
    )
    assert "SECURITY.md" in _text(".github/ISSUE_TEMPLATE/bug.yml")
    assert "private vulnerability reporting" in _text("SECURITY.md")


def test_the_supported_version_is_the_newest() -> None:
    major, minor, _ = PROJECT["project"]["version"].split(".")
    assert f"| the newest {major}.{minor}.x | yes |" in _text("SECURITY.md")
