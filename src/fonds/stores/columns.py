"""Column types that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, Dialect, String, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.dialects.postgresql import UUID as POSTGRES_UUID
from sqlalchemy.types import TypeEngine


class Timestamp(TypeDecorator[datetime]):
    """A moment in UTC with milliseconds; ISO 8601 text on SQLite, so that it sorts and reads."""

    impl = String(24)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """A native timestamp where there is one."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True, precision=3))
        return dialect.type_descriptor(String(24))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Refuse naive times; cut to milliseconds."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a moment without a time zone: {value}")
        return value if dialect.name == "postgresql" else format_timestamp(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Always aware, always UTC."""
        if value is None:
            return None
        if dialect.name == "postgresql":
            moment: datetime = value.astimezone(UTC)
            return moment
        return datetime.fromisoformat(value)


@lru_cache(maxsize=64)  # the rows of a batch share their moments
def format_timestamp(moment: datetime) -> str:
    """`2026-03-04T15:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Identity(TypeDecorator[UUID]):
    """A UUID; text with dashes on SQLite, as people type it."""

    impl = String(36)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """A native UUID where there is one."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(POSTGRES_UUID(as_uuid=True))
        return dialect.type_descriptor(String(36))

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> Any:
        """Text on SQLite."""
        if value is None or dialect.name == "postgresql":
            return value
        return str(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> UUID | None:  # noqa: ARG002 — the signature is SQLAlchemy's
        """Always a UUID."""
        return value if value is None or isinstance(value, UUID) else UUID(value)


Json = JSON().with_variant(JSONB(), "postgresql")
"""A JSON value; JSONB on PostgreSQL."""
