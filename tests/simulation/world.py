"""What all worlds have: processes that are begun again when they die, and an end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from fonds.seams import Seams
from tests.simulation.scheduler import Process, Scheduler, Strand
from tests.simulation.weather import JUMPS, Weather
from tests.support import servers

LATER: Final = 3 * 3600.0
"""Seconds after which every lease is over, whatever clock it was taken by."""


class World:
    """Processes in bad weather, and then in calm."""

    def __init__(self, scheduler: Scheduler, harshness: float = 1.0) -> None:
        self.scheduler = scheduler
        self.rng = scheduler.rng
        self.weather = Weather(scheduler, harshness)
        self.home = _empty_home()
        """Where processes of this world, and of no other, lock and keep files."""
        self.is_over = False
        """What goes on for ever ends soon."""
        self._kept: list[Strand] = []

    def seams(self, process: Process) -> Seams:
        """What the product touches the world by, in one process."""
        return Seams(clock=process, rng=self.rng)

    def keep(self, name: str, work: Callable[[Process], bool]) -> Strand:
        """Have something done by one process after the other, until it is done or all is over.

        `work` says whether it is done; a process that dies has not said so.
        """
        strand = self.scheduler.outside.spawn(f"keeper of {name}", partial(self._keep, name, work))
        self._kept.append(strand)
        return strand

    def _keep(self, name: str, work: Callable[[Process], bool]) -> None:
        number = 0
        is_done = False

        def main() -> None:
            nonlocal is_done
            is_done = work(process)

        while not is_done and not self.is_over:
            number += 1
            process = Process(self.scheduler, f"{name}-{number}")
            if self.weather.strikes(self.weather.jump * 10):
                process.skew = timedelta(seconds=self.rng.choice(JUMPS))
            process.spawn("main", main).join()
            process.kill()
            process.join()
            self.scheduler.pause(self.rng.uniform(0, 40))

    def calm(self) -> None:
        """Let everybody come to an end, and then some time pass in which nothing goes wrong."""
        self.is_over = True
        for strand in self._kept:
            strand.join()
        self.weather.is_calm = True
        self.scheduler.note("calm")
        self.scheduler.pause(LATER)

    def do(self, name: str, work: Callable[[Process], object]) -> None:
        """Have something done by a process of its own, and wait for it."""
        process = Process(self.scheduler, name)
        process.spawn("main", partial(work, process)).join()


def _empty_home() -> Path:
    """A folder of this process alone.

    Locks in it are real, and the workers of a test run simulate at the same time: in a folder that
    they shared, one's runner would find its source locked by a world of which it knows nothing.
    """
    home = servers.run_folder() / f"simulation-{os.getpid()}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    return home
