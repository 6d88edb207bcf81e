"""Micro-batches: as many texts as one request takes, each distinct text once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fonds.stores.embedding import Passage

MAX_TEXTS: Final = 256
MAX_TWINS: Final = 1024
"""Passages of equal text that may wait for one of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Passages for one request."""

    leaders: Sequence[Passage]
    """Their texts are sent; no two are equal."""
    twins: Sequence[Passage]
    """Each has the text of a leader, and gets its vector."""


class Gatherer:
    """Gathers passages into batches; used by one thread."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._leaders: dict[str, Passage] = {}
        self._twins: list[Passage] = []
        self._tokens = 0
        self._asked: set[str] = set()
        self._late: list[Passage] = []

    @property
    def is_crowded(self) -> bool:
        """Whether many wait for a text that was sent."""
        return len(self._late) >= MAX_TWINS

    def add(self, passage: Passage) -> Batch | None:
        """Take a passage; gives the batch that is full by it."""
        if passage.sha in self._asked:
            self._late.append(passage)
            return None
        if passage.sha in self._leaders:
            self._twins.append(passage)
            return self.close() if len(self._twins) >= MAX_TWINS else None
        overflows = self._tokens + passage.tokens > self._max_tokens
        full = self.close() if overflows or len(self._leaders) >= MAX_TEXTS else None
        self._leaders[passage.sha] = passage
        self._tokens += passage.tokens
        return full

    def close(self) -> Batch | None:
        """What was gathered, as it is; its texts count as sent from now on."""
        if not self._leaders:
            return None
        batch = Batch(leaders=list(self._leaders.values()), twins=self._twins)
        self._asked.update(self._leaders)
        self._leaders, self._twins, self._tokens = {}, [], 0
        return batch

    def settle(self, batch: Batch) -> list[Passage]:
        """Forget a batch; gives the passages of equal text that came after it was closed."""
        settled = {passage.sha for passage in batch.leaders}
        self._asked -= settled
        came_late = [passage for passage in self._late if passage.sha in settled]
        self._late = [passage for passage in self._late if passage.sha not in settled]
        return came_late
