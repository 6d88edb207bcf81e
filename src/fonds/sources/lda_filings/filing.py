"""A filing as the source reads it, wherever it came from: rows that are not records yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from fonds.errors import MalformedError
from fonds.sources.lda_filings.repair import repair

Row = dict[str, Any]

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_AMOUNT: Final = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,8})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Filing:
    """One filing and everything it names."""

    row: Row
    """Of lda_filings, without its id."""
    registrant: Row | None = None
    client: Row | None = None
    lobbyists: tuple[Row, ...] = ()
    """Of lda_lobbyists, each once."""
    below: Mapping[str, list[Row]] = field(default_factory=dict)
    """Table → rows, without owner and position."""


def clean(value: str | None) -> str | None:
    """A text repaired; None where it is blank."""
    return (repair(value).strip() or None) if value else None


def filing_uuid(value: str | None) -> str:
    """A filing's key in small letters; the old files have it in capitals."""
    found = (value or "").strip().lower()
    if not _UUID.fullmatch(found):
        raise MalformedError(f"a filing's UUID should stand where {value!r} does")
    return found


def amount(value: str | None, name: str) -> Decimal | None:
    """A sum as the API writes it, `40000.00`."""
    if value is None:
        return None
    if not _AMOUNT.fullmatch(value):
        raise MalformedError(f"`{name}` should be an amount and is {value[:60]!r}")
    return Decimal(value)


def person(*names: str | None) -> str | None:
    """`JANE Q ROE JR` of its parts."""
    return " ".join(filter(None, names)) or None
