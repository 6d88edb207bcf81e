"""Column types that mean the same on SQLite and PostgreSQL, and columns that tables share."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    TypeDecorator,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine


class Timestamp(TypeDecorator[datetime]):
    """A time in UTC with milliseconds; on SQLite ISO 8601 text, which sorts and is readable."""

    impl = String(24)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """A native timestamp where there is one."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True, precision=3))
        return dialect.type_descriptor(String(24))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Reject naive times; truncate to milliseconds."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a time zone: {value}")
        return value if dialect.name == "postgresql" else format_timestamp(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Always aware, always UTC."""
        if value is None:
            return None
        if dialect.name == "postgresql":
            time: datetime = value.astimezone(UTC)
            return time
        return datetime.fromisoformat(value)


@lru_cache(maxsize=64)  # the rows of a batch share their timestamps
def format_timestamp(time: datetime) -> str:
    """A time as `2026-03-04T15:00:00.000Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Identity(TypeDecorator[UUID]):
    """A UUID; text with dashes on SQLite, as people type it."""

    impl = String(36)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """A native UUID where there is one."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.UUID(as_uuid=True))
        return dialect.type_descriptor(String(36))

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> Any:
        """Text on SQLite."""
        if value is None or dialect.name == "postgresql":
            return value
        return str(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> UUID | None:  # noqa: ARG002 — the signature is SQLAlchemy's
        """Always a UUID."""
        return value if value is None or isinstance(value, UUID) else UUID(value)


class Json(TypeDecorator[Any]):
    """A JSON value; JSONB on PostgreSQL. None is NULL, not JSON's null."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """JSONB where there is one."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.JSONB(none_as_null=True))
        return dialect.type_descriptor(JSON(none_as_null=True))

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """Compare and index as SQLAlchemy's JSON does."""
        return self.impl_instance.coerce_compared_value(op, value)


# Columns that the tables of sources share -------------------------------------------------


def texts(**comments: str) -> list[Column[Any]]:
    """Optional text columns: names with comments."""
    return [Column(name, Text, comment=comment) for name, comment in comments.items()]


def document_key(comment: str) -> Column[Any]:
    """The primary key of a table whose rows are documents."""
    return Column("id", ForeignKey("documents.id"), primary_key=True, comment=comment)


def owned_by(table: str, name: str) -> Column[Any]:
    """The first key column of rows that are deleted together with a row of `table`."""
    owner = ForeignKey(f"{table}.id", ondelete="CASCADE")
    return Column(name, owner, primary_key=True, comment=f"{table}.id")


def position(name: str = "ord", comment: str = "Place in the publisher's list.") -> Column[Any]:
    """A key column that numbers the rows below one record."""
    return Column(name, Integer, primary_key=True, autoincrement=False, comment=comment)


def reference(
    name: str, table: str, comment: str, *, primary_key: bool = False
) -> tuple[Column[Any], Column[Any]]:
    """`<name>_ref`, as the publisher implies it, and `<name>_id`, set once that row is stored."""
    return (
        Column(f"{name}_ref", Text, primary_key=primary_key, comment=comment),
        Column(f"{name}_id", ForeignKey(f"{table}.id"), **_resolving(name, table, index=True)),
    )


def bulk_reference(
    name: str, table: str, comment: str, *, via_aliases: bool = False
) -> tuple[Column[Any], Column[Any], Index]:
    """A reference of a table with millions of rows.

    One index serves the rows of a parent and the rows whose parent is missing, so that linking
    never scans the table. With `via_aliases`, `<name>_ref` may also be another name of the
    parent's document, from `document_aliases`.
    """
    return (
        Column(f"{name}_ref", Text, comment=comment),
        Column(
            f"{name}_id",
            ForeignKey(f"{table}.id"),
            **_resolving(name, table, via_aliases=via_aliases),
        ),
        Index(None, f"{name}_id", f"{name}_ref"),
    )


def _resolving(
    name: str, table: str, *, index: bool | None = None, via_aliases: bool = False
) -> dict[str, Any]:
    return {
        "index": index,
        "comment": f"{table}.id once it is loaded.",
        "info": {"resolves": f"{name}_ref", "via_aliases": via_aliases},
    }


def task_key() -> Column[Any]:
    """The input of rows that belong to no document; they are deleted with it."""
    return Column("task_key", Text, comment="The input this row was last loaded from.")
