"""Schemas of requests and responses for the OpenAPI document.

Handlers build responses as dictionaries: models would validate every response again.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from fonds.api.problems import MEDIA_TYPE
from fonds.results import (
    ChunkLocator,
    Citation,
    DocumentSummary,
    Facets,
    Reading,
    RetrievalResult,
)
from fonds.uploads.states import JobStatus

UUID_PATTERN: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
MAX_ID_LENGTH: Final = 500
# PostgreSQL rejects NUL in text, and ids have no control characters.
TEXT_PATTERN: Final = r"^[^\x00-\x1f\x7f]*$"
_SHA256: Final = r"^[0-9a-f]{64}$"
_DOCUMENT: Final = "0b6f1c9e-8f0e-5c5e-9d44-3f4f0c8f9a11"

UploadId = Annotated[
    str,
    Path(
        pattern=UUID_PATTERN,
        description="The `document_id` of the upload.",
        examples=[_DOCUMENT],
    ),
]
DocumentId = Annotated[
    str,
    Path(
        min_length=1,
        max_length=MAX_ID_LENGTH,
        pattern=TEXT_PATTERN,
        description="An id or another name: `fr:2026-00101`, `upload:…`, `91 FR 1201`.",
        examples=["fr:2026-00101"],
    ),
]


class FieldError(BaseModel):
    """An invalid part of a request."""

    where: str
    what: str


class Problem(BaseModel):
    """An error as a problem document (RFC 9457); `kind` is for programs."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "urn:fonds:problem:unknown-job",
                "title": "Not Found",
                "status": 404,
                "detail": "you have no upload with this id",
                "instance": f"/jobs/{_DOCUMENT}",
                "kind": "unknown-job",
            }
        }
    )

    type: str
    title: str
    status: int
    detail: str
    instance: str
    kind: str
    errors: list[FieldError] = Field(default=[], description="The invalid parts of a request.")
    checks: dict[str, str] = Field(default={}, description="The outcome of each health check.")


class FileRequest(BaseModel):
    """The announcement of a file."""

    model_config = ConfigDict(
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={
            "example": {"name": "policy.pdf", "bytes": 48213, "sha256": "9f" * 32},
        },
    )

    name: Annotated[str, Field(min_length=1, max_length=1000)]
    bytes: Annotated[int, Field(strict=True, ge=0, le=2**53)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]


class Advance(BaseModel):
    """The status that a job is to get."""

    model_config = ConfigDict(
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"example": {"to": "parse_validated"}},
    )

    to: JobStatus


class UploadAddress(BaseModel):
    """The address, headers and deadline for sending the file."""

    url: str
    method: Literal["PUT"]
    headers: dict[str, str]
    expires_at: datetime


class JobError(BaseModel):
    """The error with which a job failed, or after which it is retried."""

    stage: Literal["parse", "chunking", "embedding"]
    type: str
    message: str
    at: datetime


class JobResponse(BaseModel):
    """An upload and its status."""

    job_id: str
    document_id: str
    status: JobStatus
    ended: bool
    name: str
    format: str
    bytes: int
    sha256: Annotated[str, Field(pattern=_SHA256)]
    parser: str
    progress: dict[str, int] | None
    reading: Reading | None = Field(description="What was read of the file, and how well.")
    retry_count: int
    next_attempt_at: datetime | None
    last_error: JobError | None
    notice: Annotated[
        str | None, Field(description="Why it waits, if an operator has to do something.")
    ]
    created_at: datetime
    arrived_at: datetime | None
    first_embedded_at: datetime | None
    updated_at: datetime
    links: dict[str, str]


class UploadResponse(JobResponse):
    """An announced file; without `upload` once it has arrived."""

    upload: UploadAddress | None = None


class JobPage(BaseModel):
    """Jobs, newest first."""

    jobs: list[JobResponse]
    next_cursor: str | None


class WebhookResponse(BaseModel):
    """The effect of a webhook."""

    effect: Literal["taken", "ignored"]


