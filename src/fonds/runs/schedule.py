"""The scheduler: runs every source by its own cron expression, until it is stopped."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger
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
"""Of every hour: uploads and unscheduled runs leave queues too."""
REVIEW_SECONDS: Final = 60
"""Between looks for sources that are new, or have another schedule: crawled websites."""

_log = structlog.get_logger("fonds.scheduler")

Run = Callable[[str], Awaitable[RunReport]]
FollowUp = Callable[[], Awaitable[object]]
ListSources = Callable[[], Awaitable[Iterable[Registered]]]


async def _nothing() -> None:
    return


async def serve_schedule(
    sources: ListSources,
    run: Run,
    tidy: Callable[[], Awaitable[object]],
    stop: asyncio.Event,
    *,
    follow_up: FollowUp = _nothing,
) -> None:
    """Tidy up, now and every day, and run due sources until `stop` is set.

    A source runs once at a time. `follow_up` is called every hour, and after runs that loaded
    anything; one call at a time.
    """
    await tidy()
    scheduler = AsyncIOScheduler(timezone=TIME_ZONE)
    following_up = _OneAtATime(follow_up)
    _add(scheduler, "janitor", tidy, CronTrigger(hour=TIDY_HOUR, timezone=TIME_ZONE))
    hourly = CronTrigger(minute=FOLLOW_UP_MINUTE, timezone=TIME_ZONE)
    _add(scheduler, "follow-up", following_up.call, hourly)

    async def run_and_follow_up(source: str) -> None:
        report = await _run_quietly(run, source)
        if report is not None and report.counts.inserted + report.counts.updated:
            # A job of its own, so that the source can be due again meanwhile.
            scheduler.add_job(following_up.call, misfire_grace_time=None)

    jobs = _SourceJobs(scheduler, sources, run_and_follow_up)
    await jobs.review()
    _add(scheduler, "sources", jobs.review, IntervalTrigger(seconds=REVIEW_SECONDS))
    scheduler.start()
    try:
        await stop.wait()
    finally:
        scheduler.shutdown(wait=False)


def _add(
    scheduler: AsyncIOScheduler,
    name: str,
    work: Callable[..., Awaitable[object]],
    trigger: BaseTrigger,
    *args: object,
) -> None:
    scheduler.add_job(
        work,
        trigger,
        args=args,
        id=name,
        max_instances=1,
        misfire_grace_time=MISFIRE_GRACE_SECONDS,
    )


@dataclass(slots=True)
class _OneAtATime:
    """Calls a function once at a time; calls that wait for the same one to end are one."""

    work: FollowUp
    is_waiting: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def call(self) -> None:
        if self.is_waiting:
            return
        self.is_waiting = True
        async with self.lock:
            self.is_waiting = False
            try:
                await self.work()
            except (FondsError, SQLAlchemyError, OSError) as error:
                _log.error("follow-up failed", error=_reason(error))


@dataclass(slots=True)
class _SourceJobs:
    """The jobs of a scheduler, one for each source that has a schedule."""

    scheduler: AsyncIOScheduler
    sources: ListSources
    run: Callable[[str], Awaitable[None]]
    schedules: dict[str, str] = field(default_factory=dict)
    """By the names of the sources that have a job."""

    async def review(self) -> None:
        """Add jobs of new sources and of new schedules, and remove those that are gone."""
        try:
            infos = [source.info for source in await self.sources()]
        except (FondsError, SQLAlchemyError, OSError) as error:
            _log.warning("sources not listed", error=_reason(error))
            return
        current = {info.name: info for info in infos if info.schedule is not None}
        for name, schedule in list(self.schedules.items()):
            if name not in current or current[name].schedule != schedule:
                self.scheduler.remove_job(name)
                del self.schedules[name]
        for name, info in current.items():
            trigger = trigger_of(info)
            if name not in self.schedules and trigger is not None:
                _add(self.scheduler, name, self.run, trigger, name)
                self.schedules[name] = info.schedule or ""


async def _run_quietly(run: Run, source: str) -> RunReport | None:
    try:
        report = await run(source)
    except (FondsError, SQLAlchemyError, OSError) as error:
        _log.error("run failed", source=source, error=_reason(error))
        return None
    log_failed_run(report)
    return report


def _reason(error: Exception) -> str:
    # The text of SQLAlchemy's errors continues with the statement and its parameters.
    return str(getattr(error, "orig", None) or error).partition("\n")[0]


def log_failed_run(report: RunReport) -> None:
    """Log one line, at a level that is shown by default, if a run has failed."""
    if report.status is RunStatus.FAILED:
        reason = (report.error_summary or report.counts.summary()).partition("\n")[0]
        _log.error("run failed", source=report.source, run=str(report.run_id), error=reason)
