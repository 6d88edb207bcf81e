"""Citations in the texts of queued documents: extracted, stored as edges, and linked."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Row, select

from fonds.citations.extract import extract
from fonds.citations.forms import CitationMatch, congress_of
from fonds.errors import StoreUnavailableError
from fonds.seams import Clock, Seams
from fonds.stores import leases
from fonds.stores.citations import link, lock_edges, replace_edges
from fonds.stores.database import Database, repeatable
from fonds.stores.tables import document_chunk_buffer, documents, ingestion_citation_queue

BATCH_SIZE: Final = 500
"""Documents read before a scheduler or a bootstrap can be stopped."""
CLAIM_SIZE: Final = 50
MAX_EDGES_IN_MEMORY: Final = 20_000
"""A title of the Code alone may have as many."""

Watch = Callable[[int, int], None]
"""Called with the numbers of documents read and of citations extracted so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Extracted:
    """The result of draining the queue."""

    done: int
    """Documents read."""
    citations: int
    """Extracted from them."""
    linked: int
    """Of these, those linked to a document, and older ones that now link to another."""
    failed: int
    waiting: int
    given_up: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _BatchResult:
    done: int = 0
    citations: int = 0
    linked: int = 0
    failed: int = 0

    def plus(self, other: _BatchResult) -> _BatchResult:
        return _BatchResult(
            done=self.done + other.done,
            citations=self.citations + other.citations,
            linked=self.linked + other.linked,
            failed=self.failed + other.failed,
        )


def drain(
    database: Database, seams: Seams, *, limit: int | None = None, watch: Watch | None = None
) -> Extracted:
    """Extract the citations of queued documents, each once, until none is left to be tried now."""
    owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
    started_at = seams.clock.now()
    total = _BatchResult()
    with leases.renewing(database, ingestion_citation_queue, owner, seams.clock):
        while (size := _next_size(limit, total)) > 0:
            rows = _claim(database, owner, seams.clock, size, untried_since=started_at)
            if not rows:
                break
            total = total.plus(_read_and_link(database, rows))
            if watch is not None:
                watch(total.done + total.failed, total.citations)
    with database.read() as connection:
        left = leases.depth(connection, ingestion_citation_queue)
    return Extracted(
        done=total.done,
        citations=total.citations,
        linked=total.linked,
        failed=total.failed,
        **left,
    )


@repeatable
def _claim(
    database: Database, owner: str, clock: Clock, size: int, *, untried_since: datetime
) -> Sequence[Row[Any]]:
    queue = ingestion_citation_queue
    with database.write() as connection:
        return leases.claim(
            connection, queue, owner, clock.now(), size, untried_since=untried_since
        )


def _next_size(limit: int | None, total: _BatchResult) -> int:
    if limit is None:
        return CLAIM_SIZE
    return min(CLAIM_SIZE, limit - total.done - total.failed)


def _read_and_link(database: Database, rows: Sequence[Row[Any]]) -> _BatchResult:
    """Only edges stay in memory from one text to the next, and not too many of them."""
    total = _BatchResult()
    read: dict[Row[Any], list[dict[str, Any]]] = {}
    for row in rows:
        try:
            read[row] = _edges(database, row.record_id)
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 — a text may break the extractor in any way
            total = total.plus(_record_failure(database, row, error))
        if sum(map(len, read.values())) > MAX_EDGES_IN_MEMORY:
            total = total.plus(_store(database, read))
            read = {}
    return total.plus(_store(database, read))


@repeatable
def _record_failure(database: Database, row: Row[Any], error: Exception) -> _BatchResult:
    reason = f"{type(error).__name__}: {error}".replace("\0", "\ufffd")
    with database.write() as connection:
        leases.fail(connection, ingestion_citation_queue, row, reason)
    return _BatchResult(failed=1)


@repeatable
def _store(database: Database, read: Mapping[Row[Any], list[dict[str, Any]]]) -> _BatchResult:
    with database.write() as connection:
        lock_edges(connection)
        # A document that was changed since it was claimed is queued again: its edges stay.
        finished = {
            row.record_id: edges
            for row, edges in read.items()
            if leases.finish(connection, ingestion_citation_queue, row)
        }
        linked = replace_edges(connection, finished)
        linked += link(connection, finished)
    citations = sum(map(len, finished.values()))
    return _BatchResult(done=len(finished), citations=citations, linked=linked)


@repeatable
def _edges(database: Database, document_id: str) -> list[dict[str, Any]]:
    table = documents.c
    query = select(table.uid, table.body_text, table.published_at).where(table.id == document_id)
    with database.read() as connection:
        document = connection.execute(query).one_or_none()
        if document is None or not document.body_text:
            return []
        chunk = document_chunk_buffer.c
        in_order = select(chunk.meta).where(chunk.document_id == document.uid)
        passages = list(connection.scalars(in_order.order_by(chunk.chunk_ord)))
    matches = extract(document.body_text, congress=congress_of(document.published_at))
    starts = [passage["start"] for passage in passages]
    return [_edge(document_id, match, passages, starts) for match in matches]


def _edge(
    document_id: str,
    match: CitationMatch,
    passages: Sequence[dict[str, Any]],
    starts: Sequence[int],
) -> dict[str, Any]:
    # Passages may overlap; the last that begins before the citation has it whole.
    number = bisect_right(starts, match.start) - 1
    return {
        "from_document_id": document_id,
        "start": match.start,
        "end": match.end,
        "locator": passages[number]["locator"] if number >= 0 else {},
        "raw": match.raw.replace("\0", "\ufffd"),
        "kind": match.kind,
        "target": match.target,
        "pinpoint": match.pinpoint,
    }
