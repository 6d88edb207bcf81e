"""A fork server for processes that are killed, and the processes of the selftest.

The fork server has imported everything that its processes need, so that they start at once. A
module that is run as a program offers functions with `serve({"write": write, …})`. Each line on
stdin is a request: `{"start": "write", …}` returns the id of a process that calls the function,
and `{"poll": 123}` its exit code, or null. Functions may return an exit code; exceptions give 1.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self

import structlog
from sqlalchemy.exc import SQLAlchemyError

from fonds.demo.bundle import FIRST_DAY, LAST_DAY
from fonds.errors import FondsError
from fonds.library import Library, open_library
from fonds.maintenance.findings import MaintenanceTarget
from fonds.maintenance.prune import prune
from fonds.runs import commands
from fonds.seams import Seams
from fonds.selftest.faults import FaultInjector, FaultLog, InjectedFault, JumpingClock
from fonds.selftest.scenario import OPENING, SETTINGS, STEPS, USER, Corpus, corpus_by_name
from fonds.selftest.state import problems, state_of
from fonds.sources.registry import builtin_sources
from fonds.stores.database import open_database
from fonds.testing import LaterClock

Work = Callable[..., int | None]
Works = Mapping[str, Work]

POLL_SECONDS: Final = 0.01


def serve(works: Works) -> None:
    """Serve requests from stdin until it closes, then kill all child processes."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    gc.freeze()
    children: set[int] = set()
    for line in sys.stdin:
        response = _respond(json.loads(line), works, children)
        sys.stdout.write(f"{json.dumps(response)}\n")
        sys.stdout.flush()
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _respond(request: dict[str, Any], works: Works, children: set[int]) -> int | None:
    if work := request.pop("start", None):
        child = _fork(works[work], request)
        children.add(child)
        return child
    pid = request["poll"]
    ended_pid, status = os.waitpid(pid, os.WNOHANG)
    if not ended_pid:
        return None
    children.discard(pid)
    return os.waitstatus_to_exitcode(status)


