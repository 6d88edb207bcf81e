"""The command `fonds` as a process, for tests of codes, and what it leaves in a library."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fonds.library import Library, open_library
from tests import servers
from tests.dump import logical_dump

FONDS: Final = Path(sys.executable).parent / "fonds"
IN_PROCESS: Final = ("--max-memory-mib", "512")
"""Room enough for the command to do all the work itself."""

_MOMENT: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z")
_MOMENTS: Final = {"planned_at", "completed_at"}


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


def contents(home: Path) -> dict[str, list[Any]]:
    """All rows and all blobs of a library, but for moments and generated keys."""
    with open_library(home) as library:
        tables = {
            table: sorted((_timeless(json.loads(row)) for row in rows), key=json.dumps)
            for table, rows in logical_dump(library).items()
        }
        return {**tables, "blobs": _blobs(library)}


def wait_until(condition: Callable[[], object]) -> None:
    """Until a condition holds, for a minute at most."""
    for _ in range(12_000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it never happened")


def _timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _MOMENTS}


def _blobs(library: Library) -> list[tuple[str, str]]:
    """Keys and hashes; plans, packs and hosts tell when they were asked for."""
    blobs = library.blobs
    keys = sorted(info.key for info in blobs.list())
    return [(key, hashlib.sha256(_MOMENT.sub(b"", blobs.get(key))).hexdigest()) for key in keys]
