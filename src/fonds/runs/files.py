"""Files on disk in place of a publisher: folders, zip and tar archives of bulk downloads.

Each file is stored in the archive of the library under its hash. Files that belong together are
then parsed and loaded like fetched ones; nothing is fetched. Which of them are of the source is
known by their content, and those that are not are left aside with a reason.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Final, TypeVar

from sqlalchemy import select

from fonds import ids
from fonds.context import Context
from fonds.errors import DuplicateKeyError, TooLargeError, UsageError, WrongContentError
from fonds.fetch.archive import FileRecord
from fonds.fetch.body_writer import BodyWriter
from fonds.fetch.client import Download
from fonds.model import Archived, FetchTask, ParsedRecord, Part, Raw, RawPart
from fonds.runs.active_run import ActiveRun, start_run
from fonds.runs.archives import (
    DAMAGED,
    DiskFile,
    copy_member,
    is_archive,
    is_hidden,
    is_zip,
    open_members,
)
from fonds.runs.fetch import FetchedTask
from fonds.runs.load import Identity, Loader, identity_of
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.runs.tasks import recall
from fonds.sources.base import Parser, PdfNames, SourceInfo
from fonds.stores.database import Database
from fonds.stores.records import link_references
from fonds.stores.tables import documents

PACKAGE_FILE: Final = "mods.xml"
"""Describes a package of govinfo, which is all that is below the folder of this file."""
STORAGE_FILES: Final = frozenset({"premis.xml", "dip.xml", "aip.xml"})
"""Files of a package that describe only how it is stored."""
FILE_TASK: Final = "file:"
"""How the keys of tasks of files begin; what is in the files is detected when they are parsed."""
BATCH_SIZE: Final = 50
"""Groups of files that are looked up and loaded together."""
_CHUNK_SIZE: Final = 1 << 20
_MAX_IN_MEMORY: Final = 4 << 20
_RICHEST_FORMATS: Final = (".xml", ".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class LeftAside:
    """A file that was not loaded, with the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the archive of the library."""

    name: str
    archived: Archived


FileT = TypeVar("FileT", DiskFile, StoredFile)


@dataclass(frozen=True, kw_only=True, slots=True)
class FilesReport:
    """The result of loading files."""

    run: RunReport
    files: int
    """The number of files that were read."""
    left_aside: tuple[LeftAside, ...]
    further_files: int
    """Files that records name and that were not loaded: `run` of the source may fetch them."""


@dataclass(slots=True)
class FileFeed:
    """A feed whose files are on disk: the meaning is the publisher's, the place is not."""

    feed: Parser
    database: Database
    left_aside: list[LeftAside] = field(default_factory=list)
    files: int = 0
    further_files: int = 0

    @property
    def info(self) -> SourceInfo:
        """The facts of the feed."""
        return self.feed.info

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """The records of files that belong together; none if they are not of this source."""
        raw = replace(raw, parts=tuple(replace(part, name="") for part in raw.parts))
        if len(raw.parts) == 1:
            yield from self._parse_alone(raw)
            return
        try:
            yield from list(self._records(raw))
        except (WrongContentError, DuplicateKeyError):
            # One of them is of another kind, or they say the same in several formats.
            records: dict[Identity, ParsedRecord] = {}
            for part in sorted(raw.parts, key=_format_rank):
                for record in self._parse_alone(replace(raw, parts=(part,))):
                    records.setdefault(identity_of(record), record)
            yield from records.values()

    def _parse_alone(self, raw: Raw) -> Iterator[ParsedRecord]:
        records = 0
        try:
            for record in self._records(raw):
                records += 1
                yield record
        except WrongContentError as error:
            if records:
                raise
            self.left_aside.append(LeftAside(_display_name(raw), str(error)))

    def _records(self, raw: Raw) -> Iterator[ParsedRecord]:
        has_only_pdfs = all(part.data.startswith(b"%PDF-") for part in raw.parts)
        for item in self.feed.parse(raw):
            if not isinstance(item, ParsedRecord):
                self.further_files += len(item.parts)
            elif has_only_pdfs and self._is_described(item.key, raw.task.key):
                reason = f"the library has {item.key} from a file that says more of it"
                self.left_aside.append(LeftAside(_display_name(raw), reason))
            else:
                yield item

    def _is_described(self, document_id: str, task_key: str) -> bool:
        """True if another task loaded this document; a PDF alone says little of what it is."""
        task_of_document = select(documents.c.task_key).where(documents.c.id == document_id)
        with self.database.read() as connection:
            return connection.scalar(task_of_document) not in {None, task_key}


