"""Results of search, citations and verification, shared by Python, CLI, HTTP and MCP."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


def page_reference(page: str | None, pdf_page: int | None) -> str:
    """A page as a citation names it; the number in the PDF only where the printed one differs."""
    if page is None:
        return f"PDF page {pdf_page}" if pdf_page else ""
    return (
        f"p. {page}"
        if pdf_page is None or page == str(pdf_page)
        else f"p. {page} (PDF page {pdf_page})"
    )


class ChunkLocator(BaseModel):
    """The location of a passage in its document."""

    model_config = ConfigDict(frozen=True)

    passage: int | None = Field(default=None, exclude=True)
    """Its number in the document, from 0: `ID#3` is the fourth."""
    heading_path: list[str] = []
    section: str | None = None
    page: str | None = None
    """As printed on the page, or as the file labels it."""
    pdf_page: int | None = Field(default=None, exclude_if=operator.not_)
    """The number of that page in the PDF, from 1. Omitted for other formats."""
    enumeration: list[str] = Field(default=[], exclude_if=operator.not_)
    """Labels at the start of a passage of a split section: `(a)`, `(1)`. Omitted if empty."""
    lead_ins: list[str] = Field(default=[], exclude_if=operator.not_)
    """Introductions of its lists, outermost first, shortened; caption and header rows of the table
    in which it starts. Omitted if empty."""
    uncertain: list[str] = Field(default=[], exclude_if=operator.not_)
    """Texts that OCR read with little confidence, amounts and names first. Omitted if empty."""

    @property
    def page_reference(self) -> str:
        """The page as a citation names it: `p. 12 (PDF page 14)`."""
        return page_reference(self.page, self.pdf_page)


class Citation(BaseModel):
    """A complete citation, computed when the document was loaded."""

    model_config = ConfigDict(frozen=True)

    title: str
    organization: str
    url: str
    published_at: date | None
    citation_string: str
    locator: ChunkLocator | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Citation:
        """The citation of a whole document, from its row."""
        published_at = document["published_at"]
        return cls(
            title=document["title"],
            organization=document["source_org"],
            url=document["source_url"],
            published_at=date.fromisoformat(published_at[:10]) if published_at else None,
            citation_string=document["citation_string"],
        )


class OcrPageReading(BaseModel):
    """A page with text that was recognized in a picture."""

    model_config = ConfigDict(frozen=True)

    page: int
    """Counted from 1."""
    confidence: float
    """From 0 to 1."""
    letters: int


class Reading(BaseModel):
    """Counts and warnings of reading a file, for the person who gave it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pages: int = 0
    tables: int = 0
    fields: int = 0
    """Form fields that are filled in."""
    ocr_pages: list[OcrPageReading] = []
    mean_confidence: float | None = None
    """The mean over all letters that were recognized in pictures; None without any."""
    pictures_not_read: list[int] = []
    """The page of each picture with text that was not read, counted from 1."""
    warnings: list[str] = []

    @classmethod
    def of(cls, body_map: Mapping[str, Any] | None) -> Reading | None:
        """The reading that was stored with a text."""
        stored = (body_map or {}).get("reading")
        return cls.model_validate(stored) if stored else None

    @property
    def summary(self) -> str:
        """One line for people: `12 pages, 3 tables, 5 fields filled in`."""
        counts = [
            _counted(self.pages, "page"),
            _counted(self.tables, "table"),
            _counted(self.fields, "field", " filled in"),
            _counted(len(self.ocr_pages), "page", self._by_ocr),
            _counted(len(self.pictures_not_read), "picture", f" not read{self._on_pages}"),
            _counted(len(self.warnings), "warning"),
        ]
        return ", ".join(filter(None, counts))

    @property
    def _by_ocr(self) -> str:
        sure = "" if self.mean_confidence is None else f", {self.mean_confidence:.0%} sure"
        return f" read by OCR{sure}"

    @property
    def _on_pages(self) -> str:
        pages = ", ".join(map(str, sorted(set(self.pictures_not_read))))
        return f" (page {pages})"


def _counted(count: int, noun: str, ending: str = "") -> str:
    return f"{count:,} {noun}{'s' if count > 1 else ''}{ending}" if count else ""


class RetrievedPassage(BaseModel):
    """One of several passages of a document that match a query."""

    model_config = ConfigDict(frozen=True)

    snippet: str
    """The sentence or the table row with most words of the query, and the header of the table."""
    passage: int
    """Its number in the document, from 0: `ID#3` is the fourth."""
    locator: ChunkLocator


class RetrievalResult(BaseModel):
    """A document that matches a query, with its best passages; or a passage inside a document."""

    model_config = ConfigDict(frozen=True)

    id: str
    """The document's id."""
    snippet: str
    """Of the best passage."""
    citation: Citation
    """Of the best passage."""
    passages: list[RetrievedPassage] = Field(default=[], exclude_if=operator.not_)
    """The best passages, the first one included. Omitted if it is the only one."""
    more_passages: int = Field(default=0, exclude_if=operator.not_)
    """How many more passages of the document match. Omitted if none does."""


class FacetCount(BaseModel):
    """The number of documents with one value."""

    model_config = ConfigDict(frozen=True)

    value: str
    """The value for a filter."""
    label: str
    """The text for display."""
    count: int


