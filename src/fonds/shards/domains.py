"""The index that is shipped: every host that was touched, and who is behind it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fonds.shards.schema import Schema, schema_of

DOMAINS: Final = schema_of(
    [
        ("domain", "string"),
        ("company_name", "string"),
        ("scraper_version", "integer"),
        ("updated_at", "datetime"),
    ]
)

SHIPPED: Final[Mapping[str, Schema]] = MappingProxyType({"domains": DOMAINS})
"""Indexes that need not be made before they are written to."""