def _format_rank(part: RawPart) -> int:
    """For sorting: where the same is also a page or a table, the first of these says more."""
    suffix = PurePosixPath(part.archived.url).suffix.lower()
    return _RICHEST_FORMATS.index(suffix) if suffix in _RICHEST_FORMATS else len(_RICHEST_FORMATS)


def _display_name(raw: Raw) -> str:
    """The name of a file below the given path, as people know it."""
    folder = PurePosixPath(raw.task.params["name"]).parent
    return str(folder / PurePosixPath(raw.parts[0].archived.url).name)


async def run_files(feed: Parser, paths: Sequence[Path], context: Context) -> FilesReport:
    """Load files of one feed. Safe to kill at any moment, and to repeat at any time."""
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist")
    request = RunRequest(mode="manual", options={"files": [str(path) for path in paths]})
    async with start_run(FileFeed(feed, context.database), request, context) as active:
        loader = Loader(active, lambda: ())
        async for batch in _stored_batches(active, paths):
            await active.in_thread(loader.load, deque(batch))
        await active.in_thread(_finish, active, loader)
    source = active.source
    return FilesReport(
        run=active.report,
        files=source.files,
        left_aside=tuple(source.left_aside),
        further_files=source.further_files,
    )


def _finish(active: ActiveRun[FileFeed], loader: Loader) -> None:
    loader.flush()
    run, source = active.run, active.source
    for left in source.left_aside:
        run.log("warn", f"left aside: {left.reason}", task=left.name, type="left-aside")
    with active.context.database.write() as connection:
        active.lock.confirm(connection)
        link_references(connection)
    loaded = run.counts.inserted + run.counts.updated + run.counts.skipped
    if not loaded and not run.counts.error:
        active.finish(RunStatus.FAILED, f"none of {source.files} files is of {source.info.name}")
    elif not run.counts.error:
        active.finish(RunStatus.SUCCESS)
    else:
        active.finish(RunStatus.PARTIAL if loaded else RunStatus.FAILED, run.first_error)


async def _stored_batches(
    active: ActiveRun[FileFeed], paths: Sequence[Path]
) -> AsyncIterator[list[FetchedTask]]:
    """Tasks whose files are stored, in the order of their names."""
    tasks: list[tuple[FetchTask, list[StoredFile]]] = []
    groups = _groups(active, paths)
    while group := await asyncio.to_thread(next, groups, None):
        tasks.append((_task(active.source.info.name, group), group))
        active.run.count(discovered=1, fetched=1)
        if len(tasks) >= BATCH_SIZE:
            yield await asyncio.to_thread(_recalled, active, tasks)
            tasks = []
    if tasks:
        yield await asyncio.to_thread(_recalled, active, tasks)


def _groups(active: ActiveRun[FileFeed], paths: Sequence[Path]) -> Iterator[list[StoredFile]]:
    """Stored files that are parsed together, of all paths."""
    groups = chain.from_iterable(_Reader(active, path).groups() for path in paths)
    feed = active.source.feed
    if isinstance(feed, PdfNames):
        yield from join_pdfs(list(groups), partial(_pdf_names, active, feed))
    else:
        yield from groups


