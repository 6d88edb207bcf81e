"""Stages three and four: parse the bytes, and queue records for loading in batches.

A batch holds everything in the order it was discovered: records, finished tasks, failures,
listings, watermarks. So a watermark is stored only together with, or after, all that it covers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from fonds.errors import DuplicateKeyError, SuspiciousYieldError
from fonds.fetch.archive import KnownFile
from fonds.model import Archived, FetchTask, ParsedRecord, Raw, RawPart
from fonds.runs.batch import BatchWriter, Entry, Finished, Identity, Parsed, identity_of
from fonds.runs.context import Job
from fonds.runs.discovery import recipe_of
from fonds.runs.fetching import Arrival, Fetched
from fonds.runs.guards import check_loss
from fonds.runs.hosts import note_hosts
from fonds.runs.tasks import Failure, OpenError

ENTRIES_PER_RECORD: Final = 4
"""A batch may also fill with failures and tasks that are found unchanged."""
FLUSH_AFTER: Final = 5.0
"""Seconds after which a batch is written although it is not full: upstreams can be slow."""


class Loader:
    """Parses arrivals and loads what they hold; used by one thread at a time."""

    def __init__(
        self,
        job: Job,
        standing: Mapping[str, OpenError],
        learned: Callable[[], Iterable[KnownFile]],
    ) -> None:
        self._job = job
        self.standing = standing
        """Failures of earlier runs, by task."""
        self._writer = BatchWriter(job, standing, learned)
        self._hosts = frozenset[str]()
        """Those that are noted."""
        self._entries: list[Entry] = []
        self._records = 0
        self._size = 0
        self._yielded: dict[str, set[Identity]] = {}
        self._flushed_at = job.workplace.seams.clock.monotonic()

    def take(self, waiting: deque[Fetched]) -> tuple[Arrival, list[FetchTask]] | None:
        """Parse and queue what is waiting, writing as batches fill.

        Stops at an arrival whose bytes ask for further tasks, and gives both back: what comes
        after it must not be written before they are settled.
        """
        while waiting:
            item = waiting.popleft()
            if not isinstance(item, Arrival):
                self._entries.append(item)
            elif not self._seen_before(item):
                if further := self._timed(item):
                    return item, further
                self.settle(item)
            if self._full() or self._overdue():
                self.flush()
        return None

    def settle(self, arrival: Arrival) -> None:
        """Count a task as finished: all it holds and all it asked for is taken."""
        if arrival.task.key in self._yielded:
            self._finish(arrival, frozenset(self._yielded.pop(arrival.task.key)))

    def flush(self) -> None:
        """Write what is queued."""
        entries, self._entries, self._records, self._size = self._entries, [], 0, 0
        self._flushed_at = self._job.workplace.seams.clock.monotonic()
        if entries:
            self._hosts = note_hosts(self._job.source.info, self._job.workplace, self._hosts)
            began = self._job.run.stages.load.begin()
            self._writer.write(entries)
            self._job.run.stages.load.end(began)
        self._job.workplace.progress(self._job.source.info.name, self._job.run.counts)

    def _timed(self, arrival: Arrival) -> list[FetchTask]:
        """Parse; what is loaded while a long file is being parsed is no part of that."""
        stages = self._job.run.stages
        began, loaded = stages.parse.begin(), stages.load.seconds
        try:
            return self._parse(arrival)
        finally:
            stages.parse.end(began, less=stages.load.seconds - loaded)

    def _parse(self, arrival: Arrival) -> list[FetchTask]:
        further: list[FetchTask] = []
        queued = Parsed(task=arrival.task)
        yielded = self._yielded[arrival.task.key] = set[Identity]()
        self._entries.append(queued)
        for item in self._items(arrival):
            if isinstance(item, FetchTask):
                further.append(item)
            elif isinstance(item, ParsedRecord) and identity_of(item) not in yielded:
                yielded.add(identity_of(item))
                queued = self._queue(queued, item)
            else:
                del self._yielded[arrival.task.key]
                self._entries.pop()  # what is queued of it; nothing came after
                self._entries.append(item if isinstance(item, Failure) else _doubled(item, arrival))
                return []
        return further

    def _items(self, arrival: Arrival) -> Iterator[ParsedRecord | FetchTask | Failure]:
        try:
            yield from self._job.source.parse(self._read(arrival))
        except Exception as error:  # noqa: BLE001 — hostile bytes may break a parser in any way
            yield Failure.of(error, "parse", arrival.task)

    def _seen_before(self, arrival: Arrival) -> bool:
        """Whether these exact bytes were loaded by this exact recipe."""
        known = arrival.known
        if known is None or known.recipe != recipe_of(self._job):
            return False
        if known.input_sha256 != arrival.input_sha256:
            return False
        self._job.run.count(skipped=known.records)
        failed_before = arrival.task.key in self.standing
        if arrival.task.fingerprint is not None or arrival.learned or failed_before:
            self._entries.append(Finished(arrival=arrival, yielded=frozenset(), unchanged=True))
        return True

    def _read(self, arrival: Arrival) -> Raw:
        parts = tuple(
            RawPart(name=part.name, archived=archived, data=self._bytes(archived))
            for part, archived in arrival.parts
        )
        return Raw(task=arrival.task, parts=parts)

    def _bytes(self, archived: Archived) -> bytes:
        return b"" if self._job.collector else self._job.workplace.archive.read(archived)

    def _queue(self, queued: Parsed, record: ParsedRecord) -> Parsed:
        queued.records.append(record)
        self._job.run.count(parsed=1)
        self._records += 1
        body = record.document.body if record.document else None
        if body is not None and body.normalized is not None:
            self._size += len(body.normalized.markdown)
        if len(queued.records) < self._job.workplace.settings.batch_records:
            return queued
        self.flush()
        rest = Parsed(task=queued.task)
        self._entries.append(rest)
        return rest

    def _finish(self, arrival: Arrival, yielded: frozenset[Identity]) -> None:
        before = arrival.known.records if arrival.known else 0
        try:
            if not self._job.run.request.accept_loss:
                check_loss(arrival.task.key, before, before - len(yielded))
        except SuspiciousYieldError as error:
            self._entries.append(Failure.of(error, "parse", arrival.task))
        else:
            self._entries.append(Finished(arrival=arrival, yielded=yielded))

    def _full(self) -> bool:
        settings = self._job.workplace.settings
        return (
            self._records >= settings.batch_records
            or self._size >= settings.batch_mib << 20
            or len(self._entries) >= settings.batch_records * ENTRIES_PER_RECORD
        )

    def _overdue(self) -> bool:
        waited = self._job.workplace.seams.clock.monotonic() - self._flushed_at
        return bool(self._entries) and waited > FLUSH_AFTER


def _doubled(record: ParsedRecord, arrival: Arrival) -> Failure:
    task = arrival.task
    error = DuplicateKeyError(f"{task.key} has two records with the key {record.key}")
    return Failure.of(error, "parse", task)
