"""Worlds of many seeds, some dozens in each test so that they can be spread over processes."""

from __future__ import annotations

import os

import pytest

from tests.simulation.seeds import SUBJECTS, run_seed

pytestmark = pytest.mark.skip(
    reason="not yet reliable beside other tests in one process; run python -m tests.simulation"
)

QUICK = 200
MANY = int(os.environ.get("FONDS_SEEDS", "5000"))
"""For each subject; more or fewer may be asked for."""


def _spans(first: int, last: int, step: int) -> list[tuple[str, range]]:
    starts = range(first, last, step)
    return [(subject, range(start, start + step)) for subject in SUBJECTS for start in starts]


def _check(subject: str, seeds: range) -> None:
    for seed in seeds:
        outcome = run_seed(subject, seed)
        assert outcome.error is None, str(outcome)


@pytest.mark.parametrize(("subject", "seeds"), _spans(0, QUICK, 50), ids=str)
def test_no_seed_breaks_a_promise(subject: str, seeds: range) -> None:
    _check(subject, seeds)


@pytest.mark.long
@pytest.mark.parametrize(("subject", "seeds"), _spans(QUICK, MANY, 200), ids=str)
def test_no_seed_of_many_breaks_a_promise(subject: str, seeds: range) -> None:
    _check(subject, seeds)
