"""How the command begins: by its name or as a module, and what is imported before it does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points, version

import pytest

from fonds.cli.main import MENU, main

LIST_MODULES = """
import atexit, sys
from fonds.cli.main import main

atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = ["fonds", *sys.argv[1:]]
main()
"""
NEEDED_BY_NONE_OF_THEM = {
    *(f"fonds.cli.{entry.module}" for entry in MENU.values()),
    "asyncio",
    "fonds.library",
    "pydantic",
    "sqlalchemy",
    "structlog",
}


def run_python(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_version_and_the_help_load_no_command_and_nothing_that_opens_a_library(
    option: str,
) -> None:
    run = run_python(["-c", LIST_MODULES, option])
    assert run.returncode == 0
    assert run.stdout
    imported = set(run.stderr.split())
    assert {"fonds.cli.main", "rich.console"} <= imported
    assert not imported & NEEDED_BY_NONE_OF_THEM


def test_the_installed_command_is_the_same_as_the_module() -> None:
    (command,) = entry_points(group="console_scripts", name="fonds")
    assert command.load() is main
    assert run_python(["-m", "fonds", "--version"]).stdout == f"fonds {version('fonds')}\n"


def test_the_module_ends_as_the_command_does_and_is_named_in_its_usage() -> None:
    run = run_python(["-m", "fonds", "search"])
    assert (run.returncode, run.stdout) == (2, "")
    assert "python -m fonds search" in run.stderr
