"""Stages three and four: parse the bytes, and queue records for loading in batches.

A batch holds everything in the order it was discovered: records, finished tasks, failures,
listings, watermarks. So a watermark is stored only together with, or after, all that it covers.

Writing one batch: all of it in one transaction, or each of its tasks alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, select
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import DuplicateKeyError, SuspiciousYieldError
from fonds.fetch.archive import FileRecord
from fonds.model import Archived, Counts, FetchTask, Listing, ParsedRecord, Raw, RawPart, Watermark
from fonds.runs.active_run import ActiveRun
from fonds.runs.discover import check_loss, recipe_of
from fonds.runs.fetch import Fetched, FetchedTask
from fonds.runs.hosts import note_hosts
from fonds.runs.normalization import passages_of, writing_of
from fonds.runs.state import advance_watermark
from fonds.runs.tasks import (
    MAX_ATTEMPTS,
    Failure,
    KnownInput,
    OpenError,
    record_failures,
    record_loaded,
    remember_files,
    remember_inputs,
    resolve,
)
from fonds.stores.documents import mark_withdrawn, write_documents
from fonds.stores.records import drop_unyielded, insert_records, key_of, merge_rows, update_records
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import documents, ingestion_inputs, metadata

Identity = tuple[str, tuple[Any, ...]]
"""Table and primary key of a top-level record."""


def identity_of(record: ParsedRecord) -> Identity:
    """What tells a record from all others."""
    return record.table, key_of(metadata.tables[record.table], record.payload)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedTask:
    """Records of one task; a long one spreads over several batches."""

    task: FetchTask
    records: list[ParsedRecord] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """A task all of whose records are in this batch or in those before it."""

    arrival: FetchedTask
    yielded: frozenset[Identity]
    unchanged: bool = False
    """Asked for again and found as it was."""


Entry = ParsedTask | Finished | Failure | Listing | Watermark


def _is_end_of(entry: Entry, refused: set[str]) -> bool:
    return isinstance(entry, Finished) and entry.arrival.task.key in refused


class BatchWriter:
    """Turns batches into rows, and keeps the run's counts true to them."""

    def __init__(
        self,
        job: ActiveRun,
        standing: Mapping[str, OpenError],
        learned: Callable[[], Iterable[FileRecord]],
    ) -> None:
        self._job = job
        self._standing = standing
        self._learned = learned
        self._source = job.source.info.name
        self._tables = job.source.info.tables
        self._done = Counts()
        self._refused: set[str] = set()
        """Tasks that lack a part: a long one may end some batches later, and is not finished."""
        self._withdrawn: set[str] = set()
        """Tasks that a listing of this run does not name: if they are named again, they are new."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Write the batch whole, or all of it but the tasks that the database refuses."""
        self._write_willing(entries, list(self._learned()))

    def _write_willing(self, entries: Sequence[Entry], learned: list[FileRecord]) -> None:
        """Halve a refused batch until the culprit stands alone, and record its failure."""
        entries = [entry for entry in entries if not _is_end_of(entry, self._refused)]
        try:
            self._write(entries, learned)
        except (SQLAlchemyError, ValueError, TypeError) as error:
            # The latter two are the drivers' for values they cannot encode, such as half of a
            # surrogate pair.
            if len(entries) > 1:
                middle = len(entries) // 2
                self._write_willing(entries[:middle], learned)
                self._write_willing(entries[middle:], [])
            elif entries and isinstance(entries[0], ParsedTask):
                task = entries[0].task
                self._refused.add(task.key)
                self._write([Failure.of(error, "load", task)], learned)
            else:
                raise

    def _write(self, entries: Sequence[Entry], learned: list[FileRecord]) -> None:
        run = self._job.run
        now = self._job.context.seams.clock.now()
        self._done = Counts()
        with self._job.context.database.write() as connection:
            self._job.claim.confirm(connection)
            self._load(connection, entries, now)
            self._finish(connection, [e for e in entries if isinstance(e, Finished)], now)
            failures = [e for e in entries if isinstance(e, Failure)]
            failures += self._withdraw(connection, entries, now)
            self._fail(connection, failures, now)
            remember_files(connection, learned)
            for entry in entries:
                if isinstance(entry, Watermark) and advance_watermark(
                    connection, self._source, entry, run.request
                ):
                    run.log("info", f"watermark: {entry.last_seen_key}", type="watermark")
            run.save(connection, self._done)
        run.add(self._done)

    def _load(self, connection: Connection, entries: Sequence[Entry], now: datetime) -> None:
        documented: dict[str, tuple[ParsedRecord, str]] = {}
        for entry in entries:
            if isinstance(entry, ParsedTask):
                plain = [record for record in entry.records if record.document is None]
                self._merge(connection, plain, entry.task.key)
                for record in entry.records:
                    if record.document is not None:
                        # Of two tasks that yield one document, the later one owns it.
                        documented.pop(record.document.id, None)
                        documented[record.document.id] = (record, entry.task.key)
        self._load_documents(connection, documented, now)

    def _merge(
        self, connection: Connection, records: Sequence[ParsedRecord], task_key: str
    ) -> None:
        inserted, updated = merge_rows(connection, records, task_key)
        self._tally(len(records), inserted, updated)

    def _tally(self, records: int, inserted: int, updated: int) -> None:
        self._done.inserted += inserted
        self._done.updated += updated
        self._done.skipped += records - inserted - updated

    def _load_documents(
        self,
        connection: Connection,
        documented: Mapping[str, tuple[ParsedRecord, str]],
        now: datetime,
    ) -> None:
        if not documented:
            return
        chunker = self._job.context.chunker
        writings = [
            writing_of(record, task_key, chunker) for record, task_key in documented.values()
        ]
        written = write_documents(
            connection,
            self._job.context.database.fulltext,
            writings,
            now,
            derive=lambda document: passages_of(document, chunker),
        )
        records = {key: record for key, (record, _) in documented.items()}
        new = [record for key, record in records.items() if key in written.inserted]
        changed = [record for key, record in records.items() if key in written.updated]
        insert_records(connection, new, self._tables)
        update_records(connection, changed, self._tables)
        self._tally(len(records), len(new), len(changed))

    def _finish(self, connection: Connection, finished: Sequence[Finished], now: datetime) -> None:
        remember_files(connection, [file for one in finished for file in one.arrival.learned])
        known = [(one.arrival.task.key, self._known(one, now)) for one in finished]
        kept = [(key, one) for key, one in known if key not in self._withdrawn]
        remember_inputs(connection, self._source, kept)
        loaded = [one for one in finished if not one.unchanged]
        keys = [one.arrival.task.key for one in loaded]
        record_loaded(connection, self._job.run.id, self._source, keys, now)
        resolved = [key for key, _ in known if key in self._standing]
        resolve(connection, self._source, resolved, now)
        self._drop_unyielded(connection, [one for one in loaded if one.arrival.known], now)

    def _known(self, finished: Finished, now: datetime) -> KnownInput:
        arrival = finished.arrival
        records = len(finished.yielded)
        if finished.unchanged and arrival.known is not None:
            records = arrival.known.records
        return KnownInput(
            input_sha256=arrival.input_sha256,
            recipe=recipe_of(self._job),
            fingerprint=arrival.task.fingerprint,
            records=records,
            validated_at=now,
        )

    def _drop_unyielded(
        self, connection: Connection, reloaded: Sequence[Finished], now: datetime
    ) -> None:
        """What a task gave before and gives no more: documents are gone, other rows deleted."""
        if not reloaded:
            return
        held = self._documents_of(connection, [one.arrival.task.key for one in reloaded])
        yielded = {key for one in reloaded for _, (key, *_) in one.yielded}
        missing = [row.id for row in held if row.id not in yielded]
        if missing:
            self._done.gone += mark_withdrawn(connection, missing, now)
            self._doubt_other_files(connection, [one.arrival.task.key for one in reloaded])
        for one in reloaded:
            drop_unyielded(connection, self._tables, one.arrival.task.key, one.yielded)

    def _doubt_other_files(self, connection: Connection, task_keys: Sequence[str]) -> None:
        """Let the next run read the source's other files again, although they have not changed.

        A record that moves between files may have been taken for gone because a cache served us
        the old version of one and the new version of the other.
        """
        table = ingestion_inputs.c
        other_files = (table.source == self._source) & table.fingerprint.is_(None)
        connection.execute(
            delete(ingestion_inputs).where(other_files, table.task_key.not_in(task_keys))
        )

    def _documents_of(self, connection: Connection, task_keys: list[str]) -> list[Row[Any]]:
        table = documents.c
        query = select(table.id).where(table.source == self._source, table.gone_at.is_(None))
        return list(select_in(connection, query, table.task_key, task_keys))

    def _withdraw(
        self, connection: Connection, entries: Sequence[Entry], now: datetime
    ) -> list[Failure]:
        failures = []
        for entry in entries:
            if isinstance(entry, Listing):
                failures += self._withdraw_unlisted(connection, entry, now)
        return failures

    def _withdraw_unlisted(
        self, connection: Connection, listing: Listing, now: datetime
    ) -> list[Failure]:
        table = documents.c
        after = listing.until + timedelta(days=1)
        query = select(table.id, table.task_key).where(
            table.source == self._source,
            table.gone_at.is_(None),
            table.published_at >= listing.since.isoformat(),
            table.published_at < after.isoformat(),
        )
        held = list(connection.execute(query))
        missing = [row for row in held if row.task_key not in listing.task_keys]
        name = f"listing {listing.since}..{listing.until}"
        try:
            if not self._job.run.request.accept_loss:
                check_loss(
                    f"the listing from {listing.since} to {listing.until}", len(held), len(missing)
                )
        except SuspiciousYieldError as error:
            return [Failure.of(error, "discover", name)]
        if name in self._standing:
            resolve(connection, self._source, [name], now)
        self._done.gone += mark_withdrawn(connection, [row.id for row in missing], now)
        self._withdrawn.update(row.task_key for row in missing)
        self._forget(connection, [row.task_key for row in missing])
        return []

    def _forget(self, connection: Connection, task_keys: Sequence[str]) -> None:
        """So that an item which comes back is loaded again, even if it comes back unchanged."""
        table = ingestion_inputs
        for batch in batched(task_keys):
            stale = (table.c.source == self._source) & table.c.task_key.in_(batch)
            connection.execute(delete(table).where(stale))

    def _fail(self, connection: Connection, failures: Sequence[Failure], now: datetime) -> None:
        run = self._job.run
        self._done.error += len(failures)
        for failure in failures:
            run.first_error = run.first_error or f"{failure.task_key}: {failure.error}"
            context = {"task": failure.task_key, "stage": failure.stage, "type": failure.error_type}
            run.log("error", failure.error, **context)
            earlier = self._standing.get(failure.task_key)
            if earlier is not None and earlier.attempts + 1 == MAX_ATTEMPTS:
                told = f"failed in {MAX_ATTEMPTS} runs; the next ones wait until it is listed again"
                run.log("warn", told, task=failure.task_key, type="given-up")
        record_failures(connection, run.id, self._source, failures, earlier=self._standing, now=now)


