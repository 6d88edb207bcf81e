"""Stage one: what there is to fetch, less what is known to be unchanged.

Checks before and after a run: keys at hand; and a walled, capped or shrunken feed is no news.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Final

from fonds.context import Context
from fonds.errors import MissingKeyError, SuspiciousYieldError
from fonds.fetch.archive import FileRecord
from fonds.fetch.rates import Pace, RetryLog, logged_to
from fonds.fetch.redact import public_url
from fonds.model import FetchTask, Listing, Watermark
from fonds.runs.active_run import ActiveRun
from fonds.runs.normalization import chunker_label
from fonds.runs.state import RunRequest
from fonds.runs.tasks import MAX_ATTEMPTS, Failure, TaskState, recall, recall_files
from fonds.settings import Settings
from fonds.sources.base import ListingResponse, Source, SourceInfo

RECALLED_AT_ONCE: Final = 500
RECALLED_AFTER: Final = 0.25
"""Seconds after which fewer are handed on, as a source may take long to find the next."""

Discovered = TaskState | Watermark | Listing | Failure
"""What discovery hands on, in the source's order."""


class ListingFetcher:
    """Fetches listings for `discover` and `enumerate`: paced, conditional, archived."""

    def __init__(
        self, info: SourceInfo, context: Context, retry_log: RetryLog | None = None
    ) -> None:
        self._info = info
        self._context = context
        self._retry_log = retry_log
        self._validators: list[FileRecord] = []

    async def __call__(self, url: str, *, path: str) -> ListingResponse:
        """Ask for one listing."""
        with self._context.database.read() as connection:
            known = recall_files(connection, self._info.name, [url]).get(public_url(url))
        with logged_to(self._retry_log) if self._retry_log else nullcontext():
            obtained = await self._context.archive.download(
                source=self._info.name,
                url=url,
                path=path,
                pace=pace_of(self._info, self._context.settings),
                previous=known,
            )
        if obtained.record is not None:
            self._validators.append(obtained.record)
        return ListingResponse(
            data=await asyncio.to_thread(self._context.archive.read, obtained.archived),
            archived=obtained.archived,
            changed=obtained.changed,
        )

    def take_validators(self) -> list[FileRecord]:
        """Validators received since the last call.

        They may be stored at any time: a listing that has not changed is read from the archive,
        and still lists what is not loaded yet.
        """
        validators, self._validators = self._validators, []
        return validators


def pace_of(info: SourceInfo, settings: Settings) -> Pace:
    """How fast a source's upstream may be asked, by us with the keys we have."""
    rate = info.rate
    if info.key is not None and info.key.rate is not None and getattr(settings, info.key.setting):
        rate = info.key.rate
    return Pace(per_second=rate.per_second, burst=rate.burst)


async def discover(
    active: ActiveRun[Source], listings: ListingFetcher
) -> AsyncIterator[Discovered]:
    """All that is to be fetched, then what failed in earlier runs and was not listed again."""
    retries = dict(active.open_errors)
    batch: list[FetchTask] = []
    clock = active.context.seams.clock
    due = clock.monotonic() + RECALLED_AFTER
    failure: Failure | None = None
    stage = active.run.stages.discover
    began = stage.begin()
    try:
        async for item in active.source.discover(active.state, listings):
            stage.end(began)
            if isinstance(item, FetchTask):
                active.run.count(discovered=1)
                retries.pop(item.key, None)
                batch.append(item)
            is_full = len(batch) >= RECALLED_AT_ONCE or clock.monotonic() > due
            if batch and (is_full or not isinstance(item, FetchTask)):
                for task in changed_tasks(active, batch):
                    yield task
                batch, due = [], clock.monotonic() + RECALLED_AFTER
            if not isinstance(item, FetchTask):
                yield item
            began = stage.begin()
    except Exception as error:  # noqa: BLE001 — whatever a source raises is its failure, not ours
        failure = Failure.of(error, "discover", discovery_key(active.run.request))
    again = [e.task for e in retries.values() if e.task and e.attempts < MAX_ATTEMPTS]
    for task in changed_tasks(active, [*batch, *again]):
        yield task
    stage.finish(active.run.counts.discovered)
    if failure is not None:
        yield failure


def discovery_key(request: RunRequest) -> str:
    """The task key under which a failure to discover this range is recorded."""
    if request.mode != "backfill":
        return "discover"
    return f"discover {request.since or ''}..{request.until or ''}"


def changed_tasks(active: ActiveRun[Source], tasks: list[FetchTask]) -> list[TaskState]:
    """Tasks to be fetched; one that failed is, whatever is known from before it failed."""
    with active.context.database.read() as connection:
        recalled = recall(connection, active.source.info.name, tasks)
    wanted = []
    for candidate in recalled:
        failed = candidate.task.key in active.open_errors
        if candidate.known is not None and not failed and _unchanged(active, candidate):
            active.run.count(skipped=candidate.known.records)
        else:
            wanted.append(candidate)
    return wanted


def _unchanged(active: ActiveRun[Source], wanted: TaskState) -> bool:
    """Whether the listing's word is enough: same entry, same recipe, asked for not long ago."""
    known, settings = wanted.known, active.context.settings
    if known is None or wanted.task.fingerprint is None or active.run.request.recheck:
        return False
    due = known.validated_at + timedelta(days=settings.revalidate_days)
    return (
        known.fingerprint == wanted.task.fingerprint
        and known.recipe == recipe_of(active)
        and active.context.seams.clock.now() < due
    )


def recipe_of(active: ActiveRun[Source]) -> str:
    """The version of everything that turns a source's bytes into rows."""
    info = active.source.info
    return f"{info.name}@{info.version} {chunker_label(active.context.chunker)}"


LOSS_ALLOWED: Final = 0.2
"""Share of what was there before that may be missing at once."""
LOSS_IGNORED: Final = 5
"""So few missing records are never suspicious."""


def check_loss(what: str, before: int, missing: int) -> None:
    """Refuse a list that lost more than publishers withdraw in one go."""
    if missing > max(LOSS_IGNORED, before * LOSS_ALLOWED):
        raise SuspiciousYieldError(
            f"{what} shrank: {missing} of {before} records are missing. Nothing was marked as "
            "withdrawn; if the loss is real, run again with --accept-loss"
        )


def check_yield(source: str, records: int, at_least: int) -> None:
    """Refuse a run that saw fewer records than the source can possibly have."""
    if records < at_least:
        raise SuspiciousYieldError(
            f"{source} gave {records} records where at least {at_least} are expected; "
            "is the upstream down, or its answer walled?"
        )


def require_key(info: SourceInfo, settings: Settings) -> None:
    """Refuse to run a source whose upstream would only say that a key is missing."""
    key = info.key
    if key is not None and key.required and not getattr(settings, key.setting):
        raise MissingKeyError(
            f"{info.name} needs a key: set {key.setting} in fonds.toml or FONDS_"
            f"{key.setting.upper()}; get one at {key.signup}"
        )
