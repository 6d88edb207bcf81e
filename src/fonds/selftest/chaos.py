"""Killed at random, resumed, killed again: in the end as if nothing had happened.

A lineage is one library: in each of its steps a process is killed some times, and the next goes on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final

from fonds.selftest.case import WHOLE, Case, told
from fonds.selftest.intrusion import Strike
from fonds.selftest.place import Place
from fonds.selftest.report import Report
from fonds.selftest.story import STEPS

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


def _live_randomly(place: Place, report: Report, *, strikes: Sequence[Strike]) -> Iterator[str]:
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
