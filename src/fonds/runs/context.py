"""What a run works with, handed to it whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ParamSpec, TypeVar

from fonds.chunk.chunker import Chunker
from fonds.fetch.archive import Archive
from fonds.fetch.client import Fetcher
from fonds.runs.locks import FileLock, LeaseClaim
from fonds.runs.state import Counts, Run
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sources.base import Collector, Source
from fonds.stores.blobs import Blobs
from fonds.stores.database import Database

P = ParamSpec("P")
T = TypeVar("T")

Progress = Callable[[str, Counts], None]
"""Told (source, counts) as a run goes on."""


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """Everything outside the run itself."""

    settings: Settings
    seams: Seams
    database: Database
    blobs: Blobs
    fetcher: Fetcher
    archive: Archive
    chunker: Chunker
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class ActiveRun:
    """One source, one run, one workplace."""

    source: Source
    run: Run
    claim: FileLock | LeaseClaim
    workplace: Workplace
    thread: Executor
    """The one thread that parses and loads. One, because the memory that the C libraries under us
    use for that is kept by each thread anew."""

    @cached_property
    def collector(self) -> Collector | None:
        """The source, if it obtains its files itself; to find out takes a while, so it is once."""
        return self.source if isinstance(self.source, Collector) else None

    async def in_thread(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Parse or load without holding up what is being fetched; what it logs names the run."""
        call = partial(copy_context().run, partial(act, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(self.thread, call)
