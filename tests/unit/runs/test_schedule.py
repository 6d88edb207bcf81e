from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fonds.runs.schedule import next_run
from fonds.sources.base import SourceInfo
from fonds.sources.registry import builtin_sources
from fonds.testing import FakeSource

FRIDAY = datetime(2026, 3, 6, 22, 0, tzinfo=UTC)
SUNDAY = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def scheduled(schedule: str | None) -> SourceInfo:
    return replace(FakeSource().info, schedule=schedule)


def times(schedule: str, after: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    for _ in range(count):
        due = next_run(scheduled(schedule), after)
        assert due is not None
        found.append(due.astimezone(UTC))
        after = due + timedelta(seconds=1)
    return found


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def test_source_without_a_schedule_is_never_due() -> None:
    assert next_run(scheduled(None), FRIDAY) is None


def test_half_past_five_stays_half_past_five_when_summer_time_begins() -> None:
    assert times("30 5 * * *", FRIDAY, 3) == [
        utc(2026, 3, 7, 10, 30),
        utc(2026, 3, 8, 9, 30),
        utc(2026, 3, 9, 9, 30),
    ]


def test_half_past_five_stays_half_past_five_when_summer_time_ends() -> None:
    assert times("30 5 * * *", utc(2026, 10, 31), 3) == [
        utc(2026, 10, 31, 9, 30),
        utc(2026, 11, 1, 10, 30),
        utc(2026, 11, 2, 10, 30),
    ]


def test_time_that_the_clock_skips_is_due_once_all_the_same() -> None:
    days = [due.date().isoformat() for due in times("30 2 * * *", FRIDAY, 3)]
    assert days == ["2026-03-07", "2026-03-08", "2026-03-09"]


@pytest.mark.parametrize(
    ("days", "names"),
    [
        ("1-5", "Mon Tue Wed Thu Fri Mon"),
        ("0", "Sun Sun"),
        ("7", "Sun Sun"),
        ("6", "Sat Sat"),
        ("0,3", "Sun Wed Sun"),
        ("5-7", "Sun Fri Sat Sun"),
        ("0-6", "Sun Mon Tue Wed Thu Fri Sat Sun"),
        ("1-5/2", "Mon Wed Fri Mon"),
        ("*/3", "Sun Wed Sat Sun"),
        ("mon-fri", "Mon Tue Wed Thu Fri Mon"),
        ("*", "Sun Mon Tue"),
    ],
)
def test_days_of_the_week_count_from_sunday_as_in_every_crontab(days: str, names: str) -> None:
    expected = names.split()
    found = times(f"0 12 * * {days}", SUNDAY, len(expected))
    assert [f"{due:%a}" for due in found] == expected


def test_federal_register_is_read_on_the_days_it_appears() -> None:
    schedule = builtin_sources()["federal_register"].info.schedule
    assert schedule is not None
    found = times(schedule, SUNDAY, 6)
    assert [f"{due:%a}" for due in found] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Mon"]
