"""Processes that may be killed: forks of one that has imported all they need.

A module offers what its processes do by `raise_children({"write": write, …})` when it is run as a
program. Each line on stdin then asks for one thing: `{"start": "write", …}` for a process, whose id
is the answer; `{"poll": 123}` for the code with which it ended, or null. What they do may say with
which code; a process that raises ends with 1.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

import structlog

Work = Callable[..., int | None]
Works = Mapping[str, Work]

_PULSE: Final = 0.01


def raise_children(works: Works) -> None:
    """Do what stdin asks for, until it ends; nobody outlives it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    gc.freeze()
    children: set[int] = set()
    for line in sys.stdin:
        answer = _answer(json.loads(line), works, children)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _answer(question: dict[str, Any], works: Works, children: set[int]) -> int | None:
    if work := question.pop("start", None):
        child = _fork(works[work], question)
        children.add(child)
        return child
    pid = question["poll"]
    found, status = os.waitpid(pid, os.WNOHANG)
    if not found:
        return None
    children.discard(pid)
    return os.waitstatus_to_exitcode(status)


def _fork(work: Work, options: Mapping[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    os.dup2(2, 1)  # answers are the parent's alone
    try:
        code = work(**options)
    except BaseException:  # noqa: BLE001 — nothing may come back to where the fork was made
        traceback.print_exc()
        os._exit(1)
    os._exit(code or 0)


class Nursery:
    """Starts processes between `with` and the end of the block, which none of them outlives.

    Threads may share one.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._asking = Lock()

    def start(self, work: Work, **options: Any) -> int:
        """The id of a process that does this."""
        pid: int = self._ask({"start": work.__name__, **options})
        return pid

    def poll(self, pid: int) -> int | None:
        """The code with which a process ended, or None while it runs."""
        code: int | None = self._ask({"poll": pid})
        return code

    def wait(self, pid: int) -> int:
        """The code with which a process ends."""
        while (code := self.poll(pid)) is None:
            time.sleep(_PULSE)
        return code

    def kill(self, pid: int) -> None:
        """End a process at once."""
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) == -signal.SIGKILL

    def run(self, work: Work, *, kill_after: float | None = None, **options: Any) -> int:
        """The code with which a process ends that does this, killed after so many seconds."""
        pid = self.start(work, **options)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)
        return self.wait(pid)

    def _ask(self, question: Mapping[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        with self._asking:
            self._process.stdin.write(f"{json.dumps(question)}\n".encode())
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 — this interpreter, a module of ours
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is for whoever started it
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
