"""Derives documents from the inputs of a bundle, by the parsers of this program.

The same is done twice: in a scratch library, whose rows are compared with those of the bundle
before anything else happens, and then in the library that the bundle is loaded into.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from fonds import ids
from fonds.codes.budget import Budget, Meter
from fonds.codes.execute import Execution, SectionWriter
from fonds.codes.origin import EditionOrigin, open_blob
from fonds.codes.packs import BatchPacks, PackEntry, open_pack
from fonds.codes.plan import (
    PlanHead,
    State,
    pack_prefix,
    read_batches,
    read_head,
    record_plan,
    update_unit,
)
from fonds.context import Context
from fonds.errors import BundleError, NotFoundError
from fonds.exchange.bundle.contents import Record
from fonds.exchange.bundle.inputs import UNIT
from fonds.fetch.archive import FileRecord
from fonds.fetch.client import Download
from fonds.model import Archived, FetchTask, ParsedRecord, Part, Raw
from fonds.runs.active_run import ActiveRun, start_run
from fonds.runs.concurrency import in_thread
from fonds.runs.fetch import FetchedTask
from fonds.runs.load import Loader
from fonds.runs.reparse import ArchivedFeed
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.runs.tasks import LoadedInput, archived_from_json, recall
from fonds.sources.base import SourceInfo
from fonds.sources.jurisdiction import JurisdictionAdapter, Span
from fonds.stores.blobs import Blobs
from fonds.stores.database import repeatable
from fonds.stores.records import link_references

_BATCH_SIZE: Final = 50
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_UNLIMITED: Final = Budget(subrequests=1 << 40, memory_mib=1 << 30)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskInput:
    """A task of a feed, with its archived files."""

    task: FetchTask
    files: tuple[Archived, ...]
    """Of its parts, in their order."""
    documents: frozenset[str]
    """The documents that were last loaded from it."""
    version: str

    @property
    def input_sha256(self) -> str:
        """The hash of everything that a parser receives."""
        return self.fetched(None, _EPOCH).input_sha256

    @property
    def order(self) -> tuple[Any, ...]:
        """Of several inputs that yield a row, the one that was fetched last is loaded last."""
        return (max((file.retrieved_at for file in self.files), default=_EPOCH), self.task.key)

    def fetched(self, previous: LoadedInput | None, now: datetime) -> FetchedTask:
        """The task as if its files had just been fetched."""
        records = (
            FileRecord(
                source=self.task.source, url=file.url, archived=file, etag=None, last_modified=None
            )
            for file in self.files
        )
        return FetchedTask(
            task=self.task,
            parts=tuple(zip(self.task.parts, self.files, strict=True)),
            validators=tuple(records),
            previous=previous,
            started_at=now,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitInput:
    """A unit of a code: its plan, and the packs with its sections."""

    id: str
    source: str
    version: str
    plan: RawReference
    packs: tuple[RawReference, ...]
    pages: tuple[RawReference, ...]


@dataclass(frozen=True, slots=True)
class RawReference:
    """An archived file, by its key."""

    key: str
    sha256: str
    size: int


BundleInput = TaskInput | UnitInput


def read_input(record: Record) -> BundleInput:
    """The input of a row; BundleError if it is malformed, or names a file outside of its source."""
    name = f"input {record['key']} of {record['source']}"
    try:
        return _unit(record) if record["kind"] == UNIT else _task(record)
    except BundleError as error:
        raise BundleError(f"{name}: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BundleError(f"{name} is malformed: {type(error).__name__}") from None


def _task(record: Record) -> TaskInput:
    source, task = record["source"], record["task"]
    parts = tuple(
        Part(name=_text(part["name"]), path=_text(part["path"]), url=_text(part["file"]["url"]))
        for part in task["parts"]
    )
    if record["kind"] != "task" or not isinstance(task["params"], dict):
        raise ValueError
    return TaskInput(
        task=FetchTask(
            source=source,
            key=record["key"],
            parts=parts,
            params=task["params"],
            fingerprint=record["fingerprint"],
            origin=task["origin"] and _archived(source, task["origin"]),
        ),
        files=tuple(_archived(source, part["file"]) for part in task["parts"]),
        documents=frozenset(_text(each) for each in task["documents"]),
        version=record["recipe"],
    )


def _unit(record: Record) -> UnitInput:
    source, task = record["source"], record["task"]
    return UnitInput(
        id=record["key"],
        source=source,
        version=record["recipe"],
        plan=_reference(source, task["plan"]),
        packs=tuple(_reference(source, each) for each in task["packs"]),
        pages=tuple(_reference(source, page) for _, page in task["pages"]),
    )


def _archived(source: str, value: Mapping[str, Any]) -> Archived:
    reference = _reference(source, value)
    archived = archived_from_json(value)
    if archived.retrieved_at.tzinfo is None:
        raise ValueError
    return replace(
        archived, key=reference.key, url=_text(archived.url), media_type=_optional(value)
    )


def _optional(value: Mapping[str, Any]) -> str | None:
    media_type = value["media_type"]
    return None if media_type is None else _text(media_type)


def _reference(source: str, value: Mapping[str, Any]) -> RawReference:
    key, size = _text(value["key"]), value["size"]
    if type(size) is not int:
        raise TypeError
    if ids.archive_key(source, path_in_archive(source, key)) != key:
        raise BundleError(f"{key!r} is not the name of a file in the archive of {source}")
    return RawReference(key, _text(value["sha256"]), size)


def path_in_archive(source: str, key: str) -> str:
    """The path of an archived file below the folder of its source, as `archive_key` takes it."""
    return unquote(key.removeprefix(ids.archive_key(source, "x")[:-1]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def references_of(entry: BundleInput) -> Iterator[RawReference]:
    """The archived files of an input."""
    if isinstance(entry, UnitInput):
        yield from (entry.plan, *entry.packs, *entry.pages)
        return
    files = (*entry.files, *([entry.task.origin] if entry.task.origin else ()))
    yield from (RawReference(file.key, file.sha256, file.size) for file in files)


# Feeds ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BundleFeed:
    """A feed whose files are in a bundle, and yield only documents that the bundle has."""

    archived: ArchivedFeed
    allowed: Mapping[str, Collection[str]]
    """The ids of the documents that may be written, by task."""

    @property
    def info(self) -> SourceInfo:
        """The facts of the feed."""
        return self.archived.info

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """The records of a task that may be written."""
        allowed = self.allowed[raw.task.key]
        for record in self.archived.parse(raw):
            if record.document is None or record.document.id in allowed:
                yield record


async def load_tasks(
    feed: BundleFeed, inputs: Sequence[TaskInput], context: Context, *, replaces: Collection[str]
) -> RunReport:
    """Load tasks of one feed from archived files; rows of tasks in `replaces` may be dropped."""
    # The loss of records is expected: what is written was compared before.
    options = {"bundle": context.bundle}
    request = RunRequest(mode="manual", options=options, accept_loss=True)
    async with start_run(feed, request, context) as active:
        loader = Loader(active, lambda: ())
        ordered = iter(sorted(inputs, key=lambda entry: entry.order))
        while batch := list(islice(ordered, _BATCH_SIZE)):
            fetched = await active.in_thread(_recalled, active, batch, replaces)
            active.run.count(discovered=len(batch), fetched=len(batch))
            await active.in_thread(loader.load, deque(fetched))
        await active.in_thread(_finish, active, loader)
    return active.report


def _recalled(
    active: ActiveRun[BundleFeed], batch: Sequence[TaskInput], replaces: Collection[str]
) -> list[FetchedTask]:
    """The tasks, those in `replaces` with the input that was loaded from them before."""
    tasks, now = [entry.task for entry in batch], active.context.seams.clock.now()
    with active.context.database.read() as connection:
        states = recall(connection, active.source.info.name, tasks)
    return [
        entry.fetched(state.previous if entry.task.key in replaces else None, now)
        for entry, state in zip(batch, states, strict=True)
    ]


def _finish(active: ActiveRun[BundleFeed], loader: Loader) -> None:
    loader.flush()
    with active.context.database.write() as connection:
        active.lock.confirm(connection)
        link_references(connection)
    run = active.run
    status = RunStatus.PARTIAL if run.counts.error else RunStatus.SUCCESS
    active.finish(status, run.first_error if run.counts.error else None)


# Codes ------------------------------------------------------------------------------------


class _NoOrigin(EditionOrigin):
    """In place of a publisher: a page that is not in the packs is missing."""

    def __init__(self) -> None:
        """There is no location."""

    def fetched(self, page: str) -> NoReturn:
        """No page is fetched."""
        raise NotFoundError(f"{page} is not in the bundle")


async def load_unit(
    adapter: JurisdictionAdapter, entry: UnitInput, context: Context
) -> tuple[tuple[str, str], ...]:
    """Load a unit of a code from its plan and packs; returns the sections that failed."""
    request = RunRequest(mode="manual", options={"bundle": context.bundle})
    async with start_run(adapter, request, context) as active:
        lines = iter(open_blob(context.blobs, entry.plan.key))
        head = read_plan_head(entry, next(lines, b""))
        await in_thread(_record, context, head, entry.plan.key)
        writer = SectionWriter(adapter, head, context)
        packs = BatchPacks(
            head,
            _NoOrigin(),
            context.blobs,
            prefix=pack_prefix(head),
            concurrency=1,
            check=writer.check,
        )
        execution = Execution(head, packs, writer, context.database, Meter(_UNLIMITED))
        await execution.run(read_batches(head, lines))
        failures = tuple(execution.progress.failures)
        active.run.count(inserted=execution.progress.inserted)
        await in_thread(_update, context, head, is_complete=not failures)
        active.finish(RunStatus.PARTIAL if failures else RunStatus.SUCCESS)
    return failures


def read_plan_head(entry: UnitInput, line: bytes) -> PlanHead:
    """The first line of a plan; BundleError if it is not the plan of this unit."""
    try:
        head = read_head(line)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BundleError(f"the plan of {entry.id} is malformed") from None
    expected = ids.tree_child(ids.tree_root(entry.source, head.version), head.unit)
    if (head.id, head.source, expected) != (entry.id, entry.source, entry.id):
        raise BundleError(f"the plan of {entry.id} is that of {head.id}")
    return head


@repeatable
def _record(context: Context, head: PlanHead, key: str) -> None:
    with context.database.write() as connection:
        record_plan(connection, head, key, context.seams.clock.now())


@repeatable
def _update(context: Context, head: PlanHead, *, is_complete: bool) -> None:
    state: State = "complete" if is_complete else "partial"
    with context.database.write() as connection:
        update_unit(connection, head.id, state, context.seams.clock.now())


def check_packs(entry: UnitInput, blobs: Blobs) -> None:
    """BundleError if a section in a pack differs from the file that it was cut out of."""
    lines = iter(open_blob(blobs, entry.plan.key))
    head = read_plan_head(entry, next(lines, b""))
    provided = {page.key for page in entry.pages}
    pages = {name: page.key for name, page in head.pages if page.key in provided}
    spans: dict[str, tuple[str, Span]] = {
        node.id: (pages[node.page], node.span)
        for batch in read_batches(head, lines)
        for node in batch.leaves
        if node.page in pages and node.span is not None
    }
    for reference in entry.packs:
        with open_pack(blobs, reference.key) as pack:
            for section, packed in pack.entries.items():
                if section in spans:
                    _require_cut(blobs, *spans[section], packed)


def _require_cut(blobs: Blobs, page: str, span: Span, packed: PackEntry) -> None:
    data = blobs.get_range(page, span.start, span.length)
    if hashlib.sha256(data).hexdigest() != packed.sha256:
        raise BundleError(f"{packed.id} differs from the publisher's file {page}")


# Bytes ------------------------------------------------------------------------------------


def stored(context: Context, source: str, key: str, file: Path, archived: Archived) -> Archived:
    """A file of a bundle in the archive of a library, under its key or a free one."""
    download = Download(
        url=archived.url,
        file=file,
        sha256=archived.sha256,
        size=archived.size,
        media_type=archived.media_type,
        etag=None,
        last_modified=None,
        retrieved_at=archived.retrieved_at,
    )
    return context.archive.add(source, path_in_archive(source, key), download)
