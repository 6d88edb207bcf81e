"""One crawl at a time writes to an output: its ledger has one writer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Final

from fonds import ids
from fonds.errors import SourceBusyError
from fonds.runs.context import Workplace
from fonds.runs.locks import LEASE, Claim, claim_source, kept
from fonds.sites.records.output import open_output

GLANCE: Final = 0.5
AFTER_A_KILL: Final = LEASE.total_seconds() + 5
"""Seconds after which the claim of a killed process has run out, on PostgreSQL."""


@asynccontextmanager
async def turn_at(output: str, workplace: Workplace, *, waits: bool) -> AsyncIterator[None]:
    """Hold an output; who waits does so for as long as another crawl writes there."""
    address = open_output(output, seams=workplace.seams).address
    with ExitStack() as stack:
        async with kept(await _claimed(address, workplace, stack, waits=waits)):
            yield


async def _claimed(address: str, workplace: Workplace, stack: ExitStack, *, waits: bool) -> Claim:
    # A file is let go by the kernel; a lease outlives its holder for a while.
    patience = 0.0 if workplace.database.is_sqlite else AFTER_A_KILL
    deadline = asyncio.get_running_loop().time() + patience
    name = f"output-{ids.text_sha256(address)[:16]}"
    while True:
        claim = claim_source(
            workplace.database, workplace.settings.home, name, workplace.seams.clock
        )
        try:
            return await asyncio.to_thread(stack.enter_context, claim)
        except SourceBusyError:
            if not waits and asyncio.get_running_loop().time() > deadline:
                raise SourceBusyError(
                    f"another crawl writes to {address}: wait for its end, or give another output"
                ) from None
        await asyncio.sleep(GLANCE)
