"""The commands by their names, before their modules are imported."""

from __future__ import annotations

import inspect
import os
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import fonds.cli
from fonds.cli.main import MENU, Menu, commands_of

MODULES = sorted({entry.module for entry in MENU.values()})


@pytest.mark.parametrize("module", MODULES)
def test_a_module_registers_the_commands_that_the_menu_promises(module: str) -> None:
    assert set(commands_of(module)) == {
        name for name, entry in MENU.items() if entry.module == module
    }


@pytest.mark.parametrize("name", MENU)
def test_the_menu_says_of_a_command_what_its_own_help_begins_with(name: str) -> None:
    command = commands_of(MENU[name].module)[name]
    own = command.short_help or inspect.cleandoc(command.help)
    assert MENU[name].summary == own.partition("\n\n")[0]
    # The group comes from the menu alone.
    assert not any((command.hidden, command.deprecated, command.rich_help_panel))


def test_a_command_is_also_found_by_its_other_name() -> None:
    menu = Menu()
    assert menu["health"] is menu["doctor"]
    assert "health" not in list(menu)


def test_every_command_has_one_line_in_its_group_on_a_terminal_of_80_columns() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "fonds", "--help"],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    group = ""
    listed = []
    for line in run.stdout.splitlines():
        if line.startswith("╭─ "):
            group = line.strip("╭─╮ ")
        elif line.startswith("│ "):
            name, _, summary = line.strip("│ ").partition("  ")
            listed.append((group, name, summary.strip()))
    menu = [(entry.group, name, entry.summary) for name, entry in MENU.items()]
    assert listed[-len(menu) :] == menu


def test_no_module_with_commands_is_left_out() -> None:
    names = [each.name for each in pkgutil.iter_modules(fonds.cli.__path__)]
    offering = {name for name in names if hasattr(import_module(f"fonds.cli.{name}"), "register")}
    assert offering == set(MODULES)


def test_a_command_is_made_once_and_an_unknown_one_is_none() -> None:
    menu = Menu()
    assert menu["crawl"] is menu["crawl"]
    assert menu.get("no-such-command") is None
    assert len(menu) == len(list(menu)) == len(MENU)


def test_a_command_does_without_the_modules_of_others() -> None:
    code = "import sys; from fonds.cli.main import Menu; Menu()['crawl'];print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(run.stdout.split())
    assert "fonds.cli.crawl" in imported
    assert imported.isdisjoint(
        {"fonds.cli.serve", "fonds.codes.run", "fonds.shards.index", "alembic", "apscheduler"}
    )
