"""The context of a library: settings, database, blobs and clients, for everything that works on it.

The chunker and the client are made when they are first needed: commands that only read start a
quarter faster without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fonds.model import Counts
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sources.registry import SourceRegistry
from fonds.stores.blobs import Blobs
from fonds.stores.database import Database

if TYPE_CHECKING:
    from fonds.chunk.chunker import Chunker
    from fonds.fetch.archive import Archive
    from fonds.fetch.client import Fetcher
    from fonds.fetch.transport import Transport

Progress = Callable[[str, Counts], None]
"""Called with a source and its counts as a run goes on."""


def ignore_progress(_source: str, _counts: Counts) -> None:
    """Report progress to no one."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """Settings, database, blobs and clients shared by every run of a library.

    Only one that has fetched something needs closing; `async with` does that.
    """

    settings: Settings
    seams: Seams
    database: Database
    blobs: Blobs
    sources: SourceRegistry = field(default_factory=SourceRegistry)
    progress: Progress = ignore_progress
    transport: Transport | None = None
    """Of the fetcher, where that is not the network: one that records, or replays a recording."""

    @cached_property
    def chunker(self) -> Chunker:
        """Cuts texts into passages of the size of the settings."""
        from fonds.chunk.chunker import Chunker  # noqa: PLC0415 — reading takes none

        settings = self.settings
        return Chunker(max_tokens=settings.chunk_tokens, overlap_tokens=settings.chunk_overlap)

    @cached_property
    def fetcher(self) -> Fetcher:
        """The client for all requests; its connections are closed with the context."""
        from fonds.fetch.client import Fetcher  # noqa: PLC0415 — importing it takes 100 ms

        folder = self.settings.home / "tmp"
        fetcher = Fetcher(self.settings, seams=self.seams, folder=folder, transport=self.transport)
        fetcher.prepare_folder()
        return fetcher

    @cached_property
    def archive(self) -> Archive:
        """The raw files of the library, and the way to add to them."""
        from fonds.fetch.archive import Archive  # noqa: PLC0415 — imports the client

        return Archive(self.blobs, self.fetcher)

    def with_stores(self, database: Database, blobs: Blobs) -> Context:
        """The same with other stores, and with this fetcher, so that it keeps to its rates."""
        other = replace(self, database=database, blobs=blobs)
        other.__dict__["fetcher"] = self.fetcher
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if "fetcher" in self.__dict__:
            await self.fetcher.aclose()
        elif self.transport is not None:
            await self.transport.aclose()
