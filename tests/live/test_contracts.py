"""Does every upstream still answer as its source expects? One item of each, opt-in: make live.

Without the variable the same look is taken at the bundled upstream, so that it can be trusted.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support import servers

from fonds import ids
from fonds.codes.origin import EditionOrigin, open_location
from fonds.codes.run import CodeRequest, find_orders
from fonds.codes.tree import walk
from fonds.context import Context
from fonds.demo.server import DemoUpstream
from fonds.errors import NotFoundError, RefusedError
from fonds.library import Library, open_library
from fonds.model import FetchTask, ParsedRecord, Raw, RawPart, SourceState
from fonds.runs.discover import ListingFetcher, pace_of
from fonds.sources.base import Source
from fonds.sources.jurisdiction import JurisdictionAdapter
from fonds.sources.registry import SourceRegistry

LIVE = os.environ.get("FONDS_LIVE") == "1"
BUNDLED_NOW = datetime(2026, 3, 1, 15, tzinfo=UTC)
TRIED = 5
"""Tasks looked at before a source is said to give nothing: the newest item may have no text yet."""


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    servers.sqlite_database(tmp_path / "fonds.db")
    if LIVE:
        with open_library(tmp_path) as library:
            yield library
        return
    with (
        DemoUpstream() as upstream,
        open_library(tmp_path, hosts=upstream.hosts, allow_private=True) as library,
    ):
        yield library


@pytest.mark.parametrize("name", sorted(SourceRegistry().feeds()))
def test_the_first_item_of_an_upstream_is_what_its_source_expects(
    name: str, library: Library
) -> None:
    record = asyncio.run(_first_record(SourceRegistry().feeds()[name], library))
    assert record.source == name
    assert record.payload
    if record.document is not None:
        assert record.document.citation_string
        assert record.document.source_url.startswith("http")


@pytest.mark.parametrize("name", sorted(SourceRegistry().codes()) if LIVE else ["usc"])
def test_the_first_unit_of_a_code_is_walked_to_its_sections(name: str, library: Library) -> None:
    assert asyncio.run(_nodes(SourceRegistry().codes()[name], library)) > 1


async def _nodes(adapter: JurisdictionAdapter, library: Library) -> int:
    """How many nodes the first unit of the newest edition has."""
    async with library.open_context() as context:
        (order, *_) = await find_orders(adapter, CodeRequest(), context)
        origin = EditionOrigin(open_location(None, adapter.info, context), version=order.version)
        try:
            root_id = ids.tree_root(order.source, order.version)
            walked = await walk(adapter, root_id, order.root, origin)
        finally:
            await origin.close()
    return len(walked.tree)


async def _first_record(source: Source, library: Library) -> ParsedRecord:
    async with library.open_context() as context:
        tried = 0
        async for task in _tasks(source, context):
            for record in source.parse(await _fetched(task, source, context)):
                if isinstance(record, ParsedRecord):
                    return record
            tried += 1
            if tried == TRIED:
                break
    pytest.fail(f"{source.info.name} gave no record in {tried} tasks")


async def _tasks(source: Source, context: Context) -> AsyncIterator[FetchTask]:
    now = context.seams.clock.now() if LIVE else BUNDLED_NOW
    async for item in source.discover(SourceState(now=now), ListingFetcher(source.info, context)):
        if isinstance(item, FetchTask):
            yield item


async def _fetched(task: FetchTask, source: Source, context: Context) -> Raw:
    parts = []
    for part in task.parts:
        try:
            obtained = await context.archive.download(
                source=source.info.name,
                url=part.url,
                path=part.path,
                pace=pace_of(source.info, context.settings),
                previous=None,
                headers=part.headers,
            )
        except (NotFoundError, RefusedError):
            if not part.optional:
                raise
            continue
        data = context.archive.read(obtained.archived)
        parts.append(RawPart(name=part.name, archived=obtained.archived, data=data))
    return Raw(task=task, parts=tuple(parts))
