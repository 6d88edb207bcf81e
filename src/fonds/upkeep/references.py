"""Every name by which the database refers to an object in the store.

Whoever adds a column that holds a key adds it here: what is not named here may be deleted.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self

from sqlalchemy import Connection, Select, select

from fonds import ids
from fonds.sites.tables import site_addresses
from fonds.stores.batches import pieces
from fonds.stores.tables import (
    code_units,
    document_versions,
    documents,
    fetched_files,
    ingestion_normalization_queue,
    ingestion_tasks,
    nodes,
    upload_jobs,
)

AT_ONCE: Final = 5000
"""Rows held in memory."""
WEBSITE: Final = "site-"


def references(connection: Connection, source: str | None = None) -> Iterator[str]:
    """All keys that rows refer to, some of them often; only those of one source, if it is named."""
    for query in _queries(source):
        for row in connection.execution_options(yield_per=AT_ONCE).execute(query):
            yield from (_key(ref) for ref in row if ref)
    yield from _origins(connection, source)


def editions(connection: Connection) -> tuple[str, ...]:
    """Beginnings of the keys of codes that are kept whole: plans, packs and pages of an edition.

    A plan names the pages it was made from, and its packs follow from it; no row names them all.
    """
    query = select(code_units.c.source, code_units.c.version).distinct()
    return tuple(
        ids.archive_key(source, f"{version}/x")[:-1]
        for source, version in connection.execute(query)
    )


def _queries(source: str | None) -> list[Select[Any]]:
    version = document_versions.c
    owned: list[tuple[Select[Any], Any]] = [
        (select(documents.c.raw_path, documents.c.body_raw_path), documents.c.source),
        (
            select(version.archive_key, version.body_archive_key).join(
                documents, documents.c.id == version.document_id
            ),
            documents.c.source,
        ),
        (select(fetched_files.c.blob_key), fetched_files.c.source),
        (select(code_units.c.plan_key), code_units.c.source),
        (select(nodes.c.body_ref).where(nodes.c.body_ref.is_not(None)), nodes.c.source),
    ]
    chosen = [query if source is None else query.where(of == source) for query, of in owned]
    waiting = select(ingestion_normalization_queue.c.raw_path)
    uploads = select(upload_jobs.c.raw_path, upload_jobs.c.parsed_path)
    return [*chosen, waiting, uploads]


def _origins(connection: Connection, source: str | None) -> Iterator[str]:
    """Of tasks that failed, and of pages that a crawl has yet to follow: the file they are from."""
    task, address = ingestion_tasks.c, site_addresses.c
    tasks = select(task.task).where(task.stage == "errored", task.resolved_at.is_(None))
    pages = select(address.origin).where(address.origin.is_not(None))
    if source is not None:
        tasks = tasks.where(task.source == source)
        pages = pages.where(address.website_id == source.removeprefix(WEBSITE))
    streamed = connection.execution_options(yield_per=AT_ONCE)
    for kept in streamed.execute(tasks).scalars():
        if kept and kept.get("origin"):
            yield kept["origin"]["key"]
    for origin in streamed.execute(pages).scalars():
        yield json.loads(origin)["key"]


def _key(ref: str) -> str:
    """A range of an object refers to the object."""
    return ref.partition("#")[0]


class Ledger:
    """A set of keys of any size, on disk."""

    def __init__(self, file: str) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE held (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, keys: Iterable[str]) -> Self:
        """Take in keys."""
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT OR IGNORE INTO held VALUES (?)", ((_encoded(key),) for key in keys)
        )
        self._database.execute("COMMIT")
        return self

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Those of some keys that are not in the set."""
        found: set[str] = set()
        for piece in pieces(keys):
            by_name = {_encoded(key): key for key in piece}
            marks = ",".join("?" * len(by_name))
            query = f"SELECT key FROM held WHERE key IN ({marks})"  # noqa: S608 — marks alone
            held = {row[0] for row in self._database.execute(query, list(by_name))}
            found |= {key for name, key in by_name.items() if name not in held}
        return found

    def close(self) -> None:
        """Give the file back."""
        self._database.close()


def _encoded(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


@contextmanager
def ledger(folder: Path) -> Iterator[Ledger]:
    """An empty set that is gone with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        NamedTemporaryFile(dir=folder, prefix="references-") as file,
        closing(Ledger(file.name)) as made,
    ):
        yield made
