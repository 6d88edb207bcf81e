"""Stage one: the tasks that a source lists, without those that are known to be unchanged.

Also the checks of a run: that its key is set, and that the publisher did not list too little.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Final

from fonds.context import Context
from fonds.errors import MissingKeyError, SettingsError, StoreUnavailableError, SuspiciousYieldError
from fonds.fetch.archive import FileRecord
from fonds.fetch.rates import Pace, RetryLog, logged_to
from fonds.fetch.transport import NO_CONTACT
from fonds.model import FetchTask, KeyListing, Listing, Watermark
from fonds.runs.active_run import ActiveRun
from fonds.runs.normalization import chunker_label
from fonds.runs.state import RunRequest
from fonds.runs.tasks import MAX_ATTEMPTS, Failure, TaskState, previous_file, recall
from fonds.settings import Settings
from fonds.sources.base import ListingResponse, Registered, Source, SourceInfo
from fonds.stores.database import repeatable

BATCH_SIZE: Final = 500
BATCH_SECONDS: Final = 0.25
"""After which a smaller batch is handed on, as a source may take long to find the next task."""

Discovered = TaskState | Watermark | Listing | KeyListing | Failure
"""The items that discovery yields, in the order of the source."""


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
        """Fetch one listing."""
        previous = previous_file(self._context.database, self._info.name, url)
        with logged_to(self._retry_log) if self._retry_log else nullcontext():
            result = await self._context.archive.download(
                source=self._info.name,
                url=url,
                path=path,
                pace=pace_of(self._info, self._context.settings),
                previous=previous,
            )
        if result.record is not None:
            self._validators.append(result.record)
        return ListingResponse(
            data=await asyncio.to_thread(self._context.archive.read, result.archived),
            archived=result.archived,
            changed=result.changed,
        )

    def take_validators(self) -> list[FileRecord]:
        """Validators received since the last call.

        They may be stored at any time: a listing that has not changed is read from the archive,
        and still lists what is not loaded yet.
        """
        validators, self._validators = self._validators, []
        return validators


def pace_of(info: SourceInfo, settings: Settings) -> Pace:
    """The rate limit of a source's upstream, with the keys of the settings."""
    rate = info.rate
    if info.key is not None and info.key.rate is not None and getattr(settings, info.key.setting):
        rate = info.key.rate
    return Pace(per_second=rate.per_second, burst=rate.burst)


async def discover(
    active: ActiveRun[Source], listings: ListingFetcher
) -> AsyncIterator[Discovered]:
    """The tasks to fetch; at last those that failed in earlier runs and are not listed any more."""
    retries = dict(active.open_errors)
    batch: list[FetchTask] = []
    clock = active.context.seams.clock
    due = clock.monotonic() + BATCH_SECONDS
    failure: Failure | None = None
    stage = active.run.stages.discover
    started = stage.begin()
    try:
        async for item in active.source.discover(active.state, listings):
            stage.end(started)
            if isinstance(item, FetchTask):
                active.run.count(discovered=1)
                retries.pop(item.key, None)
                batch.append(item)
            is_full = len(batch) >= BATCH_SIZE or clock.monotonic() > due
            if batch and (is_full or not isinstance(item, FetchTask)):
                for task in changed_tasks(active, batch):
                    yield task
                batch, due = [], clock.monotonic() + BATCH_SECONDS
            if not isinstance(item, FetchTask):
                yield item
            started = stage.begin()
    except StoreUnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 — a source may raise anything
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
    """The tasks that are to be fetched: changed ones, and all that failed before."""
    recalled = _recall(active, tasks)
    tasks_to_fetch = []
    for candidate in recalled:
        failed = candidate.task.key in active.open_errors
        if candidate.previous is not None and not failed and _is_unchanged(active, candidate):
            active.run.count(skipped=candidate.previous.records)
        else:
            tasks_to_fetch.append(candidate)
    return tasks_to_fetch


@repeatable
def _recall(active: ActiveRun[Source], tasks: list[FetchTask]) -> list[TaskState]:
    with active.context.database.read() as connection:
        return recall(connection, active.source.info.name, tasks)


def _is_unchanged(active: ActiveRun[Source], state: TaskState) -> bool:
    """Whether a task need not be fetched: same entry, same versions, validated not long ago."""
    previous, settings = state.previous, active.context.settings
    if previous is None or state.task.fingerprint is None or active.run.request.recheck:
        return False
    due = previous.validated_at + timedelta(days=settings.revalidate_days)
    return (
        previous.fingerprint == state.task.fingerprint
        and previous.recipe == parse_versions(active)
        and active.context.seams.clock.now() < due
    )


def parse_versions(active: ActiveRun[Registered]) -> str:
    """The versions of everything that turns a source's bytes into rows."""
    info = active.source.info
    return f"{info.name}@{info.version} {chunker_label(active.context.chunker)}"


MAX_LOSS_RATIO: Final = 0.2
"""The part of the earlier records that may be missing from a new list."""
MAX_LOSS_IGNORED: Final = 5
"""Missing records that are never suspicious."""


def check_loss(what: str, before: int, missing: int) -> None:
    """Raise if a list lost more records than publishers withdraw at a time."""
    if missing > max(MAX_LOSS_IGNORED, before * MAX_LOSS_RATIO):
        raise SuspiciousYieldError(
            f"{what} shrank: {missing} of {before} records are missing. Nothing was marked as "
            "withdrawn; if the loss is real, run again with --accept-loss"
        )


def check_yield(source: str, records: int, at_least: int) -> None:
    """Raise if a run saw fewer records than the source must have."""
    if records < at_least:
        raise SuspiciousYieldError(
            f"{source} yielded {records} records where at least {at_least} are expected; "
            "is the upstream down, or does it serve a login or error page?"
        )


def require_contact(context: Context) -> None:
    """SettingsError if every request to a publisher would be refused."""
    settings = context.settings
    if not settings.contact_publishers and not settings.hosts and context.transport is None:
        raise SettingsError(f"nothing was run: {NO_CONTACT}")


def require_key(info: SourceInfo, settings: Settings) -> None:
    """Raise if the key that a source's upstream requires is not set."""
    key = info.key
    if key is not None and key.required and not getattr(settings, key.setting):
        raise MissingKeyError(
            f"{info.name} needs a key: set {key.setting} in fonds.toml or FONDS_"
            f"{key.setting.upper()}; get one at {key.signup}"
        )
