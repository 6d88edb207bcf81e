"""What a library creates is for its owner alone, whatever the umask allows."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Fonds

from fonds.library import open_library


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    previous = os.umask(0o022)
    yield
    os.umask(previous)


def modes(folder: Path) -> dict[str, int]:
    paths = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in paths}


def test_library_folders_are_0700_and_files_0600(fonds: Fonds, tmp_path: Path) -> None:
    home = tmp_path / "library"
    assert fonds("run", "legislators", "--home", str(home)).code == 0
    with open_library(home) as library:
        with library.database.write() as connection:
            connection.exec_driver_sql("UPDATE documents SET title = title")
        created = modes(home)
    wanted = {name: 0o700 if (home / name).is_dir() else 0o600 for name in created if name}
    assert {"fonds.db", "locks/ingest-legislators.lock", "blobs/.tmp"} <= set(created)
    assert any(name.startswith("blobs/corpus/legislators/") for name in created)
    open_ones = {name: mode for name, mode in created.items() if mode not in {0o600, 0o700}}
    assert not open_ones
    assert set(created.values()) == {0o600, 0o700}
    assert all(created[name] == mode for name, mode in wanted.items() if name in created)


def test_write_ahead_log_of_a_library_is_0600(tmp_path: Path) -> None:
    home = tmp_path / "library"
    with open_library(home) as library, library.database.write():
        found = {name for name in modes(home) if name.startswith("fonds.db-")}
        assert found == {"fonds.db-wal", "fonds.db-shm", "fonds.db-lock"}
        assert {modes(home)[name] for name in found} == {0o600}


def test_back_up_is_0600(fonds: Fonds, tmp_path: Path) -> None:
    assert fonds("db", "backup", str(tmp_path / "copies" / "one.db")).code == 0
    assert modes(tmp_path / "copies") == {".": 0o700, "one.db": 0o600}


def test_bundle_and_export_keep_the_umask_of_the_user(fonds: Fonds, tmp_path: Path) -> None:
    for name, command in (("bundle", "bundle create"), ("export", "export --format jsonl")):
        fonds(*command.split(), "--source", "crs", "--to", str(tmp_path / name))
        assert set(modes(tmp_path / name).values()) == {0o755, 0o644}


def test_doctor_warns_of_a_home_that_others_can_read_and_names_the_command(
    fonds: Fonds, tmp_path: Path
) -> None:
    home = tmp_path / "shared library"
    home.mkdir(mode=0o755)
    with open_library(home, blobs=str(tmp_path / "blobs")):
        pass

    def found() -> dict[str, str]:
        options = ["--home", str(home), "doctor", "--json"]
        return next(each for each in fonds(*options).json if each["check"] == "permissions")

    warned = found()
    assert (warned["status"], str(home) in warned["found"]) == ("warn", True)
    assert warned["advice"] == f"chmod 700 '{home}'"
    subprocess.run(shlex.split(warned["advice"]), check=True)
    assert found()["status"] == "ok"
