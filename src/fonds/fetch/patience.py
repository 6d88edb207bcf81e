"""What asking took in patience: waits for a host's turn, and repetitions, told to who wants them.

By context and not by process: sources run side by side, and share the hosts they ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol


class Patience(Protocol):
    """Whoever counts the waits and repetitions of some requests."""

    def waited(self, seconds: float) -> None:
        """A request had to wait for its turn."""
        ...

    def retried(self) -> None:
        """A request is made once more."""
        ...


_counting: Final[ContextVar[Patience | None]] = ContextVar("patience", default=None)


def waited(seconds: float) -> None:
    """Tell that a request had to wait for its turn."""
    patience = _counting.get()
    if patience is not None:
        patience.waited(seconds)


def retried() -> None:
    """Tell that a request is made once more."""
    patience = _counting.get()
    if patience is not None:
        patience.retried()


def count_here(patience: Patience) -> None:
    """Have the waits and repetitions of an asyncio task counted, to its end."""
    _counting.set(patience)


@contextmanager
def counted_by(patience: Patience) -> Iterator[None]:
    """Have the waits and repetitions of this context, and of tasks it begins, counted."""
    token = _counting.set(patience)
    try:
        yield
    finally:
        _counting.reset(token)
