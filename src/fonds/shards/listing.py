"""What stands in the folder of an index's shards, as the store lists it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from fonds.shards.index import Index
from fonds.stores.blobs import BlobInfo

_PART: Final = re.compile(r"([0-9a-f]{1,4})\.(usv|json)")


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects by the shard that they belong to; shards of two divisions may be among them."""

    shards: dict[str, BlobInfo] = field(default_factory=dict)
    entries: dict[str, BlobInfo] = field(default_factory=dict)
    locks: list[BlobInfo] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    """Keys of what no index writes there."""

    def add(self, index: Index, info: BlobInfo) -> None:
        """Sort in one object of the folder."""
        name = info.key.removeprefix(index.layout.shards)
        if part := _PART.fullmatch(name):
            (self.shards if part[2] == "usv" else self.entries)[part[1]] = info
        elif name.endswith(".lock"):
            self.locks.append(info)
        else:
            self.strangers.append(info.key)


def list_shards(index: Index) -> Listing:
    """Everything in the folder of the shards."""
    listing = Listing()
    for info in index.blobs.list(index.layout.shards):
        listing.add(index, info)
    return listing
