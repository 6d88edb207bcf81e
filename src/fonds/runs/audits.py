"""Results of audits, kept to see how a source fares. The caller owns the transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from sqlalchemy import Connection, Row, func, select

from fonds.runs.audit import Audit
from fonds.stores.tables import ingestion_audits

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
