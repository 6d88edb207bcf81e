"""Waiting for something that another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE = 90.0
"""Seconds: only a hung machine takes so long."""


def wait_until(condition: Callable[[], object], *, seconds: float = DEADLINE) -> None:
    """Return as soon as a condition holds; fail if it does not within the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"condition not met within {seconds:g} seconds"
        time.sleep(0.005)
