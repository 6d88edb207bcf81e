"""The shapes of what is read over HTTP: codes, links, editions, comparisons and changes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Path, Query
from pydantic import BaseModel, Field

from fonds.api.answers import LONGEST_ID, PLAIN_PATTERN, CitationAnswer, SearchAnswer
from fonds.results import ChunkLocator, Facets, HeldDocument

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


class FacetedAnswer(SearchAnswer):
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