class Facets(BaseModel):
    """Counts of values in the best documents, most frequent first."""

    model_config = ConfigDict(frozen=True)

    sources: list[FacetCount] = []
    kinds: list[FacetCount] = []
    organizations: list[FacetCount] = []
    years: list[FacetCount] = []
    """Newest first."""
    jurisdictions: list[FacetCount] = []
    counted: int = 0
    """The number of documents counted, which are the best matches."""
    is_all: bool = True
    """Whether these are all matches."""


class SearchPage(BaseModel):
    """A page of results, with facets."""

    model_config = ConfigDict(frozen=True)

    results: list[RetrievalResult]
    facets: Facets


class DocumentSummary(BaseModel):
    """A document in the library, as the target of a citation."""

    model_config = ConfigDict(frozen=True)

    id: str
    source: str
    kind: str
    title: str
    citation_string: str
    url: str
    edition: str | None = None
    """The publisher's label of the edition, for sections of codes."""
    is_newest: bool = True
    """Whether the library has no newer edition of its unit."""
    published_at: date | None = None
    gone_at: datetime | None = None
    """When it was noticed that its publisher had withdrawn it."""


class Resolution(BaseModel):
    """The document that a citation refers to, or why there is none."""

    model_config = ConfigDict(frozen=True)

    citation: str
    """The citation as given."""
    found: bool
    """Whether it refers to exactly one document."""
    problem: Literal["not_understood", "not_held", "ambiguous"] | None = None
    message: str
    """The result in one sentence."""
    remark: str | None = None
    """Additional information, which ends the message."""
    kind: str | None = None
    """`usc`, `cfr`, `fr`, `bill`, …; None for an id or another name."""
    target: str | None = None
    """The normalized citation: `42 USC 1396a`."""
    pinpoint: str | None = None
    """The location within it: `(a)(10)`, a page."""
    document: DocumentSummary | None = None
    passage: int | None = None
    """The passage of the pinpoint, for `get_passage` and `fonds verify` as `ID#n`."""
    locator: ChunkLocator | None = None
    """The location of that passage."""
    start: int | None = None
    """The offset of the pinpoint in the text of the document."""
    end: int | None = None
    editions: list[DocumentSummary] = []
    """All editions in the library, newest first; empty for documents without editions."""
    candidates: list[DocumentSummary] = []
    """Other possible documents; all of them if the citation is ambiguous."""
    as_of: date | None = None
    before_oldest: bool = False
    """Whether `as_of` is before the oldest edition in the library, which is returned instead."""


class QuoteChange(BaseModel):
    """A segment of a redline from the quotation to the text of the document."""

    model_config = ConfigDict(frozen=True)

    op: Literal["keep", "delete", "insert"]
    """`delete`: only the quotation has it; `insert`: only the document."""
    text: str


class Closest(BaseModel):
    """The text in a document that is most similar to a quotation."""

    model_config = ConfigDict(frozen=True)

    text: str
    similarity: float
    """The fraction of equal words and punctuation marks, from 0 to 1."""
    start: int
    end: int
    passage: int | None = None
    locator: ChunkLocator | None = None
    redline: list[QuoteChange]


class EarlierVersion(BaseModel):
    """An earlier version of a document, reproduced from the archive."""

    model_config = ConfigDict(frozen=True)

    archive_key: str
    first_seen_at: datetime
    replaced_at: datetime
    """When the next version was first retrieved."""


class QuoteCheck(BaseModel):
    """The result of checking a quotation against a document."""

    model_config = ConfigDict(frozen=True)

    verdict: Literal["exact", "changed", "not_found"]
    """`changed`: not in the requested edition, but in another one or in an earlier version."""
    message: str
    citation: str
    target: str | None = None
    pinpoint: str | None = None
    document: DocumentSummary
    """The cited document in the requested edition."""
    found_in: DocumentSummary | None = None
    """The document or edition that contains the words."""
    version: EarlierVersion | None = None
    """The earlier version that contains the words, if one does."""
    text: str | None = None
    """The words as they are there."""
    start: int | None = None
    """Their offset in the text of the document, in characters."""
    end: int | None = None
    passage: int | None = None
    locator: ChunkLocator | None = None
    at_pinpoint: bool | None = None
    """Whether they start at the pinpoint of the citation; None without a pinpoint."""
    changed_in: str | None = None
    """The first edition, towards the requested one, with different words."""
    changed_at: date | None = None
    """The day of that edition, or when another version was first retrieved."""
    closest: Closest | None = None
    as_of: date | None = None
    before_oldest: bool = False


class VerificationStep(BaseModel):
    """One step between a passage and the file of its publisher."""

    model_config = ConfigDict(frozen=True)

    name: Literal["raw", "body", "record", "text", "passages"]
    outcome: Literal["match", "differs", "unproven"]
    says: str


class Verification(BaseModel):
    """A document or passage, reproduced from the archived bytes and compared."""

    model_config = ConfigDict(frozen=True)

    verdict: Literal["match", "differs", "unproven"]
    """`unproven`: nothing differs, but a step cannot be repeated."""
    reason: str | None = None
    """The reason of the first step that does not match."""
    id: str
    passage: int | None = None
    """None for the whole document."""
    chunk_id: UUID | None = None
    title: str
    citation_string: str
    source_url: str
    fetched_from: str | None = None
    """The address from which the file was fetched, if known."""
    retrieved_at: datetime
    raw_path: str
    raw_sha256: str
    body_raw_path: str | None = None
    body_raw_sha256: str | None = None
    normalizer: str | None = None
    """The normalizer of the text; None for a document without text."""
    chunker: str
    steps: list[VerificationStep]
