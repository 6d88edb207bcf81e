"""The processes that are killed, and those that look at what they left; see nursery.py.

Run as a program, this module has imported all that they need, and forks.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Final

from sqlalchemy.exc import SQLAlchemyError

from fonds.demo.bundle import FIRST_DAY, LAST_DAY
from fonds.errors import FondsError
from fonds.library import Library, open_library
from fonds.runs import commands
from fonds.seams import Seams
from fonds.selftest.intrusion import Intruder, JumpingClock, Notes, Strike
from fonds.selftest.legality import problems
from fonds.selftest.nursery import raise_children
from fonds.selftest.state import state_of
from fonds.selftest.story import OPENING, SETTINGS, STEPS, USER, Corpus, corpus_named
from fonds.sources.registry import builtin_sources
from fonds.stores.database import open_database
from fonds.testing import LaterClock
from fonds.upkeep.findings import Patient
from fonds.upkeep.prune import prune

TROUBLE: Final = 3
"""The exit code of a process that could not do all, and said so."""
PATIENCE: Final = 300
"""Seconds after which a process counts as one that hangs, and is ended by SIGALRM."""
LOG: Final = "log"
FOREVER: Final = timedelta(days=36_500)

# What parts of a library import late, which every fork would have to do anew.
_IMPORTED: Final = (
    "fonds.codes.process",
    "fonds.embed.current",
    "fonds.embed.hashing",
    "fonds.embed.overlap",
    "fonds.normalize.markdown_file",
    "fonds.normalize.pdf",
    "fonds.runs.citing",
    "fonds.runs.normalization",
    "fonds.search.meaning",
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
    clock, noted = JumpingClock(seconds=later), Notes(Path(notes))
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
        list(prune(Patient.of(library), older_than=FOREVER, apply=True))
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
            commands.ask(connection, "backfill", feed, days, requested_by=USER, now=now)


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
