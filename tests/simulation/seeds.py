"""Running seeds: each alone decides a world, and a failing one can be replayed."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from random import Random
from typing import Any, Final, NoReturn

import structlog

from tests.simulation.scheduler import Scheduler, ViolationError
from tests.simulation.threads import seeded_threads

SUBJECTS: Final = ("runner", "jobs", "shards")
_COLLECTED: Final = 20
"""Seeds between two looks for garbage; in between none is looked for, as that moves things."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of one seed."""

    subject: str
    seed: int
    steps: int
    trace_hash: str
    lines: list[str]
    """The end of the trace."""
    error: BaseException | None = None

    def __str__(self) -> str:
        """What to tell of a seed that failed."""
        lines = "\n".join(self.lines)
        told = f"ViolationError: {self.error}"
        if self.error is not None and not isinstance(self.error, ViolationError):
            told = "".join(traceback.format_exception(self.error)[-6:]).rstrip()
        return (
            f"{lines}\n\n{told}\n"
            f"seed {self.seed} of {self.subject} fails; replay it with:\n"
            f"  python -m tests.simulation --replay {self.seed} --only {self.subject}"
        )


def prepare(subject: str) -> Any:
    """The module of a subject, with what all its seeds need made."""
    world = import_module(f"tests.simulation.{subject}")
    world.prepare()
    return world


def run_seed(subject: str, seed: int) -> Outcome:
    """The world of one seed, to its end or to the first violation."""
    world = prepare(subject)
    scheduler = Scheduler(Random(f"{subject} {seed}"))
    error: BaseException | None = None
    gc.disable()
    try:
        with seeded_threads(scheduler), _told_to(scheduler):
            try:
                world.simulate(scheduler)
            finally:
                scheduler.close()
    except Exception as violation:  # noqa: BLE001 — whatever it is, the seed found it
        error = violation
    finally:
        gc.enable()
        if seed % _COLLECTED == 0:
            gc.collect()
    return Outcome(
        subject=subject,
        seed=seed,
        steps=scheduler.steps,
        trace_hash=scheduler.trace_hash,
        lines=scheduler.last_lines,
        error=error,
    )


@contextmanager
def _told_to(scheduler: Scheduler) -> Iterator[None]:
    """Have the product's log lines in the trace, and nowhere else."""

    def tell(_logger: object, level: str, event: MutableMapping[str, Any]) -> NoReturn:
        if scheduler.has_baton():
            told = " ".join(f"{name}={value}" for name, value in event.items() if name != "event")
            scheduler.note(f"{level}: {event.get('event')} {told}")
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[tell], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)
