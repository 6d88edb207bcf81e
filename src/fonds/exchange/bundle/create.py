"""Creates a bundle from the public content of a library.

Only files that do not exist are written, and the data package is the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, Table, func, select

from fonds.errors import BlobExistsError, BundleError, UsageError
from fonds.exchange.bundle.contents import (
    ALIASES,
    CITATIONS,
    DESCRIPTOR,
    DOCUMENTS,
    EDITIONS,
    INPUTS,
    NODES,
    ORIGINS,
    PASSAGES,
    RESOURCES,
    BundleFile,
    BundlePackage,
    FilledFile,
    Record,
    Resource,
    cut,
    describe,
    read_package,
)
from fonds.exchange.bundle.inputs import count_without_input, input_rows
from fonds.exchange.bundle.raw import (
    RAW,
    RAW_FOLDER,
    RawFile,
    RawPackage,
    containers,
    files_of,
    read_raw_package,
    write_container,
)
from fonds.exchange.bundle.statement import STATEMENT, Statement, read_statement, to_bytes
from fonds.exchange.keys import SigningKey
from fonds.exchange.snapshot import Snapshot, snapshot
from fonds.seams import Clock, SystemClock
from fonds.stores.blobs import Blobs
from fonds.stores.columns import format_timestamp
from fonds.stores.database import Database, by_bytes
from fonds.stores.documents import visible_to
from fonds.stores.leases import MAX_ATTEMPTS
from fonds.stores.sqlite import batched
from fonds.stores.tables import (
    citation_edges,
    code_units,
    document_aliases,
    document_chunk_buffer,
    documents,
    ingestion_citation_queue,
    ingestion_normalization_queue,
    nodes,
)

_BATCH_SIZE: Final = 100
"""Documents whose rows are selected by one statement."""
_FETCHED: Final = 50
"""Rows with texts in memory at the same time."""

_document: Final = documents.c
_chunk: Final = document_chunk_buffer.c
_edge: Final = citation_edges.c

_SELECTED: Final[Mapping[Resource, Select[Any]]] = {
    DOCUMENTS: select(
        *(_document[field.name] for field in DOCUMENTS.fields if field.name in _document),
        _document.body_raw_format.label("body_format"),
        _document.body_normalizer_version.label("body_normalizer"),
        _document.gone_at.is_not(None).label("is_gone"),
    ),
    PASSAGES: select(
        _document.id.label("document"),
        _chunk.chunk_id.label("id"),
        _chunk.chunk_ord.label("ord"),
        (_chunk.chunker_name + "@" + _chunk.chunker_version).label("chunker"),
        _chunk.chunk_sha.label("sha256"),
        _chunk.text,
        _chunk.meta,
    ).join_from(documents, document_chunk_buffer, _chunk.document_id == _document.uid),
    ALIASES: select(
        document_aliases.c.document_id.label("document"),
        document_aliases.c.alias,
        document_aliases.c.edition,
    ),
    CITATIONS: select(
        _edge.from_document_id.label("document"),
        *(_edge[field.name] for field in CITATIONS.fields if field.name in _edge),
    ),
    ORIGINS: select(
        _document.id.label("document"), _document.raw_sha256, _document.body_raw_sha256
    ),
}
_BELONGS: Final[Mapping[Resource, ColumnElement[Any]]] = {
    DOCUMENTS: _document.id,
    PASSAGES: _document.id,
    ALIASES: document_aliases.c.document_id,
    CITATIONS: _edge.from_document_id,
    ORIGINS: _document.id,
}
_THEN_BY: Final[Mapping[Resource, ColumnElement[Any]]] = {
    PASSAGES: _chunk.chunk_ord,
    ALIASES: document_aliases.c.alias,
    CITATIONS: _edge.start,
}
_TREES: Final[Mapping[Resource, Table]] = {EDITIONS: code_units, NODES: nodes}


def records(view: Snapshot, resource: Resource, sources: Sequence[str] | None) -> Iterator[Record]:
    """The public rows of a table of a bundle in its order, of some sources or of all."""
    if resource in _TREES:
        yield from _tree(view, resource, sources)
        return
    for ids in batched(_public_ids(view, sources), _BATCH_SIZE):
        yield from rows_of_documents(view, resource, ids)


def rows_of_documents(
    view: Snapshot, resource: Resource, document_ids: Sequence[str]
) -> Iterator[Record]:
    """The rows of some documents in a table of a bundle, in its order."""
    column = _BELONGS[resource]
    order = [by_bytes(view.connection, column)]
    if resource in _THEN_BY:
        then = _THEN_BY[resource]
        order.append(by_bytes(view.connection, then) if resource is ALIASES else then)
    query = _SELECTED[resource].where(column.in_(document_ids)).order_by(*order)
    finish = _passage if resource is PASSAGES else _record
    for row in view.stream(query, batch_size=_FETCHED):
        yield finish(row)


def require_documents(view: Snapshot, sources: Sequence[str] | None) -> None:
    """UsageError for a source without a public document, which is probably a mistake."""
    for source in sources or ():
        query = select(_document.id).where(*_public([source])).limit(1)
        if view.connection.scalar(query) is None:
            raise UsageError(f"the library has no public document of {source}; run it first")


def waiting(view: Snapshot, sources: Sequence[str] | None) -> dict[str, int]:
    """The numbers of public documents that are queued for their text and for citations."""
    queues = {"texts": ingestion_normalization_queue, "citations": ingestion_citation_queue}
    return {name: _waiting(view, queue, sources) for name, queue in queues.items()}


def _waiting(view: Snapshot, queue: Table, sources: Sequence[str] | None) -> int:
    counted = select(func.count()).join_from(
        documents, queue, (queue.c.record_id == _document.id) & (queue.c.attempts < MAX_ATTEMPTS)
    )
    return view.connection.scalar(counted.where(*_public(sources))) or 0


def _public(sources: Sequence[str] | None) -> list[ColumnElement[bool]]:
    chosen = [] if sources is None else [_document.source.in_(sources)]
    return [visible_to(None), *chosen]


def _public_ids(view: Snapshot, sources: Sequence[str] | None) -> Iterator[str]:
    # Only ids are sorted, for which there may be no index; rows are selected by id.
    query = select(_document.id).where(*_public(sources))
    for row in view.stream(
        query.order_by(by_bytes(view.connection, _document.id)), batch_size=_FETCHED
    ):
        yield row.id


def _tree(view: Snapshot, resource: Resource, sources: Sequence[str] | None) -> Iterator[Record]:
    table = _TREES[resource]
    query = select(*(table.c[field.name] for field in resource.fields))
    if sources is not None:
        query = query.where(table.c.source.in_(sources))
    for row in view.stream(
        query.order_by(by_bytes(view.connection, table.c.id)), batch_size=_FETCHED
    ):
        yield _record(row)


def _record(row: Row[Any]) -> Record:
    return row._asdict()


def _passage(row: Row[Any]) -> Record:
    record = row._asdict()
    meta = record.pop("meta")
    position_fields = {name: meta[name] for name in ("start", "end", "tokens", "locator")}
    return {**record, "id": str(record["id"]), **position_fields}


Watch = Callable[[str, int], None]
"""Called from time to time with a table and the number of its rows that are done."""

_WATCH_ROWS: Final = 500
_DATA_FILE: Final = re.compile(r"data/[a-z]+/[0-9a-f]{64}\.jsonl|raw/[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Created:
    """The bundle that was created, and the changes that it took."""

    root: str
    content: str
    records: Mapping[str, int]
    bytes: int
    files: int
    written: int
    """Files that did not exist before."""
    removed: int
    """Files of an earlier bundle that this one does not have."""
    waiting: Mapping[str, int]
    """Documents that are queued for text or citations, which the bundle does not have yet."""
    raw: RawCreated | None = None
    key: str | None = None
    """The key that signed it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RawCreated:
    """The publishers' bytes in a bundle."""

    sha256: str
    inputs: int
    bytes: int
    without: int
    """Documents whose input is not known, since an older version loaded them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleSigner:
    """A key that signs a bundle, and the earlier keys of its owner."""

    key: SigningKey
    endorsements: Sequence[Mapping[str, Any]] = ()


def create(
    database: Database,
    blobs: Blobs,
    *,
    sources: Sequence[str] | None = None,
    where: str,
    watch: Watch | None = None,
    archive: Blobs | None = None,
    signer: BundleSigner | None = None,
    clock: Clock | None = None,
) -> Created:
    """Write the public content of a library, or of some of its sources, to an address.

    With an `archive`, the publishers' bytes are written, too; a bundle with them, or with a
    `signer`, states when it was made.
    """
    before = None if blobs.head(DESCRIPTOR) is None else read_package(blobs, where)
    existing = {info.key: info.size for name in _FOLDERS for info in blobs.list(name)}
    new_files = 0
    parts: dict[Resource, list[BundleFile]] = {}
    with snapshot(database) as view:
        require_documents(view, sources)
        unfinished = waiting(view, sources)
        for resource in RESOURCES:
            rows = watched(records(view, resource, sources), resource, watch)
            parts[resource], new = _write_table(blobs, resource, rows, existing)
            new_files += new
        raw, without = None, 0
        if archive is not None:
            rows = watched(input_rows(view, archive, sources), INPUTS, watch)
            raw, new = _write_raw(rows, archive, blobs, existing)
            new_files += new
            without = count_without_input(view, sources)
    package = BundlePackage(None if sources is None else tuple(sorted(set(sources))), parts)
    statement = _statement(package, raw, unfinished, signer, clock or SystemClock())
    if signer is None and raw is None:
        _remove(blobs, [STATEMENT])
    elif not statement.is_same(_statement_before(blobs)):
        blobs.put(STATEMENT, to_bytes(statement))
    if raw is None:
        _remove(blobs, [RAW])
    elif raw != _raw_before(blobs):
        blobs.put(RAW, raw.to_bytes())
    if package != before:
        blobs.put(DESCRIPTOR, describe(package))
    return Created(
        root=package.root,
        content=package.content,
        records={each.name: package.records(each) for each in RESOURCES},
        bytes=package.bytes,
        files=sum(map(len, parts.values())) + (len(raw.inputs) + len(raw.containers) if raw else 0),
        written=new_files + (package != before),
        removed=_sweep(blobs, package, raw, existing),
        waiting=unfinished,
        raw=_raw_created(raw, without) if raw else None,
        key=statement.key,
    )


_FOLDERS: Final = ("data/", RAW_FOLDER)


def _raw_created(raw: RawPackage, without: int) -> RawCreated:
    inputs = sum(part.records for part in raw.inputs)
    return RawCreated(sha256=raw.sha256, inputs=inputs, bytes=raw.size, without=without)


def _statement(
    package: BundlePackage,
    raw: RawPackage | None,
    unfinished: Mapping[str, int],
    signer: BundleSigner | None,
    clock: Clock,
) -> Statement:
    statement = Statement(
        root=package.root,
        raw=raw.sha256 if raw else None,
        made_at=format_timestamp(clock.now()),
        waiting=dict(unfinished),
    )
    return statement.sign(signer.key, list(signer.endorsements)) if signer else statement


def _statement_before(blobs: Blobs) -> Statement | None:
    """The statement that is there, unless it is damaged, so that it is replaced."""
    with suppress(BundleError):
        return read_statement(blobs)
    return None


def _raw_before(blobs: Blobs) -> RawPackage | None:
    with suppress(BundleError):
        return read_raw_package(blobs)
    return None


def _remove(blobs: Blobs, keys: Iterable[str]) -> None:
    for key in keys:
        if blobs.head(key) is not None:
            blobs.delete(key)


def watched(rows: Iterable[Record], resource: Resource, watch: Watch | None) -> Iterator[Record]:
    """The same rows, reported to `watch`."""
    for count, row in enumerate(rows, 1):
        if watch is not None and count % _WATCH_ROWS == 0:
            watch(resource.name, count)
        yield row


def _write_table(
    blobs: Blobs, resource: Resource, rows: Iterable[Record], existing: Mapping[str, int]
) -> tuple[list[BundleFile], int]:
    """Write the files of a table that are missing; returns all, and how many were written."""
    parts: list[BundleFile] = []
    new_files = 0
    for filled in cut(resource, rows):
        parts.append(filled.part)
        new_files += _write(blobs, resource, filled, existing)
    return parts, new_files


def _write_raw(
    rows: Iterable[Record], archive: Blobs, blobs: Blobs, existing: Mapping[str, int]
) -> tuple[RawPackage, int]:
    """Write the inputs and containers that are missing; returns how many files were written."""
    files: dict[str, tuple[RawFile, str]] = {}

    def collected() -> Iterator[Record]:
        for record in rows:
            for file in files_of(record):
                entry = (RawFile(file["sha256"], file["size"]), file["key"])
                files.setdefault(file["sha256"], entry)
            yield record

    inputs, new_files = _write_table(blobs, INPUTS, collected(), existing)
    all_containers = []
    for container, keys in containers(files.values()):
        all_containers.append(container)
        if existing.get(container.path) != container.size:
            write_container(blobs, container, archive, keys)
            new_files += 1
    return RawPackage(inputs, all_containers), new_files


def _write(
    blobs: Blobs, resource: Resource, filled: FilledFile, existing: Mapping[str, int]
) -> bool:
    path = filled.part.path(resource)
    if existing.get(path) == filled.part.bytes:
        return False
    if path in existing:  # truncated by another program, as we create complete files only
        blobs.put(path, filled.data)
        return True
    with suppress(BlobExistsError):
        blobs.create(path, filled.data)
    return True


def _sweep(
    blobs: Blobs, package: BundlePackage, raw: RawPackage | None, existing: Iterable[str]
) -> int:
    current = {part.path(each) for each, parts in package.parts.items() for part in parts}
    if raw is not None:
        current |= {part.path(INPUTS) for part in raw.inputs}
        current |= {container.path for container in raw.containers}
    stale = [key for key in existing if _DATA_FILE.fullmatch(key) and key not in current]
    for key in stale:
        blobs.delete(key)
    return len(stale)
