"""What the tools answer: the structured content, whose schema agents are shown."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from fonds.results import Citation, RetrievalResult


class Answer(BaseModel):
    """What every answer is: frozen, and written once."""

    model_config = ConfigDict(frozen=True)


class Hit(RetrievalResult):
    """The best passage of a document, with where its bytes came from."""

    passage: str | None = Field(description="Name of the passage, for get_passage.")
    retrieved_at: datetime = Field(description="When the publisher served it.")
    raw_sha256: str = Field(description="Of the publisher's file as archived.")


class SearchAnswer(Answer):
    """One page of results, best first, one for each document."""

    results: list[Hit]
    next_offset: int | None = Field(description="Where the next page begins; null at the end.")
    note: str = Field(default="", description="Why there is little or nothing.")


class DocumentHead(Answer):
    """What a document is, and where its bytes came from."""

    id: str
    source: str
    kind: str
    citation: Citation
    edition: str | None = Field(description="Of a section of a code: the publisher's stamp.")
    is_newest_edition: bool | None = Field(description="Null for what has no editions.")
    retrieved_at: datetime = Field(description="When the publisher served it.")
    withdrawn_at: datetime | None = Field(description="When the publisher had withdrawn it.")
    raw_sha256: str = Field(description="Of the publisher's file as archived.")
    body_raw_sha256: str | None = Field(description="Of the bytes the text was made from.")

    @classmethod
    def of(cls, row: Any, edition: tuple[str, bool] | None) -> DocumentHead:
        """The head of a row of `documents`; the edition with whether it is the newest."""
        return cls(
            id=row["id"],
            source=row["source"],
            kind=row["kind"],
            citation=Citation(
                title=row["title"],
                organization=row["source_org"],
                url=row["source_url"],
                published_at=as_day(row["published_at"]),
                citation_string=row["citation_string"],
            ),
            edition=edition[0] if edition else None,
            is_newest_edition=edition[1] if edition else None,
            retrieved_at=row["retrieved_at"],
            withdrawn_at=row["gone_at"],
            raw_sha256=row["raw_sha256"],
            body_raw_sha256=row["body_raw_sha256"],
        )


class DocumentSlice(Answer):
    """A document's head and a slice of its text."""

    document: DocumentHead
    text: str = Field(description="Markdown: characters offset to offset + length of the text.")
    offset: int
    total_characters: int
    next_offset: int | None = Field(description="Ask for this offset next; null at the end.")
    passages: int = Field(description="How many passages get_passage knows of it, from 0.")


class Passage(Answer):
    """A passage as it stands in its document."""

    id: str = Field(description="Document and ordinal: fr:2026-00101#3.")
    chunk_id: str = Field(description="The same as a UUID.")
    text: str
    is_cut: bool = Field(description="Whether the passage is longer than what is shown.")
    start: int = Field(description="Offset of the passage in the document's text.")
    end: int
    citation: Citation


class PassageAnswer(Answer):
    """The passage asked for and its neighbours, in the document's order."""

    document: DocumentHead
    asked: str = Field(description="Name of the passage that was asked for.")
    passages: list[Passage]
    total_passages: int = Field(description="Of the whole document.")


class CodeNode(Answer):
    """A code, an edition, or a node of its tree."""

    id: str = Field(description="Give it to browse_code; a leaf's also to get_document.")
    kind: str = Field(description="code, edition, title, chapter, section, …")
    label: str
    status: str | None = Field(description="repealed, reserved, …; null is in force.")
    is_leaf: bool = Field(description="Whether it has a text instead of nodes below it.")


class CodeListing(Answer):
    """A node and a page of what stands below it, in the publisher's order."""

    node: CodeNode | None = Field(description="Null for the list of codes.")
    above: list[str] = Field(description="Ids from the code down to the node's parent.")
    children: list[CodeNode]
    total_children: int
    next_offset: int | None = Field(description="Ask for this offset next; null at the end.")


class EditionCoverage(Answer):
    """An edition of a code, as far as it is held."""

    edition: str
    units: int
    complete_units: int
    sections: int
    is_newest: bool


class SourceCoverage(Answer):
    """What is held of one source, as of when."""

    source: str
    title: str
    organization: str
    documents: int
    withdrawn: int
    kinds: dict[str, int] = Field(description="Documents of each kind.")
    first_published: date | None
    last_published: date | None
    last_retrieved_at: datetime | None
    last_success_at: datetime | None = Field(description="End of the last run without gaps.")
    open_errors: int = Field(description="Items that could not be loaded: known to be missing.")
    waiting_for_text: int = Field(description="Documents whose text is still to be made.")
    editions: list[EditionCoverage]


class VectorCoverage(Answer):
    """Whether search by meaning sees everything."""

    model: str | None = Field(description="Null while nothing has been embedded.")
    complete: bool
    waiting: int = Field(description="Documents still to be embedded.")


class Coverage(Answer):
    """What the library holds; whatever is not in it cannot be found or ruled out."""

    as_of: datetime
    documents: int
    sources: list[SourceCoverage]
    not_held: list[str] = Field(description="Sources that could be loaded, but are not.")
    vectors: VectorCoverage


def as_day(moment: str | None) -> date | None:
    """The day of a publisher's ISO date or time."""
    return date.fromisoformat(moment[:10]) if moment else None
