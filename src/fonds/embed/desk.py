"""Documents of the embedding queue: claimed, read page by page, and given back as they end."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row

from fonds import ids
from fonds.embed.workshop import GONE
from fonds.seams import Seams
from fonds.stores import queues
from fonds.stores.database import Database
from fonds.stores.embedding import Passage, lacking, lacking_of_one, passage_counts
from fonds.stores.tables import ingestion_embedding_queue as queue
from fonds.stores.vectors import Generation, current_generation

CLAIMED_AT_ONCE: Final = 200
PAGE: Final = 512
"""Passages read at a time, so that a title of the Code never sits in memory."""
RENEWED_AFTER: Final = queues.LEASE.total_seconds() / 3


@dataclass(slots=True)
class _Claimed:
    """A document that this drain works on."""

    row: Row[Any]
    waiting: int = 0
    """Passages that were read and are not settled."""
    is_read: bool = False
    cause: str | None = None
    """Why one of its passages has no vector."""


class Desk:
    """Hands out the passages of documents that wait, and takes note of how each document ends.

    A document is tried once; its row is removed when all its passages have a vector, unless it
    has been queued anew meanwhile. Used by one thread.
    """

    def __init__(
        self, database: Database, seams: Seams, generation: Generation, limit: int | None
    ) -> None:
        self._database = database
        self._clock = seams.clock
        self._generation = generation
        self._left = limit
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._begun = self._clock.now()
        self._renewed = self._clock.monotonic()
        self._open: dict[str, _Claimed] = {}
        self._ready: list[Row[Any]] = []
        self._causes: dict[Row[Any], str] = {}
        self.done = 0
        self.failed = 0

    def pages(self) -> Iterator[list[Passage]]:
        """The passages without a vector of all documents that may be tried now."""
        while rows := self._claim():
            names = {ids.document_uid(row.record_id): row.record_id for row in rows}
            with self._database.read() as connection:
                counts = passage_counts(connection, list(names))
            for group in _groups(names, counts):
                yield from self._read(group, is_long=counts.get(next(iter(group)), 0) > PAGE)

    def settled(self, passage: Passage, cause: str | None) -> None:
        """Take note of what became of a passage."""
        claimed = self._open[passage.document]
        claimed.waiting -= 1
        claimed.cause = claimed.cause or cause
        self._close_if_done(claimed)

    def tick(self) -> None:
        """Keep what is being worked on, now and then."""
        now = self._clock.monotonic()
        if now - self._renewed < RENEWED_AFTER:
            return
        self._renewed = now
        held = [claimed.row for claimed in self._open.values()]
        with self._database.write() as connection:
            queues.renew(connection, queue, held, self._owner, self._clock.now())

    def close(self) -> None:
        """Give everything back: what is done, what failed, and what nobody got to."""
        with self._database.write() as connection:
            self._hand_in(connection)
            rest = [claimed.row for claimed in self._open.values()]
            queues.release(connection, queue, rest, self._owner)

    def _claim(self) -> Sequence[Row[Any]]:
        size = CLAIMED_AT_ONCE if self._left is None else min(CLAIMED_AT_ONCE, self._left)
        if size <= 0:
            return ()
        now = self._clock.now()
        with self._database.write() as connection:
            self._hand_in(connection)
            if not self._is_current(connection):
                return ()
            rows = queues.claim(
                connection, queue, self._owner, now, size, untried_since=self._begun
            )
        self._open |= {row.record_id: _Claimed(row) for row in rows}
        if self._left is not None:
            self._left -= len(rows)
        return rows

    def _is_current(self, connection: Connection) -> bool:
        """Whether vectors of this generation are still what the queue asks for."""
        current = current_generation(connection)
        return current is None or current.id == self._generation.id

    def _hand_in(self, connection: Connection) -> None:
        if not self._is_current(connection):
            queues.release(connection, queue, self._ready, self._owner)
            self._ready = []
        self.done += queues.finish_all(connection, queue, self._ready, self._owner)
        queues.fail_all(connection, queue, self._causes, self._owner)
        self._ready, self._causes = [], {}

    def _read(self, names: Mapping[UUID, str], *, is_long: bool) -> Iterator[list[Passage]]:
        if is_long:
            yield from self._read_long(*next(iter(names.items())))
            return
        with self._database.read() as connection:
            page = lacking(connection, self._generation, list(names))
        found = Counter(passage.document for passage in page)
        for name in names.values():
            self._note_read(name, found[name], is_read=True)
        if page:
            yield page

    def _read_long(self, uid: UUID, name: str) -> Iterator[list[Passage]]:
        after, more = -1, True
        while more:
            with self._database.read() as connection:
                page = lacking_of_one(connection, self._generation, uid, after, PAGE)
            more = len(page) == PAGE
            self._note_read(name, len(page), is_read=not more)
            if page:
                after = page[-1].ordinal
                yield page

    def _note_read(self, name: str, count: int, *, is_read: bool) -> None:
        claimed = self._open[name]
        claimed.waiting += count
        claimed.is_read = is_read
        self._close_if_done(claimed)

    def _close_if_done(self, claimed: _Claimed) -> None:
        # One that has changed meanwhile stays open until all are released.
        if not claimed.is_read or claimed.waiting or claimed.cause is GONE:
            return
        del self._open[claimed.row.record_id]
        if claimed.cause is None:
            self._ready.append(claimed.row)
        else:
            self._causes[claimed.row] = claimed.cause.replace("\0", "\ufffd")
            self.failed += 1


def _groups(names: Mapping[UUID, str], counts: Mapping[UUID, int]) -> Iterator[dict[UUID, str]]:
    """Documents to be read together, in their order: about a page of passages, or one long one."""
    group: dict[UUID, str] = {}
    size = 0
    for uid, name in names.items():
        count = counts.get(uid, 0)
        if group and size + count > PAGE:
            yield group
            group, size = {}, 0
        group[uid] = name
        size += count
    if group:
        yield group
