"""Parses the archived files of a source again, without a request: after its parser has changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, func, select

from fonds.context import Context
from fonds.errors import UsageError
from fonds.model import FetchTask, ParsedRecord, Part, Raw
from fonds.runs.active_run import ActiveRun, start_run
from fonds.runs.fetch import Fetched, FetchedTask
from fonds.runs.files import FILE_TASK, FileFeed
from fonds.runs.load import Loader
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.runs.tasks import LoadedInput, archived_from_json
from fonds.sources.base import Parser, Source, SourceInfo
from fonds.stores.database import Database, repeatable
from fonds.stores.records import link_references
from fonds.stores.tables import ingestion_inputs

BATCH_SIZE: Final = 50

_inputs: Final = ingestion_inputs.c
_is_repeatable: Final = _inputs.task.is_not(None) & _inputs.bundle.is_(None)
"""The task says which files it had, and this library fetched them."""


@dataclass(frozen=True, slots=True)
class ArchivedFeed:
    """A feed whose tasks are all archived: those that its files name are not fetched."""

    feed: Source
    database: Database

    @property
    def info(self) -> SourceInfo:
        """The facts of the feed."""
        return self.feed.info

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """The records of a task."""
        is_file = raw.task.key.startswith(FILE_TASK)
        parser: Parser = FileFeed(self.feed, self.database) if is_file else self.feed
        return (item for item in parser.parse(raw) if isinstance(item, ParsedRecord))


async def reparse_source(
    source: Source, context: Context, *, accept_loss: bool = False
) -> RunReport:
    """Parse all that was loaded from a feed again; rows that do not differ are not written."""
    options = {"reparse": True}
    request = RunRequest(mode="manual", options=options, accept_loss=accept_loss)
    async with start_run(ArchivedFeed(source, context.database), request, context) as active:
        await active.in_thread(_load_all, active)
    return active.report


def _load_all(active: ActiveRun[ArchivedFeed]) -> None:
    loader = Loader(active, lambda: ())
    after = ""
    while rows := _next_rows(active, after):
        after = rows[-1].task_key
        active.run.count(discovered=len(rows), fetched=len(rows))
        loader.load(deque[Fetched](_fetched(active, row) for row in rows))
    loader.flush()
    _link(active)
    _finish(active)


@repeatable
def _next_rows(active: ActiveRun[ArchivedFeed], after: str) -> list[Row[Any]]:
    """The next loaded tasks that have records, in the order of their keys."""
    query = select(ingestion_inputs).where(
        _loaded(active), _is_repeatable, _inputs.task_key > after
    )
    with active.context.database.read() as connection:
        return list(connection.execute(query.order_by(_inputs.task_key).limit(BATCH_SIZE)))


def _fetched(active: ActiveRun[ArchivedFeed], row: Row[Any]) -> FetchedTask:
    """A loaded task as if its files had just been fetched."""
    value = row.task
    parts = tuple(
        (
            Part(name=part["name"], url=part["file"]["url"], path=part["path"]),
            archived_from_json(part["file"]),
        )
        for part in value["parts"]
    )
    previous = LoadedInput(
        input_sha256=row.input_sha256,
        recipe="",  # so that equal bytes are parsed again
        fingerprint=row.fingerprint,
        records=row.records,
        validated_at=row.validated_at,
    )
    return FetchedTask(
        task=FetchTask(
            source=row.source,
            key=row.task_key,
            parts=tuple(part for part, _ in parts),
            params=value["params"],
            fingerprint=row.fingerprint,
            origin=value["origin"] and archived_from_json(value["origin"]),
        ),
        parts=parts,
        validators=(),
        previous=previous,
        started_at=active.context.seams.clock.now(),
        validated_at=row.validated_at,
    )


@repeatable
def _link(active: ActiveRun[ArchivedFeed]) -> None:
    with active.context.database.write() as connection:
        active.lock.confirm(connection)
        link_references(connection)


def _finish(active: ActiveRun[ArchivedFeed]) -> None:
    run, name = active.run, active.source.info.name
    left_out = _count_left_out(active)
    if not run.counts.fetched and not left_out:
        raise UsageError(f"{name} has nothing to parse again. Run it first: fonds run {name}")
    if left_out:
        message = (
            f"{left_out:,} items are left out: they are from a bundle, or were loaded by an older"
            f" version of fonds (fonds backfill {name})"
        )
        run.log("warn", message)
        run.first_error = run.first_error or message
    is_complete = not run.counts.error and not left_out
    active.finish(RunStatus.SUCCESS if is_complete else RunStatus.PARTIAL, run.first_error)


@repeatable
def _count_left_out(active: ActiveRun[ArchivedFeed]) -> int:
    """Count loaded tasks that cannot be parsed again here: load the bundle, or backfill."""
    query = select(func.count()).where(_loaded(active), ~_is_repeatable)
    with active.context.database.read() as connection:
        return connection.scalar(query) or 0


def _loaded(active: ActiveRun[ArchivedFeed]) -> ColumnElement[bool]:
    return (_inputs.source == active.source.info.name) & (_inputs.records > 0)
