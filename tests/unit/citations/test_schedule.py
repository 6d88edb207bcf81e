from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from fonds.runs import schedule
from fonds.runs.schedule import serve_schedule
from fonds.runs.state import RunReport
from fonds.sources.base import Registered


def test_citations_are_looked_for_every_hour_at_ten_to(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    class Observed(AsyncIOScheduler):  # type: ignore[misc]
        def start(self, paused: bool = False) -> None:  # noqa: FBT001, FBT002 — its signature
            started.append(self)
            super().start(paused)

    monkeypatch.setattr(schedule, "AsyncIOScheduler", Observed)

    async def run(source: str) -> RunReport:
        raise AssertionError(source)

    async def tidy() -> None:
        return

    async def sources() -> list[Registered]:
        return []

    async def main() -> None:
        stop, cited = asyncio.Event(), asyncio.Event()

        async def cite() -> None:
            cited.set()

        serving = asyncio.create_task(serve_schedule(sources, run, tidy, stop, follow_up=cite))
        await asyncio.sleep(0)
        job = started[0].get_job("follow-up")
        due = job.trigger.get_next_fire_time(None, datetime(2026, 3, 6, 22, 51, tzinfo=UTC))
        assert due.astimezone(UTC) == datetime(2026, 3, 6, 23, 50, tzinfo=UTC)
        started[0].modify_job("follow-up", next_run_time=datetime.now(UTC))
        await cited.wait()
        stop.set()
        await serving

    asyncio.run(asyncio.wait_for(main(), 10))
