"""When sources run by themselves."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from fonds.sources.base import SourceInfo

TIME_ZONE: Final = ZoneInfo("America/New_York")
"""Washington's clock: the publishers keep office hours, also when daylight saving changes."""

_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERED_DAYS: Final = re.compile(r"(\*(?=/)|\d)(?:-(\d))?(?:/(\d+))?")


def trigger_of(info: SourceInfo) -> CronTrigger | None:
    """A source's schedule, or None if it only runs when asked."""
    if info.schedule is None:
        return None
    *times, days = info.schedule.split()
    schedule = " ".join([*times, _NUMBERED_DAYS.sub(_named_days, days)])
    return CronTrigger.from_crontab(schedule, timezone=TIME_ZONE)


def next_run(info: SourceInfo, now: datetime) -> datetime | None:
    """When a source is due next."""
    trigger = trigger_of(info)
    moment: datetime | None = trigger.get_next_fire_time(None, now) if trigger else None
    return moment


def _named_days(numbered: re.Match[str]) -> str:
    """Days by name: cron counts them from Sunday, APScheduler from Monday."""
    first, last, step = numbered.groups()
    if first == "*":
        first, last = "0", "6"
    return ",".join(_DAYS[int(first) : int(last or first) + 1 : int(step or 1)])
