"""An index: where it stands, what it holds, and what both are read from."""

from __future__ import annotations

from dataclasses import dataclass

from fonds.errors import BlobExistsError, BlobMissingError, UsageError
from fonds.shards.datapackage import describe, read_description
from fonds.shards.domains import SHIPPED
from fonds.shards.layout import Layout
from fonds.shards.schema import Schema
from fonds.stores.blobs import Blobs, Version


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """One index in one store."""

    blobs: Blobs
    layout: Layout
    schema: Schema

    @property
    def name(self) -> str:
        """What it is called."""
        return self.layout.name


def open_index(blobs: Blobs, name: str) -> Index:
    """The index of a name, as its data package describes it; UsageError where there is none."""
    layout = Layout(name)
    if described := version_of(blobs, layout.descriptor):
        description = read_description(described.data)
        layout = Layout(name, description.digits)
        return Index(blobs=blobs, layout=layout, schema=description.schema)
    if name in SHIPPED:
        return Index(blobs=blobs, layout=layout, schema=SHIPPED[name])
    raise UsageError(
        f"there is no index {name} here; make one with:"
        f" fonds index create {name} key:string … updated_at:datetime"
    )


def create_index(blobs: Blobs, name: str, schema: Schema) -> Index:
    """Make an index that is empty; UsageError if one of this name has other fields."""
    layout = Layout(name)
    try:
        blobs.create(layout.descriptor, describe(layout, schema, {}))
    except BlobExistsError:
        held = open_index(blobs, name)
        if held.schema != schema:
            raise UsageError(f"the index {name} exists, and has other fields") from None
        return held
    return Index(blobs=blobs, layout=layout, schema=schema)


def version_of(blobs: Blobs, key: str) -> Version | None:
    """An object with its etag, if there is one."""
    try:
        return blobs.read(key)
    except BlobMissingError:
        return None
