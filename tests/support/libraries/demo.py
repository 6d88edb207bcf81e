"""The library that `make demo` leaves behind: made once for a run, by a real process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support import servers

FONDS: Final = Path(sys.executable).parent / "fonds"


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The library, for reading only, and how the command that made it ended."""

    home: Path
    code: int
    out: str
    err: str


def demo() -> Demo:
    """What `fonds demo` did in this run, without any setting."""
    home = servers.run_folder() / "demo-library"
    told = home.with_suffix(".json")
    with servers.locked("demo"):
        if not told.exists():
            told.write_text(json.dumps(_made(home)))
        return Demo(home=home, **json.loads(told.read_text()))


def copy_demo_library(folder: Path) -> Path:
    """Put a copy where `make demo` would make the library, and say where that is."""
    made = demo()
    assert made.code == 0, made.err
    return Path(shutil.copytree(made.home, folder / made.home.name))


def _made(home: Path) -> dict[str, int | str]:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    done = subprocess.run(
        [FONDS, "demo", "--home", home],
        env=inherited,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}
