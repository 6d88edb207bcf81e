"""The log of a run, without secrets and of limited length, and the times of its stages.

Stages overlap, and several requests are made at the same time: the seconds of a stage are the sum
over its items, not wall-clock time.
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

MAX_SIMILAR_LINES: Final = 100
"""Of more lines with the same level, stage and type, the number and the last are logged."""
MAX_MESSAGE_LENGTH: Final = 2000
"""Characters; some upstreams answer with a whole page."""

_log: Final = logging.getLogger("fonds.runs")


@dataclass(kw_only=True, slots=True)
class _RepeatedMessage:
    lines: int = 0
    last: str = ""


class RunLog:
    """Buffers lines until a transaction stores them; used by all threads of a run."""

    def __init__(self, run_id: UUID, clock: Clock, redact: Redaction) -> None:
        self._run_id = run_id
        self._clock = clock
        self._redact = redact
        self._lock = Lock()
        self._rows: list[dict[str, Any]] = []
        self._similar: dict[tuple[str, ...], _RepeatedMessage] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no line waits to be stored."""
        return not self._rows

    def add(self, level: str, message: str, context: Mapping[str, Any]) -> None:
        """Buffer a line, unless there are enough with the same level, stage and type."""
        text = _storable(self._redact(message))[:MAX_MESSAGE_LENGTH]
        details = _storable(self._redact.values(context))
        # Also failures are `info`: they are in the database, and need not be on the console.
        _log.info(text, extra={"severity": level, "context": details})
        key = (level, str(details.get("stage", "")), str(details.get("type", "")))
        with self._lock:
            similar = self._similar.setdefault(key, _RepeatedMessage())
            similar.lines += 1
            similar.last = text
            if similar.lines <= MAX_SIMILAR_LINES:
                self._rows.append(self._row(level, text, details))

    def add_omitted(self) -> None:
        """Add a line with the number of omitted lines for each level, stage and type."""
        with self._lock:
            for (level, stage, kind), similar in self._similar.items():
                if (more := similar.lines - MAX_SIMILAR_LINES) > 0:
                    details = {"stage": stage, "type": kind, "count": more}
                    context = {name: value for name, value in details.items() if value}
                    message = f"and {more} more like these; the last: {similar.last}"
                    self._rows.append(self._row(level, message, context))
            self._similar.clear()

    def save(self, connection: Connection) -> None:
        """Store the buffered lines in a transaction; if it is rolled back, they stay buffered."""
        with self._lock:
            rows, self._rows = self._rows, []
        if rows:
            event.listen(connection, "rollback", lambda _: self._restore(rows), once=True)
            connection.execute(ingestion_logs.insert(), rows)

    def _restore(self, rows: list[dict[str, Any]]) -> None:
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
    """A value without zero bytes and lone surrogates, which some databases reject."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    if isinstance(value, Mapping):
        return {name: _storable(item) for name, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value


Log = Callable[..., None]
"""Takes a level, a message and its context: `Run.log`."""

_PARTICIPLES: Final = dict(
    zip(RUN_STAGES, ("discovering", "fetching", "parsing", "loading"), strict=True)
)


@dataclass(kw_only=True, slots=True)
class StageTime:
    """The time of one stage, with the waits and retries of its requests; used by one thread."""

    stage: str
    clock: Clock
    log: Log
    began_at: datetime | None = None
    seconds: float = 0.0
    waited_seconds: float = 0.0
    retries: int = 0
    _last: float | None = None
    _is_over: bool = False

    def begin(self) -> float:
        """Start an item; returns the time, for `end`."""
        if self.began_at is None:
            self.began_at = self.clock.now()
            self.log("info", f"{_PARTICIPLES[self.stage]} began", stage=self.stage)
        return self.clock.monotonic()

    def end(self, began: float, *, less: float = 0.0) -> None:
        """End an item; `less` is the time that belongs to another stage."""
        self._last = now = self.clock.monotonic()
        self.seconds += max(0.0, now - began - less)

    def waited(self, seconds: float) -> None:
        """Count the time that a request waited for its host."""
        self.waited_seconds += seconds

    def retried(self) -> None:
        """Count a retried request."""
        self.retries += 1

    def finish(self, items: int) -> None:
        """Log the totals of the stage, once."""
        if self.began_at is not None and not self._is_over:
            self._is_over = True
            totals = {"items": items, "seconds": round(self.seconds, 3)}
            totals |= {"waited": round(self.waited_seconds, 3)} if self.waited_seconds else {}
            totals |= {"retries": self.retries} if self.retries else {}
            self.log("info", f"{_PARTICIPLES[self.stage]} ended", stage=self.stage, **totals)

    def row(self, run_id: UUID, items: int, now: datetime) -> dict[str, Any]:
        """The row in `ingestion_stages`."""
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
    log: Log
    discover: StageTime = field(init=False)
    fetch: StageTime = field(init=False)
    parse: StageTime = field(init=False)
    load: StageTime = field(init=False)

    def __post_init__(self) -> None:
        for name in RUN_STAGES:
            setattr(self, name, StageTime(stage=name, clock=self.clock, log=self.log))

    def save(self, connection: Connection, run_id: UUID, items: Mapping[str, int]) -> None:
        """Store the stages that have started; `items` are the counts by stage."""
        now = self.clock.now()
        started = [stage for stage in self._all() if stage.began_at is not None]
        rows = [stage.row(run_id, items[stage.stage], now) for stage in started]
        upsert(connection, ingestion_stages, rows)

    def finish(self, items: Mapping[str, int]) -> None:
        """Log the totals of all stages."""
        for stage in self._all():
            stage.finish(items[stage.stage])

    def _all(self) -> list[StageTime]:
        return [self.discover, self.fetch, self.parse, self.load]
