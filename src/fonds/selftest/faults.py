"""Faults beyond kills: each ends in an honest error or is got over, and is forgotten afterwards."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from fonds.errors import StoreError
from fonds.selftest import child
from fonds.selftest.case import SMALL, WHOLE, Case, told
from fonds.selftest.intrusion import Strike
from fonds.selftest.place import Life, Place
from fonds.selftest.report import Report
from fonds.selftest.story import CHOSEN, SETTINGS

LASTS: Final = 4.0
"""Seconds for which nothing can be written; a worker waits until it can again."""
LOCKED: Final = 15.0
"""Seconds for which another process has the database; SQLite waits for ten."""
PATIENCE: Final = 300.0
"""Seconds that two schedulers get for what they are asked for."""
SCARCE: Final = (64 << 10, 1 << 20)
"""Bytes that a file may have on a disk that is soon full."""

Fault = Callable[[Place, random.Random], Life]
"""Lets something happen to a library; gives what became of the process it happened to."""


def all_faults(seed: int, operations: Mapping[str, int], *, rounds: int) -> list[Case]:
    """Each fault; those that may hit anywhere several times."""
    often: dict[str, Fault] = {
        "disk full": partial(_failing, operations, errno.ENOSPC, lasting=LASTS),
        "file too large": _scarce,
        "fsync error": partial(_failing, operations, errno.EIO, lasting=0.0),
        "read-only": partial(_failing, operations, errno.EROFS, lasting=LASTS),
        "clock jumps back": partial(_jumping, operations),
        "torn write": partial(_torn, operations),
    }
    once: dict[str, Fault] = {
        "database locked": _locked,
        "two processes": _two_processes,
        "no permission": partial(_forbidden, operations),
    }
    cases = [_fault_case(name, fault, seed, SMALL) for name, fault in once.items()]
    cases += [_fault_case("two schedulers", _two_schedulers, seed, WHOLE)]
    for name, fault in often.items():
        cases += [_fault_case(name, fault, seed + number, SMALL) for number in range(rounds)]
    return cases


def _fault_case(name: str, fault: Fault, seed: int, corpus: str) -> Case:
    return Case(
        part="faults",
        name=f"{name} {seed}",
        corpus=corpus,
        run=partial(_suffer, name=name, fault=fault, seed=seed),
        replay=f"--faults --seed {seed} --only '{name} {seed}'",
    )


class CannotError(Exception):
    """A fault that cannot be made here."""


def _suffer(place: Place, report: Report, *, name: str, fault: Fault, seed: int) -> Iterator[str]:
    try:
        life = fault(place, random.Random(f"{name} {seed}"))  # noqa: S311 — no secret
    except CannotError as why:
        report.skip(name, str(why))
        return
    place.history.append(told(life))
    report.count("faults", name, "", "tried")
    if life.trouble:
        report.count("faults", name, "", "refused")
    wrong = [*place.problems(life), *place.recovered()]
    report.count("faults", name, "", "violations" if wrong else "recovered")
    yield from wrong


# One process ------------------------------------------------------------------------------


def _anywhere(operations: Mapping[str, int], chance: random.Random) -> tuple[str, int]:
    """A step, and an operation of it."""
    step = chance.choice([step for step, number in operations.items() if number])
    return step, chance.randint(1, operations[step])


def _failing(
    operations: Mapping[str, int],
    number: int,
    place: Place,
    chance: random.Random,
    *,
    lasting: float,
) -> Life:
    step, at = _anywhere(operations, chance)
    return place.live([Strike(step=step, at=at, how="fail", errno=number, lasting=lasting)])


def _scarce(place: Place, chance: random.Random) -> Life:
    """The kernel itself refuses to let a file grow."""
    return place.live(room=chance.randint(*SCARCE))


def _jumping(operations: Mapping[str, int], place: Place, chance: random.Random) -> Life:
    step, at = _anywhere(operations, chance)
    return place.live([Strike(step=step, at=at, how="jump")])


def _torn(operations: Mapping[str, int], place: Place, chance: random.Random) -> Life:
    """Kill a process while it writes, and cut off what it had not been told is safe."""
    step, at = _anywhere(operations, chance)
    life = place.live([Strike(step=step, at=at, delay=chance.uniform(0, 0.004))])
    if life.struck is not None and life.struck["operation"] == "commit":
        _cut(place.home / "fonds.db-wal", life.struck["wal"], chance)
    for folder in (place.home / "tmp", place.home / "blobs" / ".tmp"):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                _cut(path, 0, chance)
    return life


def _cut(path: Path, after: int, chance: random.Random) -> None:
    """Keep of a file only so much as was there, and any part of what came after it."""
    if path.exists() and (size := path.stat().st_size) > after:
        os.truncate(path, chance.randint(after, size))


def _forbidden(operations: Mapping[str, int], place: Place, chance: random.Random) -> Life:
    """Take away the right to write, in the midst of the work."""
    if os.geteuid() == 0:
        raise CannotError("the superuser may write everywhere; be somebody else")
    step, at = _anywhere(operations, chance)
    place.history.append(told(place.live([Strike(step=step, at=at)])))
    with _read_only(place.home):
        return place.live()


@contextmanager
def _read_only(home: Path) -> Iterator[None]:
    paths = [home, *home.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in reversed(paths):
        path.chmod(modes[path] & 0o7555)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


# Several ----------------------------------------------------------------------------------


def _locked(place: Place, chance: random.Random) -> Life:
    """Another process is the one writer of the database for longer than anybody waits."""
    working = place.start()
    time.sleep(chance.uniform(0.3, 1.0))
    ready = place.folder / "held"
    holder = place.nursery.start(child.hold, home=str(place.home), ready=str(ready), seconds=LOCKED)
    life = place.wait(working)
    if place.nursery.wait(holder):
        raise CannotError("the database could not be locked")
    return life


def _two_processes(place: Place, _chance: random.Random) -> Life:
    """Two at once do all there is to do."""
    one = place.start()
    first = place.lives
    other = place.start(after=0)
    lives = [place.wait(one, first), place.wait(other)]
    place.history += [told(life) for life in lives]
    # Each source, and each thing that waits, is done by one of them; the other may say so.
    return next((life for life in lives if life.is_crashed), max(lives, key=lambda life: life.code))


def _two_schedulers(place: Place, _chance: random.Random) -> Life:
    """Two real schedulers share what operators ask for."""
    asked = place.nursery.run(child.ask, home=str(place.home), corpus=place.corpus)
    if asked:
        raise StoreError("the commands could not be asked for")
    chosen = {**dict.fromkeys(SETTINGS, ""), **CHOSEN, "hosts": json.dumps(dict(place.hosts))}
    told = {f"FONDS_{name.upper()}": _as_text(value) for name, value in chosen.items()}
    command = [sys.executable, "-m", "fonds", "--home", str(place.home), "scheduler"]
    with (place.folder / "schedulers.log").open("wb") as log:
        running = [
            subprocess.Popen(command, env={**os.environ, **told}, stdout=log, stderr=log)  # noqa: S603 — our own command
            for _ in range(2)
        ]
        try:
            waited = _wait_until_done(place, running)
        finally:
            for process in running:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(PATIENCE) for process in running]
    place.history.append(f"two schedulers worked for {waited:.1f} s and ended with {codes}")
    return Life(code=child.TROUBLE, ended={}, struck=None, trouble=[])


def _as_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _wait_until_done(place: Place, running: list[subprocess.Popen[bytes]]) -> float:
    began = time.monotonic()
    while time.monotonic() < began + PATIENCE:
        if any(process.poll() is not None for process in running):
            raise StoreError(f"a scheduler ended; see {place.folder}/schedulers.log")
        if not place.nursery.run(child.open_commands, home=str(place.home)):
            return time.monotonic() - began
        time.sleep(0.5)
    raise StoreError(f"what was asked for is not done after {PATIENCE:.0f} seconds")
