"""SIGINT and SIGTERM at random moments: commands end, and lose nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.faults.signals import KINDS, SignalTries


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_gets_signals_at_random_moments_ends_and_loses_nothing(
    tmp_path: Path, kind: str
) -> None:
    tries = SignalTries(folder=tmp_path, seed=len(kind))
    attempts = tries.run([kind], 2, libraries=1)
    assert [attempt.kind for attempt in attempts] == [kind] * 2
