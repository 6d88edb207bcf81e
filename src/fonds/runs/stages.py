"""What each stage of a run took: time, waits for hosts, repetitions.

Stages overlap, and several requests are under way at once: seconds are added up over items, not
looked up on a clock on the wall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection

from fonds.seams import Clock
from fonds.stores.database import upsert
from fonds.stores.tables import RUN_STAGES, ingestion_stages

Tell = Callable[..., None]
"""Takes a level, a message and what goes with it: `Run.log`."""

_PARTICIPLES: Final = dict(
    zip(RUN_STAGES, ("discovering", "fetching", "parsing", "loading"), strict=True)
)


@dataclass(kw_only=True, slots=True)
class StageTime:
    """One stage; each is worked on by one thread. It counts the patience of its requests."""

    stage: str
    clock: Clock
    tell: Tell
    began_at: datetime | None = None
    seconds: float = 0.0
    waited_seconds: float = 0.0
    retries: int = 0
    _last: float | None = None
    _is_over: bool = False

    def begin(self) -> float:
        """When an item is begun, for `end`."""
        if self.began_at is None:
            self.began_at = self.clock.now()
            self.tell("info", f"{_PARTICIPLES[self.stage]} began", stage=self.stage)
        return self.clock.monotonic()

    def end(self, began: float, *, less: float = 0.0) -> None:
        """Count what an item took, less what belongs to another stage."""
        self._last = now = self.clock.monotonic()
        self.seconds += max(0.0, now - began - less)

    def waited(self, seconds: float) -> None:
        """A request of this stage had to wait for its host."""
        self.waited_seconds += seconds

    def retried(self) -> None:
        """A request of this stage was repeated."""
        self.retries += 1

    def conclude(self, items: int) -> None:
        """Nothing more is to come."""
        if self.began_at is not None and not self._is_over:
            self._is_over = True
            took = {"items": items, "seconds": round(self.seconds, 3)}
            took |= {"waited": round(self.waited_seconds, 3)} if self.waited_seconds else {}
            took |= {"retries": self.retries} if self.retries else {}
            self.tell("info", f"{_PARTICIPLES[self.stage]} ended", stage=self.stage, **took)

    def row(self, run_id: UUID, items: int, now: datetime) -> dict[str, Any]:
        """As `ingestion_stages` has it."""
        ago = 0.0 if self._last is None else self.clock.monotonic() - self._last
        assert self.began_at is not None
        return {
            "run_id": run_id,
            "stage": self.stage,
            "began_at": self.began_at,
            "ended_at": max(self.began_at, now - timedelta(seconds=ago)),
            "items": items,
            "seconds": self.seconds,
            "waited_seconds": self.waited_seconds,
            "retries": self.retries,
        }


@dataclass(kw_only=True)
class Stages:
    """All stages of one run."""

    clock: Clock
    tell: Tell
    discover: StageTime = field(init=False)
    fetch: StageTime = field(init=False)
    parse: StageTime = field(init=False)
    load: StageTime = field(init=False)

    def __post_init__(self) -> None:
        for name in RUN_STAGES:
            setattr(self, name, StageTime(stage=name, clock=self.clock, tell=self.tell))

    def save(self, connection: Connection, run_id: UUID, items: Mapping[str, int]) -> None:
        """Write how far the stages are that have begun; `items` are what each got done."""
        now = self.clock.now()
        begun = [one for one in self._all() if one.began_at is not None]
        rows = [one.row(run_id, items[one.stage], now) for one in begun]
        upsert(connection, ingestion_stages, rows)

    def conclude(self, items: Mapping[str, int]) -> None:
        """Say of all stages that they have ended."""
        for one in self._all():
            one.conclude(items[one.stage])

    def _all(self) -> list[StageTime]:
        return [self.discover, self.fetch, self.parse, self.load]