ENTRIES_PER_RECORD: Final = 4
"""A batch may also fill with failures and tasks that are found unchanged."""
FLUSH_AFTER: Final = 5.0
"""Seconds after which a batch is written although it is not full: upstreams can be slow."""


class Loader:
    """Parses arrivals and loads what they hold; used by one thread at a time."""

    def __init__(
        self,
        job: ActiveRun,
        standing: Mapping[str, OpenError],
        learned: Callable[[], Iterable[FileRecord]],
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
        self._flushed_at = job.context.seams.clock.monotonic()

    def take(self, waiting: deque[Fetched]) -> tuple[FetchedTask, list[FetchTask]] | None:
        """Parse and queue what is waiting, writing as batches fill.

        Stops at an arrival whose bytes ask for further tasks, and gives both back: what comes
        after it must not be written before they are settled.
        """
        while waiting:
            item = waiting.popleft()
            if not isinstance(item, FetchedTask):
                self._entries.append(item)
            elif not self._seen_before(item):
                if further := self._timed(item):
                    return item, further
                self.settle(item)
            if self._full() or self._overdue():
                self.flush()
        return None

    def settle(self, arrival: FetchedTask) -> None:
        """Count a task as finished: all it holds and all it asked for is taken."""
        if arrival.task.key in self._yielded:
            self._finish(arrival, frozenset(self._yielded.pop(arrival.task.key)))

    def flush(self) -> None:
        """Write what is queued."""
        entries, self._entries, self._records, self._size = self._entries, [], 0, 0
        self._flushed_at = self._job.context.seams.clock.monotonic()
        if entries:
            self._hosts = note_hosts(self._job.source.info, self._job.context, self._hosts)
            began = self._job.run.stages.load.begin()
            self._writer.write(entries)
            self._job.run.stages.load.end(began)
        self._job.context.progress(self._job.source.info.name, self._job.run.counts)

    def _timed(self, arrival: FetchedTask) -> list[FetchTask]:
        """Parse; what is loaded while a long file is being parsed is no part of that."""
        stages = self._job.run.stages
        began, loaded = stages.parse.begin(), stages.load.seconds
        try:
            return self._parse(arrival)
        finally:
            stages.parse.end(began, less=stages.load.seconds - loaded)

    def _parse(self, arrival: FetchedTask) -> list[FetchTask]:
        further: list[FetchTask] = []
        queued = ParsedTask(task=arrival.task)
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

    def _items(self, arrival: FetchedTask) -> Iterator[ParsedRecord | FetchTask | Failure]:
        try:
            yield from self._job.source.parse(self._read(arrival))
        except Exception as error:  # noqa: BLE001 — hostile bytes may break a parser in any way
            yield Failure.of(error, "parse", arrival.task)

    def _seen_before(self, arrival: FetchedTask) -> bool:
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

    def _read(self, arrival: FetchedTask) -> Raw:
        parts = tuple(
            RawPart(name=part.name, archived=archived, data=self._bytes(archived))
            for part, archived in arrival.parts
        )
        return Raw(task=arrival.task, parts=parts)

    def _bytes(self, archived: Archived) -> bytes:
        return b"" if self._job.collector else self._job.context.archive.read(archived)

    def _queue(self, queued: ParsedTask, record: ParsedRecord) -> ParsedTask:
        queued.records.append(record)
        self._job.run.count(parsed=1)
        self._records += 1
        body = record.document.body if record.document else None
        if body is not None and body.normalized is not None:
            self._size += len(body.normalized.markdown)
        if len(queued.records) < self._job.context.settings.batch_records:
            return queued
        self.flush()
        rest = ParsedTask(task=queued.task)
        self._entries.append(rest)
        return rest

    def _finish(self, arrival: FetchedTask, yielded: frozenset[Identity]) -> None:
        before = arrival.known.records if arrival.known else 0
        try:
            if not self._job.run.request.accept_loss:
                check_loss(arrival.task.key, before, before - len(yielded))
        except SuspiciousYieldError as error:
            self._entries.append(Failure.of(error, "parse", arrival.task))
        else:
            self._entries.append(Finished(arrival=arrival, yielded=yielded))

    def _full(self) -> bool:
        settings = self._job.context.settings
        return (
            self._records >= settings.batch_records
            or self._size >= settings.batch_mib << 20
            or len(self._entries) >= settings.batch_records * ENTRIES_PER_RECORD
        )

    def _overdue(self) -> bool:
        waited = self._job.context.seams.clock.monotonic() - self._flushed_at
        return bool(self._entries) and waited > FLUSH_AFTER


def _doubled(record: ParsedRecord, arrival: FetchedTask) -> Failure:
    task = arrival.task
    error = DuplicateKeyError(f"{task.key} has two records with the key {record.key}")
    return Failure.of(error, "parse", task)
