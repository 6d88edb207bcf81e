"""Fixture files as raw input, and their output as reviewed JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from tests.sources.golden import assert_golden, json_lines

from fonds.model import Archived, FetchTask, ParsedRecord, Raw, RawPart

_RETRIEVED = datetime(2026, 6, 1, 12, tzinfo=UTC)


def raw_part(data: bytes, *, name: str = "", file: str = "loose") -> RawPart:
    archived = Archived(
        url=f"https://unitedstates.github.io/congress-legislators/{file}",
        key=f"corpus/example/{file}",
        sha256=sha256(data).hexdigest(),
        size=len(data),
        retrieved_at=_RETRIEVED,
    )
    return RawPart(name=name, archived=archived, data=data)


def raw_of(*parts: RawPart) -> Raw:
    return Raw(task=FetchTask(source="example", key="example", parts=()), parts=parts)


def loose(data: bytes) -> Raw:
    return raw_of(raw_part(data))


def published(*files: Path) -> Raw:
    return raw_of(*(raw_part(f.read_bytes(), name=f.stem, file=f.name) for f in files))


def everything(records: Iterable[ParsedRecord]) -> Iterator[ParsedRecord]:
    for record in records:
        yield record
        yield from everything(record.children)


def compare(records: Iterable[ParsedRecord], golden: Path) -> None:
    """Fail unless the records are the reviewed ones."""
    assert_golden(json_lines(records), golden)
