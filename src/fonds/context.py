"""The context of a library: settings, stores and clients, for everything that works on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from fonds.chunk.chunker import Chunker
from fonds.engine.base import Engine
from fonds.engine.opening import open_engine
from fonds.engine.readers import ReaderPool
from fonds.fetch.archive import Archive
from fonds.fetch.client import Fetcher
from fonds.fetch.transport import Transport
from fonds.model import Counts
from fonds.normalize.registry import READER_MODULES, SHOULD_RECYCLE
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sources.registry import SourceRegistry
from fonds.stores.blobs import Blobs
from fonds.stores.database import Database

if TYPE_CHECKING:
    from fonds.embed.client import Endpoints

Progress = Callable[[str, Counts], None]
"""Called with a source and its counts as a run goes on."""


READERS: Final = 2
"""How many documents are read at a time for those who wait for it, such as visitors of the site."""
REQUEST_MODULES: Final = (
    "fonds.runs.derivation",
    "fonds.catalog.versions",
    "fonds.web.document_html",
)
"""Modules with the functions that they wait for, by name: a reader process imports them."""


def ignore_progress(_source: str, _counts: Counts) -> None:
    """Report progress to no one."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """Settings, database, blobs and clients shared by every run of a library.

    The clients are made when they are first used, and closed by `async with`.
    """

    settings: Settings
    seams: Seams
    database: Database
    blobs: Blobs
    sources: SourceRegistry = field(default_factory=SourceRegistry)
    progress: Progress = ignore_progress
    transport: Transport | None = None
    """Of the fetcher, where that is not the network: one that records, or replays a recording."""
    bundle: str | None = None
    """Root and key of the bundle that is being loaded, which every document of it gets."""

    @cached_property
    def chunker(self) -> Chunker:
        """Cuts texts into passages of the size of the settings."""
        settings = self.settings
        return Chunker(max_tokens=settings.chunk_tokens, overlap_tokens=settings.chunk_overlap)

    @cached_property
    def fetcher(self) -> Fetcher:
        """The client for all requests."""
        folder = self.settings.home / "tmp"
        fetcher = Fetcher(self.settings, seams=self.seams, folder=folder, transport=self.transport)
        fetcher.prepare_folder()
        return fetcher

    @cached_property
    def archive(self) -> Archive:
        """The raw files of the library."""
        return Archive(self.blobs, self.fetcher)

    @cached_property
    def readers(self) -> ReaderPool:
        """Processes that read what is asked for; `close_readers` ends them.

        Each file has a copy of such a process for itself: the next one may belong to another user.
        """
        limits = self._reader_limits
        return ReaderPool(workers=READERS, preload=(*READER_MODULES, *REQUEST_MODULES), **limits)

    @cached_property
    def endpoints(self) -> Endpoints:
        """The limits of the embedding models that this process asks."""
        from fonds.embed.client import Endpoints  # noqa: PLC0415 — imports numpy

        return Endpoints()

    def open_readers(self, workers: int | None = None) -> Engine:
        """Processes that read many documents, here or on the cluster of the settings."""
        return open_engine(
            self.settings.engine,
            workers=workers,
            preload=READER_MODULES,
            should_recycle=SHOULD_RECYCLE,
            is_isolated=True,
            **self._reader_limits,
        )

    @property
    def _reader_limits(self) -> dict[str, Any]:
        return {
            "seconds": self.settings.read_seconds,
            "memory_mib": self.settings.read_memory_mib,
        }

    def close_readers(self) -> None:
        """Kill the reader processes, if there are any."""
        if "readers" in self.__dict__:
            self.readers.close()

    def with_stores(self, database: Database, blobs: Blobs) -> Context:
        """The same context with other stores; the fetcher is shared, so that its rates are kept."""
        other = replace(self, database=database, blobs=blobs)
        other.__dict__.update(fetcher=self.fetcher, readers=self.readers, endpoints=self.endpoints)
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close_readers()
        if "fetcher" in self.__dict__:
            await self.fetcher.aclose()
        elif self.transport is not None:
            await self.transport.aclose()
