"""Where everything of an index stands; no store is asked."""

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
MOST_DIGITS: Final = 4

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_UNSAFE: Final = re.compile(rb"[^a-z0-9._-]|^\.")
_ENCODED: Final = re.compile(r"~([0-9a-f]{2})")
_PIECE: Final = 200
"""Characters of a file name that every file system takes."""
_GOES_ON: Final = "~/"
"""Where a long name is divided: no other `~` stands before a slash."""
_DOT: Final = ("~/.", "~/~.")
"""No name begins with a dot, wherever a long one is divided."""
_SUFFIX: Final = ".usv"


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The keys of one index in its store."""

    name: str
    digits: int = DIGITS

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"{self.name!r} cannot name an index: small letters, digits and underscores"
            )
        if not 1 <= self.digits <= MOST_DIGITS:
            raise UsageError(f"a shard's name has one to {MOST_DIGITS} digits, not {self.digits}")

    @property
    def inbox(self) -> str:
        """What the keys of all items begin with."""
        return f"indexes/{self.name}/"

    @property
    def shards(self) -> str:
        """What the keys of shards, locks and entries begin with."""
        return f"{self.inbox}shards/"

    @property
    def descriptor(self) -> str:
        """The data package."""
        return f"{self.inbox}datapackage.json"

    def item(self, key: str) -> str:
        """Where the newest record of a key waits to be compiled."""
        name = _UNSAFE.sub(lambda found: b"~%02x" % found[0][0], check_key(key).encode()).decode()
        pieces = [name[start : start + _PIECE] for start in range(0, len(name), _PIECE)]
        return f"{self.inbox}{_GOES_ON.join(pieces)}{_SUFFIX}".replace(*_DOT)

    def key_of(self, item: str) -> str | None:
        """The key whose record stands there; None where no record of the inbox does."""
        path = item.removeprefix(self.inbox)
        if item.startswith(self.shards) or not path.endswith(_SUFFIX):
            return None
        name = path.removesuffix(_SUFFIX).replace(_DOT[1], _DOT[0]).replace(_GOES_ON, "")
        decoded = _ENCODED.sub(lambda found: chr(int(found[1], 16)), name)
        try:
            key = decoded.encode("latin-1").decode()
            # Somebody's own file, that is not written as we write it, is no record.
            return key if self.item(key) == item else None
        except (UnicodeError, RecordError):
            return None

    def shard_of(self, key: str) -> str:
        """The shard of a key."""
        return ids.shard_id(key, self.digits)

    def shard_ids(self) -> Iterator[str]:
        """All shards there can be, in order."""
        return (f"{number:0{self.digits}x}" for number in range(16**self.digits))

    def shard(self, shard: str) -> str:
        """The records of a shard."""
        return f"{self.shards}{shard}.usv"

    def entry(self, shard: str) -> str:
        """What the manifest says of a shard."""
        return f"{self.shards}{shard}.json"

    def lock(self, shard: str) -> str:
        """Who compiles a shard."""
        return f"{self.shards}{shard}.lock"