def _fork(work: Work, options: Mapping[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    os.dup2(2, 1)  # stdout is for responses of the parent only
    try:
        code = work(**options)
    except BaseException:  # noqa: BLE001 — the child must not return into the code of its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(code or 0)


class ForkServer:
    """Starts processes, which are killed at the end of its `with` block. Thread-safe."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._lock = Lock()

    def start(self, work: Work, **options: Any) -> int:
        """Start a process that calls a function; returns its id."""
        pid: int = self._request({"start": work.__name__, **options})
        return pid

    def poll(self, pid: int) -> int | None:
        """The exit code of a process, or None while it runs."""
        code: int | None = self._request({"poll": pid})
        return code

    def wait(self, pid: int) -> int:
        """Wait for the exit code of a process."""
        while (code := self.poll(pid)) is None:
            time.sleep(POLL_SECONDS)
        return code

    def kill(self, pid: int) -> None:
        """Kill a process."""
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) == -signal.SIGKILL

    def run(self, work: Work, *, kill_after: float | None = None, **options: Any) -> int:
        """Run a function in a process, killed after some seconds; returns the exit code."""
        pid = self.start(work, **options)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)
        return self.wait(pid)

    def _request(self, request: Mapping[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        with self._lock:
            self._process.stdin.write(f"{json.dumps(request)}\n".encode())
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 — this interpreter with a module of this package
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is for the parent process
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


FAILED: Final = 3
"""The exit code of a process that reported errors."""
TIMEOUT_SECONDS: Final = 300
"""How long a process may run before SIGALRM ends it."""
LOG: Final = "log"
FOREVER: Final = timedelta(days=36_500)

# Modules that are imported lazily, which every fork would otherwise import again.
_IMPORTED: Final = (
    "fonds.codes.invocation",
    "fonds.embed.worker",
    "fonds.embed.hashing",
    "fonds.embed.migration",
    "fonds.normalize.markdown_file",
    "fonds.normalize.pdf",
    "fonds.runs.citations",
    "fonds.runs.normalization",
    "fonds.search.retrieve",
    "fonds.shards.lookup",
    "fonds.stores.quantized",
    "numpy.ma",
)


def run_steps(
    *,
    home: str,
    hosts: Mapping[str, str],
    corpus: str,
    notes: str,
    steps: Sequence[str],
    later: float = 0.0,
    faults: Sequence[Mapping[str, Any]] = (),
    max_file_bytes: int | None = None,
) -> int:
    """Open the library and run these steps with injected faults; `notes` logs the progress."""
    _log_to(Path(home))
    signal.alarm(TIMEOUT_SECONDS)
    if max_file_bytes is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    clock, log = JumpingClock(seconds=later), FaultLog(Path(notes))
    planned = [InjectedFault(**fault) for fault in faults]
    injector = FaultInjector(planned, log, Path(home) / "fonds.db-wal", clock)
    seams = Seams(clock=clock, durable=injector)
    opening = partial(open_library, home, seams=seams, **{**SETTINGS, "hosts": hosts})
    try:
        for name, errors in _steps(opening, injector, corpus_by_name(corpus), steps):
            if errors:
                log.add(errors=errors)
                return FAILED
            log.add(ended=name, operations=injector.count)
    except (FondsError, SQLAlchemyError, OSError) as error:
        log.add(errors=[f"{type(error).__name__}: {str(error).splitlines()[0]}"])
        return FAILED
    return 0


def _steps(
    opening: Callable[[], AbstractContextManager[Library]],
    injector: FaultInjector,
    corpus: Corpus,
    names: Sequence[str],
) -> Iterator[tuple[str, list[str]]]:
    """Run the steps; yields the name and the errors of each."""
    injector.enter_step(OPENING)
    with opening() as library:
        yield OPENING, []
        for name in names:
            injector.enter_step(name)
            yield name, list(STEPS[name](library, corpus))


def dump_state(*, home: str, to: str, later: float) -> None:
    """Prune a library, and store its state in a file."""
    # Late enough for the files of killed processes to be pruned.
    with _opened(home, LaterClock(seconds=later, days=2)) as library:
        list(prune(MaintenanceTarget.of(library), older_than=FOREVER, apply=True))
        Path(to).write_text(json.dumps(state_of(library)))


def check_invariants(*, home: str, to: str, later: float, is_done: bool) -> None:
    """Store the violated invariants of a library in a file."""
    with _opened(home, LaterClock(seconds=later)) as library:
        Path(to).write_text(json.dumps(list(problems(library, is_done=is_done))))


def lock_database(*, home: str, ready: str, seconds: float) -> None:
    """Lock the database for some seconds."""
    database = open_database(f"sqlite:///{home}/fonds.db", seams=Seams())
    with database.write():
        Path(ready).touch()
        time.sleep(seconds)


def submit_commands(*, home: str, corpus: str) -> None:
    """Submit commands for all feeds, as an operator would."""
    days = {"since": FIRST_DAY.isoformat(), "until": LAST_DAY.isoformat()}
    with open_library(home, **SETTINGS) as library, library.database.write() as connection:
        now = library.seams.clock.now()
        for feed in chain(*corpus_by_name(corpus).feeds):
            commands.submit(
                connection,
                "backfill",
                feed,
                days,
                registry=library.sources,
                requested_by=USER,
                now=now,
            )


def open_commands(*, home: str) -> int:
    """Return the number of unfinished commands."""
    with open_library(home, **SETTINGS) as library, library.database.read() as connection:
        return len(commands.listing(connection, limit=100, is_open=True))


@contextmanager
def _opened(home: str, clock: LaterClock) -> Iterator[Library]:
    _log_to(Path(home))
    with open_library(home, seams=Seams(clock=clock), **SETTINGS) as library:
        yield library


def _log_to(home: Path) -> None:
    """Redirect stderr to a log file next to the library."""
    home.mkdir(parents=True, exist_ok=True)
    file = os.open(home.with_name(f"{home.name}.{LOG}"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(file, 2)
    os.close(file)


if __name__ == "__main__":
    builtin_sources()
    for module in _IMPORTED:
        import_module(module)
    serve(
        {
            work.__name__: work
            for work in (
                run_steps,
                dump_state,
                check_invariants,
                lock_database,
                submit_commands,
                open_commands,
            )
        }
    )
