"""The home page, search results with facets, and the page of changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from markupsafe import Markup, escape
from starlette.responses import Response

from fonds.api.dependencies import app_state, limit_searches
from fonds.api.schemas import MAX_ID_LENGTH
from fonds.catalog.changes import ChangeFilter, changes
from fonds.errors import UsageError
from fonds.results import FacetCount, Facets, SearchPage
from fonds.runs.overview import loaded_sources
from fonds.search.filters import Filters, require_source
from fonds.search.query import read_query
from fonds.search.snippet import highlights
from fonds.web.rendering import Viewer, one_line, page, query, viewer_of

PAGE_SIZE: Final = 10
MAX_QUERY_LENGTH: Final = 2000
MAX_OFFSET: Final = 900
FACET_VALUES: Final = 12
EXAMPLES: Final = ("wildfire smoke", "overtime salary threshold", "lead pipes in drinking water")

_EMPHASIS: Final = re.compile(r"(?<!\\)\*{1,3}(?=\S)(.+?)(?<=\S)\*{1,3}")
_TITLES: Final = {
    "source": "Source",
    "kind": "Kind",
    "organization": "Organisation",
    "year": "Year",
    "jurisdiction": "Jurisdiction",
}

_Value = Annotated[str, Query(min_length=1, max_length=300)]
_Values = Annotated[list[_Value], Query(max_length=20)]
_Years = Annotated[list[Annotated[int, Query(ge=1, le=9999)]], Query(max_length=20)]

router: Final = APIRouter()


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A value of a facet."""

    label: str
    count: int | None
    href: str
    is_on: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Facet:
    """A facet with its values."""

    title: str
    choices: Sequence[Choice]


@router.get("/")
def show_search(
    request: Request,
    q: Annotated[str, Query(max_length=MAX_QUERY_LENGTH)] = "",
    *,
    source: _Values = [],  # noqa: B006 — never changed
    kind: _Values = [],  # noqa: B006 — as above
    organization: _Values = [],  # noqa: B006 — as above
    year: _Years = [],  # noqa: B006 — as above
    jurisdiction: _Values = [],  # noqa: B006 — as above
    document: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_LENGTH)] = None,
    start: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
) -> Response:
    """The home page, or search results."""
    viewer = viewer_of(request)
    if not q.strip():
        return _home(request, viewer)
    limit_searches(request)
    chosen: dict[str, list[Any]] = {
        "source": source,
        "kind": kind,
        "organization": organization,
        "year": year,
        "jurisdiction": jurisdiction,
    }
    context: dict[str, Any] = {
        "q": q,
        "chosen": chosen,
        "start": start,
        "examples": EXAMPLES,
        "inside": document and _titled(request, viewer, document),
    }
    try:
        results = _search(request, viewer, q, chosen, start, document=document)
    except UsageError as error:
        return page(request, "search.html", viewer=viewer, results=(), error=str(error), **context)
    params = {"q": q, **chosen, "document": document}
    return page(
        request,
        "search.html",
        viewer=viewer,
        results=results.results[:PAGE_SIZE],
        error=None,
        counted=results.facets,
        facets=[] if document else _facets(results.facets, params),
        is_narrowed=any(chosen.values()),
        previous=_search_url(params, max(0, start - PAGE_SIZE)) if start else None,
        following=_search_url(params, start + PAGE_SIZE) if _has_more(results, start) else None,
        mark=_marker(q),
        **context,
    )


def _home(request: Request, viewer: Viewer) -> Response:
    library = app_state(request).library
    sources = loaded_sources(library.database, library.sources, owner=viewer.user_id)
    return page(request, "home.html", viewer=viewer, sources=sources, examples=EXAMPLES)


def _titled(request: Request, viewer: Viewer, name: str) -> dict[str, Any]:
    """The document that is searched, if the viewer may see it."""
    return app_state(request).library.document(name, owner=viewer.user_id, with_text=False)


def _search(
    request: Request,
    viewer: Viewer,
    q: str,
    chosen: Mapping[str, list[Any]],
    start: int,
    *,
    document: str | None,
) -> SearchPage:
    library = app_state(request).library
    filters = Filters(
        sources=[require_source(name, library.sources) for name in chosen["source"]],
        kinds=chosen["kind"],
        organizations=chosen["organization"],
        years=chosen["year"],
        jurisdictions=chosen["jurisdiction"],
        owner=viewer.user_id,
        document=document,
    )
    return library.look(q, filters, limit=PAGE_SIZE + 1, offset=start)


def _has_more(results: SearchPage, start: int) -> bool:
    return len(results.results) > PAGE_SIZE and start + PAGE_SIZE <= MAX_OFFSET


def _facets(counts: Facets, params: Mapping[str, Any]) -> list[Facet]:
    lists: dict[str, list[FacetCount]] = {
        "source": counts.sources,
        "kind": counts.kinds,
        "organization": counts.organizations,
        "year": counts.years,
        "jurisdiction": counts.jurisdictions,
    }
    facets = [
        Facet(title=_TITLES[name], choices=_choices(name, values, params))
        for name, values in lists.items()
    ]
    return [facet for facet in facets if facet.choices]


def _choices(name: str, values: Sequence[FacetCount], params: Mapping[str, Any]) -> list[Choice]:
    """Selected values first, which a click removes. Each link returns to the first page."""
    selected = [str(value) for value in params[name]]
    by_value = {value.value: value for value in values}
    chosen = [
        Choice(
            label=by_value[value].label if value in by_value else value,
            count=by_value[value].count if value in by_value else None,
            href=_search_url({**params, name: [other for other in selected if other != value]}),
            is_on=True,
        )
        for value in selected
    ]
    others = [value for value in values if value.value not in selected][:FACET_VALUES]
    return chosen + [
        Choice(
            label=value.label,
            count=value.count,
            href=_search_url({**params, name: [*selected, value.value]}),
            is_on=False,
        )
        for value in others
    ]


def _search_url(params: Mapping[str, Any], start: int = 0) -> str:
    return f"/?{query({**params, 'start': start})}"


def _marker(search_text: str) -> Callable[[str], Markup]:
    terms = read_query(search_text).search_terms

    def mark(snippet: str) -> Markup:
        """Highlight the search terms, without Markdown emphasis."""
        text = one_line(_EMPHASIS.sub(r"\1", snippet))
        parts, done = [], 0
        for start, end in highlights(text, terms):
            parts += [escape(text[done:start]), Markup("<mark>{}</mark>").format(text[start:end])]
            done = end
        return Markup().join([*parts, escape(text[done:])])

    return mark


CHANGES_PER_PAGE: Final = 50

_Text = Annotated[str, Query(max_length=1000)]


@router.get("/changes")
def show_changes(
    request: Request, source: _Text = "", under: _Text = "", cursor: _Text = ""
) -> Response:
    """A page of changes, newest first."""
    viewer, library = viewer_of(request), app_state(request).library
    filters = ChangeFilter(
        source=source or None, under=under or None, owner=viewer.user_id, newest_first=True
    )
    entries = changes(library.database, filters, limit=CHANGES_PER_PAGE, cursor=cursor or None)
    params = {"source": source, "under": under}
    return page(
        request,
        "changes.html",
        viewer=viewer,
        changes=entries.items,
        source=source,
        under=under,
        sources=loaded_sources(library.database, library.sources, owner=viewer.user_id),
        following=f"/changes?{query({**params, 'cursor': entries.next_cursor})}"
        if entries.next_cursor
        else None,
    )
