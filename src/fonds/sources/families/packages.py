"""Sources that are a collection of govinfo: how they are listed, read and audited, written once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import date

from fonds import ids
from fonds.model import Discovery, FetchTask, ParsedRecord, Raw, SourceState
from fonds.sources.base import Ask, Expected, SourceInfo
from fonds.sources.families.govinfo import Collection
from fonds.sources.families.gpo_files import LooseReader


class PackageSource:
    """A source whose packages are documents, or hold them as granules."""

    def __init__(self, info: SourceInfo, collection: Collection, reader: LooseReader) -> None:
        self.info = info
        self.collection = collection
        self.reader = reader

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The packages of the years asked for; see `Collection.discover` for the defaults."""
        async for found in self.collection.discover(state, ask):
            yield found

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """Records of a package or granule, and tasks for what is not fetched with it."""
        if loose := [part for part in raw.parts if part.name == ""]:
            yield from self.reader.read(loose)
        else:
            yield from self.parse_fetched(raw)

    def parse_fetched(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The same for what a task fetched."""
        yield from self.collection.parse(raw, self.reader.record)

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The packages that the API of govinfo lists by the day; it wants `data_gov_key`."""
        async for day, packages in self.collection.published(ask, since, until):
            yield Expected(scope=day, document_ids=frozenset(map(ids.govinfo_id, packages)))
