"""What search gives: passages, each with the citation to paste. Part of every face's contract."""

from __future__ import annotations

import operator
from datetime import date, datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class ChunkLocator(BaseModel):
    """The place of a passage in its document."""

    model_config = ConfigDict(frozen=True)

    passage: int | None = Field(default=None, exclude=True)
    """Its number in the document: `ID#3` names the fourth."""
    heading_path: list[str] = []
    section: str | None = None
    page: str | None = None
    enumeration: list[str] = Field(default=[], exclude_if=operator.not_)
    """Labels the passage starts under, if its section was cut: `(a)`, `(1)`. Left out if empty."""
    lead_ins: list[str] = Field(default=[], exclude_if=operator.not_)
    """What introduces the lists it starts in, outermost first, shortened. Left out if empty."""


class Citation(BaseModel):
    """Enough to cite a source without a second look; all of it computed at ingestion."""

    model_config = ConfigDict(frozen=True)

    title: str
    organization: str
    url: str
    published_at: date | None
    citation_string: str
    locator: ChunkLocator | None = None


class RetrievalResult(BaseModel):
    """One passage found."""

    model_config = ConfigDict(frozen=True)

    id: str
    """The document's id."""
    snippet: str
    citation: Citation


class FacetCount(BaseModel):
    """How many of the documents that were looked at have one value."""

    model_config = ConfigDict(frozen=True)

    value: str
    """What a filter takes."""
    label: str
    """For people."""
    count: int


class Facets(BaseModel):
    """What the best documents have in common; each list has the most frequent first."""

    model_config = ConfigDict(frozen=True)

    sources: list[FacetCount] = []
    kinds: list[FacetCount] = []
    organizations: list[FacetCount] = []
    years: list[FacetCount] = []
    """The newest first."""
    jurisdictions: list[FacetCount] = []
    counted: int = 0
    """Over so many documents: the best of what was found."""
    is_all: bool = True
    """Whether nothing else was found."""


class SearchPage(BaseModel):
    """A page of results, and what could be filtered by."""

    model_config = ConfigDict(frozen=True)

    results: list[RetrievalResult]
    facets: Facets


class HeldDocument(BaseModel):
    """A document of the library, as far as somebody needs it who follows a citation."""

    model_config = ConfigDict(frozen=True)

    id: str
    source: str
    kind: str
    title: str
    citation_string: str
    url: str
    edition: str | None = None
    """Of a section of a code: the publisher's stamp."""
    is_newest: bool = True
    """Whether no newer edition of its unit is held."""
    published_at: date | None = None
    gone_at: datetime | None = None
    """When its publisher was seen to have withdrawn it."""


class Resolution(BaseModel):
    """What a citation leads to, or why it leads nowhere."""

    model_config = ConfigDict(frozen=True)

    citation: str
    """As it was typed."""
    found: bool
    """Whether it leads to exactly one document."""
    problem: Literal["not_understood", "not_held", "ambiguous"] | None = None
    message: str
    """The answer in one sentence."""
    remark: str | None = None
    """What should be known beside it; the message ends with it."""
    kind: str | None = None
    """`usc`, `cfr`, `fr`, `bill`, …; None for an id or another name."""
    target: str | None = None
    """The citation as it is compared: `42 USC 1396a`."""
    pinpoint: str | None = None
    """The place within it: `(a)(10)`, a page."""
    document: HeldDocument | None = None
    passage: int | None = None
    """The passage that the pinpoint leads to: `get_passage` and `fonds verify` take `ID#n`."""
    locator: ChunkLocator | None = None
    """The place of that passage."""
    start: int | None = None
    """Where the pinpoint begins in the document's text."""
    end: int | None = None
    editions: list[HeldDocument] = []
    """All that are held, newest first; empty for what has no editions."""
    candidates: list[HeldDocument] = []
    """Others that the citation may mean; all of them where it is ambiguous."""
    as_of: date | None = None
    before_oldest: bool = False
    """Whether `as_of` lies before the oldest edition held, which is then given instead."""


class QuoteChange(BaseModel):
    """A stretch of a redline from the words quoted to the words of the document."""

    model_config = ConfigDict(frozen=True)

    op: Literal["keep", "delete", "insert"]
    """`delete`: only the quotation has it; `insert`: only the document."""
    text: str


class Closest(BaseModel):
    """The stretch of a document that comes nearest to a quotation."""

    model_config = ConfigDict(frozen=True)

    text: str
    similarity: float
    """Between 0 and 1: the share of words and signs that agree."""
    start: int
    end: int
    passage: int | None = None
    locator: ChunkLocator | None = None
    redline: list[QuoteChange]


class EarlierVersion(BaseModel):
    """What a document said before its publisher changed it, made again from the archive."""

    model_config = ConfigDict(frozen=True)

    archive_key: str
    first_seen_at: datetime
    replaced_at: datetime
    """When other content was first seen."""


class QuoteCheck(BaseModel):
    """The result of checking a quotation against a document."""

    model_config = ConfigDict(frozen=True)

    verdict: Literal["exact", "changed", "not_found"]
    """`changed`: not in the edition asked for, but in another one or in an earlier version."""
    message: str
    citation: str
    target: str | None = None
    pinpoint: str | None = None
    document: HeldDocument
    """What the citation leads to, in the edition asked for."""
    found_in: HeldDocument | None = None
    """Where the words stand: the document itself or another edition of it."""
    version: EarlierVersion | None = None
    """Of an earlier version, which one."""
    text: str | None = None
    """The words as they stand there."""
    start: int | None = None
    """Their place in the document's text, in characters."""
    end: int | None = None
    passage: int | None = None
    locator: ChunkLocator | None = None
    at_pinpoint: bool | None = None
    """Whether they begin where the citation points; None where it points nowhere in particular."""
    changed_in: str | None = None
    """The first edition on the way to the one asked for that has other words."""
    changed_at: date | None = None
    """The day of that edition, or on which another version was first seen."""
    closest: Closest | None = None
    as_of: date | None = None
    before_oldest: bool = False


class VerificationStep(BaseModel):
    """One link between a passage and what its publisher served."""

    model_config = ConfigDict(frozen=True)

    name: Literal["raw", "body", "record", "text", "passages"]
    outcome: Literal["match", "differs", "unproven"]
    says: str


class Verification(BaseModel):
    """A document or passage made again from the archived bytes, and compared."""

    model_config = ConfigDict(frozen=True)

    verdict: Literal["match", "differs", "unproven"]
    """`unproven`: nothing differs, but a link cannot be made again."""
    reason: str | None = None
    """Of the first link that does not match."""
    id: str
    passage: int | None = None
    """None is the whole document."""
    chunk_id: UUID | None = None
    title: str
    citation_string: str
    source_url: str
    fetched_from: str | None = None
    """The publisher's address of the bytes, where it is still known."""
    retrieved_at: datetime
    raw_path: str
    raw_sha256: str
    body_raw_path: str | None = None
    body_raw_sha256: str | None = None
    normalizer: str | None = None
    """That made the text; None for a document without one."""
    chunker: str
    steps: list[VerificationStep]
