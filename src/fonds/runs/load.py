"""Stages three and four: parse the bytes, and queue records for loading in batches.

A batch holds everything in the order it was discovered: records, finished tasks, failures,
listings, watermarks. So a watermark is stored only together with, or after, all that it covers.

Writing one batch: all of it in one transaction, or each of its tasks alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, select
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import DuplicateKeyError, StoreUnavailableError, SuspiciousYieldError
from fonds.fetch.archive import FileRecord
from fonds.model import (
    Archived,
    Counts,
    FetchTask,
    KeyListing,
    Listing,
    ParsedRecord,
    Raw,
    RawPart,
    Watermark,
)
from fonds.runs.active_run import ActiveRun
from fonds.runs.discover import check_loss, parse_versions
from fonds.runs.fetch import Fetched, FetchedTask
from fonds.runs.hosts import record_hosts
from fonds.runs.normalization import passages_of, prepare_write
from fonds.runs.state import advance_watermark
from fonds.runs.tasks import (
    MAX_ATTEMPTS,
    Failure,
    LoadedInput,
    input_to_json,
    record_failures,
    record_loaded,
    remember_files,
    remember_inputs,
    resolve,
)
from fonds.sources.base import Parser
from fonds.stores.database import repeatable
from fonds.stores.documents import mark_withdrawn, write_documents
from fonds.stores.records import (
    check_record,
    drop_unyielded,
    insert_records,
    key_of,
    merge_rows,
    update_records,
)
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import documents, ingestion_inputs, metadata

Identity = tuple[str, tuple[Any, ...]]
"""Table and primary key of a top-level record."""


def identity_of(record: ParsedRecord) -> Identity:
    """The table and primary key of a record."""
    return record.table, key_of(metadata.tables[record.table], record.payload)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedTask:
    """Records of one task; a long one spreads over several batches."""

    fetched: FetchedTask
    records: list[ParsedRecord] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedTask:
    """A task all of whose records are in this batch or in those before it."""

    fetched: FetchedTask
    yielded: frozenset[Identity]
    is_unchanged: bool = False
    """Fetched again, and not parsed since its bytes are as before."""


Entry = ParsedTask | FinishedTask | Failure | Listing | KeyListing | Watermark


def _is_end_of(entry: Entry, task_keys: set[str]) -> bool:
    return isinstance(entry, FinishedTask) and entry.fetched.task.key in task_keys


class BatchWriter:
    """Writes batches to the database, and adds what was written to the counts of the run."""

    def __init__(
        self, active: ActiveRun[Parser], take_validators: Callable[[], Iterable[FileRecord]]
    ) -> None:
        self._active = active
        self._take_validators = take_validators
        self._source = active.source.info.name
        self._tables = active.source.info.tables
        self._counts = Counts()
        """Of the batch that is being written."""
        self._logged: set[tuple[Any, ...]] = set()
        """Lines of that batch."""
        self._failed: set[str] = set()
        """Keys of tasks that the database rejected: their ends, in later batches, are left out."""
        self._withdrawn: set[str] = set()
        """Keys that a listing of this run lacks; if they are listed again, they are new."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Write the whole batch, or all of it but the tasks that the database rejects."""
        self._write_or_divide(entries, list(self._take_validators()))

    def _write_or_divide(self, entries: Sequence[Entry], validators: list[FileRecord]) -> None:
        """Halve a rejected batch until the culprit is alone, and record its failure."""
        entries = [entry for entry in entries if not _is_end_of(entry, self._failed)]
        try:
            self._write(entries, validators)
        except (SQLAlchemyError, ValueError, TypeError) as error:
            # Drivers raise the latter two for values that they cannot encode, such as half of a
            # surrogate pair.
            if len(entries) > 1:
                middle = len(entries) // 2
                self._write_or_divide(entries[:middle], validators)
                self._write_or_divide(entries[middle:], [])
            elif entries and isinstance(entries[0], ParsedTask):
                fetched = entries[0].fetched
                self._failed.add(fetched.task.key)
                self._write([fetched.failure(error, "load")], validators)
            else:
                raise

    def _write(self, entries: Sequence[Entry], validators: list[FileRecord]) -> None:
        self._logged.clear()
        self._write_once(entries, validators)
        self._active.run.add(self._counts)

    @repeatable
    def _write_once(self, entries: Sequence[Entry], validators: list[FileRecord]) -> None:
        run = self._active.run
        now = self._active.context.seams.clock.now()
        self._counts = Counts()
        with self._active.context.database.write() as connection:
            self._active.lock.confirm(connection)
            self._load(connection, entries, now)
            self._finish(connection, [e for e in entries if isinstance(e, FinishedTask)], now)
            failures = [e for e in entries if isinstance(e, Failure)]
            failures += self._withdraw(connection, entries, now)
            self._fail(connection, failures, now)
            remember_files(connection, validators)
            for entry in entries:
                if isinstance(entry, Watermark) and advance_watermark(
                    connection, self._source, entry, run.request
                ):
                    self._log("info", f"watermark: {entry.last_seen_key}", type="watermark")
            run.save(connection, self._counts)

    def _log(self, level: str, message: str, **context: Any) -> None:
        """Log a line of the batch, once if its transaction is repeated."""
        line = (level, message, *context.values())
        if line not in self._logged:
            self._logged.add(line)
            self._active.run.log(level, message, **context)

    def _load(self, connection: Connection, entries: Sequence[Entry], now: datetime) -> None:
        with_document: dict[str, tuple[ParsedRecord, str]] = {}
        for entry in entries:
            if isinstance(entry, ParsedTask):
                without = [record for record in entry.records if record.document is None]
                task_key = entry.fetched.task.key
                self._merge(connection, without, task_key)
                for record in entry.records:
                    if record.document is not None:
                        # Of two tasks that yield one document, the later one owns it.
                        with_document.pop(record.document.id, None)
                        with_document[record.document.id] = (record, task_key)
        self._load_documents(connection, with_document, now)

    def _merge(
        self, connection: Connection, records: Sequence[ParsedRecord], task_key: str
    ) -> None:
        inserted, updated = merge_rows(connection, records, task_key)
        self._count(len(records), inserted, updated)

    def _count(self, records: int, inserted: int, updated: int) -> None:
        self._counts.inserted += inserted
        self._counts.updated += updated
        self._counts.skipped += records - inserted - updated

    def _load_documents(
        self,
        connection: Connection,
        with_document: Mapping[str, tuple[ParsedRecord, str]],
        now: datetime,
    ) -> None:
        if not with_document:
            return
        chunker = self._active.context.chunker
        bundle = self._active.context.bundle
        writings = [
            replace(prepare_write(record, task_key, chunker), bundle=bundle)
            for record, task_key in with_document.values()
        ]
        changes = write_documents(
            connection,
            self._active.context.database.fulltext,
            writings,
            now,
            derive=lambda document: passages_of(document, chunker),
        )
        records = {key: record for key, (record, _) in with_document.items()}
        new = [record for key, record in records.items() if key in changes.inserted]
        changed = [record for key, record in records.items() if key in changes.updated]
        insert_records(connection, new, self._tables)
        update_records(connection, changed, self._tables)
        self._count(len(records), len(new), len(changed))

    def _finish(
        self, connection: Connection, finished: Sequence[FinishedTask], now: datetime
    ) -> None:
        remember_files(connection, [file for end in finished for file in end.fetched.validators])
        inputs = [(end.fetched.task.key, self._input_of(end, now)) for end in finished]
        listed = [(key, loaded) for key, loaded in inputs if key not in self._withdrawn]
        remember_inputs(connection, self._source, listed)
        loaded = [end for end in finished if not end.is_unchanged]
        started = {end.fetched.task.key: end.fetched.started_at for end in loaded}
        record_loaded(
            connection, self._active.run.id, self._source, list(started), now, started=started
        )
        resolved = [key for key, _ in inputs if key in self._active.open_errors]
        resolve(connection, self._source, resolved, now)
        self._drop_unyielded(connection, [end for end in loaded if end.fetched.previous], now)

    def _input_of(self, finished: FinishedTask, now: datetime) -> LoadedInput:
        fetched = finished.fetched
        records = len(finished.yielded)
        if finished.is_unchanged and fetched.previous is not None:
            records = fetched.previous.records
        return LoadedInput(
            input_sha256=fetched.input_sha256,
            recipe=parse_versions(self._active),
            fingerprint=fetched.task.fingerprint,
            records=records,
            validated_at=fetched.validated_at or now,
            task=input_to_json(fetched.task, fetched.parts),
            bundle=self._active.context.bundle,
        )

    def _drop_unyielded(
        self, connection: Connection, reloaded: Sequence[FinishedTask], now: datetime
    ) -> None:
        """Mark documents that tasks no longer yield as withdrawn, and delete their other rows."""
        if not reloaded:
            return
        task_keys = [end.fetched.task.key for end in reloaded]
        yielded = {key for end in reloaded for _, (key, *_) in end.yielded}
        stored = self._documents_of(connection, task_keys)
        missing = [row.id for row in stored if row.id not in yielded]
        if missing:
            withdrawn = mark_withdrawn(connection, missing, now)
            self._counts = self._counts.plus(Counts(gone=withdrawn))
            self._forget_other_files(connection, task_keys)
        for end in reloaded:
            drop_unyielded(connection, self._tables, end.fetched.task.key, end.yielded)

    def _forget_other_files(self, connection: Connection, task_keys: Sequence[str]) -> None:
        """Let the next run read the source's other files again, although they have not changed.

        A record that moved between files may have been taken for withdrawn because a cache served
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
                days = f"{entry.since}..{entry.until}"
                failures += self._withdraw_unlisted(connection, entry, days, now)
            elif isinstance(entry, KeyListing):
                failures += self._withdraw_unlisted(connection, entry, entry.prefix, now)
        return failures

    def _withdraw_unlisted(
        self, connection: Connection, listing: Listing | KeyListing, scope: str, now: datetime
    ) -> list[Failure]:
        stored, missing = self._compare(connection, listing)
        name = f"listing {scope}"
        try:
            if not self._active.run.request.accept_loss:
                check_loss(f"the listing {scope}", stored, len(missing))
        except SuspiciousYieldError as error:
            return [Failure.of(error, "discover", name)]
        if name in self._active.open_errors:
            resolve(connection, self._source, [name], now)
        withdrawn = mark_withdrawn(connection, [row.id for row in missing], now)
        self._counts = self._counts.plus(Counts(gone=withdrawn))
        self._withdrawn.update(row.task_key for row in missing)
        self._forget(connection, [row.task_key for row in missing])
        return []

    def _compare(
        self, connection: Connection, listing: Listing | KeyListing
    ) -> tuple[int, list[Row[Any]]]:
        """The number of documents in the range of a listing, and those that it lacks."""
        table = documents.c
        query = select(table.id, table.task_key).where(
            table.source == self._source, table.gone_at.is_(None)
        )
        if isinstance(listing, KeyListing):
            query = query.where(table.task_key.startswith(listing.prefix, autoescape=True))
            stored: list[Row[Any]] = list(connection.execute(query))
            return len(stored), [row for row in stored if not listing.has(row.task_key)]
        after = listing.until + timedelta(days=1)
        query = query.where(
            table.published_at >= listing.since.isoformat(),
            table.published_at < after.isoformat(),
        )
        stored = list(connection.execute(query))
        return len(stored), [row for row in stored if row.task_key not in listing.task_keys]

    def _forget(self, connection: Connection, task_keys: Sequence[str]) -> None:
        """Forget tasks, so that one that is listed again is loaded again, even if unchanged."""
        table = ingestion_inputs
        for batch in batched(task_keys):
            stale = (table.c.source == self._source) & table.c.task_key.in_(batch)
            connection.execute(delete(table).where(stale))

    def _fail(self, connection: Connection, failures: Sequence[Failure], now: datetime) -> None:
        run = self._active.run
        self._counts.error += len(failures)
        remember_files(connection, [file for failure in failures for file in failure.validators])
        for failure in failures:
            run.first_error = run.first_error or f"{failure.task_key}: {failure.error}"
            context = {"task": failure.task_key, "stage": failure.stage, "type": failure.error_type}
            self._log("error", failure.error, **context)
            earlier = self._active.open_errors.get(failure.task_key)
            if earlier is not None and earlier.attempts + 1 == MAX_ATTEMPTS:
                message = (
                    f"failed in {MAX_ATTEMPTS} runs; the next ones wait until it is listed again"
                )
                self._log("warn", message, task=failure.task_key, type="given-up")
        record_failures(
            connection, run.id, self._source, failures, earlier=self._active.open_errors, now=now
        )


ENTRIES_PER_RECORD: Final = 4
"""A batch may also fill with failures and tasks that are unchanged."""
FLUSH_AFTER: Final = 5.0
"""Seconds after which a batch is written although it is not full: upstreams can be slow."""


class Loader:
    """Parses fetched tasks and loads their records in batches; used by one thread at a time."""

    def __init__(
        self, active: ActiveRun[Parser], take_validators: Callable[[], Iterable[FileRecord]]
    ) -> None:
        self._active = active
        self._writer = BatchWriter(active, take_validators)
        self._recorded_hosts = frozenset[str]()
        self._entries: list[Entry] = []
        self._records = 0
        self._size = 0
        self._yielded: dict[str, set[Identity]] = {}
        self._flushed_at = active.context.seams.clock.monotonic()

    def load(self, queue: deque[Fetched]) -> tuple[FetchedTask, list[FetchTask]] | None:
        """Parse what is in the queue, and write it as batches fill.

        Stops at a task whose bytes name further tasks, and returns both: what comes after it must
        not be written before they are loaded and `finish_task` is called.
        """
        while queue:
            item = queue.popleft()
            if not isinstance(item, FetchedTask):
                self._entries.append(item)
            elif not self._is_unchanged(item):
                if further_tasks := self._parse_timed(item):
                    return item, further_tasks
                self.finish_task(item)
            if self._is_full() or self._is_overdue():
                self.flush()
        return None

    def finish_task(self, fetched: FetchedTask) -> None:
        """Queue the end of a task whose records and further tasks are queued before it."""
        key, previous = fetched.task.key, fetched.previous
        if key not in self._yielded:
            return
        yielded = frozenset(self._yielded.pop(key))
        before = previous.records if previous else 0
        try:
            if not self._active.run.request.accept_loss:
                check_loss(key, before, before - len(yielded))
        except SuspiciousYieldError as error:
            self._entries.append(fetched.failure(error, "parse"))
        else:
            self._entries.append(FinishedTask(fetched=fetched, yielded=yielded))

    def flush(self) -> None:
        """Write what is queued."""
        entries, self._entries, self._records, self._size = self._entries, [], 0, 0
        active, info = self._active, self._active.source.info
        self._flushed_at = active.context.seams.clock.monotonic()
        if entries:
            # What is loaded is not fetched again by the next run, so its hosts are recorded before.
            self._recorded_hosts = record_hosts(info, active.context, self._recorded_hosts)
            started = active.run.stages.load.begin()
            self._writer.write(entries)
            active.run.stages.load.end(started)
        active.context.progress(info.name, active.run.counts)

    def _parse_timed(self, fetched: FetchedTask) -> list[FetchTask]:
        """Parse; the time of batches that are written meanwhile is not counted as parsing."""
        stages = self._active.run.stages
        started, load_seconds = stages.parse.begin(), stages.load.seconds
        try:
            return self._parse(fetched)
        finally:
            stages.parse.end(started, less=stages.load.seconds - load_seconds)

    def _parse(self, fetched: FetchedTask) -> list[FetchTask]:
        """Queue the records of a task, and return the further tasks that it names."""
        further_tasks: list[FetchTask] = []
        queued = ParsedTask(fetched=fetched)
        yielded = self._yielded[fetched.task.key] = set[Identity]()
        self._entries.append(queued)
        for item in self._parsed_items(fetched):
            if isinstance(item, FetchTask):
                further_tasks.append(item)
            elif isinstance(item, ParsedRecord) and identity_of(item) not in yielded:
                yielded.add(identity_of(item))
                queued = self._queue(queued, item)
            else:
                failure = item if isinstance(item, Failure) else _duplicate_key(item, fetched)
                del self._yielded[fetched.task.key]
                self._entries[-1] = failure  # in place of the records that are still queued
                return []
        return further_tasks

    def _parsed_items(self, fetched: FetchedTask) -> Iterator[ParsedRecord | FetchTask | Failure]:
        try:
            for item in self._active.source.parse(self._read(fetched)):
                if isinstance(item, ParsedRecord):
                    check_record(item)
                yield item
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 — hostile bytes may break a parser in any way
            yield fetched.failure(error, "parse")

    def _is_unchanged(self, fetched: FetchedTask) -> bool:
        """True if these exact bytes were loaded before, by the same versions."""
        previous = fetched.previous
        if previous is None or previous.recipe != parse_versions(self._active):
            return False
        if previous.input_sha256 != fetched.input_sha256:
            return False
        self._active.run.count(skipped=previous.records)
        failed_before = fetched.task.key in self._active.open_errors
        is_incomplete = previous.task is None
        if (
            fetched.task.fingerprint is not None
            or fetched.validators
            or failed_before
            or is_incomplete
        ):
            self._entries.append(
                FinishedTask(fetched=fetched, yielded=frozenset(), is_unchanged=True)
            )
        return True

    def _read(self, fetched: FetchedTask) -> Raw:
        parts = tuple(
            RawPart(name=part.name, archived=archived, data=self._read_file(archived))
            for part, archived in fetched.parts
        )
        return Raw(task=fetched.task, parts=parts)

    def _read_file(self, archived: Archived) -> bytes:
        return b"" if self._active.collector else self._active.context.archive.read(archived)

    def _queue(self, queued: ParsedTask, record: ParsedRecord) -> ParsedTask:
        """Queue a record; returns where the next ones of the task go."""
        queued.records.append(record)
        self._active.run.count(parsed=1)
        self._records += 1
        if record.document and record.document.body and record.document.body.normalized:
            self._size += len(record.document.body.normalized.markdown)
        if len(queued.records) < self._active.context.settings.batch_records:
            return queued
        self.flush()
        rest = ParsedTask(fetched=queued.fetched)
        self._entries.append(rest)
        return rest

    def _is_full(self) -> bool:
        settings = self._active.context.settings
        return (
            self._records >= settings.batch_records
            or self._size >= settings.batch_mib << 20
            or len(self._entries) >= settings.batch_records * ENTRIES_PER_RECORD
        )

    def _is_overdue(self) -> bool:
        waited = self._active.context.seams.clock.monotonic() - self._flushed_at
        return bool(self._entries) and waited > FLUSH_AFTER


def _duplicate_key(record: ParsedRecord, fetched: FetchedTask) -> Failure:
    error = DuplicateKeyError(f"{fetched.task.key} has two records with the key {record.key}")
    return fetched.failure(error, "parse")
