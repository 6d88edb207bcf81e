"""Fakes and factories for tests of sources and of programs that use a library."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Column, ForeignKey, Integer, Table, Text

from fonds import ids
from fonds.errors import MalformedError, WrongContentError
from fonds.model import (
    Body,
    Discovery,
    Document,
    FetchTask,
    Listing,
    NormalizedBody,
    ParsedRecord,
    Part,
    Raw,
    SourceState,
    Watermark,
)
from fonds.seams import SystemClock
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.stores.tables import metadata

FAKE_HOST: Final = "notes.example"
"""Map it to your test server with the setting `hosts`."""

fake_notes: Final = Table(
    "fake_notes",
    metadata,
    Column("id", ForeignKey("documents.id"), primary_key=True),
    Column("number", Integer, nullable=False),
    Column("published", Text),
    info={"plugin": True},
)

fake_note_tags: Final = Table(
    "fake_note_tags",
    metadata,
    Column("note_id", ForeignKey("fake_notes.id"), primary_key=True),
    Column("ord", Integer, primary_key=True),
    Column("tag", Text, nullable=False),
    info={"plugin": True},
)


class FakeSource:
    """A small complete source: `/list.json` lists notes, `/notes/N.json` has one each."""

    def __init__(
        self, *, at_least: int = 1, fingerprints: bool = True, queued: bool = False
    ) -> None:
        self._fingerprints = fingerprints
        self._queued = queued
        self.info = SourceInfo(
            name="fake",
            title="Notes",
            organisation="The Note Office",
            version="1",
            schedule=None,
            rate=Rate(per_second=1000, burst=1000),
            tables=(fake_notes, fake_note_tags),
            at_least=at_least,
            published_at="published",
        )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """Yield a task for each note in the list."""
        response = await ask(f"https://{FAKE_HOST}/list.json", path="list.json")
        entries = _json(response.data)["notes"]
        for entry in entries:
            number = entry["number"]
            yield FetchTask(
                source="fake",
                key=f"fake:{number}",
                parts=(
                    Part(
                        name="note",
                        url=f"https://{FAKE_HOST}/notes/{number}.json",
                        path=f"notes/{number}.json",
                    ),
                ),
                fingerprint=ids.json_sha256(entry) if self._fingerprints else None,
            )
        keys = frozenset(f"fake:{entry['number']}" for entry in entries)
        yield Listing(since=date(2000, 1, 1), until=state.now.date(), task_keys=keys)
        yield Watermark(last_seen_key=state.now.date().isoformat())

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """Parse a note with its text as body and its tags as child rows."""
        (part,) = raw.parts
        note = _json(part.data)
        document_id = f"fake:{note['number']}"
        content = Body(archived=part.archived, format="text")
        if not self._queued:
            text = NormalizedBody(markdown=note["text"])
            content = replace(content, normalizer="fake_v1@1.0.0", normalized=text)
        yield ParsedRecord(
            source="fake",
            table="fake_notes",
            key=document_id,
            payload={
                "id": document_id,
                "number": note["number"],
                "published": note["published"],
            },
            children=tuple(_tag(document_id, order, tag) for order, tag in enumerate(note["tags"])),
            document=Document(
                id=document_id,
                source="fake",
                kind="note",
                title=note["title"],
                source_url=f"https://{FAKE_HOST}/{note['number']}",
                source_org="The Note Office",
                citation_string=f"Note No. {note['number']} ({note['published'][:4]}).",
                raw=part.archived,
                published_at=note["published"],
                body=content,
                aliases=(f"Note {note['number']}",),
            ),
        )

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The notes in the census, an independent list."""
        response = await ask(f"https://{FAKE_HOST}/census.json", path="census.json")
        numbers = _json(response.data)["numbers"]
        scope = f"{since or ''}..{until or ''}"
        ids_expected = frozenset(f"fake:{number}" for number in numbers)
        yield Expected(scope=scope, document_ids=ids_expected)


def note(number: int, text: str = "", **changes: Any) -> dict[str, Any]:
    """A note as the fake upstream serves it."""
    return {
        "number": number,
        "title": f"Note {number}",
        "published": "2026-03-04",
        "text": text or f"# Matter\n\nThe text of note {number}.",
        "tags": ["plain"],
        **changes,
    }


def _tag(document_id: str, order: int, tag: str) -> ParsedRecord:
    return ParsedRecord(
        source="fake",
        table="fake_note_tags",
        key=f"{document_id}#tag/{order}",
        payload={"note_id": document_id, "ord": order, "tag": tag},
    )


def _json(data: bytes) -> Any:
    if data.lstrip().startswith(b"<"):
        raise WrongContentError("expected JSON, got a web page")
    try:
        return json.loads(data)
    except ValueError as error:
        raise MalformedError(f"not JSON: {error}") from error


@dataclass
class ManualClock:
    """A clock that moves only with `move`."""

    moment: datetime = datetime(2026, 3, 10, 12, tzinfo=UTC)
    elapsed: float = 0.0

    def now(self) -> datetime:
        """The time of this clock."""
        return self.moment

    def monotonic(self) -> float:
        """The seconds by which it has moved."""
        return self.elapsed

    def move(self, **by: float) -> None:
        """Let time pass: `move(days=8)`."""
        step = timedelta(**by)
        self.moment += step
        self.elapsed += step.total_seconds()


class LaterClock(SystemClock):
    """A clock in the future, when the leases of killed processes have expired."""

    def __init__(self, **by: float) -> None:
        self._later = timedelta(**by)

    def now(self) -> datetime:
        """The time in the future."""
        return super().now() + self._later


@dataclass
class Saboteur:
    """A `Seams.durable` that counts, and fails or kills at the Nth durable operation."""

    fail_at: int | None = None
    kill_at: int | None = None
    operations: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, operation: str, subject: str) -> None:
        """Count one operation, and fail or kill at the Nth."""
        self.operations.append((operation, subject))
        if len(self.operations) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if len(self.operations) == self.fail_at:
            raise OSError(f"sabotaged: {operation} {subject}")
