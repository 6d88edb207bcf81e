"""Loads a bundle into a library: checked, derived in a scratch library, compared, then written.

Nothing of the library changes before all of the bundle is checked: its hashes and signature, every
row, and, of documents whose bytes it has, that these bytes give the same rows. What is stored is
derived again, from the same bytes. So a load that is killed can be repeated.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, event, select, update

from fonds.context import Context
from fonds.errors import BlobExistsError, BundleError
from fonds.exchange.bundle.contents import (
    CITATIONS,
    DOCUMENTS,
    EDITIONS,
    INPUTS,
    NODES,
    ORIGINS,
    BundlePackage,
    Record,
    Resource,
)
from fonds.exchange.bundle.create import records as library_records
from fonds.exchange.bundle.derive import (
    BundleFeed,
    BundleInput,
    TaskInput,
    UnitInput,
    check_packs,
    load_tasks,
    load_unit,
    read_input,
    references_of,
    stored,
)
from fonds.exchange.bundle.groups import (
    TABLES,
    DocumentRows,
    bundle_documents,
    bundle_table,
    library_documents,
    read_rows,
)
from fonds.exchange.bundle.raw import Container, RawPackage, read_container
from fonds.exchange.bundle.stated import write_editions, write_nodes, write_stated
from fonds.exchange.bundle.statement import Statement
from fonds.exchange.bundle.verify import read_verified
from fonds.exchange.snapshot import Snapshot, snapshot
from fonds.model import Archived
from fonds.runs import citations, normalization
from fonds.runs.concurrency import in_thread
from fonds.runs.normalization import chunker_label, passages_of_text
from fonds.runs.reparse import ArchivedFeed
from fonds.schema import require_current
from fonds.seams import Seams
from fonds.sources.base import Source
from fonds.sources.jurisdiction import JurisdictionAdapter
from fonds.stores.blobs import Blobs, open_blobs
from fonds.stores.database import open_database, repeatable, upsert
from fonds.stores.documents import mark_withdrawn, stored_text, update_text
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import (
    code_units,
    documents,
    ingestion_inputs,
    ingestion_normalization_queue,
    loaded_bundles,
)

Watch = Callable[[str, int], None]
BATCH_SIZE: Final = 100
MAX_LISTED: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedBundle:
    """A bundle that was checked by itself: all that it consists of belongs together."""

    blobs: Blobs
    address: str
    package: BundlePackage
    raw: RawPackage | None
    statement: Statement | None

    @property
    def label(self) -> str:
        """Root and key, as every document of it carries them."""
        key = self.statement.key if self.statement else None
        return f"{self.package.root} {key}" if key else self.package.root

    @property
    def made_at(self) -> datetime | None:
        """When it was made, if it says so."""
        return self.statement.made if self.statement else None


@dataclass(kw_only=True, slots=True)
class LoadReport:
    """The result of loading a bundle."""

    root: str
    address: str
    key: str | None = None
    key_name: str | None = None
    """The name under which that key is trusted; None if it is not."""
    made_at: str | None = None
    documents: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    withdrawn: int = 0
    preserved: int = 0
    """Documents that stay as they are, since this library fetched them itself or has newer ones."""
    proven: int = 0
    """Documents that the bytes in the bundle gave again, equal in every row."""
    unproven: int = 0
    """Documents that came without their bytes, and were taken as the bundle has them."""
    other_versions: dict[str, list[str]] = field(default_factory=dict)
    """By version of a parser that is not ours: some of the documents that it read."""
    other_version_counts: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    """The first failure of each source."""
    is_equal: bool = False
    """Every document of the bundle has the same rows in this library."""


def require_valid(
    blobs: Blobs, address: str, *, key: str | None, with_containers: bool, watch: Watch | None
) -> CheckedBundle:
    """Check a bundle by itself; BundleError with the first problem.

    Containers that are still to be fetched are checked when they are unpacked.
    """
    verified = read_verified(blobs, address, with_containers=with_containers, watch=watch)
    report, package, statement = verified.report, verified.package, verified.statement
    if report.problems:
        first = report.problems[0]
        more = f", and {report.count - 1:,} more problems" if report.count > 1 else ""
        raise BundleError(
            f"the bundle is refused, and nothing was changed: {first.where}: {first.what}{more}; "
            "`fonds bundle verify` lists all"
        )
    assert package is not None
    signed_by = statement.key if statement else None
    if key is not None and signed_by != key:
        signer = f"by {signed_by}" if signed_by else "by no key"
        raise BundleError(
            f"the bundle is refused, and nothing was changed: it should be signed by {key}, and is "
            f"signed {signer}"
        )
    return CheckedBundle(
        blobs=blobs, address=address, package=package, raw=verified.raw, statement=statement
    )


FetchContainers = Callable[[Sequence[Container]], Awaitable[None]]


async def load(
    bundle: CheckedBundle,
    context: Context,
    work: Path,
    *,
    fetch: FetchContainers | None = None,
    watch: Watch | None = None,
) -> LoadReport:
    """Load a checked bundle; `work` is a folder for its scratch library, which is removed.

    Only the containers with files of inputs that the library lacks are needed, and `fetch` is
    called for them.
    """
    loading = _Loading(bundle, replace(context, bundle=bundle.label), work, watch)
    await in_thread(loading.prepare)
    if fetch is not None:
        await fetch(loading.containers)
    try:
        with loading.scratch_library() as scratch:
            await loading.derive(scratch)
            await in_thread(loading.compare, scratch)
            await in_thread(loading.record, is_done=False)
            await loading.write(scratch)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    await in_thread(loading.check)
    await in_thread(loading.record, is_done=True)
    return loading.report


@dataclass(slots=True)
class _Choice:
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


class _Loading:
    def __init__(
        self, bundle: CheckedBundle, context: Context, work: Path, watch: Watch | None
    ) -> None:
        self._bundle = bundle
        self._context = context
        self._work = work
        self._watch = watch or (lambda _activity, _count: None)
        self._tasks: dict[str, list[TaskInput]] = defaultdict(list)
        self._units: list[UnitInput] = []
        self._read_by: dict[str, tuple[str, str]] = {}
        """Source and versions that read a document, by its id or that of its unit."""
        self._equal: set[str] = set()
        """Documents that are in the library with the same rows."""
        self._changed_units: set[str] = set()
        """Units of codes with other documents."""
        self._made: dict[str, datetime | None] = {}
        """When earlier bundles were made, by root."""
        self._choice = _Choice()
        statement = bundle.statement
        self.report = LoadReport(
            root=bundle.package.root,
            address=bundle.address,
            key=statement.key if statement else None,
            made_at=statement.made_at if statement else None,
            documents=bundle.package.records(DOCUMENTS),
        )

    # Before anything is written ---------------------------------------------------------------

    def prepare(self) -> None:
        """Read the inputs, and refuse a bundle that is older than one of the same maker."""
        self._require_newest()
        with self._context.database.read() as connection:
            table = loaded_bundles.c
            rows = connection.execute(select(table.root, table.made_at))
            self._made = {row.root: row.made_at for row in rows}
        self._find_equal()
        raw = self._bundle.raw
        for record in read_rows(self._bundle.blobs, INPUTS, raw.inputs) if raw else ():
            entry = read_input(record)
            if isinstance(entry, UnitInput):
                if self._code(entry.source):
                    self._units.append(entry)
                    self._read_by[entry.id] = (entry.source, entry.version)
            elif self._feed(entry.task.source):
                self._tasks[entry.task.source].append(entry)
                read_by = (entry.task.source, entry.version)
                self._read_by |= dict.fromkeys(entry.documents, read_by)
        for source, inputs in self._tasks.items():
            self._tasks[source] = self._unloaded(source, inputs)
        self._units = [unit for unit in self._units if not self._is_loaded(unit)]

    def _find_equal(self) -> None:
        """Find the documents that need not be derived, since the library has the same."""
        checked = 0
        with snapshot(self._context.database) as library:
            if library.connection.scalar(select(documents.c.id).limit(1)) is None:
                self._changed_units |= {row["id"] for row in self._table(EDITIONS)}
                return
            for batch in batched(self._documents(), BATCH_SIZE):
                keys = [key for key, _ in batch]
                own = library_documents(library, keys)
                gaining = self._without_bytes(library, keys)
                for key, rows in batch:
                    (row,) = rows[DOCUMENTS]
                    if key in own and key not in gaining and _is_equal(rows, own[key]):
                        self._equal.add(key)
                    elif row["unit"]:
                        self._changed_units.add(row["unit"])
                checked += len(batch)
                self._watch("documents looked up", checked)

    def _without_bytes(self, library: Snapshot, document_ids: Sequence[str]) -> set[str]:
        """Of some documents, those that were loaded without the bytes that this bundle has."""
        if self._bundle.raw is None:
            return set()
        query = select(documents.c.id).where(documents.c.raw_path == "")
        return {
            row.id for row in select_in(library.connection, query, documents.c.id, document_ids)
        }

    def _documents(self) -> Iterator[tuple[str, DocumentRows]]:
        return bundle_documents(self._bundle.blobs, self._bundle.package)

    def _unloaded(self, source: str, inputs: Sequence[TaskInput]) -> list[TaskInput]:
        """The inputs that are new or have other documents."""
        loaded = self._loaded_inputs(source, inputs)
        return [
            entry
            for entry in inputs
            if not entry.documents <= self._equal
            or (previous := loaded.get(entry.task.key)) is None
            or previous.input_sha256 != entry.input_sha256
        ]

    def _is_loaded(self, unit: UnitInput) -> bool:
        query = select(code_units.c.plan_key).where(code_units.c.id == unit.id)
        with self._context.database.read() as connection:
            plan = connection.scalar(query)
        return bool(plan) and unit.id not in self._changed_units

    @property
    def containers(self) -> list[Container]:
        """The containers with files that are needed."""
        needed = {each.sha256 for entry in self._inputs() for each in references_of(entry)}
        return [
            container
            for container in (self._bundle.raw.containers if self._bundle.raw else ())
            if any(file.sha256 in needed for file in container.files)
        ]

    def _require_newest(self) -> None:
        made_at, table = self._bundle.made_at, loaded_bundles.c
        if made_at is None:
            return
        key = self.report.key
        same_maker = table.key == key if key else table.key.is_(None)
        same_maker &= table.address == self._bundle.address if key is None else table.key == key
        query = select(table.root, table.made_at, table.sources).where(
            same_maker, table.made_at > made_at
        )
        sources = self._bundle.package.sources
        with self._context.database.read() as connection:
            for row in connection.execute(query):
                if (row.sources is None and sources is None) or row.sources == list(sources or ()):
                    raise BundleError(
                        f"the bundle is refused, and nothing was changed: it was made at "
                        f"{self.report.made_at}, and a newer one of the same maker is loaded: "
                        f"{row.root}"
                    )

    def _feed(self, source: str) -> Source | None:
        registered = self._context.sources.get(source)
        return registered if isinstance(registered, Source) else None

    def _code(self, source: str) -> JurisdictionAdapter | None:
        registered = self._context.sources.get(source)
        return registered if isinstance(registered, JurisdictionAdapter) else None

    @contextmanager
    def scratch_library(self) -> Iterator[Context]:
        """An empty library with the bytes of the bundle, in the folder for work."""
        home = self._work / "scratch"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True, mode=0o700)
        settings = replace(
            self._context.settings, home=home, database="", blobs="", indexes="", engine="local"
        )
        database = open_database(settings.database_url, seams=Seams())
        event.listen(database.engine, "connect", _do_not_sync)
        blobs = open_blobs(settings.blobs_url, seams=Seams())
        try:
            require_current(database)
            scratch = replace(self._context, settings=settings, database=database, blobs=blobs)
            scratch.__dict__.update(fetcher=self._context.fetcher)
            yield scratch
        finally:
            database.close()

    async def derive(self, scratch: Context) -> None:
        """Fill the scratch library from the bytes of the bundle."""
        await in_thread(self._unpack, Path(scratch.settings.blobs_url))
        for source, inputs in self._tasks.items():
            feed = self._feed(source)
            assert feed is not None
            allowed = {entry.task.key: entry.documents for entry in inputs}
            bundle_feed = BundleFeed(ArchivedFeed(feed, scratch.database), allowed)
            await load_tasks(bundle_feed, inputs, scratch, replaces=())
        for unit in self._units:
            adapter = self._code(unit.source)
            assert adapter is not None
            await in_thread(check_packs, unit, scratch.blobs)
            await load_unit(adapter, unit, scratch)
        await in_thread(self._drain, scratch)

    def _drain(self, scratch: Context) -> None:
        with scratch.open_readers(2) as engine:
            normalization.drain(scratch, engine)
        citations.drain(
            scratch.database,
            scratch.seams,
            watch=lambda done, _: self._watch("documents read for citations", done),
        )

    def _unpack(self, folder: Path) -> None:
        """Write the archived files of the bundle under their keys; they were checked before."""
        keys_by_sha256: dict[str, set[str]] = defaultdict(set)
        names: dict[str, str] = {}
        for entry in self._inputs():
            for reference in references_of(entry):
                if names.setdefault(reference.key, reference.sha256) != reference.sha256:
                    raise BundleError(f"two files of the bundle are called {reference.key}")
                keys_by_sha256[reference.sha256].add(reference.key)
        count = 0
        for container in self.containers:
            for file, data in read_container(self._bundle.blobs, container):
                for key in keys_by_sha256.pop(file.sha256, ()):
                    target = folder / key
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if isinstance(data, Path):
                        shutil.copyfile(data, target)
                    else:
                        target.write_bytes(data)
                    count += 1
            self._watch("files unpacked", count)
        if keys_by_sha256:
            raise BundleError(
                f"the bundle is refused, and nothing was changed: {len(keys_by_sha256):,} files "
                f"of its inputs are not in it, such as {min(next(iter(keys_by_sha256.values())))}"
            )

    def _inputs(self) -> Iterator[BundleInput]:
        for inputs in self._tasks.values():
            yield from inputs
        yield from self._units

    # Comparison -------------------------------------------------------------------------------

    def compare(self, scratch: Context) -> None:
        """Refuse a bundle whose bytes give other rows; choose what is to be written."""
        compared = 0
        with (
            snapshot(scratch.database) as derived,
            snapshot(self._context.database) as library,
        ):
            for batch in batched(self._documents(), BATCH_SIZE):
                groups = dict(batch)
                own = library_documents(derived, list(groups))
                for document_id, rows in groups.items():
                    self._compare_one(document_id, rows, own.get(document_id))
                self._choose(groups, library, own)
                compared += len(groups)
                self._watch("documents compared", compared)
            self._compare_trees(derived)

    def _version_of(self, row: Record) -> tuple[str, str] | None:
        """The source and versions that read a document; None if it has no input in the bundle."""
        return self._read_by.get(row["id"]) or self._read_by.get(row["unit"] or "")

    def _own_version(self, source: str) -> str:
        """The versions with which this program reads the inputs of a source."""
        info = self._context.sources[source].info
        label = f"{info.name}@{info.version}"
        if self._code(source):
            return label
        return f"{label} {chunker_label(self._context.chunker)}"

    def _compare_one(self, document_id: str, rows: DocumentRows, own: DocumentRows | None) -> None:
        (row,) = rows[DOCUMENTS]
        read_by = self._version_of(row)
        if read_by is None:
            self._choice.stated.add(document_id)
            self.report.unproven += 1
            return
        if own is None and document_id in self._equal:
            self.report.proven += 1  # when it was loaded, from the same input
            return
        differences = _differences(rows, own, self._bundle.statement)
        if not differences:
            self.report.proven += 1
            return
        has_other_texts = own is not None and own[DOCUMENTS][0]["recipe"] != row["recipe"]
        source, version = read_by
        is_same_version = version == self._own_version(source)
        if is_same_version and not has_other_texts:
            raise BundleError(
                f"the bundle is refused, and nothing was changed: the bytes of {document_id} give "
                f"another {differences[0]} than the bundle says, with the same parsers"
            )
        version = row["recipe"] if is_same_version else version
        listed = self.report.other_versions.setdefault(version, [])
        counts = self.report.other_version_counts
        counts[version] = counts.get(version, 0) + 1
        if len(listed) < MAX_LISTED:
            listed.append(document_id)
        if own is None:
            self._choice.stated.add(document_id)

    def _choose(
        self, groups: Mapping[str, DocumentRows], library: Snapshot, own: Mapping[str, DocumentRows]
    ) -> None:
        table = documents.c
        query = select(
            table.id,
            table.content_sha256,
            table.recipe,
            table.body_text_sha256,
            table.bundle,
            table.raw_path,
        )
        existing = {
            row.id: row for row in select_in(library.connection, query, table.id, list(groups))
        }
        choice = self._choice
        for document_id, rows in groups.items():
            stored_row = existing.get(document_id)
            (row,) = own.get(document_id, rows)[DOCUMENTS]
            is_foreign = stored_row is None or stored_row.bundle is not None
            if rows[DOCUMENTS][0]["is_gone"] and is_foreign:
                choice.withdrawn.add(document_id)
            names = ("content_sha256", "recipe", "body_text_sha256")
            if stored_row is None:
                choice.write.add(document_id)
            elif all(getattr(stored_row, name) == row[name] for name in names):
                gains_bytes = not stored_row.raw_path and document_id in own
                (choice.write if gains_bytes and is_foreign else choice.same).add(document_id)
            elif is_foreign and self._is_newer(stored_row.bundle, document_id):
                choice.write.add(document_id)
            else:
                choice.preserved.add(document_id)
            if stored_row is not None:
                choice.updates.add(document_id)
            if not is_foreign:
                choice.own.add(document_id)

    def _is_newer(self, label: str, document_id: str) -> bool:
        """True if a document may replace one of another bundle, False if none of them says when.

        BundleError if it would roll it back.
        """
        root = label.partition(" ")[0]
        made_at, other = self._bundle.made_at, self._made.get(root)
        if root == self.report.root:
            return True
        if made_at is None or other is None:
            return False
        if made_at < other:
            raise BundleError(
                f"the bundle is refused, and nothing was changed: it was made at "
                f"{self.report.made_at}, and would roll back {document_id}, which is from a newer "
                f"one: {root}"
            )
        return True

    def _compare_trees(self, derived: Snapshot) -> None:
        """Refuse trees of codes that do not follow from their plans; versions may differ."""
        same = {unit.id for unit in self._units if unit.version == self._own_version(unit.source)}
        for resource, owner in ((EDITIONS, "id"), (NODES, "unit")):
            stated = self._table(resource)
            stated_rows = (row for row in stated if row[owner] in same)
            derived_rows = (
                row for row in library_records(derived, resource, None) if row[owner] in same
            )
            for their, our in zip_longest(stated_rows, derived_rows):
                if their != our:
                    name = (their or our or {})["id"]
                    raise BundleError(
                        "the bundle is refused, and nothing was changed: the plan of a code does "
                        f"not give {name} as the bundle has it"
                    )

    def _table(self, resource: Resource) -> Iterator[Record]:
        return bundle_table(self._bundle.blobs, self._bundle.package, resource)

    # Writing ----------------------------------------------------------------------------------

    @repeatable
    def record(self, *, is_done: bool) -> None:
        """Store that this bundle is being loaded, or is loaded."""
        now, bundle = self._context.seams.clock.now(), self._bundle
        sources = bundle.package.sources
        row = {
            "root": bundle.package.root,
            "address": bundle.address,
            "key": self.report.key,
            "made_at": bundle.made_at,
            "sources": None if sources is None else list(sources),
            "has_raw": bundle.raw is not None,
            "began_at": now,
            "loaded_at": now if is_done else None,
        }
        with self._context.database.write() as connection:
            upsert(connection, loaded_bundles, [row])

    async def write(self, scratch: Context) -> None:
        """Write what was chosen; each step can be repeated."""
        for source, inputs in self._tasks.items():
            await self._write_tasks(source, inputs, scratch)
        for unit in self._units:
            await self._write_unit(unit, scratch)
        await in_thread(self._write_stated)
        await in_thread(self._copy_texts, scratch)
        await in_thread(
            citations.drain,
            self._context.database,
            self._context.seams,
            watch=self._watch_citations,
        )
        await in_thread(self._finish)

    def _watch_citations(self, done: int, _citations: int) -> None:
        self._watch("documents read for citations", done)

    async def _write_tasks(
        self, source: str, inputs: Sequence[TaskInput], scratch: Context
    ) -> None:
        feed = self._feed(source)
        assert feed is not None
        loaded = await in_thread(self._loaded_inputs, source, inputs)
        writable = self._choice.write | (
            self._choice.same - self._choice.own - self._choice.withdrawn
        )
        chosen, allowed, replaces = [], {}, set()
        for entry in inputs:
            previous = loaded.get(entry.task.key)
            if not self._is_due(entry, previous):
                continue
            chosen.append(await in_thread(self._store_files, entry, scratch))
            allowed[entry.task.key] = entry.documents & writable
            is_whole = not entry.documents & (self._choice.own | self._choice.preserved)
            if previous is not None and previous.bundle is not None and is_whole:
                replaces.add(entry.task.key)
        if chosen:
            self._watch(f"inputs of {source}", len(chosen))
            feed_run = BundleFeed(ArchivedFeed(feed, self._context.database), allowed)
            run = await load_tasks(feed_run, chosen, self._context, replaces=replaces)
            if run.error_summary:
                self.report.errors.append(f"{source}: {run.error_summary}")

    def _loaded_inputs(self, source: str, inputs: Sequence[TaskInput]) -> dict[str, Any]:
        table = ingestion_inputs.c
        query = select(table.task_key, table.input_sha256, table.bundle).where(
            table.source == source
        )
        keys = [entry.task.key for entry in inputs]
        with self._context.database.read() as connection:
            return {row.task_key: row for row in select_in(connection, query, table.task_key, keys)}

    def _is_due(self, entry: TaskInput, previous: Any) -> bool:
        """True for an input that has something to write."""
        if entry.documents & self._choice.write:
            return True
        if previous is None:
            return not entry.documents or not entry.documents <= self._choice.own
        if entry.documents or previous.bundle is None:
            return False
        # Rows without a document: replaced by those of a newer bundle.
        made, other = self._bundle.made_at, self._made.get(previous.bundle.partition(" ")[0])
        is_newer = made is not None and other is not None and made > other
        return previous.input_sha256 != entry.input_sha256 and is_newer

    def _store_files(self, entry: TaskInput, scratch: Context) -> TaskInput:
        """The input with its files in the archive of the library."""
        source = entry.task.source

        def store(archived: Archived) -> Archived:
            file = scratch.blobs.local_path(archived.key)
            assert file is not None, "the scratch library is in a folder"
            return stored(self._context, source, archived.key, file, archived)

        files = tuple(map(store, entry.files))
        origin = entry.task.origin and store(entry.task.origin)
        return replace(entry, files=files, task=replace(entry.task, origin=origin))

    async def _write_unit(self, unit: UnitInput, scratch: Context) -> None:
        if not await in_thread(self._has_missing, unit, scratch):
            return
        await in_thread(self._store_unit, unit, scratch)
        adapter = self._code(unit.source)
        assert adapter is not None
        self._watch(f"unit {unit.id}", len(unit.packs))
        await load_unit(adapter, unit, self._context)

    def _has_missing(self, unit: UnitInput, scratch: Context) -> bool:
        """True if the library lacks sections of the unit, and has no other plan of it."""
        planned = select(code_units.c.plan_key, code_units.c.state).where(
            code_units.c.id == unit.id
        )
        with self._context.database.read() as connection:
            row = connection.execute(planned).one_or_none()
        with scratch.database.read() as connection:
            table = documents.c
            sections = set(connection.scalars(select(table.id).where(table.unit == unit.id)))
        if row is None or row.state == "planned" or not row.plan_key:
            return True
        if row.plan_key == unit.plan.key and sections & self._choice.write:
            return True
        self._choice.preserved |= sections & self._choice.write
        self._choice.write -= sections
        return False

    def _store_unit(self, unit: UnitInput, scratch: Context) -> None:
        for reference in references_of(unit):
            file = scratch.blobs.local_path(reference.key)
            assert file is not None, "the scratch library is in a folder"
            with suppress(BlobExistsError):
                self._context.blobs.create(reference.key, file)

    def _write_stated(self) -> None:
        """Write documents without bytes as the bundle has them, and trees without plans."""
        chosen = self._choice.stated & self._choice.write
        if not self._choice.stated:
            return
        retrieved_at = self._bundle.made_at or self._context.seams.clock.now()
        selected = ((key, rows) for key, rows in self._documents() if key in chosen)
        count = 0
        for batch in batched(selected, BATCH_SIZE):
            write_stated(self._context, dict(batch), retrieved_at)
            count += len(batch)
            self._watch("documents without bytes", count)
        derived = {unit.id for unit in self._units}
        editions = [row for row in self._table(EDITIONS) if row["id"] not in derived]
        if editions:
            write_editions(self._context, editions)
        rows = (row for row in self._table(NODES) if row["unit"] not in derived)
        for nodes in batched(rows, BATCH_SIZE):
            write_nodes(self._context, nodes, self._choice.stated | self._choice.own)

    @repeatable
    def _copy_texts(self, scratch: Context) -> None:
        """Give documents the texts that were made of the same bytes in the scratch library."""
        for batch in batched(sorted(self._choice.write - self._choice.stated), BATCH_SIZE):
            queue, table = ingestion_normalization_queue, documents
            with self._context.database.read() as connection:
                query = select(queue.c.record_id)
                waiting = [row[0] for row in select_in(connection, query, queue.c.record_id, batch)]
            if not waiting:
                continue
            with scratch.database.read() as connection:
                rows = list(select_in(connection, select(table), table.c.id, waiting))
            with self._context.database.write() as connection:
                for row in rows:
                    if row.body_text is not None:
                        self._copy_text(connection, row)

    def _copy_text(self, connection: Connection, row: Row[Any]) -> None:
        text, queue = stored_text(row.body_text, row.body_map), ingestion_normalization_queue
        chunker = self._context.chunker
        update_text(
            connection,
            self._context.database.fulltext,
            row.id,
            text,
            passages=passages_of_text(row.id, row.title, row.summary, text, chunker),
            normalizer=row.body_normalizer_version,
            recipe=row.recipe,
            now=self._context.seams.clock.now(),
        )
        connection.execute(
            delete(queue).where(
                queue.c.record_id == row.id, queue.c.input_sha == row.body_raw_sha256
            )
        )

    @repeatable
    def _finish(self) -> None:
        """Mark what the publisher withdrew, and what this bundle has in the same form."""
        choice, table = self._choice, documents.c
        now = self._context.seams.clock.now()
        with self._context.database.write() as connection:
            self.report.withdrawn = mark_withdrawn(connection, sorted(choice.withdrawn), now)
            for batch in batched(sorted(choice.same - choice.own)):
                older = [
                    label for label in self._labels(connection, batch) if self._is_older(label)
                ]
                is_older = table.id.in_(batch) & table.bundle.in_(older)
                values = {"bundle": self._context.bundle}
                connection.execute(update(documents).where(is_older).values(values))

    def _labels(self, connection: Connection, document_ids: Sequence[str]) -> list[str]:
        """The bundles that documents are from."""
        table = documents.c
        query = select(table.bundle).where(table.id.in_(document_ids), table.bundle.is_not(None))
        return list(connection.scalars(query.distinct()))

    def _is_older(self, label: str) -> bool:
        """True for a bundle that was made before this one."""
        made_at, other = self._bundle.made_at, self._made.get(label.partition(" ")[0])
        return made_at is not None and other is not None and other < made_at

    def check(self) -> None:
        """Compare the library with the bundle, and count."""
        report, choice = self.report, self._choice
        differing = 0
        with snapshot(self._context.database) as library:
            for batch in batched(self._documents(), BATCH_SIZE):
                groups = dict(batch)
                own = library_documents(library, list(groups))
                differing += sum(own.get(key) != rows for key, rows in groups.items())
        report.is_equal = not differing
        report.preserved = len(choice.preserved)
        report.unchanged = len(choice.same)
        report.added = len(choice.write - choice.updates)
        report.updated = len(choice.write & choice.updates)


def _do_not_sync(connection: Any, _record: Any) -> None:
    # What is lost with the machine is derived again.
    connection.execute("PRAGMA synchronous = OFF")


def _is_equal(stated: DocumentRows, own: DocumentRows) -> bool:
    """True if two documents have the same content, from whatever bytes."""
    return all(list(stated[each]) == list(own[each]) for each in TABLES if each is not ORIGINS)


def _differences(
    stated: DocumentRows, own: DocumentRows | None, statement: Statement | None
) -> list[str]:
    """The fields and tables in which a document differs from the one derived from its bytes."""
    if own is None:
        return ["document (none)"]
    (their,), (our,) = stated[DOCUMENTS], own[DOCUMENTS]
    waiting = statement.waiting if statement else {}
    if waiting.get("texts") and their["body_text"] is None and our["body_text"] is not None:
        return []  # its maker had not read the text yet
    # Whether it was withdrawn is not in the bytes.
    our = {**our, "is_gone": their["is_gone"]}
    names = [name for name in their if their[name] != our[name]]
    tables = [each for each in TABLES if each is not DOCUMENTS]
    if waiting.get("citations"):
        tables.remove(CITATIONS)
    return names + [each.name for each in tables if list(stated[each]) != list(own[each])]
