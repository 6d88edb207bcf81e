"""What may go wrong, and how often: drawn anew for each seed, and nothing once it is calm."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Final

from tests.simulation.scheduler import KilledError, Scheduler

QUICK: Final = (0.0, 0.02)
SLOW: Final = (0.5, 4.0)
STALLED: Final = (25.0, 400.0)
"""Seconds for which a machine may stand still: longer than any lease."""
JUMPS: Final = (-3600.0, -61.0, -5.0, 5.0, 61.0, 3600.0)


class Weather:
    """Decides at each operation how long it takes and whether it fails."""

    def __init__(self, scheduler: Scheduler, harshness: float = 1.0) -> None:
        chance = scheduler.rng
        self._scheduler = scheduler
        self._chance = chance
        self.is_calm = False
        self.slow = _some(chance, 0.2)
        self.stall = _some(chance, 0.02 * harshness)
        self.crash = _some(chance, 0.02 * harshness)
        self.jump = _some(chance, 0.01 * harshness)
        self.refuse = _some(chance, 0.1 * harshness)
        """An operation fails, and nothing was done."""
        self.lose = _some(chance, 0.05 * harshness)
        """It was done, and whoever asked is told that it failed."""

    def strikes(self, odds: float) -> bool:
        """Whether something of these odds happens now."""
        return not self.is_calm and odds > 0 and self._chance.random() < odds

    def harms(self, odds: float) -> bool:
        """Whether it happens to what is being done now; the world itself is spared."""
        scheduler = self._scheduler
        return scheduler.current.process is not scheduler.outside and self.strikes(odds)

    def pass_by(self, what: str) -> None:
        """Whoever is about to do something may die, stand still, or take long to begin."""
        scheduler = self._scheduler
        process = scheduler.current.process
        process.require_alive()
        if process is scheduler.outside:
            return
        scheduler.note(what)
        if self.strikes(self.crash):
            scheduler.note("  killed")
            process.kill()
            raise KilledError
        if self.strikes(self.jump):
            process.skew = timedelta(seconds=self._chance.choice(JUMPS))
            scheduler.note(f"clock set by {process.skew.total_seconds():+.0f} s")
        if self.strikes(self.stall):
            process.freeze(seconds := self._chance.uniform(*STALLED))
            scheduler.note(f"  stands still for {seconds:.0f} s")
        scheduler.pause(self.duration())

    def duration(self) -> float:
        """How long something takes."""
        return self._chance.uniform(*(SLOW if self.strikes(self.slow) else QUICK))


def _some(chance: Random, most: float) -> float:
    """Odds up to so much; in half of all worlds it never happens at all."""
    return chance.uniform(0, most) if chance.random() < 0.5 else 0.0