class ProvenanceResponse(BaseModel):
    """The publisher, file and normalizer from which a document was made."""

    source_url: str
    source_org: str
    retrieved_at: datetime
    raw_sha256: str
    body_raw_sha256: str | None
    body_text_sha256: str | None
    content_sha256: str
    normalizer: str | None


class DocumentResponse(BaseModel):
    """A document; its text only if requested."""

    id: str
    source: str
    kind: str
    title: str
    file_name: str | None = Field(description="Of an upload.")
    summary: str | None
    is_own: bool
    gone_at: datetime | None
    updated_at: datetime
    citation: Citation
    reading: Reading | None = Field(description="What was read of the file, and how well.")
    provenance: ProvenanceResponse
    links: dict[str, str]
    text: str | None = None


class SearchResponse(BaseModel):
    """The best passage of each document, best first."""

    results: list[RetrievalResult]
    next_offset: int | None


class HealthResponse(BaseModel):
    """The outcome of all health checks."""

    status: Literal["ok"]
    checks: dict[str, str]


class Payload(BaseModel):
    """The message of an external parser, as the how-to for uploads specifies it."""

    job_id: str
    document_id: str
    status: Literal["parsed", "failed", "error"]
    artifacts: list[dict[str, Any]] = []
    meta: dict[str, str] | None = None
    error: str | None = None


Day = date | None

_DESCRIPTIONS: Final = {
    400: "The request cannot be understood.",
    401: "The token is missing, wrong, revoked or expired.",
    403: "The token, or the signature of the address, does not allow this.",
    404: "It does not exist, or you may not see it.",
    408: "The body did not arrive in time.",
    409: "The current state does not allow this.",
    413: "Too many bytes.",
    416: "The range is outside the file.",
    422: "A part of the request is invalid.",
    429: "Too many requests; try again after `Retry-After` seconds.",
    503: "The database, the object store or a model does not respond; try again.",
}
BEARER: Final[dict[str, Any]] = {"security": [{"token": []}]}
"""For routes that require a token."""
OPTIONAL_BEARER: Final[dict[str, Any]] = {"security": [{"token": []}, {}]}
"""For routes that also serve public content without a token."""


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, for its `responses`."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": _DESCRIPTIONS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def returns(model: type[Any], *errors: int) -> dict[str, Any]:
    """The options of a route that returns a model, and takes a token or none."""
    return {
        "openapi_extra": OPTIONAL_BEARER,
        "responses": {200: {"model": model}, **problems(*errors)},
    }


