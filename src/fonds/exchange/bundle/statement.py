"""The statement beside a bundle: when it was made, the hashes it has, and who signed them.

It is outside of the root, which does not depend on who makes a bundle, and when.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from fonds.errors import BundleError
from fonds.exchange.bundle.contents import canonical
from fonds.exchange.keys import SigningKey, is_endorsed, is_signed
from fonds.stores.blobs import Blobs
from fonds.stores.columns import format_timestamp

STATEMENT: Final = "statement.json"
_FORMAT: Final = 1
_SIGNED: Final = b"fonds bundle statement 1\n"
MAX_STATEMENT: Final = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """The statement of the maker of a bundle."""

    root: str
    raw: str | None
    """The hash over the publishers' bytes in it; None if it has none."""
    made_at: str
    """When it was made, as `2026-03-04T15:00:00.000Z`: an older bundle never replaces a newer."""
    waiting: Mapping[str, int]
    """Documents whose text or citations were still to be made."""
    key: str | None = None
    """The public key that signs; None if it is not signed."""
    endorsements: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """The earlier keys of its maker, each with its signature of the next."""
    signature: str | None = None

    def sign(self, key: SigningKey, endorsements: Sequence[Mapping[str, Any]]) -> Statement:
        """The statement with the signature of a key."""
        unsigned = replace(self, key=key.public, endorsements=endorsements)
        return replace(unsigned, signature=key.sign(unsigned.signed_bytes()))

    def signed_bytes(self) -> bytes:
        """The bytes that the signature is over: all of it."""
        return _SIGNED + canonical({**asdict(self), "signature": None}).encode()

    def is_same(self, other: Statement | None) -> bool:
        """True if only the time differs."""
        if other is None:
            return False
        return replace(other, made_at=self.made_at, signature=self.signature) == self

    def is_successor_of(self, key: str) -> bool:
        """True if its key replaced another, as that one testifies."""
        return self.key is not None and is_endorsed(self.endorsements, key=self.key, by=key)

    @property
    def made(self) -> datetime:
        """When it was made."""
        return datetime.fromisoformat(self.made_at)


def to_bytes(statement: Statement) -> bytes:
    """The bytes of the file."""
    return (json.dumps({"format": _FORMAT, **asdict(statement)}, indent=1) + "\n").encode()


def read_statement(blobs: Blobs) -> Statement | None:
    """The statement beside a bundle, with a valid signature or none; None if there is none."""
    info = blobs.head(STATEMENT)
    if info is None:
        return None
    if info.size > MAX_STATEMENT:
        raise BundleError(f"the {STATEMENT} is too long for one of a bundle")
    try:
        statement = _read(json.loads(blobs.get(STATEMENT)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BundleError(f"the {STATEMENT} is not one of a bundle") from None
    if statement.key is None:
        if statement.signature is not None:
            raise BundleError(f"the {STATEMENT} has a signature and no key")
    elif not is_signed(statement.signed_bytes(), statement.signature or "", statement.key):
        raise BundleError(f"the signature in the {STATEMENT} is not one of its key {statement.key}")
    return statement


def _read(values: dict[str, Any]) -> Statement:
    if values.pop("format") != _FORMAT:
        raise BundleError(f"the {STATEMENT} has a format that this program does not read")
    statement = Statement(**values)
    kinds = (str, str | None, str, dict, str | None, list, str | None)
    if not all(map(isinstance, asdict(statement).values(), kinds)):
        raise TypeError
    if format_timestamp(statement.made) != statement.made_at:
        raise ValueError
    if not all(type(count) is int for count in statement.waiting.values()):
        raise TypeError
    if not all(isinstance(each, dict) for each in statement.endorsements):
        raise TypeError
    return statement
