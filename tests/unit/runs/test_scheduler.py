from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from sqlalchemy.exc import OperationalError

from fonds.cli.process import set_up_logging
from fonds.errors import SourceBusyError
from fonds.model import Counts
from fonds.runs import schedule as scheduler
from fonds.runs.schedule import MISFIRE_GRACE_SECONDS, serve_schedule
from fonds.runs.state import RunReport, RunStatus
from fonds.settings import Settings
from fonds.testing import FakeSource


def named(name: str, schedule: str | None) -> FakeSource:
    source = FakeSource()
    source.info = replace(source.info, name=name, schedule=schedule)
    return source


@pytest.fixture
def schedulers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The schedulers that are started, so that a test can look inside and turn the clock."""
    started: list[Any] = []

    class Observed(AsyncIOScheduler):  # type: ignore[misc]
        def start(self, paused: bool = False) -> None:  # noqa: FBT001, FBT002 — its signature
            started.append(self)
            super().start(paused)

    monkeypatch.setattr(scheduler, "AsyncIOScheduler", Observed)
    return started


Run = Callable[[str], Awaitable[RunReport]]


async def _tidy() -> None:
    return


def report(
    source: str, status: RunStatus, error: str | None = None, *, inserted: int = 0
) -> RunReport:
    return RunReport(
        run_id=uuid4(),
        source=source,
        status=status,
        counts=Counts(inserted=inserted),
        seconds=0.0,
        error_summary=error,
    )


def serve(
    sources: list[FakeSource],
    run: Run,
    during: Callable[[], Awaitable[None]],
    *,
    follow_up: Callable[[], Awaitable[object]] = _tidy,
) -> None:
    async def listed() -> list[FakeSource]:
        return sources

    async def main() -> None:
        stop = asyncio.Event()
        serving = asyncio.create_task(serve_schedule(listed, run, _tidy, stop, follow_up=follow_up))
        await asyncio.sleep(0)
        await during()
        stop.set()
        await serving

    asyncio.run(asyncio.wait_for(main(), 10))


async def never(_source: str) -> RunReport:
    raise AssertionError("nothing is due")


def test_each_scheduled_source_has_one_job_that_never_overlaps(schedulers: list[Any]) -> None:
    sources = [named("daily", "30 5 * * *"), named("asked", None), named("often", "* * * * *")]

    async def look() -> None:
        jobs = {job.id: job for job in schedulers[0].get_jobs()}
        for other in ("janitor", "follow-up", "sources"):
            assert jobs.pop(other)
        assert set(jobs) == {"daily", "often"}
        for job in jobs.values():
            assert (job.max_instances, job.misfire_grace_time) == (1, MISFIRE_GRACE_SECONDS)
            assert job.coalesce
            assert str(job.trigger.timezone) == "America/New_York"

    serve(sources, never, look)
    assert not schedulers[0].running


def test_due_source_is_run_and_one_that_fails_is_run_again(schedulers: list[Any]) -> None:
    runs: list[str] = []
    ran = asyncio.Event()

    async def run(source: str) -> RunReport:
        runs.append(source)
        ran.set()
        raise SourceBusyError("fake is being run by another process")

    async def make_due_twice() -> None:
        for _ in range(2):
            ran.clear()
            schedulers[0].modify_job("fake", next_run_time=datetime.now(UTC))
            await ran.wait()
            await asyncio.sleep(0)

    serve([named("fake", "* * * * *")], run, make_due_twice)
    assert runs == ["fake", "fake"]


def test_stopping_cancels_a_run_that_is_going_on(schedulers: list[Any]) -> None:
    begun = asyncio.Event()
    ends: list[str] = []

    async def run(source: str) -> RunReport:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        return report(source, RunStatus.SUCCESS)

    async def make_due() -> None:
        schedulers[0].modify_job("fake", next_run_time=datetime.now(UTC))
        await begun.wait()

    serve([named("fake", "* * * * *")], run, make_due)
    assert ends == ["cancelled"]


def test_scheduler_logs_one_line_for_a_failed_run_at_the_default_level(
    schedulers: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    ran = {name: asyncio.Event() for name in ("well", "refused", "unavailable")}

    async def run(source: str) -> RunReport:
        ran[source].set()
        if source == "unavailable":
            raise OperationalError("SELECT 1", {}, Exception("connection refused\nno route"))
        status = RunStatus.SUCCESS if source == "well" else RunStatus.FAILED
        return report(source, status, "RefusedError: 403\nsorry")

    async def make_due() -> None:
        for name, started in ran.items():
            schedulers[0].modify_job(name, next_run_time=datetime.now(UTC))
            await started.wait()
        await asyncio.sleep(0)

    set_up_logging(Settings())
    try:
        serve([named(name, "* * * * *") for name in ran], run, make_due)
    finally:
        structlog.reset_defaults()
    refused, unavailable = capsys.readouterr().err.splitlines()
    assert "run failed" in refused
    assert "source=refused" in refused
    assert "error='RefusedError: 403'" in refused
    assert "source=unavailable" in unavailable
    assert "connection refused" in unavailable


def test_a_run_that_loaded_something_is_followed_up_and_another_is_not(
    schedulers: list[Any],
) -> None:
    followed: list[str] = []
    is_followed, has_run = asyncio.Event(), asyncio.Event()

    async def run(source: str) -> RunReport:
        has_run.set()
        return report(source, RunStatus.PARTIAL, inserted=int(source == "rich"))

    async def follow_up() -> None:
        followed.append("call")
        is_followed.set()

    async def make_due() -> None:
        for name in ("poor", "rich"):
            has_run.clear()
            schedulers[0].modify_job(name, next_run_time=datetime.now(UTC))
            await has_run.wait()
        await is_followed.wait()

    serve(
        [named("poor", "* * * * *"), named("rich", "* * * * *")], run, make_due, follow_up=follow_up
    )
    assert followed == ["call"]


def test_follow_ups_never_overlap_and_those_that_wait_are_one() -> None:
    calls: list[str] = []
    go_on = asyncio.Event()

    async def work() -> None:
        calls.append("begun")
        await go_on.wait()
        calls.append("ended")
        raise OperationalError("SELECT 1", {}, Exception("connection refused"))

    async def main() -> None:
        following_up = scheduler._OneAtATime(work)
        tasks = [asyncio.create_task(following_up.call()) for _ in range(4)]
        await asyncio.sleep(0)
        assert calls == ["begun"]
        go_on.set()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(main(), 10))
    assert calls == ["begun", "ended", "begun", "ended"]


def test_sources_that_come_change_or_go_while_a_scheduler_runs_are_noticed(
    schedulers: list[Any],
) -> None:
    sources = [named("kept", "1 * * * *"), named("gone", "2 * * * *"), named("moved", "3 * * * *")]

    def triggers() -> dict[str, str]:
        names = {"kept", "gone", "moved", "new"}
        return {job.id: str(job.trigger) for job in schedulers[0].get_jobs() if job.id in names}

    async def change() -> None:
        before = triggers()
        sources[1:] = [named("moved", "4 * * * *"), named("new", "5 * * * *")]
        await schedulers[0].get_job("sources").func()
        after = triggers()
        assert set(after) == {"kept", "moved", "new"}
        assert after["kept"] == before["kept"]
        assert "minute='4'" in after["moved"]

    serve(sources, never, change)