def join_pdfs(
    groups: Sequence[list[StoredFile]], pdf_names: Callable[[StoredFile], frozenset[str]]
) -> Iterator[list[StoredFile]]:
    """The groups, each with the PDFs that its files name, which may be anywhere."""
    pdfs = {_name(group[0]): group[0] for group in groups if len(group) == 1 and _is_pdf(group[0])}
    taken: set[StoredFile] = set()
    joined = []
    for group in groups:
        names = {name for file in group if not _is_pdf(file) for name in pdf_names(file)}
        members = [pdfs[name] for name in sorted(names & pdfs.keys()) if pdfs[name] not in group]
        taken.update(members)
        joined.append([*group, *members])
    for group in joined:
        if not taken.issuperset(group):
            yield group


def _pdf_names(active: ActiveRun[FileFeed], feed: PdfNames, file: StoredFile) -> frozenset[str]:
    data = active.context.archive.read(file.archived)
    return feed.pdf_names(RawPart(name="", archived=file.archived, data=data))


def _name(file: StoredFile) -> str:
    return PurePosixPath(file.name).name.lower()


def _is_pdf(file: StoredFile) -> bool:
    return file.name.lower().endswith(".pdf")


def _recalled(
    active: ActiveRun[FileFeed], tasks: Sequence[tuple[FetchTask, list[StoredFile]]]
) -> list[FetchedTask]:
    """The tasks with what earlier runs stored of them."""
    with active.context.database.read() as connection:
        states = recall(connection, active.source.info.name, [task for task, _ in tasks])
    fetched = []
    for state, (task, group) in zip(states, tasks, strict=True):
        previous = state.previous
        if previous is not None and not previous.records:
            reason = f"not of {active.source.info.name}, as an earlier run found"
            active.source.left_aside.append(LeftAside(task.params["name"], reason))
        records = [_record(active, file) for file in group]
        fetched.append(
            FetchedTask(
                task=task,
                parts=tuple(
                    (part, replace(file.archived, url=part.url))
                    for part, file in zip(task.parts, group, strict=True)
                ),
                validators=tuple(r for r in records if r.url not in state.files),
                previous=previous,
                started_at=active.context.seams.clock.now(),
            )
        )
    return fetched


def _record(active: ActiveRun[FileFeed], file: StoredFile) -> FileRecord:
    return FileRecord(
        source=active.source.info.name,
        url=file.archived.url,
        archived=file.archived,
        etag=None,
        last_modified=None,
    )


def _task(source: str, group: Sequence[StoredFile]) -> FetchTask:
    """The task of files that belong together; its key is their content, wherever they are."""
    name = group[0].name
    contents = [[PurePosixPath(file.name).name, file.archived.sha256] for file in group]
    parts = tuple(
        Part(name=file.name, url=file.archived.url, path=file.archived.key) for file in group
    )
    key = f"{FILE_TASK}{PurePosixPath(name).name}@{ids.json_sha256(contents)[:16]}"
    return FetchTask(source=source, key=key, parts=parts, params={"name": name})