def returns_to_operators(model: type[Any], *errors: int) -> dict[str, Any]:
    """The options of a route that returns a model, and requires the token of an operator."""
    return {**returns(model, 401, 403, *errors), "openapi_extra": BEARER}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI entry of a request body that the handler parses itself."""
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": model.model_json_schema()}},
        }
    }


MAX_OFFSET: Final = 2**31 - 1

Name = Annotated[
    str,
    Query(
        min_length=1,
        max_length=MAX_ID_LENGTH,
        pattern=TEXT_PATTERN,
        description="An id, another name, or a citation: `fr:2026-00101`, `91 FR 1201`.",
        examples=["fr:2026-00101"],
    ),
]
CodePath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=MAX_ID_LENGTH,
        pattern=TEXT_PATTERN,
        description="A code, edition or node: `usc`, `usc/119-36`, `usc/119-36/root/title-4`.",
        examples=["usc/119-36/root/title-53"],
    ),
]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]
Cursor = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9]{13}-[0-9a-f]{32}$",
        description="The `next_cursor` of the previous page.",
    ),
]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description="The last event received; the stream continues after it.",
    ),
]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def encode_cursor(at: datetime, row_id: UUID) -> str:
    """The cursor of the page after the row with this time and id."""
    milliseconds = (at - _EPOCH) // timedelta(milliseconds=1)
    return f"{milliseconds:013}-{row_id.hex}"


def decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    """The time and id in a cursor."""
    milliseconds, _, row_id = cursor.partition("-")
    return _EPOCH + timedelta(milliseconds=int(milliseconds)), UUID(row_id)


class FacetedResponse(SearchResponse):
    """Search results, with facets if requested."""

    facets: Facets | None = None


class EditionResponse(BaseModel):
    """An edition of a code, as far as the library has it."""

    id: str
    version: str
    units: int
    complete: int
    sections: int
    is_newest: bool


class CodeResponse(BaseModel):
    """A code with its editions, newest first."""

    id: str
    title: str
    jurisdiction: str
    unit: str
    language: str
    editions: list[EditionResponse]


class CodesResponse(BaseModel):
    """All codes in the library."""

    codes: list[CodeResponse]


class NodeResponse(BaseModel):
    """A node in the tree of an edition; a leaf has a document with the same id."""

    id: str
    kind: str
    label: str
    status: str | None
    is_leaf: bool


class NodePageResponse(BaseModel):
    """A code with its editions, or a node with its parents, children and siblings."""

    code: CodeResponse | None = Field(default=None, description="For the path of a whole code.")
    node: NodeResponse | None = Field(
        description="Null for a code, and for the root of an edition."
    )
    above: list[NodeResponse] = []
    children: list[NodeResponse] = []
    total_children: int = 0
    next_offset: int | None = None
    previous: NodeResponse | None = Field(default=None, description="The previous leaf.")
    next: NodeResponse | None = None
    links: dict[str, str]


class CitedResponse(BaseModel):
    """A citation in a document."""

    target: str
    kind: str
    count: int
    raw: str
    start: int
    locator: dict[str, Any]
    document_id: str | None = Field(description="Null if the library does not have it.")
    title: str | None
    citation_string: str | None


class CitingResponse(BaseModel):
    """A document that cites another."""

    document_id: str
    title: str
    citation_string: str
    published_at: str | None
    count: int
    raw: str
    start: int
    locator: dict[str, Any]


class LinksResponse(BaseModel):
    """A page of the citations in a document, or of the documents that cite it."""

    id: str
    direction: Literal["cites", "cited-by"]
    cites: list[CitedResponse] | None = None
    cited_by: list[CitingResponse] | None = None
    next_offset: int | None


class VersionResponse(BaseModel):
    """A version of a document."""

    content_sha256: str
    first_seen_at: datetime
    last_seen_at: datetime
    raw_sha256: str
    body_text_sha256: str | None
    is_current: bool


class SameSectionResponse(BaseModel):
    """A section of a code in one edition."""

    document: DocumentSummary
    has_same_words: bool
    is_asked: bool


class ShapesResponse(BaseModel):
    """The versions and editions of a document, newest first."""

    document: DocumentSummary
    versions: list[VersionResponse]
    editions: list[SameSectionResponse]


class SideResponse(BaseModel):
    """One of the two compared texts."""

    document: DocumentSummary
    version: str | None = Field(description="Hash of an earlier version; null for the current one.")


class RedlineSegment(BaseModel):
    """A segment of a redline; `skip` is omitted unchanged text."""

    op: Literal["keep", "delete", "insert", "skip"]
    text: str


class ComparedResponse(BaseModel):
    """The differences between two texts, word by word."""

    before: SideResponse
    after: SideResponse
    is_changed: bool
    redline: list[RedlineSegment]


class CiteResponse(BaseModel):
    """A citation, ready to paste."""

    id: str
    style: Literal["bluebook", "csl", "bibtex"]
    citation: str
    passage: int | None = Field(description="The number of the passage, if one is cited.")
    locator: ChunkLocator | None = Field(
        description="The location of the passage, if one is cited."
    )
    document: Citation


class ChangeResponse(BaseModel):
    """A change of a document."""

    at: datetime
    what: Literal["added", "changed", "withdrawn", "reprinted"]
    id: str
    source: str
    kind: str
    title: str
    citation_string: str
    url: str
    published_at: str | None
    edition: str | None


class ChangesResponse(BaseModel):
    """A page of changes."""

    changes: list[ChangeResponse]
    next_cursor: str | None = Field(description="Null on the last page.")
