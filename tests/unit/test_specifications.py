"""What the page of the five specifications counts is in the code, and where it points is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import typer.main

from fonds.cli.main import app
from fonds.sites import models
from fonds.stores import tables

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs/explanation/specifications.md").read_text()
ROUTES: Final = (ROOT / "docs/reference/http.md").read_text()
STATES: Final[dict[str, Sequence[str]]] = {
    "an upload": tables.UPLOAD_STATUSES,
    "a run": tables.RUN_STATUSES,
    "the mode of a run": tables.RUN_MODES,
    "a task": tables.TASK_STAGES,
    "a log line": tables.LOG_LEVELS,
    "a strategy": [each.value for each in models.StrategyType],
    "a downloaded file": get_args(models.DownloadedPDF.model_fields["crawl_status"].annotation),
}


def rows(heading: str, level: int = 3) -> list[list[str]]:
    """The cells of all tables below a heading."""
    return list(_rows(heading, level))


def _rows(heading: str, level: int) -> Iterator[list[str]]:
    marks = "#" * level
    section = re.split(rf"\n#{{2,{level}}} ", PAGE.split(f"\n{marks} {heading}\n")[1])[0]
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith(
            ("| specification |", "| promise |", "| asked for |")
        ):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", rows("Tables and columns"), ids=lambda row: row[1])
def test_columns_that_were_asked_for_are_declared(row: list[str]) -> None:
    (table,) = names(row[1])
    declared = set(tables.metadata.tables[table].c.keys())
    assert names(row[2])
    assert set(names(row[2])) <= declared


@pytest.mark.parametrize("row", rows("Fields of files"), ids=lambda row: row[1])
def test_fields_that_were_asked_for_are_in_the_model(row: list[str]) -> None:
    (model,) = names(row[1])
    assert names(row[2]) == list(getattr(models, model).model_fields)


@pytest.mark.parametrize("row", rows("States"), ids=lambda row: row[1])
def test_states_are_those_that_were_asked_for(row: list[str]) -> None:
    assert names(row[2]) == list(STATES[row[1]])


@pytest.mark.parametrize("row", rows("Routes"), ids=lambda row: row[1])
def test_route_that_was_asked_for_is_served(row: list[str]) -> None:
    assert f"\n| {row[1]} |" in ROUTES


@pytest.mark.parametrize("row", rows("Commands"), ids=lambda row: row[1])
def test_command_that_was_asked_for_is_there(row: list[str]) -> None:
    (typed,) = names(row[2])
    if typed == "python -m fonds":
        import_module("fonds.__main__")
    else:
        commands = getattr(typer.main.get_command(app), "commands")  # noqa: B009 — of a group
        assert typed.removeprefix("fonds ") in commands


@pytest.mark.parametrize("row", rows("Limits and constants"), ids=lambda row: row[1])
def test_limit_is_the_one_that_was_asked_for(row: list[str]) -> None:
    module, _, path = names(row[3])[0].partition(":")
    value: Any = import_module(module)
    for name in path.split("."):
        value = _attribute(value, name)
    assert str(value) == row[2]


def _attribute(owner: Any, name: str) -> Any:
    """An attribute, or the default of a field of a dataclass."""
    entries = getattr(owner, "__dataclass_fields__", {})
    return entries[name].default if name in entries else getattr(owner, name)


@pytest.mark.parametrize("row", rows("What was promised", level=2), ids=lambda row: row[0][:40])
def test_place_where_a_promise_is_kept_exists(row: list[str]) -> None:
    places = names(row[1])
    assert places or "](" in row[1]
    assert all((ROOT / place).exists() for place in places)


def test_every_difference_has_a_reason() -> None:
    differences = rows("What differs, and why", level=2)
    assert len(differences) > 60
    assert all(len(row) == 3 and all(row) for row in differences)
