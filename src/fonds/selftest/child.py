"""The processes that are killed, and those that look at what they left; see nursery.py.

Run as a program, this module has imported all that they need, and forks.

Processes that may be killed: forks of one that has imported all they need.

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
from types import TracebackType
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
from fonds.selftest.faults import FaultLog, Intruder, JumpingClock, Strike
from fonds.selftest.scenario import OPENING, SETTINGS, STEPS, USER, Corpus, corpus_named
from fonds.selftest.state import problems, state_of
from fonds.sources.registry import builtin_sources
from fonds.stores.database import open_database
from fonds.testing import LaterClock

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


TROUBLE: Final = 3
"""The exit code of a process that could not do all, and said so."""
PATIENCE: Final = 300
"""Seconds after which a process counts as one that hangs, and is ended by SIGALRM."""
LOG: Final = "log"
FOREVER: Final = timedelta(days=36_500)

# What parts of a library import late, which every fork would have to do anew.
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
    "fonds.search.retrieve",
    "fonds.shards.lookup",
    "fonds.stores.quantized",
    "numpy.ma",
)


def live(
    *,
    home: str,
    hosts: Mapping[str, str],
    corpus: str,
    notes: str,
    steps: Sequence[str],
    later: float = 0.0,
    strikes: Sequence[Mapping[str, Any]] = (),
    room: int | None = None,
) -> int:
    """Open the library and do these steps, as far as one is let; what was done is noted.

    `room` is how large a file may become, in bytes.
    """
    _log_to(Path(home))
    signal.alarm(PATIENCE)
    if room is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    clock, noted = JumpingClock(seconds=later), FaultLog(Path(notes))
    plan = [Strike(**strike) for strike in strikes]
    intruder = Intruder(plan, noted, Path(home) / "fonds.db-wal", clock)
    seams = Seams(clock=clock, durable=intruder)
    opening = partial(open_library, home, seams=seams, **{**SETTINGS, "hosts": hosts})
    try:
        for name, trouble in _steps(opening, intruder, corpus_named(corpus), steps):
            if trouble:
                noted.add(trouble=trouble)
                return TROUBLE
            noted.add(ended=name, operations=intruder.count)
    except (FondsError, SQLAlchemyError, OSError) as error:
        noted.add(trouble=[f"{type(error).__name__}: {str(error).splitlines()[0]}"])
        return TROUBLE
    return 0


def _steps(
    opening: Callable[[], AbstractContextManager[Library]],
    intruder: Intruder,
    corpus: Corpus,
    names: Sequence[str],
) -> Iterator[tuple[str, list[str]]]:
    """Each step as it ends, with what it could not do."""
    intruder.enter(OPENING)
    with opening() as library:
        yield OPENING, []
        for name in names:
            intruder.enter(name)
            yield name, list(STEPS[name](library, corpus))


def look(*, home: str, to: str, later: float) -> None:
    """Tidy a library up, and write down what is in it."""
    # Late enough for what killed processes left to count as left.
    with _opened(home, LaterClock(seconds=later, days=2)) as library:
        list(prune(MaintenanceTarget.of(library), older_than=FOREVER, apply=True))
        Path(to).write_text(json.dumps(state_of(library)))


def check(*, home: str, to: str, later: float, is_done: bool) -> None:
    """Write down what is wrong with a library, whoever was at work on it."""
    with _opened(home, LaterClock(seconds=later)) as library:
        Path(to).write_text(json.dumps(list(problems(library, is_done=is_done))))


def hold(*, home: str, ready: str, seconds: float) -> None:
    """Be the one writer of the database for so long."""
    database = open_database(f"sqlite:///{home}/fonds.db", seams=Seams())
    with database.write():
        Path(ready).touch()
        time.sleep(seconds)


def ask(*, home: str, corpus: str) -> None:
    """Ask for all feeds, as an operator would."""
    days = {"since": FIRST_DAY.isoformat(), "until": LAST_DAY.isoformat()}
    with open_library(home, **SETTINGS) as library, library.database.write() as connection:
        now = library.seams.clock.now()
        for feed in chain(*corpus_named(corpus).feeds):
            commands.ask(
                connection,
                "backfill",
                feed,
                days,
                registry=library.sources,
                requested_by=USER,
                now=now,
            )


def open_commands(*, home: str) -> int:
    """How many of them are not done yet."""
    with open_library(home, **SETTINGS) as library, library.database.read() as connection:
        return len(commands.listing(connection, limit=100, is_open=True))


@contextmanager
def _opened(home: str, clock: LaterClock) -> Iterator[Library]:
    _log_to(Path(home))
    with open_library(home, seams=Seams(clock=clock), **SETTINGS) as library:
        yield library


def _log_to(home: Path) -> None:
    """What a process complains about stands beside its library."""
    home.mkdir(parents=True, exist_ok=True)
    file = os.open(home.with_name(f"{home.name}.{LOG}"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(file, 2)
    os.close(file)


if __name__ == "__main__":
    builtin_sources()
    for module in _IMPORTED:
        import_module(module)
    raise_children({work.__name__: work for work in (live, look, check, hold, ask, open_commands)})
