"""A scratch library and the processes that run on it, one after another."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from fonds.errors import StoreError
from fonds.selftest import child
from fonds.selftest.child import ForkServer
from fonds.selftest.faults import FaultLog, InjectedFault
from fonds.selftest.scenario import STEPS
from fonds.selftest.state import State, differences

LEASE_SECONDS: Final = 20 * 60.0
"""Time after which all leases of a killed process have expired."""
_DEFERRED: Final = {"index"}
"""Parts that a run may leave to the next one: see `fonds.runs.hosts`."""


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """The state of a library without faults."""

    state: State
    operations: Mapping[str, int]
    """The number of durable operations by step."""
    before: Mapping[str, Path] = field(default_factory=dict)
    """Copies of the library before each step."""


@dataclass(frozen=True, kw_only=True)
class ProcessRun:
    """The outcome of one process."""

    code: int
    """The exit code; negative for a signal."""
    ended: Mapping[str, int]
    """Finished steps with the number of their durable operations."""
    injected: Mapping[str, Any] | None
    """The injected fault and its operation, if it was reached."""
    errors: Sequence[str]
    """The errors that it reported."""

    @property
    def is_killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.code == -signal.SIGKILL

    @property
    def is_crashed(self) -> bool:
        """Whether it ended with an unexpected code."""
        return self.code not in (0, child.FAILED, -signal.SIGKILL)

    @property
    def location(self) -> tuple[str, str]:
        """Step and kind of operation of the fault."""
        assert self.injected is not None
        return self.injected["injected"]["step"], self.injected["operation"]

    def remaining(self, steps: Iterable[str]) -> list[str]:
        """The steps that it did not finish."""
        return [step for step in steps if step not in self.ended]


@dataclass
class ScratchLibrary:
    """A library and the undisturbed one that it is compared with."""

    folder: Path
    fork_server: ForkServer
    hosts: Mapping[str, str]
    corpus: str
    later: float
    """The offset of the clock of the last process, in seconds."""
    undisturbed: Undisturbed
    history: list[str] = field(default_factory=list)
    """A line for each process."""
    run_count: int = field(default=0, init=False)

    @property
    def home(self) -> Path:
        """The home folder of the library."""
        return self.folder / "library"

    def copied(self, name: str) -> Path:
        """Copy the library while no process uses it."""
        copy = self.folder / f"before-{name}"
        self.home.mkdir(exist_ok=True)
        return Path(shutil.copytree(self.home, copy))

    def begin_before(self, step: str) -> None:
        """Start from a copy of the undisturbed library before a step."""
        shutil.copytree(self.undisturbed.before[step], self.home)

    def options(self, *, after: float = LEASE_SECONDS) -> dict[str, Any]:
        """Options of a process whose clock is this many seconds after the previous one."""
        self.run_count += 1
        self.later += after
        return {"home": str(self.home), "later": self.later}

    def start(
        self,
        faults: Iterable[InjectedFault] = (),
        *,
        steps: Iterable[str] = STEPS,
        after: float = LEASE_SECONDS,
        **more: Any,
    ) -> int:
        """Start a process that runs steps on the library; returns its id."""
        return self.fork_server.start(
            child.run_steps,
            **self.options(after=after),
            hosts=dict(self.hosts),
            corpus=self.corpus,
            notes=str(self._notes(self.run_count)),
            steps=list(steps),
            faults=[asdict(fault) for fault in faults],
            **more,
        )

    def wait(self, pid: int, number: int | None = None) -> ProcessRun:
        """Wait for a process; `number` is its number, if it is not the last."""
        code = self.fork_server.wait(pid)
        notes = FaultLog(self._notes(number or self.run_count)).read()
        return ProcessRun(
            code=code,
            ended={note["ended"]: note["operations"] for note in notes if "ended" in note},
            injected=next((note for note in notes if "injected" in note), None),
            errors=[line for note in notes for line in note.get("errors", ())],
        )

    def run_steps(self, faults: Iterable[InjectedFault] = (), **more: Any) -> ProcessRun:
        """Run a process to its end, with the options of `start`."""
        return self.wait(self.start(faults, **more))

    def state(self) -> State:
        """The state of the library."""
        state: State = self._read(child.dump_state)
        return state

    def problems(self, run: ProcessRun) -> Iterator[str]:
        """Violations of invariants after a process, whatever its outcome."""
        if run.is_crashed:
            yield f"a process ended with code {run.code}; see {self.home}.{child.LOG}"
        yield from self._read(child.check_invariants, is_done=run.code == 0)
        if run.code == 0:
            # A process that reports success must have finished everything.
            yield from (
                f"reported as done, but {difference}" for difference in self._differences(_DEFERRED)
            )

    def recovered(self) -> Iterator[str]:
        """Run a process without faults, and compare the result."""
        yield from self.violations(self.run_steps())

    def violations(self, run: ProcessRun) -> Iterator[str]:
        """Errors and differences after a process without faults."""
        if run.code:
            yield f"a run without faults ended with code {run.code}: {'; '.join(run.errors)}"
        else:
            yield from self._differences()

    def _differences(self, ignored: Iterable[str] = ()) -> Iterator[str]:
        state = self.state()
        parts = (state.keys() | self.undisturbed.state.keys()) - set(ignored)
        expected = {part: self.undisturbed.state.get(part, ()) for part in parts}
        return differences(expected, {part: state.get(part, ()) for part in parts})

    def _read(self, work: Any, **more: Any) -> Any:
        options = self.options()
        to = self.folder / f"{work.__name__}-{self.run_count}.json"
        code = self.fork_server.run(work, **options, to=str(to), **more)
        if code:
            raise StoreError(f"the library cannot be read; see {self.home}.{child.LOG}")
        return json.loads(to.read_text())

    def _notes(self, number: int) -> Path:
        return self.folder / f"notes-{number}"
