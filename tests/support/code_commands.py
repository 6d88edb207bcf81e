"""The command `fonds` as a process, for tests of codes, and what it leaves in a library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from fonds.library import open_library
from fonds.selftest.state import blobs_of, rows_of
from tests.support import servers

FONDS: Final = Path(sys.executable).parent / "fonds"


def environment(home: Path) -> dict[str, str]:
    """Variables for a process: of ours only those that a loopback upstream needs."""
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    ours = {"FONDS_HOME": str(home), "FONDS_ALLOW_PRIVATE": "1", "FONDS_RATE_FACTOR": "0"}
    return {**inherited, **ours, "FONDS_RETRY_WAIT": "0.001"}


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    """A process that works on a library."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([FONDS, *arguments], env=environment(home), **pipes)


def run(home: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and complaints of a process that ends by itself."""
    done = subprocess.run(
        [servers.fonds_command(), *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def ask(home: Path, *arguments: str, code: int = 0) -> Any:
    """What a process says as JSON; it must end as expected."""
    ended, out, err = run(home, *arguments, "--json")
    assert ended == code, err or out
    return json.loads(out)


def ingest(home: Path, name: str, given: object, *more: str, code: int = 0) -> dict[str, Any]:
    """The units that an ingest reports, by their ids."""
    report = ask(home, "code", "ingest", name, "--from", str(given), *more, code=code)
    return {unit["id"]: unit for unit in report["units"]}


def contents(home: Path) -> dict[str, list[str]]:
    """All rows and all blobs of a library, but for moments and generated keys."""
    with open_library(home) as library:
        return {**rows_of(library), "blobs": sorted(blobs_of(library))}
