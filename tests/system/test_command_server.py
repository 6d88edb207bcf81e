"""What most tests type instead of the real command does the same."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from tests.support import servers
from tests.support.libraries.demo import FONDS, copy_demo_library


def environment(home: Path) -> dict[str, str]:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    return {**inherited, "FONDS_HOME": str(home), "COLUMNS": "70"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_demo_library(tmp_path_factory.mktemp("commands"))


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


@contextmanager
def _scheduler(home: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A forked command that runs until it is told to end, and what it says from then on."""
    with subprocess.Popen(
        [servers.fonds_command(), "scheduler"],
        env=environment(home),
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stderr is not None
        assert program.stderr.readline() == "scheduler started; stop it with Ctrl-C\n"
        yield program, program.stderr


def test_forked_command_does_not_outlive_its_program(home: Path) -> None:
    with _scheduler(home) as (program, said):
        program.kill()
        # It ends when nobody is left who could write to it.
        assert "Traceback" not in said.read()


def test_forked_command_ends_well_when_it_is_asked_to(home: Path) -> None:
    with _scheduler(home) as (program, said):
        program.terminate()
        assert "Traceback" not in said.read()
    assert program.returncode == 130


def test_forked_module_is_given_its_arguments_and_folder(tmp_path: Path) -> None:
    lines = ["import os, sys", "print(sys.argv[1:], os.getcwd())", "sys.exit(7)"]
    (tmp_path / "chore.py").write_text("\n".join(lines))
    command = [str(servers.forked_python()), "-m", "chore", "one", "two"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, f"['one', 'two'] {tmp_path}\n")
