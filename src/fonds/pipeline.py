"""START HERE: the whole flow on one screen.

    discover ─ fetch ─ parse ─ load ─┬─ chunk ─ search
               │               │     │
            archive        documents └─ queues: vectors (embed/), citations

`discover` and `parse` belong to the source (`sources/`); everything else is done here, once, for
all of them. Each stage leaves something durable behind, so that each can be repeated from the
one before it: raw bytes in the archive, records in the database, passages beside them.

A code is not listed but walked as a tree, and executed in batches under a budget (`codes/`). A
website is listed by crawling its pages, and its PDFs are also stored under their names (`sites/`).
An upload comes from its user, and a worker takes it through the same stages (`uploads/`).

When a run ends, the hosts it asked are noted in the index `domains` (`shards/`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

from fonds.context import Context
from fonds.errors import SuspiciousYieldError
from fonds.fetch.redact import Redaction
from fonds.runs.active_run import ActiveRun, heartbeat
from fonds.runs.concurrency import each
from fonds.runs.discover import Asker, changed, check_yield, discover, discovery_key, require_key
from fonds.runs.fetch import Fetched, fetch
from fonds.runs.hosts import notes_hosts
from fonds.runs.load import Loader
from fonds.runs.locks import claim_source, kept
from fonds.runs.state import Run, RunReport, RunRequest, RunStatus
from fonds.runs.tasks import Failure, open_errors, resolve
from fonds.sources.base import Registered, Source
from fonds.sources.jurisdiction import JurisdictionAdapter
from fonds.stores.records import link_references


@notes_hosts
async def run_source(source: Registered, request: RunRequest, context: Context) -> RunReport:
    """Bring one source up to date. Safe to kill at any moment, and to repeat at any time."""
    if isinstance(source, JurisdictionAdapter):  # a code is planned as a tree, and executed
        from fonds.codes.invocation import open_invoker  # noqa: PLC0415 — other sources need none of it
        from fonds.codes.run import run_code  # noqa: PLC0415 — as above

        with open_invoker(source, context) as invoker:
            at_once = invoker.at_once
            report = await run_code(source, request, context, invoker, at_once=at_once)
        return report.run
    assert isinstance(source, Source)
    database, clock, info = context.database, context.seams.clock, source.info
    require_key(info, context.settings)
    with (
        claim_source(database, context.settings.home, info.name, clock) as claim,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix=info.name) as thread,
    ):
        redact = Redaction(context.settings)
        run = Run(source=info.name, request=request, database=database, clock=clock, redact=redact)
        job = ActiveRun(source=source, run=run, claim=claim, context=context, thread=thread)
        state = run.start(claim.confirm)
        with database.read() as connection:
            standing = open_errors(connection, info.name)
        asker = Asker(info, context, run.stages.discover)
        loader = Loader(job, standing, asker.take_learned)
        try:
            async with kept(claim), heartbeat(run, claim):
                found = discover(job, state, asker, standing)  # what there is, less what is known
                fetched = fetch(job, found)  # its bytes, archived
                await load(job, fetched, loader)  # its records, in batches
                return await job.in_thread(_conclude, job, loader)
        except asyncio.CancelledError:
            thread.shutdown(cancel_futures=True)  # the batch being written is still part of the run
            run.finish(RunStatus.CANCELLED, "stopped by request; the next run continues from here")
            raise
        except BaseException as error:
            run.finish(RunStatus.FAILED, f"{type(error).__name__}: {error}")
            raise


async def load(job: ActiveRun, fetched: AsyncIterator[list[Fetched]], loader: Loader) -> None:
    """Parse and load in order, while fetching goes on; one thread, one writer."""
    async for ready in fetched:
        await _take(job, ready, loader)
    job.run.stages.fetch.conclude(job.run.counts.fetched)
    await job.in_thread(loader.flush)


async def _take(job: ActiveRun, ready: list[Fetched], loader: Loader) -> None:
    """A task whose bytes ask for further tasks is settled after those are."""
    waiting = deque(ready)
    while (unsettled := await job.in_thread(loader.take, waiting)) is not None:
        arrival, further = unsettled
        async for fetched in fetch(job, each(changed(job, further, loader.standing))):
            await _take(job, fetched, loader)
        await job.in_thread(loader.settle, arrival)


def _conclude(job: ActiveRun, loader: Loader) -> RunReport:
    """Link what can be linked, doubt what looks empty, and say what came of it."""
    counts, info = job.run.counts, job.source.info
    with job.context.database.write() as connection:
        job.claim.confirm(connection)
        link_references(connection)
        made_good = [discovery_key(job.run.request), *([] if counts.error else ["yield"])]
        now = job.context.seams.clock.now()
        resolve(connection, info.name, made_good, now, but=job.run.id)
    if not counts.error:
        try:
            # A stand-in for the upstream may hold as little as it likes, but not nothing.
            at_least = 1 if job.context.settings.hosts else info.at_least
            check_yield(info.name, counts.parsed + counts.skipped, at_least)
        except SuspiciousYieldError as error:
            loader.take(deque([Failure.of(error, "discover", "yield")]))
            loader.flush()
    counts = job.run.counts
    if not counts.error:
        return job.run.finish(RunStatus.SUCCESS)
    loaded = counts.inserted + counts.updated + counts.skipped
    return job.run.finish(RunStatus.PARTIAL if loaded else RunStatus.FAILED, job.run.first_error)
