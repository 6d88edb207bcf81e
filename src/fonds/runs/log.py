"""The lines of a run's log: without secrets, few enough to be kept, and soon to be seen.

What each stage of a run took: time, waits for hosts, repetitions.

Stages overlap, and several requests are under way at once: seconds are added up over items, not
looked up on a clock on the wall.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, event

from fonds.fetch.redact import Redaction
from fonds.seams import Clock
from fonds.stores.database import upsert
from fonds.stores.tables import RUN_STAGES, ingestion_logs, ingestion_stages

MOST_PER_CAUSE: Final = 100
"""Lines; of more with the same cause only the number and the last are told, at the end."""
LONGEST: Final = 2000
"""Characters of a message; some upstreams answer with a page."""

_log: Final = logging.getLogger("fonds.runs")


@dataclass(kw_only=True, slots=True)
class _RepeatedMessage:
    lines: int = 0
    last: str = ""


class RunLog:
    """Keeps lines until a transaction takes them along; used by all threads of a run."""

    def __init__(self, run_id: UUID, clock: Clock, redact: Redaction) -> None:
        self._run_id = run_id
        self._clock = clock
        self._redact = redact
        self._lock = Lock()
        self._rows: list[dict[str, Any]] = []
        self._causes: dict[tuple[str, ...], _RepeatedMessage] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._rows

    def add(self, level: str, message: str, context: Mapping[str, Any]) -> None:
        """Keep a line, unless there are enough of its cause: same level, stage and type."""
        text = _storable(self._redact(message))[:LONGEST]
        told = _storable(self._redact.values(context))
        # A failure is in the database, and on the console news only to somebody who asked.
        _log.info(text, extra={"severity": level, "context": told})
        cause = (level, str(told.get("stage", "")), str(told.get("type", "")))
        with self._lock:
            known = self._causes.setdefault(cause, _RepeatedMessage())
            known.lines += 1
            known.last = text
            if known.lines <= MOST_PER_CAUSE:
                self._rows.append(self._row(level, text, told))

    def tell_the_rest(self) -> None:
        """Add how many lines there were that were not kept, by cause."""
        with self._lock:
            for (level, stage, kind), cause in self._causes.items():
                if (more := cause.lines - MOST_PER_CAUSE) > 0:
                    told = {"stage": stage, "type": kind, "count": more}
                    context = {name: value for name, value in told.items() if value}
                    message = f"and {more} more like these; the last: {cause.last}"
                    self._rows.append(self._row(level, message, context))
            self._causes.clear()

    def save(self, connection: Connection) -> None:
        """Write what is kept, in the transaction of whoever has something to write.

        What a transaction takes along that fails is kept for the next one.
        """
        with self._lock:
            rows, self._rows = self._rows, []
        if rows:
            event.listen(connection, "rollback", lambda _: self._put_back(rows), once=True)
            connection.execute(ingestion_logs.insert(), rows)

    def _put_back(self, rows: list[dict[str, Any]]) -> None:
        with self._lock:
            self._rows[:0] = rows

    def _row(self, level: str, message: str, context: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "run_id": self._run_id,
            "logged_at": self._clock.now(),
            "level": level,
            "message": message,
            "context": dict(context) or None,
        }


def _storable(value: Any) -> Any:
    """What every database takes: no zero bytes, and no halves of surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    if isinstance(value, Mapping):
        return {name: _storable(each) for name, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list) else value


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

    def finish(self, items: int) -> None:
        """Log the totals of the stage, once."""
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

    def finish(self, items: Mapping[str, int]) -> None:
        """Log the totals of all stages."""
        for one in self._all():
            one.finish(items[one.stage])

    def _all(self) -> list[StageTime]:
        return [self.discover, self.fetch, self.parse, self.load]
