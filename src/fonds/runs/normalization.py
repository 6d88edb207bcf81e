"""Texts made apart from loading: bodies that wait in the queue, bodies made by an older recipe."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from threading import Event
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Connection, Row, Select, select

from fonds.engine.base import Engine
from fonds.errors import BlobMissingError, FondsError, RunError
from fonds.model import NormalizedBody
from fonds.normalize.registry import get_normalizer, normalizer_names
from fonds.normalize.work import Work, make_text
from fonds.runs.derive import passages_of_text, recipe_of
from fonds.runs.inputs import address_of
from fonds.runs.shelf import BY_FORMAT, Shelf, text_again
from fonds.stores import queues
from fonds.stores.body_refs import read_body
from fonds.stores.documents import update_text
from fonds.stores.tables import documents, ingestion_normalization_queue

CLAIMED_AT_ONCE: Final = 16
READ_AT_ONCE: Final = 200
SHOWN_ERRORS: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Drained:
    """What came of draining the queue."""

    done: int
    failed: int
    waiting: int
    given_up: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Renormalized:
    """What came of making stale texts anew."""

    checked: int
    changed: int
    failed: int
    errors: tuple[str, ...] = ()


def drain(shelf: Shelf, engine: Engine, *, stop: Event | None = None) -> Drained:
    """Normalize what waits, each body once, until nothing is left that may be tried now."""
    pile = _Pile(shelf)
    done = failed = 0
    with pile.kept():
        for outcome in engine.run(make_text, pile.works()):
            row = pile.rows.pop(outcome.index)
            if outcome.error is None:
                done += _store_queued(shelf, row, outcome.unwrap())
            else:
                failed += 1
                _give_back(shelf, row, outcome.error)
            if stop is not None and stop.is_set():
                raise RunError("stopped; what is left in the queue waits for the next time")
    with shelf.database.read() as connection:
        left = queues.depth(connection, ingestion_normalization_queue)
    return Drained(done=done, failed=failed + pile.missing, **left)


class _Pile:
    """Bodies that wait, claimed a few at a time and read while others are being worked on."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._begun = shelf.seams.clock.now()
        self.rows: dict[int, Row[Any]] = {}
        """By their place among the works."""
        self.missing = 0
        """Rows without bytes; they are given back with that reason."""

    def works(self) -> Iterator[Work]:
        places = count()
        while rows := self._claim():
            for row in rows:
                if self._shelf.blobs.head(row.raw_path) is None:
                    self.missing += 1
                    gone = BlobMissingError(f"{row.raw_path} is not in the blob store")
                    _give_back(self._shelf, row, gone)
                else:
                    self.rows[next(places)] = row
                    yield _work(self._shelf, row)

    def kept(self) -> AbstractContextManager[None]:
        """Hold what was claimed: one file may take minutes."""
        database, clock = self._shelf.database, self._shelf.seams.clock
        return queues.kept(database, ingestion_normalization_queue, self._owner, clock)

    def _claim(self) -> Sequence[Row[Any]]:
        with self._shelf.database.write() as connection:
            return queues.claim(
                connection,
                ingestion_normalization_queue,
                self._owner,
                self._shelf.seams.clock.now(),
                CLAIMED_AT_ONCE,
                untried_since=self._begun,
            )


def renormalize(
    shelf: Shelf, *, source: str | None = None, normalizer: str | None = None
) -> Renormalized:
    """Make texts anew whose normalizer is not the current one, from the archived bytes."""
    checked = changed = 0
    errors: list[str] = []
    for document_id in list(_stale(shelf, source, normalizer)):
        checked += 1
        try:
            changed += _renormalize_one(shelf, document_id)
        except FondsError as error:
            errors.append(f"{document_id}: {error}")
    return Renormalized(
        checked=checked, changed=changed, failed=len(errors), errors=tuple(errors[:SHOWN_ERRORS])
    )


def _work(shelf: Shelf, row: Row[Any]) -> Work:
    with shelf.database.read() as connection:
        address = address_of(connection, row.raw_path)
    data = read_body(shelf.blobs, row.raw_path)
    return Work(normalizer=BY_FORMAT[row.raw_format], data=data, address=address)


def _store_queued(shelf: Shelf, row: Row[Any], text: NormalizedBody) -> bool:
    """Write the text, unless the document has other bytes by now."""
    with shelf.database.write() as connection:
        if not queues.finish(connection, ingestion_normalization_queue, row):
            return False
        _write(connection, shelf, row.record_id, text, BY_FORMAT[row.raw_format])
    return True


def _give_back(shelf: Shelf, row: Row[Any], error: FondsError) -> None:
    cause = f"{type(error).__name__}: {error}".replace("\0", "\ufffd")
    with shelf.database.write() as connection:
        queues.fail(connection, ingestion_normalization_queue, row, cause)


def _stale(shelf: Shelf, source: str | None, normalizer: str | None) -> Iterator[str]:
    """Documents whose text an older version made; read in pages, by id."""
    names = [normalizer] if normalizer else normalizer_names()
    for name in names:
        current = get_normalizer(name).label
        version = documents.c.body_normalizer_version
        query = (
            select(documents.c.id)
            .where(version.startswith(f"{name}@"), version != current)
            .order_by(documents.c.id)
            .limit(READ_AT_ONCE)
        )
        query = query.where(documents.c.source == source) if source else query
        last = ""
        while page := _page(shelf, query.where(documents.c.id > last)):
            yield from page
            last = page[-1]


def _page(shelf: Shelf, query: Select[Any]) -> list[str]:
    with shelf.database.read() as connection:
        return list(connection.scalars(query))


def _renormalize_one(shelf: Shelf, document_id: str) -> bool:
    table = documents.c
    query = select(table.body_raw_path, table.body_normalizer_version, table.body_map)
    with shelf.database.read() as connection:
        row = connection.execute(query.where(table.id == document_id)).one()
    name = row.body_normalizer_version.partition("@")[0]
    text = text_again(shelf, document_id, name, row.body_raw_path, row.body_map)
    with shelf.database.write() as connection:
        return _write(connection, shelf, document_id, text, name)


def _write(
    connection: Connection, shelf: Shelf, document_id: str, text: NormalizedBody, name: str
) -> bool:
    table = documents.c
    query = select(table.title, table.summary).where(table.id == document_id)
    title, summary = connection.execute(query).one()
    label = get_normalizer(name).label
    return update_text(
        connection,
        shelf.database.fulltext,
        document_id,
        text,
        passages=passages_of_text(document_id, title, summary, text, shelf.chunker),
        normalizer=label,
        recipe=recipe_of(label, shelf.chunker),
        now=shelf.seams.clock.now(),
    )
