"""`fonds db restore` replaces a library only if told to, and never one that is in use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import servers
from tests.support.libraries.documents import hold
from tests.unit.cli.conftest import Fonds

from fonds.library import open_library


@pytest.fixture
def copy(fonds: Fonds, empty: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A back-up of the empty library, to which a document is added afterwards."""
    path = tmp_path_factory.mktemp("copies") / "one.db"
    assert fonds("db", "backup", str(path), "--home", str(empty)).code == 0
    with open_library(empty) as library:
        hold(library, "later:1", "The dredger works at the mole.")
    return str(path)


def documents_in(fonds: Fonds, home: Path) -> int:
    return len(fonds("search", "dredger", "--json", "--home", str(home)).json)


def test_restore_needs_replace_for_an_existing_library(
    fonds: Fonds, empty: Path, copy: str
) -> None:
    refused = fonds("db", "restore", copy, "--home", str(empty))
    assert refused.code == 2
    assert "--replace" in refused.err
    assert documents_in(fonds, empty) == 1
    assert fonds("db", "restore", "--replace", copy, "--home", str(empty)).code == 0
    assert documents_in(fonds, empty) == 0


def test_restore_needs_no_replace_where_there_is_no_library(
    fonds: Fonds, tmp_path_factory: pytest.TempPathFactory, copy: str
) -> None:
    home = tmp_path_factory.mktemp("other") / "library"
    assert fonds("db", "restore", copy, "--home", str(home)).code == 0
    assert fonds("status", "--home", str(home)).code == 0


@pytest.mark.parametrize("command", ["serve --port 0", "worker"])
def test_restore_refuses_while_a_process_uses_the_library(
    fonds: Fonds, empty: Path, copy: str, command: str
) -> None:
    environ = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    program = [str(servers.serving_command()), "--home", str(empty), *command.split()]
    with subprocess.Popen(program, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline()  # it is ready
            refused = fonds("db", "restore", "--replace", copy, "--home", str(empty))
        finally:
            process.terminate()
    assert refused.code == 1
    assert "the library is in use: stop its servers" in refused.err
    assert documents_in(fonds, empty) == 1
    assert fonds("db", "restore", "--replace", copy, "--home", str(empty)).code == 0


def test_process_that_was_killed_does_not_hold_a_library(
    fonds: Fonds, empty: Path, copy: str
) -> None:
    environ = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    program = [sys.executable, "-m", "fonds", "--home", str(empty), "worker"]
    with subprocess.Popen(program, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline()
        process.kill()
    assert fonds("db", "restore", "--replace", copy, "--home", str(empty)).code == 0
