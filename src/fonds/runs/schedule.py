"""The scheduler: runs every source by its own cron expression, until it is stopped."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import FondsError
from fonds.runs.state import RunReport, RunStatus
from fonds.sources.base import Registered, SourceInfo
from fonds.sources.registry import SourceRegistry

TIME_ZONE: Final = ZoneInfo("America/New_York")
"""Washington's time, with daylight saving: most publishers keep its office hours."""

_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERED_DAYS: Final = re.compile(r"(\*(?=/)|\d)(?:-(\d))?(?:/(\d+))?")


def trigger_of(info: SourceInfo) -> CronTrigger | None:
    """A source's schedule, or None if it only runs on request."""
    if info.schedule is None:
        return None
    *times, days = info.schedule.split()
    schedule = " ".join([*times, _NUMBERED_DAYS.sub(_day_names, days)])
    return CronTrigger.from_crontab(schedule, timezone=TIME_ZONE)


def scheduled(registry: SourceRegistry, names: Sequence[str]) -> list[Registered]:
    """The sources that are run on schedule: those that are named, or all."""
    return [registry.require(name) for name in names] or list(registry.values())


def next_run(info: SourceInfo, now: datetime) -> datetime | None:
    """The time when a source is due next."""
    trigger = trigger_of(info)
    due: datetime | None = trigger.get_next_fire_time(None, now) if trigger else None
    return due


def _day_names(numbered: re.Match[str]) -> str:
    """Days by name: cron counts them from Sunday, APScheduler from Monday."""
    first, last, step = numbered.groups()
    if first == "*":
        first, last = "0", "6"
    return ",".join(_DAYS[int(first) : int(last or first) + 1 : int(step or 1)])


MISFIRE_GRACE_SECONDS: Final = 300
TIDY_HOUR: Final = 3
FOLLOW_UP_MINUTE: Final = 50
"""Of every hour; most sources start in its first half."""

_log = structlog.get_logger("fonds.scheduler")


async def serve_schedule(
    sources: Iterable[Registered],
    run: Callable[[str], Awaitable[RunReport]],
    tidy: Callable[[], Awaitable[object]],
    stop: asyncio.Event,
    *,
    follow_up: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Tidy up, now and every day, and run due sources until `stop` is set.

    A source runs once at a time. `follow_up` is called every hour.
    """
    await tidy()
    scheduler = AsyncIOScheduler(timezone=TIME_ZONE)
    scheduler.add_job(tidy, CronTrigger(hour=TIDY_HOUR, timezone=TIME_ZONE), id="janitor")
    if follow_up is not None:
        scheduler.add_job(
            follow_up,
            CronTrigger(minute=FOLLOW_UP_MINUTE, timezone=TIME_ZONE),
            id="follow-up",
            max_instances=1,
            misfire_grace_time=MISFIRE_GRACE_SECONDS,
        )
    for source in sources:
        trigger = trigger_of(source.info)
        if trigger is not None:
            scheduler.add_job(
                _run_quietly,
                trigger,
                args=[run, source.info.name],
                id=source.info.name,
                max_instances=1,
                misfire_grace_time=MISFIRE_GRACE_SECONDS,
            )
    scheduler.start()
    try:
        await stop.wait()
    finally:
        scheduler.shutdown(wait=False)


async def _run_quietly(run: Callable[[str], Awaitable[RunReport]], source: str) -> None:
    try:
        log_failed_run(await run(source))
    except (FondsError, SQLAlchemyError, OSError) as error:
        # The text of SQLAlchemy's errors continues with the statement and its parameters.
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        _log.error("run failed", source=source, error=reason)


def log_failed_run(report: RunReport) -> None:
    """Log one line, at a level that is shown by default, if a run has failed."""
    if report.status is RunStatus.FAILED:
        reason = (report.error_summary or report.counts.summary()).partition("\n")[0]
        _log.error("run failed", source=report.source, run=str(report.run_id), error=reason)
