"""What the documents that a search ranks have in common, counted while they are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Row

from fonds.results import FacetCount, Facets
from fonds.sources.base import Registered
from fonds.sources.registry import all_sources

MOST_VALUES: Final = 30
"""Of one facet that are told of."""
_UNTITLED: Final = {"uploads": "Uploads"}


def facets_of(rows: Iterable[Row[Any]], *, is_all: bool) -> Facets:
    """The facets of passages, by document; `is_all` unless a deeper look would find more."""
    documents = {row.document_id: row for row in rows}
    known = all_sources()
    sources = Counter(row.source for row in documents.values())
    kinds = Counter(row.kind for row in documents.values())
    organizations = Counter(row.source_org for row in documents.values())
    years = Counter(row.published_at[:4] for row in documents.values() if row.published_at)
    return Facets(
        sources=_most(sources, lambda name: _title(name, known)),
        kinds=_most(kinds, lambda kind: kind.replace("_", " ")),
        organizations=_most(organizations),
        years=sorted(_most(years), key=lambda each: each.value, reverse=True),
        jurisdictions=_most(_jurisdictions(sources, known)),
        counted=len(documents),
        is_all=is_all,
    )


def _jurisdictions(sources: Counter[str], known: Mapping[str, Registered]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in sources.items():
        if name in known and known[name].info.jurisdiction:
            found[known[name].info.jurisdiction] += count
    return found


def _title(name: str, known: Mapping[str, Registered]) -> str:
    return known[name].info.title if name in known else _UNTITLED.get(name, name)


def _most(
    counted: Counter[str], label: Callable[[str], str] = lambda value: value
) -> list[FacetCount]:
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [
        FacetCount(value=value, label=label(value), count=count)
        for value, count in ordered[:MOST_VALUES]
    ]
