"""What is held and as of when, so that an agent knows what a missing answer means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, func, select

from fonds.codes.outline import EditionHeld, editions
from fonds.library import Library
from fonds.mcp.answers import Coverage, EditionCoverage, SourceCoverage, VectorCoverage, as_day
from fonds.sources.base import Registered
from fonds.sources.registry import all_sources
from fonds.stores.tables import (
    documents,
    ingestion_embedding_queue,
    ingestion_normalization_queue,
    ingestion_source_state,
    ingestion_tasks,
)
from fonds.stores.vectors import current_generation
from fonds.stores.visibility import visible_to


@dataclass(frozen=True, kw_only=True, slots=True)
class _Standing:
    """What is known of all sources, by name."""

    held: Mapping[str, Sequence[Row[Any]]]
    successes: Mapping[str, datetime | None]
    errors: Mapping[str, int]
    textless: Mapping[str, int]
    editions: Mapping[str, Sequence[EditionHeld]] = field(default_factory=dict)


def coverage(library: Library, owner: UUID | None) -> Coverage:
    """Every source with something held or tried, and how far it is whole."""
    by_code: dict[str, list[EditionHeld]] = defaultdict(list)
    for one in editions(library.database):
        by_code[one.source].append(one)
    with library.database.read() as connection:
        standing = _standing(connection, by_code, visible_to(owner))
        vectors = _vectors(connection)
    known = all_sources()
    touched = {*standing.held, *standing.errors, *by_code}
    sources = [_source(name, known.get(name), standing) for name in sorted(touched)]
    return Coverage(
        as_of=library.seams.clock.now(),
        documents=sum(one.documents for one in sources),
        sources=sources,
        not_held=sorted(set(known) - touched),
        vectors=vectors,
    )


def _standing(
    connection: Connection,
    by_code: Mapping[str, Sequence[EditionHeld]],
    visible: ColumnElement[bool],
) -> _Standing:
    table, state, tasks = documents.c, ingestion_source_state.c, ingestion_tasks.c
    held = select(
        table.source,
        table.kind,
        func.count().label("documents"),
        func.count(table.gone_at).label("withdrawn"),
        func.min(table.published_at).label("first"),
        func.max(table.published_at).label("last"),
        func.max(table.retrieved_at).label("retrieved"),
    )
    by_source: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(held.where(visible).group_by(table.source, table.kind)):
        by_source[row.source].append(row)
    open_errors = select(tasks.source, func.count()).where(
        tasks.stage == "errored", tasks.resolved_at.is_(None)
    )
    queued = ingestion_normalization_queue.c
    same = (queued.table_name == "documents") & (queued.record_id == table.id)
    waiting = (
        select(table.source, func.count())
        .select_from(ingestion_normalization_queue)
        .join(documents, same)
        .where(visible)
    )
    return _Standing(
        held=by_source,
        successes=_pairs(connection, select(state.source, state.last_success_at)),
        errors=_pairs(connection, open_errors.group_by(tasks.source)),
        textless=_pairs(connection, waiting.group_by(table.source)),
        editions=by_code,
    )


def _pairs(connection: Connection, query: Any) -> dict[str, Any]:
    return {row[0]: row[1] for row in connection.execute(query)}


def _source(name: str, known: Registered | None, standing: _Standing) -> SourceCoverage:
    rows = standing.held.get(name, ())
    firsts = [row.first for row in rows if row.first]
    lasts = [row.last for row in rows if row.last]
    return SourceCoverage(
        source=name,
        title=known.info.title if known else name,
        organization=known.info.organisation if known else "",
        documents=sum(row.documents for row in rows),
        withdrawn=sum(row.withdrawn for row in rows),
        kinds={row.kind: row.documents for row in rows},
        first_published=as_day(min(firsts, default=None)),
        last_published=as_day(max(lasts, default=None)),
        last_retrieved_at=max((row.retrieved for row in rows), default=None),
        last_success_at=standing.successes.get(name),
        open_errors=standing.errors.get(name, 0),
        waiting_for_text=standing.textless.get(name, 0),
        editions=[_edition_coverage(one) for one in standing.editions.get(name, ())],
    )


def _edition_coverage(one: EditionHeld) -> EditionCoverage:
    return EditionCoverage(
        edition=one.version,
        units=one.units,
        complete_units=one.complete,
        sections=one.sections,
        is_newest=one.is_newest,
    )


def _vectors(connection: Connection) -> VectorCoverage:
    generation = current_generation(connection)
    waiting = connection.scalar(select(func.count()).select_from(ingestion_embedding_queue)) or 0
    return VectorCoverage(
        model=generation.name if generation else None,
        # Whatever lacks a vector of the model in use waits in the queue, failures included.
        complete=generation is not None and not waiting,
        waiting=waiting,
    )
