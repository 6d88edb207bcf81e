"""The shapes of requests and answers, as the OpenAPI document shows them.

Handlers write their answers themselves: a model would check each of them once more.

The shapes of what is read over HTTP: codes, links, editions, comparisons and changes.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from fonds.api.problems import MEDIA_TYPE
from fonds.results import ChunkLocator, Facets, HeldDocument, RetrievalResult
from fonds.uploads.states import JobStatus

UUID_PATTERN: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
LONGEST_ID: Final = 500
# PostgreSQL takes no NUL in any text, and no id has control characters.
PLAIN_PATTERN: Final = r"^[^\x00-\x1f\x7f]*$"
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
        max_length=LONGEST_ID,
        pattern=PLAIN_PATTERN,
        description="Its id, or another name: `fr:2026-00101`, `upload:…`, `91 FR 1201`.",
        examples=["fr:2026-00101"],
    ),
]


class Complaint(BaseModel):
    """A part of a request that is not as it must be."""

    where: str
    what: str


class Problem(BaseModel):
    """What went wrong with a request, after RFC 9457; `kind` is for programs."""

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
    errors: list[Complaint] = Field(default=[], description="Of a request that is invalid.")
    checks: dict[str, str] = Field(default={}, description="Of a server that is not well.")


class FileRequest(BaseModel):
    """What is said of a file before it comes."""

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
    """Where a job is to be moved."""

    model_config = ConfigDict(
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"example": {"to": "parse_validated"}},
    )

    to: JobStatus


class UploadAddress(BaseModel):
    """Where the file is to be sent, until when, and with which headers."""

    url: str
    method: Literal["PUT"]
    headers: dict[str, str]
    expires_at: datetime


class JobError(BaseModel):
    """Why a job failed, or was tried again."""

    stage: Literal["parse", "chunking", "embedding"]
    type: str
    message: str
    at: datetime


class JobAnswer(BaseModel):
    """An upload on its way."""

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
    retry_count: int
    next_attempt_at: datetime | None
    last_error: JobError | None
    created_at: datetime
    arrived_at: datetime | None
    first_embedded_at: datetime | None
    updated_at: datetime
    links: dict[str, str]


class UploadAnswer(JobAnswer):
    """A file that was announced; `upload` is left out once it has come."""

    upload: UploadAddress | None = None


class JobPage(BaseModel):
    """Jobs, the newest first."""

    jobs: list[JobAnswer]
    next_cursor: str | None


class WebhookAnswer(BaseModel):
    """What a webhook did."""

    effect: Literal["taken", "ignored"]


class CitationAnswer(BaseModel):
    """Enough to cite a document."""

    citation_string: str
    title: str
    organization: str
    url: str
    published_at: str | None


class ProvenanceAnswer(BaseModel):
    """Which bytes of which publisher a document was made from, and by what."""

    source_url: str
    source_org: str
    retrieved_at: datetime
    raw_sha256: str
    body_raw_sha256: str | None
    body_text_sha256: str | None
    content_sha256: str
    normalizer: str | None


class DocumentAnswer(BaseModel):
    """A document; its text comes only if it is asked for."""

    id: str
    source: str
    kind: str
    title: str
    summary: str | None
    is_own: bool
    gone_at: datetime | None
    updated_at: datetime
    citation: CitationAnswer
    provenance: ProvenanceAnswer
    links: dict[str, str]
    text: str | None = None


class SearchResponse(BaseModel):
    """The best passage of each document, the best first."""

    results: list[RetrievalResult]
    next_offset: int | None


class HealthAnswer(BaseModel):
    """Whether everything answers that is needed."""

    status: Literal["ok"]
    checks: dict[str, str]


class Payload(BaseModel):
    """What a parser outside sends; see the contract in the how-to for uploads."""

    job_id: str
    document_id: str
    status: Literal["parsed", "failed", "error"]
    artifacts: list[dict[str, Any]] = []
    meta: dict[str, str] | None = None
    error: str | None = None


Day = date | None

_SAID: Final = {
    400: "The request cannot be understood.",
    401: "No token was sent, or one that is good for nothing.",
    403: "The token, or the signature of the address, does not allow this.",
    404: "There is nothing of this name that you may see.",
    409: "Not in the state that things are in.",
    413: "Too many bytes.",
    416: "The file has no bytes in this range.",
    422: "A part of the request is not as it must be.",
    429: "Asked too often; `Retry-After` says when to try again.",
    503: "The database, the object store or a model does not answer; try again.",
}
BEARER: Final[dict[str, Any]] = {"security": [{"token": []}]}
"""Of routes that want a token."""
BEARER_OR_NOBODY: Final[dict[str, Any]] = {"security": [{"token": []}, {}]}
"""Of routes that show what is public to everybody."""


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for its `responses`."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": _SAID[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """A request body that a handler reads by itself, for the OpenAPI document."""
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": model.model_json_schema()}},
        }
    }


MOST_OFFSET: Final = 2**31 - 1

Name = Annotated[
    str,
    Query(
        min_length=1,
        max_length=LONGEST_ID,
        pattern=PLAIN_PATTERN,
        description="An id, another name, or a citation: `fr:2026-00101`, `91 FR 1201`.",
        examples=["fr:2026-00101"],
    ),
]
CodePath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=LONGEST_ID,
        pattern=PLAIN_PATTERN,
        description="A code, an edition or a node: `usc`, `usc/119-36`, `usc/119-36/root/title-4`.",
        examples=["usc/119-36/root/title-53"],
    ),
]
Offset = Annotated[int, Query(ge=0, le=MOST_OFFSET)]


class FacetedAnswer(SearchResponse):
    """Results, and what they could be filtered by if `facets` was asked for."""

    facets: Facets | None = None


class EditionAnswer(BaseModel):
    """An edition of a code, as far as it is held."""

    id: str
    version: str
    units: int
    complete: int
    sections: int
    is_newest: bool


class CodeAnswer(BaseModel):
    """A code of which something is held; the newest edition first."""

    id: str
    title: str
    jurisdiction: str
    unit: str
    language: str
    editions: list[EditionAnswer]


class CodesAnswer(BaseModel):
    """All codes that are held."""

    codes: list[CodeAnswer]


class NodeAnswer(BaseModel):
    """A place in the tree of an edition; a leaf has a document of the same id."""

    id: str
    kind: str
    label: str
    status: str | None
    is_leaf: bool


class PlaceAnswer(BaseModel):
    """A code with its editions, or a node with those around it."""

    code: CodeAnswer | None = Field(default=None, description="Of a path that is only a code.")
    node: NodeAnswer | None = Field(description="Null for a code, and for the root of an edition.")
    above: list[NodeAnswer] = []
    children: list[NodeAnswer] = []
    total_children: int = 0
    next_offset: int | None = None
    previous: NodeAnswer | None = Field(default=None, description="Of a leaf: the one before it.")
    next: NodeAnswer | None = None
    links: dict[str, str]


class CitedAnswer(BaseModel):
    """Something that a document cites."""

    target: str
    kind: str
    count: int
    raw: str
    start: int
    locator: dict[str, Any]
    document_id: str | None = Field(description="Null: not held.")
    title: str | None
    citation_string: str | None


class CitingAnswer(BaseModel):
    """A document that cites another."""

    document_id: str
    title: str
    citation_string: str
    published_at: str | None
    count: int
    raw: str
    start: int
    locator: dict[str, Any]


class LinksAnswer(BaseModel):
    """One page of what a document cites, or of what cites it."""

    id: str
    direction: Literal["cites", "cited-by"]
    cites: list[CitedAnswer] | None = None
    cited_by: list[CitingAnswer] | None = None
    next_offset: int | None


class VersionAnswer(BaseModel):
    """What a document said for some time."""

    content_sha256: str
    first_seen_at: datetime
    last_seen_at: datetime
    raw_sha256: str
    body_text_sha256: str | None
    is_current: bool


class SameSectionAnswer(BaseModel):
    """A section of a code in one edition."""

    document: HeldDocument
    has_same_words: bool
    is_asked: bool


class ShapesAnswer(BaseModel):
    """All that a document has been, the newest first."""

    document: HeldDocument
    versions: list[VersionAnswer]
    editions: list[SameSectionAnswer]


class SideAnswer(BaseModel):
    """One of two texts that are compared."""

    document: HeldDocument
    version: str | None = Field(description="Hash of an earlier version; null is today's.")


class Stretch(BaseModel):
    """A stretch of a redline; `skip` is unchanged text that is left out."""

    op: Literal["keep", "delete", "insert", "skip"]
    text: str


class ComparedAnswer(BaseModel):
    """Two texts, word by word."""

    before: SideAnswer
    after: SideAnswer
    is_changed: bool
    redline: list[Stretch]


class CiteAnswer(BaseModel):
    """A citation, ready to paste."""

    id: str
    style: Literal["bluebook", "csl", "bibtex"]
    citation: str
    passage: int | None = Field(description="Of a passage: its number.")
    locator: ChunkLocator | None = Field(description="Of a passage: its place.")
    document: CitationAnswer


class ChangeAnswer(BaseModel):
    """Something that was seen to happen to a document."""

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


class ChangesAnswer(BaseModel):
    """A page of changes."""

    changes: list[ChangeAnswer]
    next_cursor: str | None = Field(description="Null when all has been told.")
