"""What should be there against what is: an independent count of a source's upstream."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from sqlalchemy import func, select

from fonds.errors import UsageError
from fonds.runs.context import Workplace
from fonds.runs.discovery import Asker
from fonds.runs.tasks import open_errors
from fonds.sources.base import Auditable, Expected, Source
from fonds.stores.batches import select_in
from fonds.stores.database import Database
from fonds.stores.tables import documents, metadata


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """One day, file or the like: how many there should be, and which of them are not held."""

    name: str
    expected: int
    missing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What an audit found."""

    source: str
    scopes: tuple[Scope, ...]
    open_errors: int
    """Failures of earlier runs that still stand."""
    unlinked: dict[str, int]
    """References to something not held, by `table.column`."""

    @property
    def expected(self) -> int:
        """How many documents there should be."""
        return sum(scope.expected for scope in self.scopes)

    @property
    def missing(self) -> int:
        """How many of them are not held."""
        return sum(len(scope.missing) for scope in self.scopes)


async def audit_source(
    source: Source, workplace: Workplace, since: date | None, until: date | None
) -> Audit:
    """Count a source's upstream by another way than the one it is loaded by."""
    if not isinstance(source, Auditable):
        raise UsageError(f"{source.info.name} has no upstream list to be audited against")
    asker = Asker(source.info, workplace)
    scopes = [
        _compare(workplace.database, expected)
        async for expected in source.enumerate(asker, since, until)
    ]
    with workplace.database.read() as connection:
        standing = len(open_errors(connection, source.info.name))
    return Audit(
        source=source.info.name,
        scopes=tuple(scopes),
        open_errors=standing,
        unlinked=_unlinked(workplace.database, source),
    )


def _compare(database: Database, expected: Expected) -> Scope:
    wanted = sorted(expected.document_ids)
    query = select(documents.c.id).where(documents.c.gone_at.is_(None))
    with database.read() as connection:
        held = {row.id for row in select_in(connection, query, documents.c.id, wanted)}
    missing = tuple(name for name in wanted if name not in held)
    return Scope(name=expected.scope, expected=len(wanted), missing=missing)


def _unlinked(database: Database, source: Source) -> dict[str, int]:
    counts: dict[str, int] = {}
    with database.read() as connection:
        for table in (metadata.tables[table.name] for table in source.info.tables):
            for column in (column for column in table.c if "resolves" in column.info):
                reference = table.c[column.info["resolves"]]
                query = select(func.count()).where(column.is_(None), reference.is_not(None))
                if count := connection.scalar(query.select_from(table)):
                    counts[f"{table.name}.{column.name}"] = count
    return counts
