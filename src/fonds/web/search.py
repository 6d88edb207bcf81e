"""The search page: a question, the passages that answer it, and what they could be narrowed by.

What changed: added, changed and withdrawn documents, the newest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from markupsafe import Markup, escape
from starlette.responses import Response

from fonds.api.dependencies import desk_of, refuse_hurry
from fonds.catalog.changes import ChangeFilter, changes
from fonds.errors import UsageError
from fonds.results import FacetCount, Facets, SearchPage
from fonds.runs.overview import sources_held
from fonds.search.filters import Filters, require_source
from fonds.search.query import highlights, read_query
from fonds.web.rendering import Visitor, page, plain, query, visitor_of

ON_A_PAGE: Final = 10
LONGEST: Final = 2000
FURTHEST: Final = 900
SHOWN_VALUES: Final = 12
"""Of a facet."""
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
    """A value that results can be narrowed by, or are."""

    label: str
    count: int | None
    href: str
    is_on: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Facet:
    """Values of one kind."""

    title: str
    choices: Sequence[Choice]


@router.get("/")
def show_search(
    request: Request,
    q: Annotated[str, Query(max_length=LONGEST)] = "",
    *,
    source: _Values = [],  # noqa: B006 — never changed
    kind: _Values = [],  # noqa: B006 — as above
    organization: _Values = [],  # noqa: B006 — as above
    year: _Years = [],  # noqa: B006 — as above
    jurisdiction: _Values = [],  # noqa: B006 — as above
    start: Annotated[int, Query(ge=0, le=FURTHEST)] = 0,
) -> Response:
    """The front page, or what was found."""
    visitor = visitor_of(request)
    if not q.strip():
        return _home(request, visitor)
    refuse_hurry(request, "search")
    chosen: dict[str, list[Any]] = {
        "source": source,
        "kind": kind,
        "organization": organization,
        "year": year,
        "jurisdiction": jurisdiction,
    }
    context: dict[str, Any] = {"q": q, "chosen": chosen, "start": start, "examples": EXAMPLES}
    try:
        found = _look(request, visitor, q, chosen, start)
    except UsageError as error:
        return page(request, "search.html", visitor=visitor, found=None, said=str(error), **context)
    here = {"q": q, **chosen}
    return page(
        request,
        "search.html",
        visitor=visitor,
        found=found,
        said=None,
        results=found.results[:ON_A_PAGE],
        facets=_facets(found.facets, here),
        is_narrowed=any(chosen.values()),
        previous=_at(here, max(0, start - ON_A_PAGE)) if start else None,
        following=_at(here, start + ON_A_PAGE) if _is_more(found, start) else None,
        mark=_marker(q),
        **context,
    )


def _home(request: Request, visitor: Visitor) -> Response:
    library = desk_of(request).library
    held = sources_held(library.database, library.sources, owner=visitor.user_id)
    return page(request, "home.html", visitor=visitor, held=held, examples=EXAMPLES)


def _look(
    request: Request, visitor: Visitor, q: str, chosen: Mapping[str, list[Any]], start: int
) -> SearchPage:
    library = desk_of(request).library
    filters = Filters(
        sources=[require_source(name, library.sources) for name in chosen["source"]],
        kinds=chosen["kind"],
        organizations=chosen["organization"],
        years=chosen["year"],
        jurisdictions=chosen["jurisdiction"],
        owner=visitor.user_id,
    )
    return library.look(q, filters, limit=ON_A_PAGE + 1, offset=start)


def _is_more(found: SearchPage, start: int) -> bool:
    return len(found.results) > ON_A_PAGE and start + ON_A_PAGE <= FURTHEST


def _facets(counted: Facets, here: Mapping[str, Any]) -> list[Facet]:
    lists: dict[str, list[FacetCount]] = {
        "source": counted.sources,
        "kind": counted.kinds,
        "organization": counted.organizations,
        "year": counted.years,
        "jurisdiction": counted.jurisdictions,
    }
    facets = [
        Facet(title=_TITLES[name], choices=_choices(name, values, here))
        for name, values in lists.items()
    ]
    return [facet for facet in facets if facet.choices]


def _choices(name: str, values: Sequence[FacetCount], here: Mapping[str, Any]) -> list[Choice]:
    """What was chosen comes first: a click takes it back. A choice begins again at the first."""
    on = [str(value) for value in here[name]]
    counts = {value.value: value for value in values}
    chosen = [
        Choice(
            label=counts[value].label if value in counts else value,
            count=counts[value].count if value in counts else None,
            href=_at({**here, name: [each for each in on if each != value]}),
            is_on=True,
        )
        for value in on
    ]
    others = [value for value in values if value.value not in on][:SHOWN_VALUES]
    return chosen + [
        Choice(
            label=value.label,
            count=value.count,
            href=_at({**here, name: [*on, value.value]}),
            is_on=False,
        )
        for value in others
    ]


def _at(here: Mapping[str, Any], start: int = 0) -> str:
    return f"/?{query({**here, 'start': start})}"


def _marker(asked: str) -> Callable[[str], Markup]:
    terms = read_query(asked).wanted

    def mark(snippet: str) -> Markup:
        """The words that were asked for stand out; marks of emphasis are no part of the words."""
        text = plain(_EMPHASIS.sub(r"\1", snippet))
        parts, done = [], 0
        for start, end in highlights(text, terms):
            parts += [escape(text[done:start]), Markup("<mark>{}</mark>").format(text[start:end])]
            done = end
        return Markup().join([*parts, escape(text[done:])])

    return mark


CHANGES_ON_A_PAGE: Final = 50

_Text = Annotated[str, Query(max_length=1000)]


@router.get("/changes")
def show_changes(
    request: Request, source: _Text = "", under: _Text = "", cursor: _Text = ""
) -> Response:
    """A page of changes."""
    visitor, library = visitor_of(request), desk_of(request).library
    wanted = ChangeFilter(
        source=source or None, under=under or None, owner=visitor.user_id, newest_first=True
    )
    found = changes(library.database, wanted, limit=CHANGES_ON_A_PAGE, cursor=cursor or None)
    here = {"source": source, "under": under}
    return page(
        request,
        "changes.html",
        visitor=visitor,
        found=found,
        source=source,
        under=under,
        held=sources_held(library.database, library.sources, owner=visitor.user_id),
        following=f"/changes?{query({**here, 'cursor': found.next_cursor})}"
        if found.next_cursor
        else None,
    )
