"""Stage two: files are fetched, and archived before they are read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from structlog.contextvars import bind_contextvars

from fonds import ids
from fonds.errors import NotFoundError, RefusedError, StoreUnavailableError
from fonds.fetch.archive import DownloadResult, FileRecord
from fonds.fetch.rates import use_retry_log
from fonds.fetch.transport import public_url
from fonds.model import Archived, FetchTask, KeyListing, Listing, Part, Watermark
from fonds.runs.active_run import ActiveRun
from fonds.runs.concurrency import work_ahead
from fonds.runs.discover import Discovered, pace_of
from fonds.runs.tasks import Failure, LoadedInput, Stage, TaskState
from fonds.sources.base import Source

AHEAD_OF_LOADING: Final = 8
"""Fetched and waiting tasks for each concurrent request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchedTask:
    """A task whose parts are all in the archive."""

    task: FetchTask
    parts: tuple[tuple[Part, Archived], ...]
    validators: tuple[FileRecord, ...]
    previous: LoadedInput | None
    """The input that was loaded from this task before."""
    started_at: datetime
    """When its first file was requested."""
    validated_at: datetime | None = None
    """When its publisher was last asked for it; None: in this run."""

    @property
    def input_sha256(self) -> str:
        """The hash of everything that `parse` receives."""
        shas = {part.name: archived.sha256 for part, archived in self.parts}
        return ids.json_sha256([shas, dict(self.task.params)])

    def failure(self, error: BaseException, stage: Stage) -> Failure:
        """It could not be parsed or loaded; its files need not be fetched again."""
        return Failure.of(
            error, stage, self.task, started_at=self.started_at, validators=self.validators
        )


Fetched = FetchedTask | Watermark | Listing | KeyListing | Failure


async def fetch(
    active: ActiveRun[Source], discovered: AsyncIterator[Discovered]
) -> AsyncIterator[list[Fetched]]:
    """Fetch tasks, several at a time, and yield them in order as they are ready."""
    concurrency = active.source.info.fetch_concurrency
    slots = asyncio.Semaphore(concurrency)

    async def act(item: Discovered) -> Fetched:
        if not isinstance(item, TaskState):
            return item
        async with slots:
            return await fetch_task(active, item)

    async for ready in work_ahead(discovered, act, window=concurrency * AHEAD_OF_LOADING):
        yield ready


async def fetch_task(active: ActiveRun[Source], state: TaskState) -> FetchedTask | Failure:
    """Fetch all parts of one task; a failure is returned."""
    parts: list[tuple[Part, Archived]] = []
    validators: list[FileRecord] = []
    stage = active.run.stages.fetch
    started = stage.begin()
    started_at = active.context.seams.clock.now()
    # Both belong to the asyncio task, which fetches only this task.
    bind_contextvars(task=state.task.key)
    use_retry_log(stage)
    try:
        for part in state.task.parts:
            try:
                result = await _fetch_part(active, state, part)
            except (NotFoundError, RefusedError) as error:
                missing = part.refusable or isinstance(error, NotFoundError)
                if not (part.optional and missing):
                    raise
                active.run.log(
                    "warn", f"continued without {part.name}: {error}", task=state.task.key
                )
                continue
            parts.append((part, result.archived))
            validators += [result.record] if result.record else []
    except StoreUnavailableError:
        raise  # no fault of this task
    except Exception as error:  # noqa: BLE001 — the failure is recorded, and the run continues
        return Failure.of(
            error, "fetch", state.task, started_at=started_at, validators=tuple(validators)
        )
    finally:
        stage.end(started)
    active.run.count(fetched=1)
    return FetchedTask(
        task=state.task,
        parts=tuple(parts),
        validators=tuple(validators),
        previous=state.previous,
        started_at=started_at,
    )


async def _fetch_part(active: ActiveRun[Source], state: TaskState, part: Part) -> DownloadResult:
    previous = state.files.get(public_url(part.url))
    if active.collector:
        return await active.collector.collect(state.task, part, previous)
    return await active.context.archive.download(
        source=active.source.info.name,
        url=part.url,
        path=part.path,
        pace=pace_of(active.source.info, active.context.settings),
        previous=previous,
        headers=part.headers,
    )
