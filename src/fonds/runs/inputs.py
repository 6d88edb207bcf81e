"""What was fetched and loaded before: the memory that makes a second run cheap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from fonds.fetch.archive import KnownFile
from fonds.fetch.redact import public_url
from fonds.model import Archived, FetchTask, Part
from fonds.stores.batches import select_in
from fonds.stores.database import upsert
from fonds.stores.tables import fetched_files, ingestion_inputs


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownInput:
    """A task that is durably loaded: from which bytes, by which recipe, with what yield."""

    input_sha256: str
    recipe: str
    fingerprint: str | None
    records: int
    validated_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A task with all we remember of it."""

    task: FetchTask
    known: KnownInput | None
    files: dict[str, KnownFile]
    """By address, without secrets."""


def recall(connection: Connection, source: str, tasks: Sequence[FetchTask]) -> list[Wanted]:
    """Look up what is known of tasks and of the files they ask for."""
    table = ingestion_inputs.c
    query = select(ingestion_inputs).where(table.source == source)
    known = {
        row.task_key: KnownInput(
            input_sha256=row.input_sha256,
            recipe=row.recipe,
            fingerprint=row.fingerprint,
            records=row.records,
            validated_at=row.validated_at,
        )
        for row in select_in(connection, query, table.task_key, [task.key for task in tasks])
    }
    files = recall_files(connection, source, [part.url for task in tasks for part in task.parts])
    return [
        Wanted(
            task=task,
            known=known.get(task.key),
            files={url: files[url] for url in map(_url, task.parts) if url in files},
        )
        for task in tasks
    ]


def recall_files(connection: Connection, source: str, urls: Sequence[str]) -> dict[str, KnownFile]:
    """Files fetched before, by address without secrets."""
    table = fetched_files.c
    query = select(fetched_files).where(table.source == source)
    return {
        row.url: KnownFile(
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


def address_of(connection: Connection, key: str) -> str | None:
    """Where an archived file came from; None for one that its address no longer serves."""
    query = select(fetched_files.c.url).where(fetched_files.c.blob_key == key).limit(1)
    address: str | None = connection.scalar(query)
    return address


def _url(part: Part) -> str:
    return public_url(part.url)


def remember_files(connection: Connection, files: Iterable[KnownFile]) -> None:
    """Keep validators and archive keys for the next conditional request."""
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
    connection: Connection, source: str, inputs: Iterable[tuple[str, KnownInput]]
) -> None:
    """Note tasks as loaded, in the transaction that holds their rows."""
    rows = {
        key: {
            "source": source,
            "task_key": key,
            "input_sha256": known.input_sha256,
            "recipe": known.recipe,
            "fingerprint": known.fingerprint,
            "records": known.records,
            "validated_at": known.validated_at,
        }
        for key, known in inputs
    }
    upsert(connection, ingestion_inputs, list(rows.values()))
