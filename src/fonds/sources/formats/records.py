"""Child tables, child records and bodies that sources make alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Column, Table
from sqlalchemy.schema import SchemaItem

from fonds.errors import MalformedError
from fonds.model import Archived, Body, BodyFormat, FetchTask, ParsedRecord, RawPart
from fonds.normalize.registry import Normalizer
from fonds.stores.columns import position
from fonds.stores.tables import metadata


def child_table(
    name: str, owner: Column[Any], *columns: SchemaItem, comment: str | None = None
) -> Table:
    """A table of rows below a record, in the publisher's order; `owner` is made by `owned_by`."""
    return Table(name, metadata, owner, position(), *columns, comment=comment)


def child_records(
    source: str, table: Table, owner: str, rows: Iterable[Mapping[str, Any]]
) -> Iterator[ParsedRecord]:
    """The rows of a table below the record whose key is `owner`, numbered from 1."""
    column = table.primary_key.columns[0].name
    for ordinal, row in enumerate(rows, 1):
        yield ParsedRecord(
            source=source,
            table=table.name,
            key=f"{owner}#{table.name}/{ordinal}",
            payload={column: owner, "ord": ordinal, **row},
        )


def normalized_body(
    part: RawPart, body_format: BodyFormat, normalizer: Normalizer, source_hint: str | None = None
) -> Body:
    """The text of a file as a normalizer reads it."""
    return Body(
        archived=part.archived,
        format=body_format,
        normalizer=normalizer.label,
        normalized=normalizer.to_markdown(part.data, source_hint),
    )


def listing_of(task: FetchTask) -> Archived:
    """The archived listing that describes what a task is about."""
    if task.origin is None:
        raise MalformedError(f"{task.key}: no archived list says what it is")
    return task.origin
