"""Killed at random, resumed, killed again: in the end as if nothing had happened.

A lineage is one library: in each of its steps a process is killed some times, and the next goes on.

Every durable operation of a small library: once killed at it, once failed by it.

Faults beyond kills: each ends in an honest error or is got over, and is forgotten afterwards.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from fonds.errors import StoreError
from fonds.selftest import child
from fonds.selftest.faults import How, Strike
from fonds.selftest.report import SMALL, WHOLE, Case, SelftestReport, told
from fonds.selftest.scenario import CHOSEN, SETTINGS, STEPS, steps_from
from fonds.selftest.scratch import Life, ScratchLibrary

MOST: Final = 3
"""Kills in one step: what is queued is given up when it has cost five workers their lives."""
MOST_OFTEN: Final = {"feeds": 9}
"""Steps that have more to kill."""
MIDST: Final = 0.004
"""Seconds within which a process is killed that has begun with an operation."""


def lineages(kills: int, seed: int, operations: Mapping[str, int]) -> Iterator[Case]:
    """As many as it takes for so many kills; each follows from its own seed alone."""
    for each in count(seed):
        strikes = plan(random.Random(each), operations)[:kills]  # noqa: S311 — no secret
        kills -= len(strikes)
        yield Case(
            part="chaos",
            name=f"lineage {each}",
            corpus=WHOLE,
            run=partial(_live_randomly, strikes=strikes),
            replay=f"--chaos {len(strikes)} --seed {each}",
        )
        if not kills:
            return


def plan(chance: random.Random, operations: Mapping[str, int]) -> list[Strike]:
    """Where a lineage is to be killed, step by step."""
    strikes = []
    for step, number in operations.items():
        kills = chance.randint(0, min(MOST_OFTEN.get(step, MOST), number))
        for _ in range(kills):
            # Each goes on where the one before it ended, so that all of the step is in danger.
            at = chance.randint(1, number // kills)
            delay = chance.choice([None, chance.uniform(0, MIDST)])
            strikes.append(Strike(step=step, at=at, delay=delay))
    return strikes


def _live_randomly(
    place: ScratchLibrary, report: SelftestReport, *, strikes: Sequence[Strike]
) -> Iterator[str]:
    points: list[tuple[str, str]] = []
    steps, left = list(STEPS), list(strikes)
    while True:
        # Of each step the next that is left for it.
        due = {strike.step: strike for strike in reversed(left)}
        life = place.live(due.values(), steps=steps)
        if not life.is_killed:
            break
        place.history.append(told(life))
        points.append(life.point)
        struck = due[life.point[0]]
        report.count("chaos", *life.point, "before" if struck.delay is None else "during")
        left.remove(struck)
        left = [strike for strike in left if strike.step not in life.ended]
        steps = life.left_of(steps)
    wrong = list(place.violations(life))
    for point in points:
        report.count("chaos", *point, "violations" if wrong else "resumed")
    yield from wrong


_WAYS: Final[Mapping[How, str]] = {"kill": "killed", "fail": "failed"}


def every_operation(
    operations: Mapping[str, int], *, sample: int | None = None, seed: int = 0
) -> list[Case]:
    """Each of them, in both ways; or some, by chance."""
    points = [(step, at) for step, number in operations.items() for at in range(1, number + 1)]
    if sample is not None and sample < len(points):
        points = sorted(random.Random(seed).sample(points, sample))  # noqa: S311 — no secret
    return [_case(how, step, at) for step, at in points for how in _WAYS]


def _case(how: How, step: str, at: int) -> Case:
    name = f"{how} {step} {at}"
    strike = Strike(step=step, at=at, how=how, errno=errno.EIO)
    return Case(
        part="exhaustive",
        name=name,
        corpus=SMALL,
        run=partial(_live, strike=strike),
        replay=f"--exhaustive --only '{name}'",
    )


def _live(place: ScratchLibrary, report: SelftestReport, *, strike: Strike) -> Iterator[str]:
    place.begin_before(strike.step)
    life = place.live([strike], steps=steps_from(strike.step))
    place.history.append(told(life))
    # What is done side by side comes in another order now and then, and may come to less.
    point = life.point if life.struck else (strike.step, "not reached")
    report.count("exhaustive", *point, _WAYS[strike.how])
    wrong = [*place.problems(life), *place.recovered()]
    report.count("exhaustive", *point, "violations" if wrong else "resumed")
    yield from wrong


LASTS: Final = 4.0
"""Seconds for which nothing can be written; a worker waits until it can again."""
LOCKED: Final = 15.0
"""Seconds for which another process has the database; SQLite waits for ten."""
PATIENCE: Final = 300.0
"""Seconds that two schedulers get for what they are asked for."""
SCARCE: Final = (64 << 10, 1 << 20)
"""Bytes that a file may have on a disk that is soon full."""

Fault = Callable[[ScratchLibrary, random.Random], Life]
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


def _suffer(
    place: ScratchLibrary, report: SelftestReport, *, name: str, fault: Fault, seed: int
) -> Iterator[str]:
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
    place: ScratchLibrary,
    chance: random.Random,
    *,
    lasting: float,
) -> Life:
    step, at = _anywhere(operations, chance)
    return place.live([Strike(step=step, at=at, how="fail", errno=number, lasting=lasting)])


def _scarce(place: ScratchLibrary, chance: random.Random) -> Life:
    """The kernel itself refuses to let a file grow."""
    return place.live(room=chance.randint(*SCARCE))


def _jumping(operations: Mapping[str, int], place: ScratchLibrary, chance: random.Random) -> Life:
    step, at = _anywhere(operations, chance)
    return place.live([Strike(step=step, at=at, how="jump")])


def _torn(operations: Mapping[str, int], place: ScratchLibrary, chance: random.Random) -> Life:
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


def _forbidden(operations: Mapping[str, int], place: ScratchLibrary, chance: random.Random) -> Life:
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


def _locked(place: ScratchLibrary, chance: random.Random) -> Life:
    """Another process is the one writer of the database for longer than anybody waits."""
    working = place.start()
    time.sleep(chance.uniform(0.3, 1.0))
    ready = place.folder / "held"
    holder = place.nursery.start(child.hold, home=str(place.home), ready=str(ready), seconds=LOCKED)
    life = place.wait(working)
    if place.nursery.wait(holder):
        raise CannotError("the database could not be locked")
    return life


def _two_processes(place: ScratchLibrary, _chance: random.Random) -> Life:
    """Two at once do all there is to do."""
    one = place.start()
    first = place.lives
    other = place.start(after=0)
    lives = [place.wait(one, first), place.wait(other)]
    place.history += [told(life) for life in lives]
    # Each source, and each thing that waits, is done by one of them; the other may say so.
    return next((life for life in lives if life.is_crashed), max(lives, key=lambda life: life.code))


def _two_schedulers(place: ScratchLibrary, _chance: random.Random) -> Life:
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


def _wait_until_done(place: ScratchLibrary, running: list[subprocess.Popen[bytes]]) -> float:
    began = time.monotonic()
    while time.monotonic() < began + PATIENCE:
        if any(process.poll() is not None for process in running):
            raise StoreError(f"a scheduler ended; see {place.folder}/schedulers.log")
        if not place.nursery.run(child.open_commands, home=str(place.home)):
            return time.monotonic() - began
        time.sleep(0.5)
    raise StoreError(f"what was asked for is not done after {PATIENCE:.0f} seconds")
