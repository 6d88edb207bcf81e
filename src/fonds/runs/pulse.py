"""A run as others see it while it goes on: its lines and figures are shown every few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from sqlalchemy.exc import SQLAlchemyError
from structlog.contextvars import bound_contextvars

from fonds.errors import FondsError
from fonds.runs.locks import SourceLock
from fonds.runs.state import Run

SHOWN_EVERY: Final = 2.0
"""Seconds; batches take along what there is, but a slow upstream may fill none for minutes."""


@asynccontextmanager
async def shown(run: Run, claim: SourceLock) -> AsyncIterator[None]:
    """Name the run in every line that is logged, and write its news while the block lasts."""
    ended = asyncio.Event()

    async def beat() -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), SHOWN_EVERY)
            if run.has_news and not ended.is_set():
                # Nobody fails for want of being seen: the next batch takes the news along.
                with suppress(FondsError, SQLAlchemyError, OSError):
                    await asyncio.to_thread(run.show, claim.confirm)

    with bound_contextvars(run=str(run.id), source=run.source):
        heart = asyncio.create_task(beat())
        try:
            yield
        finally:
            ended.set()
            await heart
