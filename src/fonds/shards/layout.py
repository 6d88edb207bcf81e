"""The keys of an index's blobs, computed without a store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fonds import ids
from fonds.errors import RecordError, UsageError
from fonds.shards.schema import check_key

DIGITS: Final = 2
"""Hex digits of a shard's name: 256 shards."""
MAX_DIGITS: Final = 4

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_UNSAFE: Final = re.compile(rb"[^a-z0-9._-]|^\.")
_ENCODED: Final = re.compile(r"~([0-9a-f]{2})")
_MAX_PART: Final = 200
"""Characters of a file name that every file system accepts."""
_CONTINUATION: Final = "~/"
"""The separator of the parts of a long name; elsewhere, no `~` precedes a slash."""
_DOT: Final = ("~/.", "~/~.")
"""The escape of a dot at the start of a part, so that no file name begins with a dot."""
_SUFFIX: Final = ".usv"


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The keys of one index in its store."""

    name: str
    digits: int = DIGITS

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"{self.name!r} is not a valid name of an index: use lower-case letters, digits "
                "and underscores, beginning with a letter"
            )
        if not 1 <= self.digits <= MAX_DIGITS:
            raise UsageError(f"a shard's name has one to {MAX_DIGITS} digits, not {self.digits}")

    @property
    def inbox(self) -> str:
        """The prefix of the keys of all items."""
        return f"indexes/{self.name}/"

    @property
    def shards(self) -> str:
        """The prefix of the keys of shards, locks and entries."""
        return f"{self.inbox}shards/"

    @property
    def descriptor(self) -> str:
        """The key of the data package."""
        return f"{self.inbox}datapackage.json"

    def item(self, key: str) -> str:
        """The blob key of the inbox record of a key."""
        name = _UNSAFE.sub(lambda match: b"~%02x" % match[0][0], check_key(key).encode()).decode()
        parts = [name[start : start + _MAX_PART] for start in range(0, len(name), _MAX_PART)]
        return f"{self.inbox}{_CONTINUATION.join(parts)}{_SUFFIX}".replace(*_DOT)

    def key_of(self, item: str) -> str | None:
        """The key of an inbox record by its blob key; None if it is not one."""
        path = item.removeprefix(self.inbox)
        if item.startswith(self.shards) or not path.endswith(_SUFFIX):
            return None
        name = path.removesuffix(_SUFFIX).replace(_DOT[1], _DOT[0]).replace(_CONTINUATION, "")
        decoded = _ENCODED.sub(lambda match: chr(int(match[1], 16)), name)
        try:
            key = decoded.encode("latin-1").decode()
            # A file that is not named as this program names it is not a record.
            return key if self.item(key) == item else None
        except (UnicodeError, RecordError):
            return None

    def shard_of(self, key: str) -> str:
        """The shard of a key."""
        return ids.shard_id(key, self.digits)

    def shard_ids(self) -> Iterator[str]:
        """The names of all possible shards, in order."""
        return (f"{number:0{self.digits}x}" for number in range(16**self.digits))

    def shard(self, shard: str) -> str:
        """The blob key of a shard."""
        return f"{self.shards}{shard}.usv"

    def entry(self, shard: str) -> str:
        """The blob key of the manifest entry of a shard."""
        return f"{self.shards}{shard}.json"

    def lock(self, shard: str) -> str:
        """The blob key of the lock on a shard."""
        return f"{self.shards}{shard}.lock"
