"""A govinfo that answers from memory, and its files as a source gets them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from fonds.demo.bundle import DATA
from fonds.errors import NotFoundError, ParseError
from fonds.model import Archived, Discovery, FetchTask, ParsedRecord, Raw, RawPart, SourceState
from fonds.sources.base import Auditable, Expected, ListingResponse, Source

NOW = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)
SITE = "https://www.govinfo.gov"


def archived(url: str, data: bytes) -> Archived:
    return Archived(
        url=url,
        key=f"corpus/x/{url.rpartition('/')[2]}",
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        retrieved_at=NOW,
    )


def loose(*paths: Path) -> Raw:
    parts = [
        RawPart(name="", archived=archived(path.name, data), data=data)
        for path in paths
        for data in [path.read_bytes()]
    ]
    return Raw(task=FetchTask(source="x", key=paths[0].name, parts=()), parts=tuple(parts))


def loose_bytes(data: bytes, name: str) -> Raw:
    part = RawPart(name="", archived=archived(name, data), data=data)
    return Raw(task=FetchTask(source="x", key=name, parts=()), parts=(part,))


def fetched(task: FetchTask, files: dict[str, bytes]) -> Raw:
    """The task with the parts that were there."""
    parts = [
        RawPart(
            name=part.name, archived=archived(part.url, files[part.name]), data=files[part.name]
        )
        for part in task.parts
        if part.name in files
    ]
    return Raw(task=task, parts=tuple(parts))


def parsed(source: Source, raw: Raw) -> tuple[list[ParsedRecord], list[FetchTask]]:
    """Records, and further tasks."""
    found = list(source.parse(raw))
    records = [item for item in found if isinstance(item, ParsedRecord)]
    return records, [item for item in found if isinstance(item, FetchTask)]


def outcome(source: Source, path: Path) -> tuple[list[ParsedRecord], str]:
    """The records of a loose file, or what the refusal says."""
    try:
        return parsed(source, loose(path))[0], ""
    except ParseError as error:
        return [], str(error)


def without_bodies(records: Iterable[ParsedRecord | FetchTask]) -> Iterator[ParsedRecord]:
    """Records as the source makes them; what a normalizer makes of a text is tested with it."""
    for record in records:
        assert isinstance(record, ParsedRecord)
        assert record.document is not None
        yield replace(record, document=replace(record.document, body=None))


def children(record: ParsedRecord, table: str) -> list[dict[str, object]]:
    return [dict(child.payload) for child in record.children if child.table == table]


class Upstream:
    """Answers by address; what it does not hold does not exist."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []

    async def __call__(self, url: str, *, path: str) -> ListingResponse:
        del path
        self.asked.append(url)
        if url not in self.files:
            raise NotFoundError(f"{url} does not exist (404)")
        data = self.files[url]
        return ListingResponse(data=data, archived=archived(url, data), changed=True)


def sitemap(*entries: tuple[str, str]) -> bytes:
    urls = "".join(
        f"<url><loc>{SITE}/app/details/{package}</loc><lastmod>{moment}</lastmod>"
        "<changefreq>monthly</changefreq></url>\n"
        for package, moment in entries
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f'{head}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'.encode()


def sitemap_address(code: str, year: int) -> str:
    return f"{SITE}/sitemap/{code}_{year}_sitemap.xml"


def discover(source: Source, upstream: Upstream, state: SourceState) -> list[Discovery]:
    async def collect() -> list[Discovery]:
        return [item async for item in source.discover(state, upstream)]

    return asyncio.run(collect())


def tasks(found: Iterable[Discovery]) -> list[FetchTask]:
    return [item for item in found if isinstance(item, FetchTask)]


def package_task(source: Source, code: str, package: str) -> FetchTask:
    """The task that discovery makes of a package."""
    listed = sitemap((package, "2026-01-02T03:04:05.006Z"))
    found = discover(source, Upstream({sitemap_address(code, 2026): listed}), SourceState(now=NOW))
    return tasks(found)[0]


class DemoFolder(Upstream):
    """The bundled govinfo, read from its folder."""

    def __init__(self) -> None:
        super().__init__({})

    async def __call__(self, url: str, *, path: str) -> ListingResponse:
        if (data := demo_file(url)) is not None:
            self.files[url] = data
        return await super().__call__(url, path=path)


def demo_file(url: str) -> bytes | None:
    file = DATA / url.removeprefix("https://")
    return file.read_bytes() if file.is_file() else None


def loaded(source: Source, found: Iterable[FetchTask]) -> list[ParsedRecord]:
    """All records of tasks whose parts lie in the bundled upstream, and of those they ask for."""
    records: list[ParsedRecord] = []
    for task in found:
        files = {part.name: data for part in task.parts if (data := demo_file(part.url))}
        assert all(part.name in files or part.optional for part in task.parts)
        here, further = parsed(source, fetched(task, files))
        records += here + loaded(source, further)
    return records


def audited(source: Source, upstream: Upstream, **days: object) -> list[Expected]:
    assert isinstance(source, Auditable)

    async def collect() -> list[Expected]:
        since, until = days.get("since"), days.get("until")
        return [item async for item in source.enumerate(upstream, since, until)]  # type: ignore[arg-type]  # days are passed through

    return asyncio.run(collect())
