"""A library in the scratch folder that is put through something, life by life."""

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
from fonds.selftest.child import Nursery
from fonds.selftest.faults import FaultLog, Strike
from fonds.selftest.scenario import STEPS
from fonds.selftest.state import State, differences

LEASE: Final = 20 * 60.0
"""Seconds after which nothing that a killed process held is held any more."""
_LEFT_LATER: Final = {"index"}
"""What a run may leave to the next without a word: see `fonds.runs.hosts`."""


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """What a library becomes that nobody disturbs."""

    state: State
    operations: Mapping[str, int]
    """Durable ones, by step."""
    before: Mapping[str, Path] = field(default_factory=dict)
    """Copies of the library, each as it was when a step began."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """What became of one process."""

    code: int
    """With which it ended; negative is a signal."""
    ended: Mapping[str, int]
    """Steps that it did to the end, with the number of their durable operations."""
    struck: Mapping[str, Any] | None
    """The operation it was struck at, if it came so far."""
    trouble: Sequence[str]
    """What it could not do, in its own words."""

    @property
    def is_killed(self) -> bool:
        """Whether it was killed."""
        return self.code == -signal.SIGKILL

    @property
    def is_crashed(self) -> bool:
        """Whether it ended in a way that no user should ever see."""
        return self.code not in (0, child.TROUBLE, -signal.SIGKILL)

    @property
    def point(self) -> tuple[str, str]:
        """Step and kind of operation that it was struck at."""
        assert self.struck is not None
        return self.struck["struck"]["step"], self.struck["operation"]

    def left_of(self, steps: Iterable[str]) -> list[str]:
        """Where to go on after it, if it was to do these."""
        return [step for step in steps if step not in self.ended]


@dataclass
class ScratchLibrary:
    """One library, and what it is compared with."""

    folder: Path
    nursery: Nursery
    hosts: Mapping[str, str]
    corpus: str
    later: float
    """Seconds from now at which the last process began, as it was told."""
    undisturbed: Undisturbed
    history: list[str] = field(default_factory=list)
    """What was done to it, line by line."""
    lives: int = field(default=0, init=False)

    @property
    def home(self) -> Path:
        """The library."""
        return self.folder / "library"

    def copied(self, name: str) -> Path:
        """A copy of the library, while nobody works on it."""
        copy = self.folder / f"before-{name}"
        self.home.mkdir(exist_ok=True)
        return Path(shutil.copytree(self.home, copy))

    def begin_before(self, step: str) -> None:
        """Take over the undisturbed library as it was when a step began."""
        shutil.copytree(self.undisturbed.before[step], self.home)

    def options(self, *, after: float = LEASE) -> dict[str, Any]:
        """For a process that works on the library so many seconds after the one before it."""
        self.lives += 1
        self.later += after
        return {"home": str(self.home), "later": self.later}

    def start(
        self,
        strikes: Iterable[Strike] = (),
        *,
        steps: Iterable[str] = STEPS,
        after: float = LEASE,
        **more: Any,
    ) -> int:
        """A process that takes the library forward."""
        return self.nursery.start(
            child.live,
            **self.options(after=after),
            hosts=dict(self.hosts),
            corpus=self.corpus,
            notes=str(self._notes(self.lives)),
            steps=list(steps),
            strikes=[asdict(strike) for strike in strikes],
            **more,
        )

    def wait(self, pid: int, life: int | None = None) -> Life:
        """What became of it; `life` says which one it was, if not the last."""
        code = self.nursery.wait(pid)
        notes = FaultLog(self._notes(life or self.lives)).read()
        return Life(
            code=code,
            ended={note["ended"]: note["operations"] for note in notes if "ended" in note},
            struck=next((note for note in notes if "struck" in note), None),
            trouble=[line for note in notes for line in note.get("trouble", ())],
        )

    def live(self, strikes: Iterable[Strike] = (), **more: Any) -> Life:
        """Let a process take the library forward, to its end; what else is told is for `start`."""
        return self.wait(self.start(strikes, **more))

    def state(self) -> State:
        """What is in the library."""
        told: State = self._ask(child.look)
        return told

    def problems(self, life: Life) -> Iterator[str]:
        """What is wrong with the library after a process ended, however it ended."""
        if life.is_crashed:
            yield f"a process ended with code {life.code}; see {self.home}.{child.LOG}"
        yield from self._ask(child.check, is_done=life.code == 0)
        if life.code == 0:
            # Whoever says that all is done must have done all.
            yield from (f"done, it said, but {each}" for each in self._differences(_LEFT_LATER))

    def recovered(self) -> Iterator[str]:
        """What is not as it should be after a plain run."""
        yield from self.violations(self.live())

    def violations(self, life: Life) -> Iterator[str]:
        """What is not as it should be after a process that nothing kept from doing all."""
        if life.code:
            yield f"a plain run ended with code {life.code}: {'; '.join(life.trouble)}"
        else:
            yield from self._differences()

    def _differences(self, but: Iterable[str] = ()) -> Iterator[str]:
        found = self.state()
        parts = (found.keys() | self.undisturbed.state.keys()) - set(but)
        expected = {part: self.undisturbed.state.get(part, ()) for part in parts}
        return differences(expected, {part: found.get(part, ()) for part in parts})

    def _ask(self, work: Any, **more: Any) -> Any:
        options = self.options()
        to = self.folder / f"{work.__name__}-{self.lives}.json"
        code = self.nursery.run(work, **options, to=str(to), **more)
        if code:
            raise StoreError(f"the library cannot be read; see {self.home}.{child.LOG}")
        return json.loads(to.read_text())

    def _notes(self, life: int) -> Path:
        return self.folder / f"notes-{life}"
