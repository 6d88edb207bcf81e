"""Every durable operation of a small library: once killed at it, once failed by it."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from fonds.selftest.case import SMALL, Case, told
from fonds.selftest.intrusion import How, Strike
from fonds.selftest.place import Place
from fonds.selftest.report import Report
from fonds.selftest.story import steps_from

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


def _live(place: Place, report: Report, *, strike: Strike) -> Iterator[str]:
    place.begin_before(strike.step)
    life = place.live([strike], steps=steps_from(strike.step))
    place.history.append(told(life))
    # What is done side by side comes in another order now and then, and may come to less.
    point = life.point if life.struck else (strike.step, "not reached")
    report.count("exhaustive", *point, _WAYS[strike.how])
    wrong = [*place.problems(life), *place.recovered()]
    report.count("exhaustive", *point, "violations" if wrong else "resumed")
    yield from wrong
