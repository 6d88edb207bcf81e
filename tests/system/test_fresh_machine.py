"""A machine with nothing but Python, pip and make: the first commands of the README work there.

The copy has only what git tracks, the home is empty, and no program is found but those named
below. Installing needs a package index; what comes after it runs without any network, where the
system lets a test take it away. `make test` in such a copy is what `.ci/run` does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = ("make", "sh", "touch", "rm")
# Where packages come from is a setting of the machine, not of the project.
OF_THE_MACHINE: Final = ("PIP_", "SSL_", "REQUESTS_", "HTTP", "http", "no_proxy", "NO_PROXY")
# In a network of its own the machine reaches itself only once its loopback device is up.
WITHOUT_NETWORK: Final = (
    *("unshare", "--map-root-user", "--net", sys.executable, "-c"),
    (
        "import fcntl, os, socket, struct, sys;"
        "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', b'lo', 1));"
        "os.execv(sys.argv[1], sys.argv[1:])"
    ),
)


class Machine:
    """Runs commands with an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.copy, self._programs, home = (folder / name for name in ("fonds", "bin", "home"))
        self._programs.mkdir()
        home.mkdir()
        for name in PROGRAMS:
            found = shutil.which(name)
            if found is None:
                pytest.skip(f"{name} is not installed")
            (self._programs / name).symlink_to(found)
        # Not a link: a virtual environment's Python looks for what stands beside it.
        base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}"
        (self._programs / "python3").write_text(f'#!/bin/sh\nexec {base} "$@"\n')
        (self._programs / "python3").chmod(0o755)
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(OF_THE_MACHINE)
        }
        self._variables = kept | {"PATH": str(self._programs), "HOME": str(home)}

    def run(self, command: Sequence[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.copy,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_alone(self, command: Sequence[str]) -> str:
        """Without any network but the machine's own addresses."""
        unshare = shutil.which(WITHOUT_NETWORK[0]) or ""
        return self.run([unshare, *WITHOUT_NETWORK[1:], *command])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if not (ROOT / ".git").exists():
        pytest.skip("what is tracked is known to git alone")
    machine = Machine(tmp_path)
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).exists():
            (machine.copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, machine.copy / name)
    return machine


def _can_be_alone() -> bool:
    trial = [*WITHOUT_NETWORK, sys.executable, "-c", ""]
    try:
        return subprocess.run(trial, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.long
def test_demo_and_the_first_question_need_only_python_pip_and_make(machine: Machine) -> None:
    shown = machine.run(["make", "demo"])
    assert "fonds --home demo-library serve" in shown
    fonds = str(machine.copy / ".venv/bin/fonds")
    run = machine.run_alone if _can_be_alone() else machine.run
    asked = run([fonds, "--home", "demo-library", "search", "which pipes does lead come from?"])
    assert "91 Fed. Reg. 1209 (Jan. 12, 2026)." in asked
    assert "fonds --home again serve" in run([fonds, "--home", "again", "demo"])
