"""Fixture files as raw input, and their output as reviewed JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

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
    """Fail unless the records are the reviewed ones; a missing file is written, and fails."""
    lines = [json.dumps(asdict(record), ensure_ascii=False, default=str) for record in records]
    found = "".join(f"{line}\n" for line in lines)
    if not golden.exists():
        golden.write_text(found, encoding="utf-8")
        pytest.fail(f"{golden.name} was missing and has been written: review it")
    assert found.splitlines() == golden.read_text(encoding="utf-8").splitlines()
