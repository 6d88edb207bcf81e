"""The tables, rows and column types of exports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    Float,
    Integer,
    LargeBinary,
    Numeric,
    Select,
    Table,
    exists,
    or_,
    select,
)

from fonds.sources.registry import SourceRegistry
from fonds.stores.columns import Identity, Json, Timestamp
from fonds.stores.documents import visible_to
from fonds.stores.tables import (
    citation_edges,
    code_units,
    document_aliases,
    document_chunk_buffer,
    document_versions,
    documents,
    nodes,
)

Kind = Literal["string", "integer", "number", "boolean", "datetime", "any"]
"""Types of data packages; `any` is JSON."""

_INTERNAL: Final = frozenset({"owner", "task_key"})
_OF_DOCUMENTS: Final = (document_aliases, document_versions)


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """A column of a file."""

    name: str
    kind: Kind
    type: str
    """DuckDB's type."""
    about: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """A table with the query for its rows."""

    name: str
    query: Select[Any]
    fields: tuple[ExportColumn, ...]
    key: tuple[str, ...]
    about: str | None = None


def exported_tables(
    existing: Collection[str],
    registry: SourceRegistry,
    *,
    sources: Sequence[str] | None,
    owner: UUID | None,
) -> Iterator[Exported]:
    """All tables that can be exported and exist, of some sources or of all.

    Documents, and rows that belong to one, are public or the owner's.
    """
    chosen = visible_to(owner)
    if sources is not None:
        chosen &= documents.c.source.in_(sources)
    yield _exported(documents, _columns(documents), chosen)
    yield _passages(chosen)
    for table in _OF_DOCUMENTS:
        yield _exported(table, _columns(table), _has_document(table.c.document_id, chosen))
    yield _citations(chosen, owner)
    for table in (code_units, nodes):
        conditions = [] if sources is None else [table.c.source.in_(sources)]
        yield _exported(table, _columns(table), *conditions)
    for table in _typed(registry, sources):
        if table.name in existing:
            yield _exported(table, _columns(table), *_visible(table, chosen))


def _typed(registry: SourceRegistry, sources: Sequence[str] | None) -> list[Table]:
    """The tables of sources, without repetitions."""
    all_info = [each.info for each in registry.values()]
    chosen = [info for info in all_info if sources is None or info.name in sources]
    return list(dict.fromkeys(table for info in chosen for table in info.tables))


def _visible(table: Table, chosen: ColumnElement[bool]) -> list[ColumnElement[bool]]:
    """Conditions for visible rows, if the rows are documents or belong to one by their key."""
    first = next(iter(table.primary_key.columns))
    for key in first.foreign_keys:
        parent = key.column.table
        if parent is documents:
            return [_has_document(first, chosen)]
        if parent is not table and (conditions := _visible(parent, chosen)):
            return [exists().where(key.column == first, *conditions)]
    return []


def _has_document(column: ColumnElement[Any], chosen: ColumnElement[bool]) -> ColumnElement[bool]:
    # With IN, SQLite would have a list of all documents in memory.
    return exists().where(documents.c.id == column, chosen)


def _passages(chosen: ColumnElement[bool]) -> Exported:
    chunk = document_chunk_buffer.c
    columns = [
        documents.c.id.label("document_id"),
        *(column for column in chunk if column.name not in {"id", "document_id"}),
    ]
    query = select(*columns).join_from(
        documents, document_chunk_buffer, chunk.document_id == documents.c.uid
    )
    return Exported(
        name="passages",
        query=query.where(chosen),
        fields=tuple(_field(column.name, column.type, None) for column in columns),
        key=("document_id", "chunk_ord"),
        about="The passages of documents, each with its place.",
    )


def _citations(chosen: ColumnElement[bool], owner: UUID | None) -> Exported:
    edge = citation_edges.c
    cited = documents.alias("cited")
    # A public document may cite an upload, whose existence only its owner may know.
    is_visible = or_(cited.c.owner.is_(None), cited.c.owner == owner)
    columns = [each for each in edge if each.name != "to_document_id"]
    query = (
        select(*columns, cited.c.id.label("to_document_id"))
        .join_from(
            citation_edges, cited, (cited.c.id == edge.to_document_id) & is_visible, isouter=True
        )
        .where(_has_document(edge.from_document_id, chosen))
    )
    fields = [_field(each.name, each.type, each.comment) for each in columns]
    last = edge.to_document_id
    return Exported(
        name="citations",
        query=query,
        fields=(*fields, _field(last.name, documents.c.id.type, last.comment)),
        key=("from_document_id", "start"),
        about="What documents cite, and where in their texts.",
    )


def _columns(table: Table) -> list[Column[Any]]:
    return [
        column
        for column in table.c
        if column.name not in _INTERNAL and not isinstance(column.type, LargeBinary)
    ]


def _exported(
    table: Table, columns: Sequence[Column[Any]], *conditions: ColumnElement[bool]
) -> Exported:
    return Exported(
        name=table.name,
        query=select(*columns).where(*conditions),
        fields=tuple(_field(each.name, each.type, each.comment) for each in columns),
        key=tuple(column.name for column in table.primary_key),
        about=table.comment,
    )


def _field(name: str, type_: Any, about: str | None) -> ExportColumn:
    kind, native = _kind(type_)
    return ExportColumn(name, kind, native, about)


def _kind(type_: Any) -> tuple[Kind, str]:
    kinds: list[tuple[type[Any], Kind, str]] = [
        (Boolean, "boolean", "BOOLEAN"),
        (Integer, "integer", "BIGINT"),
        (Float, "number", "DOUBLE"),
        (Timestamp, "datetime", "TIMESTAMPTZ"),
        (Identity, "string", "UUID"),
        (Json, "any", "JSON"),
        (JSON, "any", "JSON"),  # of a plugin
    ]
    for each, kind, native in kinds:
        if isinstance(type_, each):
            return kind, native
    if isinstance(type_, Numeric):
        return "number", f"DECIMAL({type_.precision},{type_.scale})"
    return "string", "VARCHAR"
