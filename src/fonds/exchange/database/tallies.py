"""What a table holds, as a count and a hash in which the order of rows does not matter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from fonds.stores.columns import format_timestamp


@dataclass(slots=True)
class Tally:
    """The rows seen so far."""

    rows: int = 0
    _sum: int = 0

    def add(self, values: Iterable[Any]) -> None:
        """Count a row, given by its values."""
        told = json.dumps([_plain(value) for value in values], sort_keys=True)
        self.rows += 1
        # Added up: two databases need not agree on an order.
        self._sum += int.from_bytes(hashlib.sha256(told.encode()).digest(), "big")

    @property
    def digest(self) -> str:
        """The hash over all rows."""
        return f"{self._sum % (1 << 256):064x}"


def _plain(value: Any) -> Any:
    """A value as both databases give it back."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)  # of a number in JSON, PostgreSQL keeps what it is worth
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, datetime):
        return format_timestamp(value)
    return str(value) if isinstance(value, UUID) else value
