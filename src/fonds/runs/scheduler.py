"""The scheduler: runs every source by its own cron expression, until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger

from fonds.errors import FondsError
from fonds.runs.schedule import TIME_ZONE, trigger_of
from fonds.sources.base import Registered

MISFIRE_GRACE_SECONDS: Final = 300
TIDY_HOUR: Final = 3
FOLLOW_UP_MINUTE: Final = 50
"""Of every hour; most sources begin in its first half."""

_log = structlog.get_logger("fonds.scheduler")


async def serve_schedule(
    sources: Iterable[Registered],
    run: Callable[[str], Awaitable[object]],
    tidy: Callable[[], Awaitable[object]],
    stop: asyncio.Event,
    *,
    follow_up: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Tidy up, now and every day, and start due sources until `stop` is set.

    A source runs once at a time. `follow_up` is done hourly with what they loaded.
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


async def _run_quietly(run: Callable[[str], Awaitable[object]], source: str) -> None:
    try:
        await run(source)
    except FondsError as error:
        _log.error("run failed", source=source, error=str(error))
