"""The rows of the table `inputs`: tasks of feeds and units of codes, as a library stores them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from sqlalchemy import Row, exists, func, select

from fonds.codes.origin import open_blob
from fonds.codes.plan import pack_prefix, read_head
from fonds.exchange.bundle.contents import Record
from fonds.exchange.snapshot import Snapshot
from fonds.runs.tasks import archived_to_json
from fonds.stores.blobs import Blobs
from fonds.stores.database import by_bytes
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import code_units, documents, ingestion_inputs

TASK: Final = "task"
UNIT: Final = "unit"
_BATCH_SIZE: Final = 200
_FETCHED: Final = 100


def input_rows(view: Snapshot, archive: Blobs, sources: Sequence[str] | None) -> Iterator[Record]:
    """The inputs of the public documents of some sources, or of all, in order."""
    for source in _sources(view, sources):
        # A source is a feed or a code, so that the two never mix.
        yield from chain(_tasks(view, source), _units(view, archive, source))


def _sources(view: Snapshot, sources: Sequence[str] | None) -> list[str]:
    names: set[str] = set()
    for column in (ingestion_inputs.c.source, code_units.c.source):
        names |= set(view.connection.scalars(select(column).distinct()))
    chosen = names if sources is None else names & set(sources)
    return sorted(chosen, key=str.encode)


def _tasks(view: Snapshot, source: str) -> Iterator[Record]:
    table = ingestion_inputs
    query = select(table).where(
        table.c.source == source, table.c.task.is_not(None), table.c.records > 0
    )
    ordered = query.order_by(by_bytes(view.connection, table.c.task_key))
    for rows in batched(view.stream(ordered, batch_size=_FETCHED), _BATCH_SIZE):
        owned = _documents_of(view, source, [row.task_key for row in rows])
        yield from (_task(row, owned[row.task_key]) for row in rows)


def _documents_of(view: Snapshot, source: str, keys: Sequence[str]) -> Mapping[str, list[str]]:
    owned: dict[str, list[str]] = defaultdict(list)
    query = select(documents.c.id, documents.c.task_key).where(
        documents.c.source == source, visible_to(None)
    )
    for row in select_in(view.connection, query, documents.c.task_key, keys):
        owned[row.task_key].append(row.id)
    return owned


def _task(row: Row[Any], document_ids: Sequence[str]) -> Record:
    return {
        "source": row.source,
        "key": row.task_key,
        "kind": TASK,
        "recipe": row.recipe,
        "fingerprint": row.fingerprint,
        "task": {**row.task, "documents": sorted(document_ids, key=str.encode)},
    }


def _units(view: Snapshot, archive: Blobs, source: str) -> Iterator[Record]:
    table = code_units.c
    query = select(table.id, table.plan_key).where(
        table.source == source, table.plan_key != "", table.state != "planned"
    )
    for row in view.stream(query.order_by(by_bytes(view.connection, table.id)), batch_size=1):
        yield _unit(archive, source, row.id, row.plan_key)


def _unit(archive: Blobs, source: str, unit_id: str, plan_key: str) -> Record:
    with open_blob(archive, plan_key) as lines:
        head = read_head(next(iter(lines)))
    packs = [info.key for info in archive.list(f"{pack_prefix(head)}/")]
    return {
        "source": source,
        "key": unit_id,
        "kind": UNIT,
        "recipe": head.adapter,
        "fingerprint": None,
        "task": {
            "plan": _file(archive, plan_key),
            "packs": [_file(archive, key) for key in packs],
            "pages": [[name, archived_to_json(page)] for name, page in head.pages if page.key],
        },
    }


def _file(archive: Blobs, key: str) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    for block in archive.stream(key):
        digest.update(block)
        size += len(block)
    return {"key": key, "sha256": digest.hexdigest(), "size": size}


def count_without_input(view: Snapshot, sources: Sequence[str] | None) -> int:
    """Public documents of which it is not stored how they were read: they are not in `inputs`."""
    table, unit = ingestion_inputs.c, code_units.c
    is_task = (table.source == documents.c.source) & (table.task_key == documents.c.task_key)
    has_input = exists().where(is_task, table.task.is_not(None)) | exists().where(
        unit.id == documents.c.unit, unit.plan_key != ""
    )
    query = select(func.count()).select_from(documents).where(visible_to(None), ~has_input)
    if sources is not None:
        query = query.where(documents.c.source.in_(sources))
    return view.connection.scalar(query) or 0
