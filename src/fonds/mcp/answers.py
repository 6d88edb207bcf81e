"""What the tools answer: the structured content, whose schema agents are shown.

What went wrong, told to an agent: a code to act on, a message, a hint; never a trace.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Final, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import (
    EmbedError,
    FondsError,
    UnknownDocumentError,
    UnknownSourceError,
    UsageError,
)
from fonds.results import Citation, RetrievalResult


class ToolResult(BaseModel):
    """What every answer is: frozen, and written once."""

    model_config = ConfigDict(frozen=True)


class Hit(RetrievalResult):
    """The best passage of a document, with where its bytes came from."""

    passage: str | None = Field(description="Name of the passage, for get_passage.")
    retrieved_at: datetime = Field(description="When the publisher served it.")
    raw_sha256: str = Field(description="Of the publisher's file as archived.")


class SearchResult(ToolResult):
    """One page of results, best first, one for each document."""

    results: list[Hit]
    next_offset: int | None = Field(description="Where the next page begins; null at the end.")
    note: str = Field(default="", description="Why there is little or nothing.")


class DocumentHead(ToolResult):
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


class DocumentSlice(ToolResult):
    """A document's head and a slice of its text."""

    document: DocumentHead
    text: str = Field(description="Markdown: characters offset to offset + length of the text.")
    offset: int
    total_characters: int
    next_offset: int | None = Field(description="Ask for this offset next; null at the end.")
    passages: int = Field(description="How many passages get_passage knows of it, from 0.")


class Passage(ToolResult):
    """A passage as it stands in its document."""

    id: str = Field(description="Document and ordinal: fr:2026-00101#3.")
    chunk_id: str = Field(description="The same as a UUID.")
    text: str
    is_cut: bool = Field(description="Whether the passage is longer than what is shown.")
    start: int = Field(description="Offset of the passage in the document's text.")
    end: int
    citation: Citation


class PassageAnswer(ToolResult):
    """The passage asked for and its neighbours, in the document's order."""

    document: DocumentHead
    asked: str = Field(description="Name of the passage that was asked for.")
    passages: list[Passage]
    total_passages: int = Field(description="Of the whole document.")


class CodeNode(ToolResult):
    """A code, an edition, or a node of its tree."""

    id: str = Field(description="Give it to browse_code; a leaf's also to get_document.")
    kind: str = Field(description="code, edition, title, chapter, section, …")
    label: str
    status: str | None = Field(description="repealed, reserved, …; null is in force.")
    is_leaf: bool = Field(description="Whether it has a text instead of nodes below it.")


class CodeListing(ToolResult):
    """A node and a page of what stands below it, in the publisher's order."""

    node: CodeNode | None = Field(description="Null for the list of codes.")
    above: list[str] = Field(description="Ids from the code down to the node's parent.")
    children: list[CodeNode]
    total_children: int
    next_offset: int | None = Field(description="Ask for this offset next; null at the end.")


class EditionCoverage(ToolResult):
    """An edition of a code, as far as it is held."""

    edition: str
    units: int
    complete_units: int
    sections: int
    is_newest: bool


class SourceCoverage(ToolResult):
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


class VectorCoverage(ToolResult):
    """Whether search by meaning sees everything."""

    model: str | None = Field(description="Null while nothing has been embedded.")
    complete: bool
    waiting: int = Field(description="Documents still to be embedded.")


class Coverage(ToolResult):
    """What the library holds; whatever is not in it cannot be found or ruled out."""

    as_of: datetime
    documents: int
    sources: list[SourceCoverage]
    not_held: list[str] = Field(description="Sources that could be loaded, but are not.")
    vectors: VectorCoverage


def as_day(moment: str | None) -> date | None:
    """The day of a publisher's ISO date or time."""
    return date.fromisoformat(moment[:10]) if moment else None


LONGEST_MESSAGE: Final = 1000
_MOST_COMPLAINTS: Final = 5

Code = Literal["not_found", "bad_request", "ambiguous", "unavailable"]


_TOLD: Final[dict[type[FondsError], tuple[Code, str]]] = {
    UnknownDocumentError: (
        "not_found",
        "Find the id with search, resolve_citation or browse_code.",
    ),
    UnknownSourceError: ("bad_request", "list_sources names the sources."),
    UsageError: ("bad_request", "Change the arguments and ask again."),
    EmbedError: ("unavailable", "Search with mode `lexical` instead."),
    FondsError: ("unavailable", "Whoever runs the server can look into it."),
}
"""The first that fits, from the special to the general."""


class ToolProblem(BaseModel):
    """Why there is no answer."""

    code: Code
    message: str
    hint: str

    def as_result(self) -> CallToolResult:
        """The problem as a tool's result: structured, and in words."""
        words = f"{self.code}: {self.message}. {self.hint}".strip()
        return CallToolResult(
            content=[TextContent(text=words)],
            structured_content={"error": self.model_dump()},
            is_error=True,
        )


class RefusalError(ToolError):
    """A tool knows itself why it cannot answer."""

    def __init__(self, code: Code, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.problem = _problem(code, message, hint)


def problem_of(error: BaseException) -> ToolProblem | None:
    """What an agent is told of an error; None for one that nobody foresaw."""
    if isinstance(error, RefusalError):
        return error.problem
    if isinstance(error, ValidationError):
        return _problem("bad_request", _complaints(error), "Look at the tool's input schema.")
    if isinstance(error, SQLAlchemyError | OSError):
        # Their own texts hold statements, parameters and paths.
        return _problem("unavailable", "the library's stores do not answer", "Try again later.")
    for kind, (code, hint) in _TOLD.items():
        if isinstance(error, kind):
            return _problem(code, str(error), hint)
    return None


def unforeseen() -> ToolProblem:
    """What an agent is told of an error that nobody foresaw; the log has the rest."""
    message = "something went wrong inside the server, and is in its log"
    return _problem("unavailable", message, "Other questions may work.")


def _problem(code: Code, message: str, hint: str) -> ToolProblem:
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}…"
    return ToolProblem(code=code, message=message, hint=hint)


def _complaints(error: ValidationError) -> str:
    complaints = error.errors(include_url=False, include_input=False, include_context=False)
    told = [
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in complaints[:_MOST_COMPLAINTS]
    ]
    return "; ".join(told)
