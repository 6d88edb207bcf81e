"""Writes what was chosen of a bundle into a library; each step can be repeated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, select, update

from fonds.context import Context
from fonds.errors import BlobExistsError
from fonds.exchange.bundle.contents import EDITIONS, NODES
from fonds.exchange.bundle.create import Watch
from fonds.exchange.bundle.derive import (
    BundleFeed,
    TaskInput,
    UnitInput,
    load_tasks,
    load_unit,
    references_of,
    stored,
)
from fonds.exchange.bundle.stated import write_editions, write_nodes, write_stated
from fonds.exchange.bundle.verify import CheckedBundle
from fonds.model import Archived
from fonds.runs import citations
from fonds.runs.concurrency import in_thread
from fonds.runs.normalization import passages_of_text
from fonds.runs.reparse import ArchivedFeed
from fonds.stores.database import Database, repeatable
from fonds.stores.documents import mark_withdrawn, stored_text, update_text
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import (
    code_units,
    documents,
    ingestion_inputs,
    ingestion_normalization_queue,
)

BATCH_SIZE: Final = 100


@dataclass(slots=True)
class DocumentChoice:
    """The documents of a bundle by what is done with them in the library."""

    write: set[str] = field(default_factory=set)
    """New ones, and those that an older bundle brought in another form."""
    same: set[str] = field(default_factory=set)
    preserved: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    """Withdrawn by the publisher, as the bundle says."""
    own: set[str] = field(default_factory=set)
    """Those that the library fetched itself."""
    updates: set[str] = field(default_factory=set)
    """Those that are in the library in any form."""
    stated: set[str] = field(default_factory=set)
    """Those without bytes in the bundle, or whose source this program does not have."""


@dataclass(kw_only=True, slots=True)
class BundleWriter:
    """Writes the chosen documents, from the same inputs as in the scratch library."""

    bundle: CheckedBundle
    context: Context
    scratch: Context
    """The library in which the inputs were derived and compared."""
    tasks: Mapping[str, Sequence[TaskInput]]
    """Inputs of feeds, by source."""
    units: Sequence[UnitInput]
    choice: DocumentChoice
    """Sections of a unit that the library has of another plan are preserved after all."""
    older_roots: Collection[str]
    """The loaded bundles that were made before this one."""
    watch: Watch
    errors: list[str] = field(default_factory=list)
    """The first failure of each source."""
    withdrawn: int = 0
    """Documents that were marked as withdrawn."""

    async def write(self) -> None:
        """Write what was chosen; each step can be repeated."""
        for source, inputs in self.tasks.items():
            await self._write_tasks(source, inputs)
        for unit in self.units:
            await self._write_unit(unit)
        await in_thread(self._write_stated)
        await in_thread(self._copy_texts)
        await in_thread(
            citations.drain,
            self.context.database,
            self.context.seams,
            watch=self._watch_citations,
        )
        await in_thread(self._finish)

    def _watch_citations(self, done: int, _citations: int) -> None:
        self.watch("documents read for citations", done)

    async def _write_tasks(self, source: str, inputs: Sequence[TaskInput]) -> None:
        loaded = await in_thread(loaded_inputs, self.context.database, source, inputs)
        writable = self.choice.write | (self.choice.same - self.choice.own - self.choice.withdrawn)
        chosen, allowed, replaces = [], {}, set()
        for entry in inputs:
            previous = loaded.get(entry.task.key)
            if not self._is_due(entry, previous):
                continue
            chosen.append(await in_thread(self._store_files, entry))
            allowed[entry.task.key] = entry.documents & writable
            is_whole = not entry.documents & (self.choice.own | self.choice.preserved)
            if previous is not None and previous.bundle is not None and is_whole:
                replaces.add(entry.task.key)
        if chosen:
            self.watch(f"inputs of {source}", len(chosen))
            archived = ArchivedFeed(self.context.sources.parser(source), self.context.database)
            feed = BundleFeed(archived, allowed)
            run = await load_tasks(feed, chosen, self.context, replaces=replaces)
            if run.error_summary:
                self.errors.append(f"{source}: {run.error_summary}")

    def _is_due(self, entry: TaskInput, previous: Row[Any] | None) -> bool:
        """True for an input that has something to write."""
        if entry.documents & self.choice.write:
            return True
        if previous is None:
            return not entry.documents or not entry.documents <= self.choice.own
        if entry.documents or previous.bundle is None:
            return False
        # Rows without a document: replaced by those of a newer bundle.
        is_changed = bool(previous.input_sha256 != entry.input_sha256)
        return is_changed and self._is_older(previous.bundle)

    def _store_files(self, entry: TaskInput) -> TaskInput:
        """The input with its files in the archive of the library."""
        source = entry.task.source

        def store(archived: Archived) -> Archived:
            file = self._scratch_file(archived.key)
            return stored(self.context, source, archived.key, file, archived)

        files = tuple(map(store, entry.files))
        origin = entry.task.origin and store(entry.task.origin)
        return replace(entry, files=files, task=replace(entry.task, origin=origin))

    def _scratch_file(self, key: str) -> Path:
        file = self.scratch.blobs.local_path(key)
        assert file is not None, "the scratch library is in a folder"
        return file

    async def _write_unit(self, unit: UnitInput) -> None:
        if not await in_thread(self._has_missing, unit):
            return
        await in_thread(self._store_unit, unit)
        self.watch(f"unit {unit.id}", len(unit.packs))
        await load_unit(self.context.sources.code(unit.source), unit, self.context)

    def _has_missing(self, unit: UnitInput) -> bool:
        """True if the library lacks sections of the unit, and has no other plan of it."""
        planned = select(code_units.c.plan_key, code_units.c.state).where(
            code_units.c.id == unit.id
        )
        with self.context.database.read() as connection:
            row = connection.execute(planned).one_or_none()
        with self.scratch.database.read() as connection:
            table = documents.c
            sections = set(connection.scalars(select(table.id).where(table.unit == unit.id)))
        if row is None or row.state == "planned" or not row.plan_key:
            return True
        if row.plan_key == unit.plan.key and sections & self.choice.write:
            return True
        self.choice.preserved |= sections & self.choice.write
        self.choice.write -= sections
        return False

    def _store_unit(self, unit: UnitInput) -> None:
        for reference in references_of(unit):
            with suppress(BlobExistsError):
                self.context.blobs.create(reference.key, self._scratch_file(reference.key))

    def _write_stated(self) -> None:
        """Write documents without bytes as the bundle has them, and trees without plans."""
        chosen = self.choice.stated & self.choice.write
        if not self.choice.stated:
            return
        retrieved_at = self.bundle.made_at or self.context.seams.clock.now()
        selected = ((key, rows) for key, rows in self.bundle.documents() if key in chosen)
        count = 0
        for batch in batched(selected, BATCH_SIZE):
            write_stated(self.context, dict(batch), retrieved_at)
            count += len(batch)
            self.watch("documents without bytes", count)
        derived = {unit.id for unit in self.units}
        editions = [row for row in self.bundle.table(EDITIONS) if row["id"] not in derived]
        if editions:
            write_editions(self.context, editions)
        rows = (row for row in self.bundle.table(NODES) if row["unit"] not in derived)
        for nodes in batched(rows, BATCH_SIZE):
            write_nodes(self.context, nodes, self.choice.stated | self.choice.own)

    @repeatable
    def _copy_texts(self) -> None:
        """Give documents the texts that were made of the same bytes in the scratch library."""
        for batch in batched(sorted(self.choice.write - self.choice.stated), BATCH_SIZE):
            queue, table = ingestion_normalization_queue, documents
            with self.context.database.read() as connection:
                query = select(queue.c.record_id)
                waiting = [row[0] for row in select_in(connection, query, queue.c.record_id, batch)]
            if not waiting:
                continue
            with self.scratch.database.read() as connection:
                rows = list(select_in(connection, select(table), table.c.id, waiting))
            with self.context.database.write() as connection:
                for row in rows:
                    if row.body_text is not None:
                        self._copy_text(connection, row)

    def _copy_text(self, connection: Connection, row: Row[Any]) -> None:
        text, queue = stored_text(row.body_text, row.body_map), ingestion_normalization_queue
        chunker = self.context.chunker
        update_text(
            connection,
            self.context.database.fulltext,
            row.id,
            text,
            passages=passages_of_text(row.id, row.title, row.summary, text, chunker),
            normalizer=row.body_normalizer_version,
            recipe=row.recipe,
            now=self.context.seams.clock.now(),
        )
        connection.execute(
            delete(queue).where(
                queue.c.record_id == row.id, queue.c.input_sha == row.body_raw_sha256
            )
        )

    @repeatable
    def _finish(self) -> None:
        """Mark what the publisher withdrew, and what this bundle has in the same form."""
        choice, table = self.choice, documents.c
        now = self.context.seams.clock.now()
        with self.context.database.write() as connection:
            self.withdrawn = mark_withdrawn(connection, sorted(choice.withdrawn), now)
            for batch in batched(sorted(choice.same - choice.own)):
                older = [
                    label for label in self._labels(connection, batch) if self._is_older(label)
                ]
                is_older = table.id.in_(batch) & table.bundle.in_(older)
                values = {"bundle": self.context.bundle}
                connection.execute(update(documents).where(is_older).values(values))

    def _labels(self, connection: Connection, document_ids: Sequence[str]) -> list[str]:
        """The bundles that documents are from."""
        table = documents.c
        query = select(table.bundle).where(table.id.in_(document_ids), table.bundle.is_not(None))
        return list(connection.scalars(query.distinct()))

    def _is_older(self, label: str) -> bool:
        """True for a bundle that was made before this one."""
        return label.partition(" ")[0] in self.older_roots


def loaded_inputs(
    database: Database, source: str, inputs: Sequence[TaskInput]
) -> dict[str, Row[Any]]:
    """The rows of inputs whose tasks were loaded before, by the keys of these tasks."""
    table = ingestion_inputs.c
    query = select(table.task_key, table.input_sha256, table.bundle).where(table.source == source)
    keys = [entry.task.key for entry in inputs]
    with database.read() as connection:
        return {row.task_key: row for row in select_in(connection, query, table.task_key, keys)}
