"""Audits: what a publisher lists, counted in another way than runs do, and what is missing.

Results are stored; the caller owns the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Self

from sqlalchemy import Connection, Row, func, select

from fonds.context import Context
from fonds.runs.discover import ListingFetcher
from fonds.runs.overview import open_error_rows
from fonds.sources.base import Auditable, Expected, Registered
from fonds.stores.database import Database
from fonds.stores.sqlite import select_in
from fonds.stores.tables import documents, ingestion_audits, metadata

MAX_TARGETS: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRange:
    """The days whose documents are counted; all if it has neither end."""

    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditScope:
    """One day, file or the like: how many documents it lists, and those that are missing."""

    name: str
    expected: int
    missing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unlinked:
    """References of one column to rows that are not in the library."""

    rows: int
    targets: tuple[str, ...]
    """Their targets, the most frequent first, up to a limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """The result of an audit."""

    source: str
    scopes: tuple[AuditScope, ...]
    """Empty where the upstream can be counted in no other way than the one it is loaded by."""
    failures: tuple[tuple[str, str], ...]
    """Open errors of earlier runs: task key and message."""
    unlinked: dict[str, Unlinked]
    """By `table.column`."""

    @property
    def open_errors(self) -> int:
        """The number of open errors of earlier runs."""
        return len(self.failures)

    @property
    def expected(self) -> int:
        """The number of documents that the publisher lists."""
        return sum(scope.expected for scope in self.scopes)

    @property
    def missing(self) -> int:
        """The number of listed documents that are not in the library."""
        return sum(len(scope.missing) for scope in self.scopes)


async def audit_source(source: Registered, context: Context, dates: AuditRange) -> Audit:
    """Count a source's upstream by another way than the one it is loaded by."""
    scopes: list[AuditScope] = []
    if isinstance(source, Auditable):
        listings = ListingFetcher(source.info, context)
        expectations = source.enumerate(listings, dates.since, dates.until)
        scopes = [compare(context.database, expected) async for expected in expectations]
    return complete_audit(source, context, scopes)


def complete_audit(source: Registered, context: Context, scopes: Sequence[AuditScope]) -> Audit:
    """The audit of these scopes, with the open errors and the unlinked references."""
    errors = open_error_rows(context.database, source.info.name)
    return Audit(
        source=source.info.name,
        scopes=tuple(scopes),
        failures=tuple((row["task_key"], row["error"]) for row in errors),
        unlinked=_unlinked(context.database, source),
    )


def compare(database: Database, expected: Expected) -> AuditScope:
    """The expected documents that are not in the library."""
    document_ids = sorted(expected.document_ids)
    query = select(documents.c.id).where(documents.c.gone_at.is_(None))
    with database.read() as connection:
        stored = {row.id for row in select_in(connection, query, documents.c.id, document_ids)}
    missing = tuple(name for name in document_ids if name not in stored)
    return AuditScope(name=expected.scope, expected=len(document_ids), missing=missing)


def _unlinked(database: Database, source: Registered) -> dict[str, Unlinked]:
    unlinked: dict[str, Unlinked] = {}
    with database.read() as connection:
        for table in (metadata.tables[table.name] for table in source.info.tables):
            for column in (column for column in table.c if "resolves" in column.info):
                reference = table.c[column.info["resolves"]]
                is_open = column.is_(None) & reference.is_not(None)
                if rows := connection.scalar(select(func.count()).where(is_open)):
                    targets = _frequent_targets(connection, reference, is_open)
                    unlinked[f"{table.name}.{column.name}"] = Unlinked(rows=rows, targets=targets)
    return unlinked


def _frequent_targets(connection: Connection, reference: Any, is_open: Any) -> tuple[str, ...]:
    query = select(reference).where(is_open).group_by(reference)
    top = query.order_by(func.count().desc(), reference).limit(MAX_TARGETS)
    return tuple(str(target) for target in connection.scalars(top))


MAX_SCOPES: Final = 50
"""Of scopes with missing documents, those that are stored; there may be thousands."""
MAX_NAMES: Final = 5
MAX_FAILURES: Final = 20

_audit: Final = ingestion_audits.c


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAudit:
    """An audit as it is stored."""

    id: int
    source: str
    audited_at: datetime
    requested_by: str
    expected: int
    """Documents that the upstream lists."""
    missing: int
    open_errors: int
    findings: Mapping[str, Any]
    """`lists` counts what was compared; `short`, `failures` and `unlinked` hold some of each."""

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """From a row with all columns."""
        return cls(**row._asdict())


def store(connection: Connection, result: Audit, *, requested_by: str, now: datetime) -> int:
    """Store the result of an audit, and return its id."""
    row = {
        "source": result.source,
        "audited_at": now,
        "requested_by": requested_by,
        "expected": result.expected,
        "missing": result.missing,
        "open_errors": result.open_errors,
        "findings": _findings(result),
    }
    made = connection.execute(ingestion_audits.insert().values(row).returning(_audit.id))
    return int(made.scalar_one())


def latest(connection: Connection) -> list[StoredAudit]:
    """The last audit of each source that was ever audited, by source."""
    last = select(func.max(_audit.id)).group_by(_audit.source)
    query = select(ingestion_audits).where(_audit.id.in_(last)).order_by(_audit.source)
    return [StoredAudit.from_row(row) for row in connection.execute(query)]


def history(
    connection: Connection, *, source: str | None = None, before: int | None = None, limit: int
) -> list[StoredAudit]:
    """Audits, the newest first; of one source, or those before an id."""
    query = select(ingestion_audits).order_by(_audit.id.desc()).limit(limit)
    if source is not None:
        query = query.where(_audit.source == source)
    if before is not None:
        query = query.where(_audit.id < before)
    return [StoredAudit.from_row(row) for row in connection.execute(query)]


def _findings(result: Audit) -> dict[str, Any]:
    short = [scope for scope in result.scopes if scope.missing]
    return {
        "lists": len(result.scopes),
        "short": [
            {
                "list": scope.name,
                "expected": scope.expected,
                "missing": len(scope.missing),
                "names": list(scope.missing[:MAX_NAMES]),
            }
            for scope in sorted(short, key=lambda scope: -len(scope.missing))[:MAX_SCOPES]
        ],
        "failures": [
            {"task": task, "cause": message} for task, message in result.failures[:MAX_FAILURES]
        ],
        "unlinked": {
            column: {"rows": unlinked.rows, "names": list(unlinked.targets[:MAX_NAMES])}
            for column, unlinked in result.unlinked.items()
        },
    }