class _Reader:
    """Stores the files of one path, group by group."""

    def __init__(self, active: ActiveRun[FileFeed], path: Path) -> None:
        self._source = active.source
        self._context = active.context
        self._path = path
        self._cap = active.context.settings.max_file_mib << 20
        self._tmp = active.context.settings.home / "tmp"
        active.context.fetcher.prepare_folder()

    def groups(self) -> Iterator[list[StoredFile]]:
        """Files that are parsed together; those that cannot be read are left aside."""
        if not self._path.is_dir():
            yield from self._read(self._path, self._path.name)
            return
        names = sorted(_files_below(self._path))
        loose = [name for name in names if not is_archive(name)]
        yield from self._store_all(DiskFile(n, partial(_open, self._path / n)) for n in loose)
        for name in names:
            if is_archive(name):
                yield from self._read(self._path / name, name)

    def _read(self, path: Path, name: str, *, is_inner: bool = False) -> Iterator[list[StoredFile]]:
        """The groups of one file, which may be an archive."""
        if not is_archive(name):
            yield from self._store_all([DiskFile(name, partial(_open, path))])
            return
        try:
            yield from self._read_archive(path, name, is_inner=is_inner)
        except DAMAGED as error:
            self._leave_aside(name, f"the archive cannot be read further: {error}")

    def _read_archive(self, path: Path, name: str, *, is_inner: bool) -> Iterator[list[StoredFile]]:
        """The groups of an archive, then those of archives in it, which have none in them."""

        def reject(member: str, reason: str) -> None:
            self._leave_aside(f"{name}/{member}", reason)

        with (
            open_members(path, reject, nested=not is_inner) as members,
            TemporaryDirectory(prefix="archives-", dir=self._tmp) as folder,
        ):
            inner: dict[str, Path] = {}
            files = self._without_archives(members, inner, Path(folder))
            if is_zip(name):
                yield from self._store_all(list(files))
            else:
                yield from grouped([each for file in files for each in self._store(file)])
            for member, copy in sorted(inner.items()):
                yield from self._read(copy, member, is_inner=True)

    def _without_archives(
        self, members: Iterable[DiskFile], inner: dict[str, Path], folder: Path
    ) -> Iterator[DiskFile]:
        """The members that can be stored; archives are copied and added to `inner`."""
        for member in members:
            if not is_archive(member.name):
                yield member
                continue
            copy = folder / f"{len(inner)}-{PurePosixPath(member.name).name}"
            try:
                copy_member(member, copy, self._cap)
            except (*DAMAGED, RuntimeError, TooLargeError) as error:
                self._leave_aside(member.name, str(error))
            else:
                inner[member.name] = copy

    def _store_all(self, files: Iterable[DiskFile]) -> Iterator[list[StoredFile]]:
        for group in grouped(files):
            if stored := [each for file in group for each in self._store(file)]:
                yield stored

    def _store(self, file: DiskFile) -> list[StoredFile]:
        """Store one file; none if it cannot be read."""
        name = PurePosixPath(file.name).name
        if name in STORAGE_FILES:
            return []
        self._source.files += 1
        writer = BodyWriter(
            name, self._tmp, cap=self._cap, encoding="", announced="", max_in_memory=_MAX_IN_MEMORY
        )
        try:
            with file.open() as opened:
                while chunk := opened.read(_CHUNK_SIZE):
                    writer.add(chunk)
            sha256 = writer.finish()
            if writer.size:
                return [StoredFile(file.name, self._archive(name, sha256, writer))]
            self._leave_aside(file.name, "it is empty")
        except (*DAMAGED, RuntimeError, TooLargeError) as error:
            # zipfile raises RuntimeError for encrypted members.
            self._leave_aside(file.name, str(error))
        finally:
            writer.discard()
        return []

    def _archive(self, name: str, sha256: str, writer: BodyWriter) -> Archived:
        """Equal files have one key, wherever they are."""
        path = f"files/{sha256[:16]}/{name}"
        download = Download(
            url=f"file:/{path}",
            file=writer.file,
            sha256=sha256,
            size=writer.size,
            media_type=None,
            etag=None,
            last_modified=None,
            retrieved_at=self._context.seams.clock.now(),
            is_temporary=True,
            data=writer.data,
        )
        return self._context.archive.add(self._source.info.name, path, download)

    def _leave_aside(self, name: str, reason: str) -> None:
        self._source.left_aside.append(LeftAside(name, reason))


def grouped(files: Iterable[FileT]) -> Iterator[list[FileT]]:
    """Files that are parsed together: those of a package, or those that differ in their suffix."""
    paths = {file: PurePosixPath(file.name) for file in files}
    packages = {path.parent for path in paths.values() if path.name == PACKAGE_FILE}

    def key(file: FileT) -> str:
        path = paths[file]
        package = next((folder for folder in path.parents if folder in packages), None)
        return str(package or path.with_suffix("")).removesuffix(".mods")

    for _, group in groupby(sorted(paths, key=lambda file: (key(file), file.name)), key):
        yield list(group)


def _files_below(folder: Path) -> Iterator[str]:
    """The names of files below a folder; hidden ones and links are left out."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden(name)]
        for name in names:
            file = Path(path, name)
            if not is_hidden(name) and stat.S_ISREG(file.lstat().st_mode):
                yield file.relative_to(folder).as_posix()


def _open(path: Path) -> IO[bytes]:
    return path.open("rb", buffering=0)
