"""Commands of fonds that `fonds serve` starts, each in a process of its own.

A child ends with its parent, however that ends: its standard input is a pipe that is closed then.

python -m fonds.cli.children COMMAND…
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Final

import structlog

from fonds.cli.main import main

GRACE_SECONDS: Final = 4.0
"""How long a child may take to end; then it is killed, which loses nothing."""
NICENESS: Final = 5
"""Children yield the processor to the server."""
_FIRST_WAIT: Final = 1.0
_MAX_WAIT: Final = 60.0
_STEADY_SECONDS: Final = 60.0
"""A child that ran for so long is started again without waiting longer than the first time."""

_log: Final = structlog.get_logger("fonds.children")


class ChildCommand:
    """A command in a process of its own, which is started again whenever it ends."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._stopping = Event()
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._keep_running, name="fonds-child", daemon=True)

    def start(self) -> None:
        """Start the command."""
        self._thread.start()

    def request_stop(self) -> None:
        """Ask the command to end."""
        with self._lock:
            self._stopping.set()
            if self._process is not None:
                self._process.terminate()

    def wait(self, deadline: float) -> None:
        """Return when the command has ended; kill it at the deadline, a monotonic time."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            if self._thread.is_alive() and self._process is not None:
                self._process.kill()
        self._thread.join()

    def _keep_running(self) -> None:
        wait = _FIRST_WAIT
        while (process := self._started()) is not None:
            since = time.monotonic()
            code = process.wait()
            if process.stdin is not None:
                process.stdin.close()
            if self._stopping.is_set():
                return
            wait = _FIRST_WAIT if time.monotonic() - since > _STEADY_SECONDS else wait
            _log.error("child_ended", command=self._arguments[-1], code=code, next_start_in=wait)
            self._stopping.wait(wait)
            wait = min(2 * wait, _MAX_WAIT)

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            self._process = subprocess.Popen(  # noqa: S603 — this interpreter, our own module
                [sys.executable, "-m", "fonds.cli.children", *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the parent
            )
            return self._process


@contextmanager
def child_commands(commands: Sequence[Sequence[str]]) -> Iterator[list[ChildCommand]]:
    """Run commands in processes of their own until the block ends."""
    children = [ChildCommand(arguments) for arguments in commands]
    for child in children:
        child.start()
    try:
        yield children
    finally:
        for child in children:
            child.request_stop()
        deadline = time.monotonic() + GRACE_SECONDS
        for child in children:
            child.wait(deadline)


def _end_with_parent() -> None:
    with suppress(OSError):
        while os.read(sys.stdin.fileno(), 1024):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _run() -> None:
    os.nice(NICENESS)
    Thread(target=_end_with_parent, name="fonds-parent", daemon=True).start()
    main()


if __name__ == "__main__":
    _run()
