"""Days in Washington, days as they are printed, and the days and Congresses a run asks for."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from fonds.errors import UsageError
from fonds.model import SourceState
from fonds.sources.formats.congress import congress_of

WASHINGTON: Final = ZoneInfo("America/New_York")


def day_in_washington(time: datetime) -> date:
    """The day that a time falls on in Washington."""
    return time.astimezone(WASHINGTON).date()


def today(state: SourceState) -> date:
    """The day of a run in Washington."""
    return day_in_washington(state.now)


def printed_day(text: str, form: str) -> date | None:
    """The day in a text of that form, `%B %d, %Y`; None if there is no such day."""
    try:
        return datetime.strptime(text, form).date()  # noqa: DTZ007 — a day has no zone
    except ValueError:
        return None


def is_requested(day: date, state: SourceState) -> bool:
    """True if a run asks for what is of a day; only a backfill leaves any out."""
    if not state.backfill:
        return True
    return (state.since or date.min) <= day <= (state.until or date.max)


def requested_congresses(
    state: SourceState, *, first: int = 1, delay: timedelta = timedelta(0)
) -> list[int]:
    """The Congresses a backfill names, or its days touch; else the current one and the last.

    `first` is the first one with anything, and `delay` how long after its end something may come.
    """
    current = congress_of(today(state))
    if not state.backfill:
        return [current - 1, current]
    if values := state.options.get("congresses"):
        return sorted({congress_number(value) for value in values})
    if state.since is None and state.until is None:
        return [current - 1, current]
    earliest = congress_of(state.since - delay) if state.since else first
    last = min(congress_of(state.until), current) if state.until else current
    return list(range(max(earliest, first), last + 1))


def congress_number(value: Any) -> int:
    """The number of a Congress that a person gave."""
    if not re.fullmatch(r"[0-9]{1,3}", str(value)):
        raise UsageError(f"{value!r} is not the number of a Congress; write 119")
    return int(value)
