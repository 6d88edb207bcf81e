"""A Federal Register that answers from memory, as well or as badly as a test wants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fonds.errors import NotFoundError
from fonds.model import Archived, FetchTask, ParsedRecord, Raw, RawPart
from fonds.sources.base import ListingResponse
from fonds.sources.federal_register import FIELDS, source

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)


def archived(url: str, data: bytes) -> Archived:
    return Archived(
        url=url,
        key=f"corpus/federal_register/{url.rpartition('/')[2]}",
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        retrieved_at=NOW,
    )


def loose(data: bytes, name: str = "file") -> Raw:
    part = RawPart(name="", archived=archived(name, data), data=data)
    return Raw(task=FetchTask(source="federal_register", key=name, parts=()), parts=(part,))


def together(**files: bytes) -> Raw:
    parts = [
        RawPart(name="", archived=archived(name, data), data=data) for name, data in files.items()
    ]
    return Raw(task=FetchTask(source="federal_register", key="f", parts=()), parts=tuple(parts))


def records_of(raw: Raw) -> list[ParsedRecord]:
    found = list(source.parse(raw))
    assert all(isinstance(record, ParsedRecord) for record in found)
    return [record for record in found if isinstance(record, ParsedRecord)]


def fetched(task: FetchTask, files: dict[str, bytes]) -> Raw:
    parts = [
        RawPart(
            name=part.name, archived=archived(part.url, files[part.name]), data=files[part.name]
        )
        for part in task.parts
        if part.name in files
    ]
    return Raw(task=task, parts=tuple(parts))


def entry(number: str, day: str, **fields: Any) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(FIELDS)
    stated = {"document_number": number, "publication_date": day, "title": f"Title {number}"}
    return empty | stated | fields


@dataclass
class Upstream:
    """The list API over the given entries; `spoil` may change an answer before it is sent."""

    entries: list[dict[str, Any]]
    cap: int = 10_000
    per_page: int = 1000
    spoil: Callable[[int, dict[str, Any]], Any] | None = None
    issues: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def __call__(self, url: str, *, path: str) -> ListingResponse:
        self.asked.append(url)
        self.paths.append(path)
        data = self._answer(url)
        return ListingResponse(data=data, archived=archived(url, data), changed=True)

    def _answer(self, url: str) -> bytes:
        address = urlsplit(url)
        if "/issues/" in address.path:
            name = address.path.rpartition("/")[2]
            if name not in self.issues:
                raise NotFoundError(url)
            return self.issues[name]
        query = parse_qs(address.query)
        answer = self._page(query)
        number = int(query["page"][0])
        spoiled = answer if self.spoil is None else self.spoil(number, answer)
        return spoiled if isinstance(spoiled, bytes) else json.dumps(spoiled).encode()

    def _page(self, query: dict[str, list[str]]) -> dict[str, Any]:
        first = query["conditions[publication_date][gte]"][0]
        last = query["conditions[publication_date][lte]"][0]
        assert query["per_page"] == ["1000"]
        found = [item for item in self.entries if first <= item["publication_date"] <= last]
        found = found[: self.cap]
        start = (int(query["page"][0]) - 1) * self.per_page
        return {
            "description": "Documents",
            "count": len(found),
            "total_pages": -(-len(found) // self.per_page),
            "next_page_url": "https://elsewhere.example/",
            "results": found[start : start + self.per_page],
        }


def numbered(days: Iterable[date], per_day: int) -> list[dict[str, Any]]:
    return [
        entry(f"2026-{day.timetuple().tm_yday:03}{index:05}", day.isoformat())
        for day in days
        for index in range(per_day)
    ]
