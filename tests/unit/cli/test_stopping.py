"""Work that was asked to stop."""

from __future__ import annotations

import subprocess
import sys

ENDLESS = """
from threading import Event
from fonds.cli import process
process.STOP_SECONDS = 0.1
stop = Event()
with process.ended_in_time(stop):
    stop.set()
    print("stopped", flush=True)
    Event().wait()
"""


def test_work_that_does_not_stop_ends_with_its_process() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "stopped\n")
