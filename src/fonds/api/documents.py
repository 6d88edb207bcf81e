"""Documents over HTTP: found, read, cited, and the raw files they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, RedirectResponse

from fonds.api.answers import (
    BEARER_OR_NOBODY,
    LONGEST_ID,
    PLAIN_PATTERN,
    Day,
    DocumentAnswer,
    DocumentId,
    SearchAnswer,
    problems,
)
from fonds.api.desk import Desk, desk_of
from fonds.search.filters import UPLOADS, source_named
from fonds.search.retrieve import MOST_RESULTS as RANKED
from fonds.stores.columns import format_timestamp

MOST_RESULTS: Final = 50
LONGEST_QUERY: Final = 2000
_FURTHEST: Final = RANKED - MOST_RESULTS - 1

_Name = Annotated[str, Query(min_length=1, max_length=LONGEST_ID, pattern=PLAIN_PATTERN)]
_Names = Annotated[list[_Name], Query(max_length=50)]
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
    responses={200: {"model": SearchAnswer}, **problems(401, 422, 503)},
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
    under: _Name | None = None,
    edition: _Name | None = None,
    mode: Literal["hybrid", "lexical", "semantic"] | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_RESULTS)] = 10,
    offset: Annotated[int, Query(ge=0, le=_FURTHEST)] = 0,
) -> JSONResponse:
    """The best passages for a question, of what is public and what you have uploaded."""
    desk = desk_of(request)
    found = desk.library.search(
        q,
        sources=[source_named(name) for name in source],
        kinds=kind,
        organizations=organization,
        since=since,
        until=until,
        under=under,
        edition=edition,
        mode=mode,
        limit=limit + 1,
        offset=offset,
        owner=_owner(desk, request),
    )
    return JSONResponse(
        {
            "results": [hit.model_dump(mode="json") for hit in found[:limit]],
            "next_offset": offset + limit if len(found) > limit else None,
        }
    )


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
    row = desk.library.document(document_id, owner=_owner(desk, request))
    key, filename = _raw(row)
    signed = desk.signed(request, "GET", key, filename=filename)
    return RedirectResponse(signed["url"])


@router.get(
    "/documents/{document_id:path}",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": DocumentAnswer}, **problems(401, 404, 422, 503)},
)
def get_document(
    request: Request,
    document_id: DocumentId,
    text: Annotated[bool, Query(description="With its text, as Markdown.")] = False,  # noqa: FBT002 — a flag of the query
) -> JSONResponse:
    """A document: how to cite it, and what it was made from."""
    desk = desk_of(request)
    row = desk.library.document(document_id, owner=_owner(desk, request))
    body = _document(row)
    return JSONResponse({**body, "text": row["body_text"]} if text else body)


def _owner(desk: Desk, request: Request) -> UUID | None:
    if "authorization" not in request.headers:
        return None
    with desk.library.database.read() as connection:
        caller = desk.any_caller(request, connection)
    return None if caller is None else caller.user_id


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
        "links": {"self": at, "raw": f"{at}/raw"},
    }


_HASHES: Final = ("raw_sha256", "body_raw_sha256", "body_text_sha256", "content_sha256")
