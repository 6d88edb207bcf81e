"""The tasks of runs: those that failed, which the next run tries again, and those loaded before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import Connection, select, update

from fonds.errors import FondsError
from fonds.fetch.archive import FileRecord
from fonds.fetch.transport import public_url
from fonds.model import Archived, FetchTask, Part
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database, repeatable, upsert
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import fetched_files, ingestion_inputs, ingestion_tasks

MAX_ATTEMPTS: Final = 5
"""After so many runs a task is only tried again when its upstream lists it again."""

_NOT_TIMED: Final[Mapping[str, datetime]] = MappingProxyType({})

Stage = Literal["discover", "fetch", "parse", "load"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A task that failed, with its error."""

    task_key: str
    stage: Stage
    error: str
    error_type: str
    task: FetchTask | None = None
    started_at: datetime | None = None
    """When its first file was requested; None if none was."""
    validators: tuple[FileRecord, ...] = ()
    """Of files that were archived before it failed, so that the next run does not fetch them."""

    @classmethod
    def of(
        cls,
        error: BaseException,
        stage: Stage,
        task: FetchTask | str,
        *,
        started_at: datetime | None = None,
        validators: tuple[FileRecord, ...] = (),
    ) -> Failure:
        """From the exception of a task; of those of other packages the type is included."""
        is_own = isinstance(error, FondsError)
        # The text of SQLAlchemy's errors repeats the statement and its parameters.
        original = getattr(error, "orig", None) or error
        return cls(
            task_key=task if isinstance(task, str) else task.key,
            stage=stage,
            error=str(error) if is_own else f"{type(error).__name__}: {original}",
            error_type=type(error).__name__,
            task=None if isinstance(task, str) else task,
            started_at=started_at,
            validators=validators,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenError:
    """A failure of an earlier run that is not resolved."""

    task_key: str
    attempts: int
    task: FetchTask | None


def open_errors(connection: Connection, source: str) -> dict[str, OpenError]:
    """Failures of a source that no later run has resolved, by task key."""
    table = ingestion_tasks.c
    query = select(table.task_key, table.attempts, table.task).where(_open(source))
    return {
        row.task_key: OpenError(
            task_key=row.task_key,
            attempts=row.attempts,
            task=task_from_json(row.task) if row.task else None,
        )
        for row in connection.execute(query.order_by(table.id))
    }


@repeatable
def read_open_errors(database: Database, source: str) -> dict[str, OpenError]:
    """As `open_errors`, in a transaction of its own."""
    with database.read() as connection:
        return open_errors(connection, source)


def record_loaded(
    connection: Connection,
    run_id: UUID,
    source: str,
    keys: Sequence[str],
    now: datetime,
    *,
    started: Mapping[str, datetime] = _NOT_TIMED,
) -> None:
    """Record tasks as loaded, in the transaction that stores their rows."""
    rows = [
        _row(run_id, source, key, "loaded", now=now, started_at=started.get(key)) for key in keys
    ]
    upsert(connection, ingestion_tasks, rows, keys=["run_id", "task_key"])


def record_failures(
    connection: Connection,
    run_id: UUID,
    source: str,
    failures: Iterable[Failure],
    *,
    earlier: Mapping[str, OpenError],
    now: datetime,
) -> None:
    """Record failures; older rows of the same tasks are resolved."""
    rows = [
        {
            **_row(
                run_id,
                source,
                failure.task_key,
                "errored",
                now=now,
                started_at=failure.started_at,
            ),
            "error": failure.error.replace("\0", "\ufffd"),
            "error_type": failure.error_type,
            "error_stage": failure.stage,
            "task": failure.task and task_to_json(failure.task),
            "attempts": 1 + _attempts(earlier.get(failure.task_key)),
        }
        for failure in failures
    ]
    upsert(connection, ingestion_tasks, rows, keys=["run_id", "task_key"])
    resolve(connection, source, [row["task_key"] for row in rows], now, but=run_id)


def resolve(
    connection: Connection,
    source: str,
    keys: Sequence[str],
    now: datetime,
    *,
    but: UUID | None = None,
) -> int:
    """Resolve the open failures of tasks, except those of the run `but`; returns their number."""
    resolved = 0
    for batch in batched(keys):
        is_open = _open(source) & ingestion_tasks.c.task_key.in_(batch)
        if but is not None:
            is_open &= ingestion_tasks.c.run_id != but
        closed = update(ingestion_tasks).where(is_open).values(resolved_at=now, task=None)
        resolved += connection.execute(closed).rowcount
    return resolved


def task_to_json(task: FetchTask) -> dict[str, Any]:
    """A task as it is stored until its retry, without keys in headers and addresses."""
    origin = task.origin and archived_to_json(task.origin)
    parts = [
        {
            "name": part.name,
            "url": public_url(part.url),
            "path": part.path,
            "optional": part.optional,
            "refusable": part.refusable,
        }
        for part in task.parts
    ]
    return {
        "source": task.source,
        "key": task.key,
        "parts": parts,
        "params": dict(task.params),
        "fingerprint": task.fingerprint,
        "origin": origin,
    }


def input_to_json(task: FetchTask, parts: Iterable[tuple[Part, Archived]]) -> dict[str, Any]:
    """All that a loaded task needs to be parsed again: its parameters and its archived files."""
    return {
        "params": dict(task.params),
        "origin": task.origin and archived_to_json(task.origin),
        "parts": [
            {
                "name": part.name,
                "path": part.path,
                "file": archived_to_json(replace(archived, url=public_url(part.url))),
            }
            for part, archived in parts
        ],
    }


def archived_to_json(archived: Archived) -> dict[str, Any]:
    """An archived file as it is stored in a task."""
    return {**asdict(archived), "retrieved_at": format_timestamp(archived.retrieved_at)}


def archived_from_json(value: Mapping[str, Any]) -> Archived:
    """The archived file that `archived_to_json` stored."""
    return Archived(**{**value, "retrieved_at": datetime.fromisoformat(value["retrieved_at"])})


def task_from_json(value: Mapping[str, Any]) -> FetchTask:
    """The task that `task_to_json` stored."""
    origin = value["origin"]
    if origin is not None:
        origin = archived_from_json(origin)
    parts = tuple(Part(**part) for part in value["parts"])
    return FetchTask(**{**value, "parts": parts, "origin": origin})


def _attempts(error: OpenError | None) -> int:
    return error.attempts if error is not None else 0


def _open(source: str) -> Any:
    table = ingestion_tasks.c
    return (table.source == source) & (table.stage == "errored") & table.resolved_at.is_(None)


def _row(
    run_id: UUID, source: str, key: str, stage: str, *, now: datetime, started_at: datetime | None
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "source": source,
        "task_key": key,
        "stage": stage,
        "started_at": started_at or now,
        "finished_at": now,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedInput:
    """A task that was loaded: the hash of its bytes, the versions that read them, its records."""

    input_sha256: str
    recipe: str
    fingerprint: str | None
    records: int
    validated_at: datetime
    task: Mapping[str, Any] | None = None
    """As from `input_to_json`; None if an older version loaded it."""
    bundle: str | None = None
    """Root and key of the bundle that it is from; None if this library fetched it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskState:
    """A task with what earlier runs stored of it."""

    task: FetchTask
    previous: LoadedInput | None
    files: dict[str, FileRecord]
    """By address, without secrets."""


def recall(connection: Connection, source: str, tasks: Sequence[FetchTask]) -> list[TaskState]:
    """Read what earlier runs stored of tasks and of their files."""
    table = ingestion_inputs.c
    query = select(ingestion_inputs).where(table.source == source)
    inputs = {
        row.task_key: LoadedInput(
            input_sha256=row.input_sha256,
            recipe=row.recipe,
            fingerprint=row.fingerprint,
            records=row.records,
            validated_at=row.validated_at,
            task=row.task,
            bundle=row.bundle,
        )
        for row in select_in(connection, query, table.task_key, [task.key for task in tasks])
    }
    files = recall_files(connection, source, [part.url for task in tasks for part in task.parts])
    return [
        TaskState(
            task=task,
            previous=inputs.get(task.key),
            files={url: files[url] for url in map(_url, task.parts) if url in files},
        )
        for task in tasks
    ]


def recall_files(connection: Connection, source: str, urls: Sequence[str]) -> dict[str, FileRecord]:
    """Files fetched before, by address without secrets."""
    table = fetched_files.c
    query = select(fetched_files).where(table.source == source)
    return {
        row.url: FileRecord(
            source=source,
            url=row.url,
            archived=Archived(
                url=row.url,
                key=row.blob_key,
                sha256=row.sha256,
                size=row.size,
                retrieved_at=row.retrieved_at,
                media_type=row.media_type,
            ),
            etag=row.etag,
            last_modified=row.last_modified,
        )
        for row in select_in(connection, query, table.url, [public_url(url) for url in urls])
    }


@repeatable
def previous_file(database: Database, source: str, url: str) -> FileRecord | None:
    """The file that was fetched from an address before."""
    with database.read() as connection:
        return recall_files(connection, source, [url]).get(public_url(url))


def address_of(connection: Connection, key: str) -> str | None:
    """The address of an archived file; None for one that its address no longer serves."""
    query = select(fetched_files.c.url).where(fetched_files.c.blob_key == key).limit(1)
    address: str | None = connection.scalar(query)
    return address


def _url(part: Part) -> str:
    return public_url(part.url)


def remember_files(connection: Connection, files: Iterable[FileRecord]) -> None:
    """Store validators and archive keys for the next conditional requests."""
    rows = {
        (file.source, file.url): {
            "source": file.source,
            "url": file.url,
            "blob_key": file.archived.key,
            "sha256": file.archived.sha256,
            "size": file.archived.size,
            "media_type": file.archived.media_type,
            "etag": file.etag,
            "last_modified": file.last_modified,
            "retrieved_at": file.archived.retrieved_at,
        }
        for file in files
    }
    upsert(connection, fetched_files, list(rows.values()))


def remember_inputs(
    connection: Connection, source: str, inputs: Iterable[tuple[str, LoadedInput]]
) -> None:
    """Store the inputs of loaded tasks, in the transaction that stores their rows."""
    rows = {
        key: {
            "source": source,
            "task_key": key,
            "input_sha256": loaded.input_sha256,
            "recipe": loaded.recipe,
            "fingerprint": loaded.fingerprint,
            "records": loaded.records,
            "validated_at": loaded.validated_at,
            "task": loaded.task,
            "bundle": loaded.bundle,
        }
        for key, loaded in inputs
    }
    upsert(connection, ingestion_inputs, list(rows.values()))
