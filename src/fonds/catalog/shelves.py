"""What is held of each source, told without counting."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from fonds.sources.registry import all_sources
from fonds.stores.database import Database
from fonds.stores.tables import documents
from fonds.stores.visibility import visible_to


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceHeld:
    """A source of which something is held."""

    name: str
    title: str
    organisation: str
    jurisdiction: str
    first: str | None
    """Day of the oldest document that has one."""
    last: str | None


def sources_held(database: Database, *, owner: UUID | None = None) -> list[SourceHeld]:
    """All sources with a document, by name; found through an index, however many there are."""
    table = documents.c
    found = []
    with database.read() as connection:
        for name, source in sorted(all_sources().items()):
            own = select(table.published_at).where(table.source == name, visible_to(owner)).limit(1)
            if connection.execute(own).one_or_none() is None:
                continue
            dated = own.where(table.published_at.is_not(None))
            first = connection.scalar(dated.order_by(table.published_at))
            last = connection.scalar(dated.order_by(table.published_at.desc()))
            found.append(
                SourceHeld(
                    name=name,
                    title=source.info.title,
                    organisation=source.info.organisation,
                    jurisdiction=source.info.jurisdiction,
                    first=first and first[:10],
                    last=last and last[:10],
                )
            )
    return found
