"""START HERE: the whole flow on one screen.

    discover ─ fetch ─ parse ─ load ─┬─ chunk ─ search
               │               │     │
            archive        documents └─ queues: vectors (embed/), citations

`discover` and `parse` belong to the source (`sources/`); everything else is done here, once, for
all of them. Each stage leaves something durable behind, so that each can be repeated from the
one before it: raw bytes in the archive, records in the database, passages next to them.

A code is not listed but walked as a tree, and executed in batches under a budget (`codes/`). A
website is listed by crawling its pages, and its PDFs are also stored under their names (`sites/`).
An upload comes from its user, and a worker takes it through the same stages (`uploads/`).

`source_runners.py` runs each kind of source. `start_run` locks the source and records the run;
when it ends, the hosts it contacted are recorded in the index `domains` (`shards/`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

from fonds.context import Context
from fonds.errors import SuspiciousYieldError
from fonds.runs.active_run import ActiveRun, start_run
from fonds.runs.concurrency import as_stream
from fonds.runs.discover import (
    ListingFetcher,
    changed_tasks,
    check_yield,
    discover,
    discovery_key,
    require_contact,
    require_key,
)
from fonds.runs.fetch import Fetched, fetch
from fonds.runs.load import Loader
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.runs.tasks import Failure, resolve
from fonds.sources.base import Source
from fonds.stores.database import repeatable
from fonds.stores.records import link_references


async def run_source(source: Source, request: RunRequest, context: Context) -> RunReport:
    """Bring one source up to date. Safe to kill at any moment, and to repeat at any time."""
    require_contact(context)
    require_key(source.info, context.settings)
    async with start_run(source, request, context) as active:
        listings = ListingFetcher(source.info, context, active.run.stages.discover)
        loader = Loader(active, listings.take_validators)
        tasks = discover(active, listings)  # what the publisher lists, without what is unchanged
        fetched = fetch(active, tasks)  # its bytes, archived
        await load(active, fetched, loader)  # its records, in batches
        await active.in_thread(_finish, active, loader)
    return active.report


async def load(
    active: ActiveRun[Source], fetched: AsyncIterator[list[Fetched]], loader: Loader
) -> None:
    """Parse and load in order, while fetching goes on; one thread, one writer."""
    async for batch in fetched:
        await _load_batch(active, batch, loader)
    active.run.stages.fetch.finish(active.run.counts.fetched)
    await active.in_thread(loader.flush)


async def _load_batch(active: ActiveRun[Source], batch: list[Fetched], loader: Loader) -> None:
    """Load a batch; tasks that were named by a file are loaded before its own task is finished."""
    queue = deque(batch)
    while (unfinished := await active.in_thread(loader.load, queue)) is not None:
        task, further_tasks = unfinished
        active.run.count(discovered=len(further_tasks))
        async for fetched in fetch(active, as_stream(changed_tasks(active, further_tasks))):
            await _load_batch(active, fetched, loader)
        await active.in_thread(loader.finish_task, task)


def _finish(active: ActiveRun[Source], loader: Loader) -> None:
    """Link references, fail a run that yielded suspiciously little, and record the result."""
    run, info, context = active.run, active.source.info, active.context
    _link(active)
    if not run.counts.error:
        try:
            # A substitute for the upstream (FONDS_HOSTS) may serve less, but not nothing.
            at_least = 1 if context.settings.hosts else info.at_least
            check_yield(info.name, run.counts.parsed + run.counts.skipped, at_least)
        except SuspiciousYieldError as error:
            loader.load(deque([Failure.of(error, "discover", "yield")]))
            loader.flush()
    if not run.counts.error:
        active.finish(RunStatus.SUCCESS)
    else:
        loaded = run.counts.inserted + run.counts.updated + run.counts.skipped
        active.finish(RunStatus.PARTIAL if loaded else RunStatus.FAILED, run.first_error)


@repeatable
def _link(active: ActiveRun[Source]) -> None:
    run, context = active.run, active.context
    with context.database.write() as connection:
        active.lock.confirm(connection)
        link_references(connection)
        resolved = [discovery_key(run.request), *([] if run.counts.error else ["yield"])]
        resolve(connection, run.source, resolved, context.seams.clock.now(), but=run.id)
