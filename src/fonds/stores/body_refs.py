"""Where the raw bytes of a body stand: a blob of their own, or a range of a larger one.

`corpus/usc/2024/packs/title-42/00007#5120+890` names the blob, the offset and the length.
"""

from __future__ import annotations

import re
from typing import Final

from fonds.errors import StoreError
from fonds.stores.blobs import Blobs

_RANGE: Final = re.compile(r"(?P<key>.+)#(?P<start>\d+)\+(?P<length>\d+)")


def body_ref(key: str, start: int, length: int) -> str:
    """The name of a range of a blob."""
    return f"{key}#{start}+{length}"


def read_body(blobs: Blobs, ref: str) -> bytes:
    """The bytes that a reference names; of a range only those are read."""
    named = _RANGE.fullmatch(ref)
    if named is None:
        return blobs.get(ref)
    length = int(named["length"])
    data = blobs.get_range(named["key"], int(named["start"]), length)
    if len(data) != length:
        raise StoreError(f"{named['key']} is cut short: {ref} names bytes that it does not have")
    return data
