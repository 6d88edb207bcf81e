"""Worlds of many seeds, some dozens in each test so that they can be spread over processes."""

from __future__ import annotations

import os

import pytest

from tests.simulation.seeds import SUBJECTS, run_seed

QUICK = 5
MANY = int(os.environ.get("FONDS_SEEDS", "1000"))
"""For each subject; more or fewer may be asked for."""


def _spans(last: int, step: int) -> list[tuple[str, range]]:
    """All seeds of all subjects, so many at a time."""
    return [
        (subject, range(start, min(start + step, last)))
        for subject in SUBJECTS
        for start in range(0, last, step)
    ]


def _check(subject: str, seeds: range) -> None:
    for seed in seeds:
        outcome = run_seed(subject, seed)
        if outcome.error is not None:
            pytest.fail(str(outcome), pytrace=False)


@pytest.mark.smoke
@pytest.mark.parametrize(("subject", "seeds"), _spans(QUICK, QUICK), ids=str)
def test_no_seed_breaks_a_promise(subject: str, seeds: range) -> None:
    _check(subject, seeds)


@pytest.mark.long
@pytest.mark.parametrize(("subject", "seeds"), _spans(MANY, 200), ids=str)
def test_no_seed_of_many_breaks_a_promise(subject: str, seeds: range) -> None:
    _check(subject, seeds)
