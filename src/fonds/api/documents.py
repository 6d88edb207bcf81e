"""Documents over HTTP: found, read, cited, and the raw files they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from fonds.api.answers import (
    BEARER_OR_NOBODY,
    LONGEST_ID,
    PLAIN_PATTERN,
    Day,
    DocumentAnswer,
    DocumentId,
    problems,
)
from fonds.api.conditional import UNCHANGED, answered, etag_of
from fonds.api.desk import desk_of
from fonds.api.limits import refuse_hurry
from fonds.api.reading_answers import FacetedAnswer
from fonds.search.filters import UPLOADS, Filters, source_named
from fonds.search.retrieve import MOST_RESULTS as RANKED
from fonds.stores.columns import format_timestamp

MOST_RESULTS: Final = 50
LONGEST_QUERY: Final = 2000
_FURTHEST: Final = RANKED - MOST_RESULTS - 1

_Name = Annotated[str, Query(min_length=1, max_length=LONGEST_ID, pattern=PLAIN_PATTERN)]
_Names = Annotated[list[_Name], Query(max_length=50)]
_Year = Annotated[int, Query(ge=1, le=9999)]
_Query = Annotated[
    str,
    Query(
        min_length=1,
        max_length=LONGEST_QUERY,
        pattern=r"^[^\x00]*$",
        description="As for `fonds search`.",
        examples=["overtime salary threshold"],
    ),
]

router: Final = APIRouter(prefix="/api", tags=["documents"])


@router.get(
    "/search",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": FacetedAnswer}, **problems(401, 422, 429, 503)},
)
def search(
    request: Request,
    q: _Query,
    *,
    source: _Names = [],  # noqa: B006 — never changed
    kind: _Names = [],  # noqa: B006 — as above
    organization: _Names = [],  # noqa: B006 — as above
    since: Annotated[Day, Query(description="First day of publication.")] = None,
    until: Annotated[Day, Query(description="Last day of publication.")] = None,
    year: Annotated[list[_Year], Query(max_length=50, description="Of publication.")] = [],  # noqa: B006 — as above
    jurisdiction: _Names = [],  # noqa: B006 — as above
    under: _Name | None = None,
    edition: _Name | None = None,
    mode: Literal["hybrid", "lexical", "semantic"] | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_RESULTS)] = 10,
    offset: Annotated[int, Query(ge=0, le=_FURTHEST)] = 0,
    facets: Annotated[bool, Query(description="With counts over the best documents.")] = False,
) -> JSONResponse:
    """The best passages for a question, of what is public and what you have uploaded."""
    refuse_hurry(request, "search")
    desk = desk_of(request)
    filters = Filters(
        sources=[source_named(name) for name in source],
        kinds=kind,
        organizations=organization,
        since=since,
        until=until,
        years=year,
        jurisdictions=jurisdiction,
        under=under,
        edition=edition,
        owner=desk.owner(request),
    )
    found = desk.library.look(q, filters, mode=mode, limit=limit + 1, offset=offset)
    body: dict[str, Any] = {
        "results": [hit.model_dump(mode="json") for hit in found.results[:limit]],
        "next_offset": offset + limit if len(found.results) > limit else None,
    }
    return JSONResponse({**body, "facets": found.facets.model_dump()} if facets else body)


@router.get(
    "/documents/{document_id:path}/raw",
    status_code=307,
    openapi_extra=BEARER_OR_NOBODY,
    responses={
        307: {"description": "The file is there, for five minutes."},
        **problems(401, 404, 422, 503),
    },
)
def get_raw(request: Request, document_id: DocumentId) -> RedirectResponse:
    """The file that a document was made from."""
    desk = desk_of(request)
    row = desk.library.document(document_id, owner=desk.owner(request))
    key, filename = _raw(row)
    signed = desk.signed(request, "GET", key, filename=filename)
    return RedirectResponse(signed["url"])


@router.get(
    "/documents/{document_id:path}",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": DocumentAnswer}, 304: UNCHANGED, **problems(401, 404, 422, 503)},
)
def get_document(
    request: Request,
    document_id: DocumentId,
    text: Annotated[bool, Query(description="With its text, as Markdown.")] = False,  # noqa: FBT002 — a flag of the query
) -> Response:
    """A document: how to cite it, and what it was made from."""
    desk = desk_of(request)
    row = desk.library.document(document_id, owner=desk.owner(request), with_text=text)
    body = _document(row)
    tag = etag_of(body, row["body_text_sha256"] if text else None)
    return answered(
        request, tag, lambda: JSONResponse({**body, "text": row["body_text"]} if text else body)
    )


def _raw(row: Mapping[str, Any]) -> tuple[str, str | None]:
    """The key of the file, and what to call it."""
    if row["source"] == UPLOADS:
        return row["raw_path"], row["title"]  # the text may be from what a parser made of it
    return row["body_raw_path"] or row["raw_path"], None


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    at = f"/api/documents/{row['id']}"
    return {
        **{name: row[name] for name in ("id", "source", "kind", "title", "summary")},
        "is_own": row["owner"] is not None,
        "gone_at": row["gone_at"] and format_timestamp(row["gone_at"]),
        "updated_at": format_timestamp(row["updated_at"]),
        "citation": {
            "citation_string": row["citation_string"],
            "title": row["title"],
            "organization": row["source_org"],
            "url": row["source_url"],
            "published_at": row["published_at"],
        },
        "provenance": {
            "source_url": row["source_url"],
            "source_org": row["source_org"],
            "retrieved_at": format_timestamp(row["retrieved_at"]),
            **{name: row[name] for name in _HASHES},
            "normalizer": row["body_normalizer_version"],
        },
        "links": {
            "self": at,
            **{name: f"{at}/{name}" for name in ("raw", "links", "editions")},
        },
    }


_HASHES: Final = ("raw_sha256", "body_raw_sha256", "body_text_sha256", "content_sha256")
