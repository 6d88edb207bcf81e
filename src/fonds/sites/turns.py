"""One crawl at a time writes to an output: its ledger has one writer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Final, TypeVar

from fonds import ids
from fonds.errors import SourceBusyError
from fonds.runs.context import Workplace
from fonds.runs.locks import LEASE, Claim, claim_source, kept
from fonds.sites.records.output import open_output

T = TypeVar("T")

GLANCE: Final = 0.5
AFTER_A_KILL: Final = LEASE.total_seconds() + 5
"""Seconds after which the claim of a killed process has run out, on PostgreSQL."""


@asynccontextmanager
async def turn_at(
    output: str, workplace: Workplace, *, waits: bool, part: str = ""
) -> AsyncIterator[None]:
    """Hold an output; who waits does so for as long as another crawl writes there.

    A part of a crawl is held by itself, while whoever divided the crawl holds the whole.
    """
    address = open_output(output, seams=workplace.seams).address
    # A file is let go by the kernel; a lease outlives its holder for a while. Only a machine that
    # was given up can hold a part.
    patience = AFTER_A_KILL if part or not workplace.database.is_sqlite else 0.0
    name = f"output-{ids.text_sha256(address + part)[:16]}"
    with ExitStack() as stack:
        try:
            claim = await patiently(
                lambda: _claimed(name, workplace, stack), math.inf if waits else patience
            )
        except SourceBusyError:
            raise SourceBusyError(
                f"another crawl writes to {address}: wait for its end, or give another output"
            ) from None
        async with kept(claim):
            yield


async def patiently(act: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Act; try again for so long where another process holds what is needed."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await act()
        except SourceBusyError:
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(GLANCE)


async def _claimed(name: str, workplace: Workplace, stack: ExitStack) -> Claim:
    claim = claim_source(workplace.database, workplace.settings.home, name, workplace.seams.clock)
    return await asyncio.to_thread(stack.enter_context, claim)
