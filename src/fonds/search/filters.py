"""Filters of documents, applied before passages are ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Select, func, or_, select

from fonds.errors import UsageError
from fonds.search.query import Query
from fonds.sources.registry import SourceRegistry
from fonds.stores.database import by_bytes
from fonds.stores.documents import visible_to
from fonds.stores.tables import (
    code_units,
    document_chunk_buffer,
    documents,
    upload_jobs,
)

UPLOADS: Final = "uploads"
"""The source of uploads, which has no publisher."""


def require_source(name: str, registry: SourceRegistry) -> str:
    """The name, if it is that of a source or of uploads; else an error that lists the sources."""
    return name if name == UPLOADS else registry.require(name).info.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """Conditions on documents; an empty one matches all."""

    sources: Sequence[str] = ()
    kinds: Sequence[str] = ()
    organizations: Sequence[str] = ()
    """Parts of their names, in any case."""
    titles: Sequence[str] = ()
    """Texts that the title must contain, in any case."""
    since: date | None = None
    until: date | None = None
    under: str | None = None
    """An id; matches that document and those below it: `usc/2024/root/title-42`."""
    owner: UUID | None = None
    """The user whose uploads are included, besides public documents."""
    years: Sequence[int] = ()
    """Of publication."""
    jurisdictions: Sequence[str] = ()
    """Whose law or record it is, as sources say: `United States`."""
    edition: str | None = None
    """Sections of this edition of codes; None is the newest edition of each, and all else."""
    include_withdrawn: bool = False
    document: str | None = None
    """The id of one document, of any edition, withdrawn or not: its passages are searched."""

    def narrowed(self, query: Query) -> Filters:
        """These filters, with those of the query."""
        return replace(
            self,
            sources=(*self.sources, *query.values("source")),
            kinds=(*self.kinds, *query.values("kind")),
            organizations=(*self.organizations, *query.values("org")),
            titles=(*self.titles, *query.values("title")),
            since=_day("since", query) or self.since,
            until=_day("until", query) or self.until,
            under=_last("under", query) or self.under,
            edition=_last("edition", query) or self.edition,
        )


def eligible(connection: Connection, filters: Filters, registry: SourceRegistry) -> Select[Any]:
    """The rows of all passages whose document matches."""
    table = documents.c
    query = select(document_chunk_buffer.c.id).join(
        documents, table.uid == document_chunk_buffer.c.document_id
    )
    for condition in _conditions(connection, filters, registry):
        query = query.where(condition)
    return query


def _conditions(connection: Connection, filters: Filters, registry: SourceRegistry) -> list[Any]:
    table = documents.c
    conditions: list[Any] = [visible_to(filters.owner), *_present(filters)]
    if filters.sources:
        conditions.append(table.source.in_(filters.sources))
    if filters.kinds:
        conditions.append(func.lower(table.kind).in_([kind.lower() for kind in filters.kinds]))
    if filters.organizations:
        conditions.append(
            or_(*(_contains(table.source_org, name) for name in filters.organizations))
        )
    conditions += [_titled(words) for words in filters.titles]
    if filters.since:
        conditions.append(table.published_at >= filters.since.isoformat())
    if filters.until and filters.until < date.max:
        after = filters.until + timedelta(days=1)
        conditions.append(table.published_at < after.isoformat())
    if filters.years:
        years = [f"{year:04}" for year in filters.years]
        conditions.append(func.substr(table.published_at, 1, 4).in_(years))
    if filters.jurisdictions:
        conditions.append(table.source.in_(_sources_of(filters.jurisdictions, registry)))
    if filters.under:
        conditions.append(_below(connection, filters.under.rstrip("/")))
    return [*conditions, *_editions(filters)]


def _present(filters: Filters) -> list[Any]:
    """The one document, withdrawn or not; else all that are not withdrawn."""
    if filters.document is not None:
        return [documents.c.id == filters.document]
    return [] if filters.include_withdrawn else [documents.c.gone_at.is_(None)]


def _sources_of(jurisdictions: Sequence[str], registry: SourceRegistry) -> list[str]:
    by_jurisdiction: dict[str, list[str]] = {}
    for name, source in registry.items():
        by_jurisdiction.setdefault(source.info.jurisdiction.casefold(), []).append(name)
    for name in jurisdictions:
        if not name or name.casefold() not in by_jurisdiction:
            names = {source.info.jurisdiction for source in registry.values()} - {""}
            raise UsageError(
                f"no source has the jurisdiction {name!r}; there are: {', '.join(sorted(names))}"
            )
    return [source for name in jurisdictions for source in by_jurisdiction[name.casefold()]]


def _editions(filters: Filters) -> list[Any]:
    unit, units = documents.c.unit, select(code_units.c.id)
    if filters.edition is not None:
        return [unit.in_(units.where(code_units.c.version == filters.edition))]
    if filters.document or (filters.under and "/" in filters.under.rstrip("/")):
        return []  # both name the edition, as a path below a code's name contains it
    return [unit.is_(None) | unit.in_(units.where(code_units.c.is_newest))]


def _titled(words: str) -> Any:
    """True for a title with these words, or the name of a file, in which underscores are blanks."""
    job, words = upload_jobs.c, words.replace("_", " ")
    uploads = select(job.document_id).where(_contains(func.replace(job.name, "_", " "), words))
    title = func.replace(documents.c.title, "_", " ")
    is_file = (documents.c.source == UPLOADS) & documents.c.uid.in_(uploads)
    return _contains(title, words) | is_file


def _contains(column: Any, words: str) -> Any:
    return func.lower(column).contains(words.lower(), autoescape=True)


def _below(connection: Connection, path: str) -> Any:
    # A range and not a pattern: it uses an index, and % and _ are ordinary characters. It ends
    # with the character after the slash.
    own = by_bytes(connection, documents.c.id)
    return (documents.c.id == path) | ((own >= f"{path}/") & (own < f"{path}0"))


def _last(field: str, query: Query) -> str | None:
    return query.values(field)[-1] if query.values(field) else None


def _day(field: str, query: Query) -> date | None:
    value = _last(field, query)
    try:
        return date.fromisoformat(value) if value else None
    except ValueError:
        raise UsageError(f"{field}: takes a day such as 2026-01-31, not {value!r}") from None
