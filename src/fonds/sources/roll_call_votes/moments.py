"""Days and moments as the two chambers write them, in Washington's time."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final
from zoneinfo import ZoneInfo

from fonds.errors import MalformedError

EASTERN: Final = ZoneInfo("America/New_York")

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        "jan feb mar apr may jun jul aug sep oct nov dec".split(),  # noqa: SIM905 — one line
        1,
    )
}
_HOUSE_DAY: Final = re.compile(r"(\d{1,2})-([A-Za-z]{3})[a-z]*(?:-(\d{4}))?")
_SENATE_MOMENT: Final = re.compile(
    r"([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4})(?:, *(\d{1,2}):(\d\d) ([AP])M)?"
)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d\d)")
_NOON: Final = 12
_JUNE: Final = 6


def read_day(text: str, year: int | None = None) -> date:
    """`3-Jan-2019`, or `21-Dec` of the given year."""
    match = _HOUSE_DAY.fullmatch(text)
    stated = int(match[3]) if match and match[3] else year
    if match is None or stated is None:
        raise MalformedError(f"{text[:40]!r} is no day of a vote")
    return _day(stated, match[2], int(match[1]), text)


def read_clock(day: date, text: str | None) -> datetime | None:
    """The moment that `16:28` is on a day in Washington; None where no time is given."""
    match = _CLOCK.fullmatch(text or "")
    return _moment(day, int(match[1]), int(match[2])) if match else None


def read_moment(text: str) -> tuple[date, datetime | None]:
    """The day and the moment of `January 9, 2025, 02:54 PM`."""
    match = _SENATE_MOMENT.fullmatch(" ".join(text.split()))
    if match is None:
        raise MalformedError(f"{text[:40]!r} is no moment of a vote")
    day = _day(int(match[3]), match[1], int(match[2]), text)
    if match[4] is None:
        return day, None
    hour = int(match[4]) % _NOON + (_NOON if match[6] == "P" else 0)
    return day, _moment(day, hour, int(match[5]))


def days_of_session(days: list[str], year: int) -> list[date]:
    """The days of a list without years, earliest vote first.

    A session may end in the first days of the next January, and its votes stay in its list.
    """
    found: list[date] = []
    for text in days:
        day = read_day(text, year)
        if found and found[-1].month > _JUNE and day.month == 1:
            year, day = year + 1, read_day(text, year + 1)
        found.append(day)
    return found


def _day(year: int, month: str, day: int, text: str) -> date:
    try:
        return date(year, _MONTHS[month.lower()], day)
    except (KeyError, ValueError) as error:
        raise MalformedError(f"{text[:40]!r} is no day of the calendar") from error


def _moment(day: date, hour: int, minute: int) -> datetime:
    try:
        local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=EASTERN)
    except ValueError as error:
        raise MalformedError(f"{hour}:{minute:02} is no time of day") from error
    return local.astimezone(UTC)
