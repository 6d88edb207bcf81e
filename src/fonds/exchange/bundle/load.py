"""Loads a bundle into a library: checked, derived in a scratch library, compared, then written.

Nothing of the library changes before all of the bundle is checked: its hashes and signature, every
row, and, of documents whose bytes it has, that these bytes give the same rows. What is stored is
derived again, from the same bytes. So a load that is killed can be repeated.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from sqlalchemy import event, select

from fonds.context import Context
from fonds.errors import BundleError
from fonds.exchange.bundle.contents import (
    CITATIONS,
    DOCUMENTS,
    EDITIONS,
    INPUTS,
    NODES,
    ORIGINS,
    Record,
)
from fonds.exchange.bundle.create import Watch
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
)
from fonds.exchange.bundle.groups import TABLES, DocumentRows, library_documents, read_rows
from fonds.exchange.bundle.raw import Container, read_container
from fonds.exchange.bundle.statement import Statement
from fonds.exchange.bundle.verify import CheckedBundle
from fonds.exchange.bundle.write import BundleWriter, DocumentChoice, loaded_inputs
from fonds.exchange.snapshot import Snapshot, snapshot
from fonds.runs import citations, normalization
from fonds.runs.concurrency import in_thread
from fonds.runs.normalization import chunker_label
from fonds.runs.reparse import ArchivedFeed
from fonds.schema import require_current
from fonds.seams import Seams
from fonds.sources.base import Source
from fonds.sources.jurisdiction import JurisdictionAdapter
from fonds.stores.blobs import open_blobs
from fonds.stores.database import open_database, repeatable, upsert
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import code_units, documents, loaded_bundles

BATCH_SIZE: Final = 100
MAX_LISTED: Final = 20


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
        self._choice = DocumentChoice()
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
                if self._is_code(entry.source):
                    self._units.append(entry)
                    self._read_by[entry.id] = (entry.source, entry.version)
            elif isinstance(self._context.sources.get(entry.task.source), Source):
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
                self._changed_units |= {row["id"] for row in self._bundle.table(EDITIONS)}
                return
            for batch in batched(self._bundle.documents(), BATCH_SIZE):
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

    def _unloaded(self, source: str, inputs: Sequence[TaskInput]) -> list[TaskInput]:
        """The inputs that are new or have other documents."""
        loaded = loaded_inputs(self._context.database, source, inputs)
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

    def _is_code(self, source: str) -> bool:
        return isinstance(self._context.sources.get(source), JurisdictionAdapter)

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
            archived = ArchivedFeed(scratch.sources.parser(source), scratch.database)
            allowed = {entry.task.key: entry.documents for entry in inputs}
            await load_tasks(BundleFeed(archived, allowed), inputs, scratch, replaces=())
        for unit in self._units:
            await in_thread(check_packs, unit, scratch.blobs)
            await load_unit(scratch.sources.code(unit.source), unit, scratch)
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
            for batch in batched(self._bundle.documents(), BATCH_SIZE):
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
        if self._is_code(source):
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
            stated = self._bundle.table(resource)
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
        """Write what was chosen."""
        writer = BundleWriter(
            bundle=self._bundle,
            context=self._context,
            scratch=scratch,
            tasks=self._tasks,
            units=self._units,
            choice=self._choice,
            older_roots=self._older_roots(),
            watch=self._watch,
        )
        await writer.write()
        self.report.errors = writer.errors
        self.report.withdrawn = writer.withdrawn

    def _older_roots(self) -> set[str]:
        """The loaded bundles that were made before this one."""
        made_at = self._bundle.made_at
        return {
            root
            for root, other in self._made.items()
            if made_at is not None and other is not None and other < made_at
        }

    def check(self) -> None:
        """Compare the library with the bundle, and count."""
        report, choice = self.report, self._choice
        differing = 0
        with snapshot(self._context.database) as library:
            for batch in batched(self._bundle.documents(), BATCH_SIZE):
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
