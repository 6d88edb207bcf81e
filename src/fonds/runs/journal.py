"""The lines of a run's log: without secrets, few enough to be kept, and soon to be seen."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, event

from fonds.fetch.redact import Redaction
from fonds.seams import Clock
from fonds.stores.tables import ingestion_logs

MOST_PER_CAUSE: Final = 100
"""Lines; of more with the same cause only the number and the last are told, at the end."""
LONGEST: Final = 2000
"""Characters of a message; some upstreams answer with a page."""

_log: Final = logging.getLogger("fonds.runs")


@dataclass(kw_only=True, slots=True)
class _Cause:
    lines: int = 0
    last: str = ""


class Journal:
    """Keeps lines until a transaction takes them along; used by all threads of a run."""

    def __init__(self, run_id: UUID, clock: Clock, redact: Redaction) -> None:
        self._run_id = run_id
        self._clock = clock
        self._redact = redact
        self._lock = Lock()
        self._rows: list[dict[str, Any]] = []
        self._causes: dict[tuple[str, ...], _Cause] = {}

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
            known = self._causes.setdefault(cause, _Cause())
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
