"""What most tests type instead of the real command does the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests import servers
from tests.demo_library import FONDS, copy_demo_library


def environment(home: Path) -> dict[str, str]:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    return {**inherited, "FONDS_HOME": str(home), "COLUMNS": "70"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_demo_library(tmp_path_factory.mktemp("zygote"))


@pytest.mark.parametrize("arguments", [["search", "lead pipes"], ["show", "--bogus"]])
def test_forked_command_prints_and_ends_like_a_new_process(
    home: Path, arguments: list[str]
) -> None:
    outcomes = [
        subprocess.run(
            [command, *arguments],
            env=environment(home),
            capture_output=True,
            timeout=60,
            check=False,
        )
        for command in (FONDS, servers.fonds_command())
    ]
    new, forked = [(done.returncode, done.stdout, done.stderr) for done in outcomes]
    assert forked == new
    assert any(new[1:])


def test_forked_command_does_not_outlive_its_program(home: Path) -> None:
    with subprocess.Popen(
        [servers.fonds_command(), "scheduler"],
        env=environment(home),
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stderr is not None
        assert program.stderr.readline() == "scheduler started; stop it with Ctrl-C\n"
        program.kill()
        # It ends when nobody is left who could write to it.
        assert "Traceback" not in program.stderr.read()
