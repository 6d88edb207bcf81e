"""The time that recognition may take in a process that is stopped after a while."""

from __future__ import annotations

import math
from typing import Final

from fonds.seams import time_left

_RESERVE: Final = 0.1
"""Of the time of a file: what is recognized has to be written, too."""


class TimeLimit:
    """Ends recognition early enough for what was read to be kept."""

    def __init__(self) -> None:
        self._left = time_left()
        self._reserve = _RESERVE * self._left
        self._slowest = 0.0

    def allows_a_page(self) -> bool:
        """True while another page as slow as the slowest one fits; call it before each."""
        if math.isinf(self._left):
            return True
        left = time_left()
        self._slowest = max(self._slowest, self._left - left)
        self._left = left
        return left > self._reserve + self._slowest
