"""What should be there against what is: an independent count of a source's upstream.

Results of audits, kept to see how a source fares. The caller owns the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Self

from sqlalchemy import Connection, Row, func, select

from fonds.context import Context
from fonds.runs.discover import ListingFetcher
from fonds.runs.overview import standing_errors
from fonds.sources.base import Auditable, Expected, Registered
from fonds.stores.database import Database
from fonds.stores.sqlite import select_in
from fonds.stores.tables import documents, ingestion_audits, metadata

SHOWN_TARGETS: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRange:
    """The days whose documents are counted; all if it has neither end."""

    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditScope:
    """One day, file or the like: how many there should be, and which of them are not held."""

    name: str
    expected: int
    missing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unlinked:
    """References of one column to something that is not held."""

    rows: int
    targets: tuple[str, ...]
    """What they name, the most wanted first; not all where there are many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What an audit found."""

    source: str
    scopes: tuple[AuditScope, ...]
    """Empty where the upstream can be counted in no other way than the one it is loaded by."""
    failures: tuple[tuple[str, str], ...]
    """Failures of earlier runs that still stand: what, and why."""
    unlinked: dict[str, Unlinked]
    """By `table.column`."""

    @property
    def open_errors(self) -> int:
        """How many failures stand."""
        return len(self.failures)

    @property
    def expected(self) -> int:
        """How many documents there should be."""
        return sum(scope.expected for scope in self.scopes)

    @property
    def missing(self) -> int:
        """How many of them are not held."""
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
    """What was counted, with what stands in the way of it being complete."""
    standing = standing_errors(context.database, source.info.name)
    return Audit(
        source=source.info.name,
        scopes=tuple(scopes),
        failures=tuple((row["task_key"], row["error"]) for row in standing),
        unlinked=_unlinked(context.database, source),
    )


def compare(database: Database, expected: Expected) -> AuditScope:
    """What of the expected documents is not held."""
    wanted = sorted(expected.document_ids)
    query = select(documents.c.id).where(documents.c.gone_at.is_(None))
    with database.read() as connection:
        held = {row.id for row in select_in(connection, query, documents.c.id, wanted)}
    missing = tuple(name for name in wanted if name not in held)
    return AuditScope(name=expected.scope, expected=len(wanted), missing=missing)


def _unlinked(database: Database, source: Registered) -> dict[str, Unlinked]:
    found: dict[str, Unlinked] = {}
    with database.read() as connection:
        for table in (metadata.tables[table.name] for table in source.info.tables):
            for column in (column for column in table.c if "resolves" in column.info):
                reference = table.c[column.info["resolves"]]
                open_ones = column.is_(None) & reference.is_not(None)
                if rows := connection.scalar(select(func.count()).where(open_ones)):
                    targets = _most_wanted(connection, reference, open_ones)
                    found[f"{table.name}.{column.name}"] = Unlinked(rows=rows, targets=targets)
    return found


def _most_wanted(connection: Connection, reference: Any, open_ones: Any) -> tuple[str, ...]:
    query = select(reference).where(open_ones).group_by(reference)
    most = query.order_by(func.count().desc(), reference).limit(SHOWN_TARGETS)
    return tuple(str(target) for target in connection.scalars(most))


SHOWN_SCOPES: Final = 50
"""Lists that are short of something; a source may have thousands."""
SHOWN_NAMES: Final = 5
SHOWN_FAILURES: Final = 20

_audit: Final = ingestion_audits.c


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAudit:
    """What an audit found."""

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
        """The audit of a whole row."""
        return cls(**row._asdict())


def store(connection: Connection, found: Audit, *, requested_by: str, now: datetime) -> int:
    """Keep what an audit found."""
    row = {
        "source": found.source,
        "audited_at": now,
        "requested_by": requested_by,
        "expected": found.expected,
        "missing": found.missing,
        "open_errors": found.open_errors,
        "findings": _findings(found),
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


def _findings(found: Audit) -> dict[str, Any]:
    short = [scope for scope in found.scopes if scope.missing]
    return {
        "lists": len(found.scopes),
        "short": [
            {
                "list": scope.name,
                "expected": scope.expected,
                "missing": len(scope.missing),
                "names": list(scope.missing[:SHOWN_NAMES]),
            }
            for scope in sorted(short, key=lambda scope: -len(scope.missing))[:SHOWN_SCOPES]
        ],
        "failures": [
            {"task": task, "cause": cause} for task, cause in found.failures[:SHOWN_FAILURES]
        ],
        "unlinked": {
            column: {"rows": unlinked.rows, "names": list(unlinked.targets[:SHOWN_NAMES])}
            for column, unlinked in found.unlinked.items()
        },
    }
