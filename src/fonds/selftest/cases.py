"""The cases of the selftest: random kills, every durable operation, and other faults.

A lineage is one library whose processes are killed at random and continued by the next process.
The exhaustive cases kill or fail a process at each durable operation of a small library.
A fault must end in an error message or be handled, and must leave no trace after the next run.
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
from fonds.selftest.faults import How, InjectedFault
from fonds.selftest.report import SMALL, WHOLE, Case, SelftestReport, describe
from fonds.selftest.scenario import OVERRIDES, SETTINGS, STEPS, steps_from
from fonds.selftest.scratch import ProcessRun, ScratchLibrary

MAX_KILLS: Final = 3
"""Kills in one step: after five killed workers, a queued item is given up."""
MAX_KILLS_BY_STEP: Final = {"feeds": 9}
"""Steps with more processes to kill."""
MAX_KILL_DELAY: Final = 0.004
"""Seconds after the start of an operation within which a process is killed."""


def lineages(kills: int, seed: int, operations: Mapping[str, int]) -> Iterator[Case]:
    """Lineages with this number of kills in total; each depends on its own seed only."""
    for lineage_seed in count(seed):
        faults = plan(random.Random(lineage_seed), operations)[:kills]  # noqa: S311 — no secret
        kills -= len(faults)
        yield Case(
            part="chaos",
            name=f"lineage {lineage_seed}",
            corpus=WHOLE,
            run=partial(_run_lineage, faults=faults),
            replay=f"--chaos {len(faults)} --seed {lineage_seed}",
        )
        if not kills:
            return


def plan(rng: random.Random, operations: Mapping[str, int]) -> list[InjectedFault]:
    """Choose the operations at which a lineage is killed."""
    faults = []
    for step, number in operations.items():
        kills = rng.randint(0, min(MAX_KILLS_BY_STEP.get(step, MAX_KILLS), number))
        for _ in range(kills):
            # Each process continues after the previous one, so that kills cover the whole step.
            at = rng.randint(1, number // kills)
            delay = rng.choice([None, rng.uniform(0, MAX_KILL_DELAY)])
            faults.append(InjectedFault(step=step, at=at, delay=delay))
    return faults


def _run_lineage(
    scratch: ScratchLibrary, report: SelftestReport, *, faults: Sequence[InjectedFault]
) -> Iterator[str]:
    locations: list[tuple[str, str]] = []
    steps, remaining = list(STEPS), list(faults)
    while True:
        # The next remaining fault of each step.
        due = {fault.step: fault for fault in reversed(remaining)}
        run = scratch.run_steps(due.values(), steps=steps)
        if not run.is_killed:
            break
        scratch.history.append(describe(run))
        locations.append(run.location)
        injected = due[run.location[0]]
        report.count("chaos", *run.location, "before" if injected.delay is None else "during")
        remaining.remove(injected)
        remaining = [fault for fault in remaining if fault.step not in run.ended]
        steps = run.remaining(steps)
    problems = list(scratch.violations(run))
    for location in locations:
        report.count("chaos", *location, "violations" if problems else "resumed")
    yield from problems


_COLUMN: Final[Mapping[How, str]] = {"kill": "killed", "fail": "failed"}


def all_operations(
    operations: Mapping[str, int], *, sample: int | None = None, seed: int = 0
) -> list[Case]:
    """A kill and a failure at each durable operation, or at a random sample."""
    locations = [(step, at) for step, number in operations.items() for at in range(1, number + 1)]
    if sample is not None and sample < len(locations):
        locations = sorted(random.Random(seed).sample(locations, sample))  # noqa: S311 — no secret
    return [_case(how, step, at) for step, at in locations for how in _COLUMN]


def _case(how: How, step: str, at: int) -> Case:
    name = f"{how} {step} {at}"
    fault = InjectedFault(step=step, at=at, how=how, errno=errno.EIO)
    return Case(
        part="exhaustive",
        name=name,
        corpus=SMALL,
        run=partial(_run_exhaustive, fault=fault),
        replay=f"--exhaustive --only '{name}'",
    )


def _run_exhaustive(
    scratch: ScratchLibrary, report: SelftestReport, *, fault: InjectedFault
) -> Iterator[str]:
    scratch.begin_before(fault.step)
    run = scratch.run_steps([fault], steps=steps_from(fault.step))
    scratch.history.append(describe(run))
    # Concurrent operations vary in order and number, so the fault may not occur.
    location = run.location if run.injected else (fault.step, "not reached")
    report.count("exhaustive", *location, _COLUMN[fault.how])
    problems = [*scratch.problems(run), *scratch.recovered()]
    report.count("exhaustive", *location, "violations" if problems else "resumed")
    yield from problems


FAILURE_SECONDS: Final = 4.0
"""How long writes fail; a worker retries meanwhile."""
LOCK_SECONDS: Final = 15.0
"""How long another process locks the database; SQLite waits for ten seconds."""
TIMEOUT_SECONDS: Final = 300.0
"""How long two schedulers may take for their commands."""
FILE_LIMITS: Final = (64 << 10, 1 << 20)
"""The range of the file size limit, in bytes."""

Fault = Callable[[ScratchLibrary, random.Random], ProcessRun]
"""Runs a process on a library with a fault; returns its outcome."""


def all_faults(seed: int, operations: Mapping[str, int], *, rounds: int) -> list[Case]:
    """A case of each fault, and several of those that can occur anywhere."""
    repeated: dict[str, Fault] = {
        "disk full": partial(_failing, operations, errno.ENOSPC, lasting=FAILURE_SECONDS),
        "file too large": _limited_file_size,
        "fsync error": partial(_failing, operations, errno.EIO, lasting=0.0),
        "read-only": partial(_failing, operations, errno.EROFS, lasting=FAILURE_SECONDS),
        "clock jumps back": partial(_jumping, operations),
        "torn write": partial(_torn, operations),
    }
    single: dict[str, Fault] = {
        "database locked": _locked,
        "two processes": _two_processes,
        "no permission": partial(_forbidden, operations),
    }
    cases = [_fault_case(name, fault, seed, SMALL) for name, fault in single.items()]
    cases += [_fault_case("two schedulers", _two_schedulers, seed, WHOLE)]
    for name, fault in repeated.items():
        cases += [_fault_case(name, fault, seed + number, SMALL) for number in range(rounds)]
    return cases


def _fault_case(name: str, fault: Fault, seed: int, corpus: str) -> Case:
    return Case(
        part="faults",
        name=f"{name} {seed}",
        corpus=corpus,
        run=partial(_run_fault, name=name, fault=fault, seed=seed),
        replay=f"--faults --seed {seed} --only '{name} {seed}'",
    )


class CannotError(Exception):
    """A fault that cannot be simulated on this machine."""


def _run_fault(
    scratch: ScratchLibrary, report: SelftestReport, *, name: str, fault: Fault, seed: int
) -> Iterator[str]:
    try:
        run = fault(scratch, random.Random(f"{name} {seed}"))  # noqa: S311 — no secret
    except CannotError as error:
        report.skip(name, str(error))
        return
    scratch.history.append(describe(run))
    report.count("faults", name, "", "tried")
    if run.errors:
        report.count("faults", name, "", "refused")
    problems = [*scratch.problems(run), *scratch.recovered()]
    report.count("faults", name, "", "violations" if problems else "recovered")
    yield from problems


# One process ------------------------------------------------------------------------------


def _random_location(operations: Mapping[str, int], rng: random.Random) -> tuple[str, int]:
    """A random operation of a random step."""
    step = rng.choice([step for step, number in operations.items() if number])
    return step, rng.randint(1, operations[step])


def _failing(
    operations: Mapping[str, int],
    number: int,
    scratch: ScratchLibrary,
    rng: random.Random,
    *,
    lasting: float,
) -> ProcessRun:
    step, at = _random_location(operations, rng)
    return scratch.run_steps(
        [InjectedFault(step=step, at=at, how="fail", errno=number, lasting=lasting)]
    )


def _limited_file_size(scratch: ScratchLibrary, rng: random.Random) -> ProcessRun:
    """Limit the size of files with setrlimit."""
    return scratch.run_steps(max_file_bytes=rng.randint(*FILE_LIMITS))


def _jumping(
    operations: Mapping[str, int], scratch: ScratchLibrary, rng: random.Random
) -> ProcessRun:
    step, at = _random_location(operations, rng)
    return scratch.run_steps([InjectedFault(step=step, at=at, how="jump")])


def _torn(operations: Mapping[str, int], scratch: ScratchLibrary, rng: random.Random) -> ProcessRun:
    """Kill a process while it writes, and truncate data that it had not synced."""
    step, at = _random_location(operations, rng)
    run = scratch.run_steps([InjectedFault(step=step, at=at, delay=rng.uniform(0, 0.004))])
    if run.injected is not None and run.injected["operation"] == "commit":
        _truncate(scratch.home / "fonds.db-wal", run.injected["wal"], rng)
    for folder in (scratch.home / "tmp", scratch.home / "blobs" / ".tmp"):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                _truncate(path, 0, rng)
    return run


def _truncate(path: Path, after: int, rng: random.Random) -> None:
    """Truncate a file to a random size of at least `after`."""
    if path.exists() and (size := path.stat().st_size) > after:
        os.truncate(path, rng.randint(after, size))


def _forbidden(
    operations: Mapping[str, int], scratch: ScratchLibrary, rng: random.Random
) -> ProcessRun:
    """Make the library read-only after a kill."""
    if os.geteuid() == 0:
        raise CannotError("root may write everywhere; run it as another user")
    step, at = _random_location(operations, rng)
    scratch.history.append(describe(scratch.run_steps([InjectedFault(step=step, at=at)])))
    with _read_only(scratch.home):
        return scratch.run_steps()


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


def _locked(scratch: ScratchLibrary, rng: random.Random) -> ProcessRun:
    """Lock the database for longer than other processes wait."""
    pid = scratch.start()
    time.sleep(rng.uniform(0.3, 1.0))
    ready = scratch.folder / "locked"
    holder = scratch.fork_server.start(
        child.lock_database, home=str(scratch.home), ready=str(ready), seconds=LOCK_SECONDS
    )
    run = scratch.wait(pid)
    if scratch.fork_server.wait(holder):
        raise CannotError("the database could not be locked")
    return run


def _two_processes(scratch: ScratchLibrary, _rng: random.Random) -> ProcessRun:
    """Run all steps in two processes at the same time."""
    first_pid = scratch.start()
    first = scratch.run_count
    second_pid = scratch.start(after=0)
    runs = [scratch.wait(first_pid, first), scratch.wait(second_pid)]
    scratch.history += [describe(run) for run in runs]
    # Each source and queue is processed by one of them; the other may report that it is busy.
    return next((run for run in runs if run.is_crashed), max(runs, key=lambda run: run.code))


def _two_schedulers(scratch: ScratchLibrary, _rng: random.Random) -> ProcessRun:
    """Run two real schedulers on the same commands."""
    code = scratch.fork_server.run(
        child.submit_commands, home=str(scratch.home), corpus=scratch.corpus
    )
    if code:
        raise StoreError("the commands could not be submitted")
    values = {**dict.fromkeys(SETTINGS, ""), **OVERRIDES, "hosts": json.dumps(dict(scratch.hosts))}
    environment = {f"FONDS_{name.upper()}": _as_text(value) for name, value in values.items()}
    command = [sys.executable, "-m", "fonds", "--home", str(scratch.home), "scheduler"]
    with (scratch.folder / "schedulers.log").open("wb") as log:
        schedulers = [
            subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)  # noqa: S603 — a fixed command
            for _ in range(2)
        ]
        try:
            seconds = _wait_until_done(scratch, schedulers)
        finally:
            for process in schedulers:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(TIMEOUT_SECONDS) for process in schedulers]
    scratch.history.append(f"two schedulers worked for {seconds:.1f} s and ended with {codes}")
    return ProcessRun(code=child.FAILED, ended={}, injected=None, errors=[])


def _as_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _wait_until_done(scratch: ScratchLibrary, schedulers: list[subprocess.Popen[bytes]]) -> float:
    started = time.monotonic()
    while time.monotonic() < started + TIMEOUT_SECONDS:
        if any(process.poll() is not None for process in schedulers):
            raise StoreError(f"a scheduler ended; see {scratch.folder}/schedulers.log")
        if not scratch.fork_server.run(child.open_commands, home=str(scratch.home)):
            return time.monotonic() - started
        time.sleep(0.5)
    raise StoreError(f"the commands are not finished after {TIMEOUT_SECONDS:.0f} seconds")
