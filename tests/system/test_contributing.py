"""The commands that CONTRIBUTING.md tells a contributor to type can be typed.

Each console block is run in the folder of the repository. Targets of the Makefile take minutes, and
an installation changes the environment of this very run: these are not run, but what they name
must be there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.system.test_readme import assert_shown, blocks_of

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "CONTRIBUTING.md"
PROGRAMS: Final = Path(sys.executable).parent
BLOCKS: Final = [block.text for block in blocks_of(PAGE) if block.language == "console"]
TIMEOUT: Final = 300.0
"""Seconds: only a hung command takes so long."""

_TARGET: Final = re.compile(r"^([\w-]+):", re.MULTILINE)
_NOT_RUN: Final = re.compile(r"\.venv/bin/(?:python -m pip install|pre-commit install)\b")


def _exchanges(block: str) -> list[tuple[str, str]]:
    """Each command of a console block with the output that is shown below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def _run(command: str) -> str:
    assert command.startswith(".venv/bin/"), f"not a command of the environment: {command}"
    # The environment of this run, wherever it is.
    typed = re.sub(r"\.venv/bin/(?=[\w-]+ )", f"{PROGRAMS}/", command)
    outer = ("FONDS_", "PYTEST_")  # what this run of pytest tells its workers
    variables = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    done = subprocess.run(
        ["bash", "-c", typed],
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0].strip("$ "))
def test_the_commands_of_a_contributor_can_be_typed(block: str) -> None:
    targets = _TARGET.findall((ROOT / "Makefile").read_text("utf-8"))
    for command, shown in _exchanges(block):
        if command.startswith("make "):
            assert command.removeprefix("make ") in targets
        elif not _NOT_RUN.match(command):
            assert_shown(shown, _run(command))


def test_a_test_file_and_a_source_are_among_the_commands() -> None:
    commands = [command for block in BLOCKS for command, _ in _exchanges(block)]
    assert any("pytest tests/unit/" in command for command in commands)
    assert any("fonds parse " in command for command in commands)
    assert any("pytest tests/sources/" in command for command in commands)


def test_a_command_that_fails_is_noticed() -> None:
    with pytest.raises(AssertionError, match="deselected"):
        _run(".venv/bin/python -m pytest tests/unit/test_ids.py -k there_is_no_such_test")
