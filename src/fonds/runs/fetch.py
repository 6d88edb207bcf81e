"""Stage two: the bytes, archived before anybody reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from structlog.contextvars import bind_contextvars

from fonds import ids
from fonds.errors import NotFoundError, RefusedError
from fonds.fetch.archive import DownloadResult, FileRecord
from fonds.fetch.rates import use_retry_log
from fonds.fetch.redact import public_url
from fonds.model import Archived, FetchTask, Listing, Part, Watermark
from fonds.runs.active_run import ActiveRun
from fonds.runs.concurrency import work_ahead
from fonds.runs.discover import Discovered, pace_of
from fonds.runs.tasks import Failure, KnownInput, TaskState
from fonds.sources.base import Source

AHEAD_OF_LOADING: Final = 8
"""Fetched and waiting tasks for each concurrent request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchedTask:
    """A task whose parts are all in the archive."""

    task: FetchTask
    parts: tuple[tuple[Part, Archived], ...]
    validators: tuple[FileRecord, ...]
    known: KnownInput | None
    """What was loaded from this task before."""

    @property
    def input_sha256(self) -> str:
        """Identity of everything `parse` will see."""
        shas = {part.name: archived.sha256 for part, archived in self.parts}
        return ids.json_sha256([shas, dict(self.task.params)])


Fetched = FetchedTask | Watermark | Listing | Failure


async def fetch(
    active: ActiveRun[Source], discovered: AsyncIterator[Discovered]
) -> AsyncIterator[list[Fetched]]:
    """Fetch what was found, several at a time, handed on in order as it is ready."""
    concurrency = active.source.info.fetch_concurrency
    slots = asyncio.Semaphore(concurrency)

    async def act(item: Discovered) -> Fetched:
        if not isinstance(item, TaskState):
            return item
        async with slots:
            return await fetch_task(active, item)

    async for ready in work_ahead(discovered, act, window=concurrency * AHEAD_OF_LOADING):
        yield ready


async def fetch_task(active: ActiveRun[Source], wanted: TaskState) -> FetchedTask | Failure:
    """All parts of one task, or the reason why not."""
    parts: list[tuple[Part, Archived]] = []
    validators: list[FileRecord] = []
    stage = active.run.stages.fetch
    began = stage.begin()
    # Both are of the asyncio task, which is this task's alone.
    bind_contextvars(task=wanted.task.key)
    use_retry_log(stage)
    try:
        for part in wanted.task.parts:
            try:
                obtained = await _obtain(active, wanted, part)
            except (NotFoundError, RefusedError) as error:
                missing = part.refusable or isinstance(error, NotFoundError)
                if not (part.optional and missing):
                    raise
                active.run.log(
                    "warn", f"went on without {part.name}: {error}", task=wanted.task.key
                )
                continue
            parts.append((part, obtained.archived))
            validators += [obtained.record] if obtained.record else []
    except Exception as error:  # noqa: BLE001 — one item's trouble is recorded; the run goes on
        return Failure.of(error, "fetch", wanted.task)
    finally:
        stage.end(began)
    active.run.count(fetched=1)
    return FetchedTask(
        task=wanted.task, parts=tuple(parts), validators=tuple(validators), known=wanted.known
    )


async def _obtain(active: ActiveRun[Source], wanted: TaskState, part: Part) -> DownloadResult:
    known = wanted.files.get(public_url(part.url))
    if active.collector:
        return await active.collector.collect(wanted.task, part, known)
    return await active.context.archive.download(
        source=active.source.info.name,
        url=part.url,
        path=part.path,
        pace=pace_of(active.source.info, active.context.settings),
        previous=known,
        headers=part.headers,
    )
