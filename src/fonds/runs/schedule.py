"""When sources run by themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from fonds.sources.base import SourceInfo

TIME_ZONE: Final = ZoneInfo("America/New_York")
"""Washington's clock: the publishers keep office hours, also when daylight saving changes."""


def trigger_of(info: SourceInfo) -> CronTrigger | None:
    """A source's schedule, or None if it only runs when asked."""
    if info.schedule is None:
        return None
    return CronTrigger.from_crontab(info.schedule, timezone=TIME_ZONE)


def next_run(info: SourceInfo, now: datetime) -> datetime | None:
    """When a source is due next."""
    trigger = trigger_of(info)
    moment: datetime | None = trigger.get_next_fire_time(None, now) if trigger else None
    return moment
