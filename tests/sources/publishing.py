"""A publisher that answers from memory, and what a source makes of its answers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text
from tests.support import servers

from fonds.demo.http import Handler
from fonds.demo.server import DemoUpstream
from fonds.errors import NotFoundError
from fonds.library import Library, open_library
from fonds.model import Archived, Discovery, FetchTask, ParsedRecord, Raw, RawPart, SourceState
from fonds.runs.state import RunReport, RunRequest
from fonds.sources.base import ListingResponse, Source
from fonds.sources.registry import builtin_sources

NOW = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)


def archived(url: str, data: bytes) -> Archived:
    return Archived(
        url=url,
        key=f"corpus/{url.rpartition('/')[2]}",
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        retrieved_at=NOW,
    )


def loose(data: bytes, name: str = "file") -> Raw:
    """A file given to `fonds parse`."""
    return together(**{name: data})


def together(**files: bytes) -> Raw:
    """Files given to `fonds parse` at once."""
    parts = [
        RawPart(name="", archived=archived(name, data), data=data) for name, data in files.items()
    ]
    return Raw(
        task=FetchTask(source="any", key=parts[0].archived.url, parts=()), parts=tuple(parts)
    )


def fetched(task: FetchTask, **files: bytes) -> Raw:
    """A task with the parts that were there."""
    parts = [
        RawPart(
            name=part.name, archived=archived(part.url, files[part.name]), data=files[part.name]
        )
        for part in task.parts
        if part.name in files
    ]
    assert len(parts) == len(files)
    return Raw(task=task, parts=tuple(parts))


def records_of(source: Source, raw: Raw) -> list[ParsedRecord]:
    """What `parse` gives, when it gives records only."""
    found = list(source.parse(raw))
    records = [record for record in found if isinstance(record, ParsedRecord)]
    assert len(records) == len(found)
    return records


def with_children(records: list[ParsedRecord]) -> Iterator[ParsedRecord]:
    for record in records:
        yield record
        yield from record.children


def assert_rows_fit(source: Source, records: list[ParsedRecord]) -> None:
    """Every row names columns that its table has."""
    columns = {table.name: set(table.columns.keys()) for table in source.info.tables}
    assert records
    for row in with_children(records):
        assert set(row.payload) <= columns[row.table]


@dataclass
class Publisher:
    """Answers by address; what it does not have is a 404, and an error is raised."""

    answers: Mapping[str, bytes | Exception]
    asked: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def __call__(self, url: str, *, path: str) -> ListingResponse:
        self.asked.append(url)
        self.paths.append(path)
        answer = self.answers.get(url, NotFoundError(url))
        if isinstance(answer, Exception):
            raise answer
        return ListingResponse(data=answer, archived=archived(url, answer), changed=True)


def discover(source: Source, publisher: Publisher, state: SourceState) -> list[Discovery]:
    """All that a source finds, or the error it ends with."""
    found, error = discover_until_error(source, publisher, state)
    if error is not None:
        raise error
    return found


def discover_until_error(
    source: Source, publisher: Publisher, state: SourceState
) -> tuple[list[Discovery], Exception | None]:
    """What a source finds before an error, and the error."""
    found: list[Discovery] = []

    async def collect() -> None:
        async for item in source.discover(state, publisher):
            found.append(item)  # noqa: PERF401 — what comes before an error counts

    try:
        asyncio.run(collect())
    except Exception as error:  # noqa: BLE001 — handed to the test
        return found, error
    return found, None


def tasks(found: list[Discovery]) -> list[FetchTask]:
    return [item for item in found if isinstance(item, FetchTask)]


@dataclass
class Run:
    """A library with one source."""

    library: Library
    source: Source

    def run(self) -> RunReport:
        """Bring the source up to date."""
        return asyncio.run(self.library.ingest(self.source, RunRequest()))

    def titles(self) -> list[str]:
        """What is held and not withdrawn, in the order of the alphabet."""
        query = "SELECT title FROM documents WHERE gone_at IS NULL ORDER BY title"
        with self.library.database.read() as connection:
            return [row.title for row in connection.execute(text(query))]


@contextmanager
def library_of(home: Path, source: Source, sites: Mapping[str, Handler]) -> Iterator[Run]:
    """A library of one source that asks the given hosts."""
    builtin_sources()  # their tables, which refer to each other
    with DemoUpstream(sites) as upstream:
        settings: dict[str, Any] = {"hosts": upstream.hosts, "allow_private": True, "retries": 0}
        if not (home / "fonds.db").exists():
            home.mkdir(parents=True, exist_ok=True)
            servers.sqlite_database(home / "fonds.db")
        with open_library(home, **settings) as library:
            yield Run(library, source)
