"""Structured results of the tools, and structured errors: a code, a message and a hint."""

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
    StoreUnavailableError,
    UnknownDocumentError,
    UnknownSourceError,
    UsageError,
)
from fonds.results import Citation, RetrievalResult


class ToolResult(BaseModel):
    """Base of all results."""

    model_config = ConfigDict(frozen=True)


class Hit(RetrievalResult):
    """A document with its best passages, and its provenance."""

    snippet: str = Field(description="Shortened words of the document.")
    passage: str | None = Field(description="The name of the passage, for get_passage.")
    retrieved_at: datetime = Field(description="When it was downloaded from the publisher.")
    raw_sha256: str = Field(description="The hash of the publisher's file.")


class SearchResult(ToolResult):
    """One page of results, best first, one for each document."""

    results: list[Hit]
    next_offset: int | None = Field(description="The offset of the next page; null at the end.")
    note: str = Field(default="", description="Why there are few or no results.")


class DocumentHead(ToolResult):
    """Metadata and provenance of a document."""

    id: str
    source: str
    kind: str
    citation: Citation
    edition: str | None = Field(
        description="The publisher's label of the edition, for sections of codes."
    )
    is_newest_edition: bool | None = Field(description="Null for documents without editions.")
    retrieved_at: datetime = Field(description="When it was downloaded from the publisher.")
    withdrawn_at: datetime | None = Field(
        description="When it was noticed that the publisher had withdrawn it."
    )
    raw_sha256: str = Field(description="The hash of the publisher's file.")
    body_raw_sha256: str | None = Field(
        description="The hash of the file from which the text was made."
    )

    @classmethod
    def of(cls, row: Any, edition: tuple[str, bool] | None) -> DocumentHead:
        """Make it from a row of `documents`, the edition, and whether that is the newest."""
        return cls(
            id=row["id"],
            source=row["source"],
            kind=row["kind"],
            citation=Citation.of(row),
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
    text: str = Field(
        description="The words of the document: characters `offset` to `offset + length`."
    )
    offset: int
    total_characters: int
    next_offset: int | None = Field(description="The next offset; null at the end.")
    passages: int = Field(
        description="The number of its passages, which get_passage counts from 0."
    )


class Passage(ToolResult):
    """A passage of a document."""

    id: str = Field(description="Document and ordinal: fr:2026-00101#3.")
    chunk_id: str = Field(description="The same as a UUID.")
    text: str = Field(description="The words of the document.")
    is_cut: bool = Field(description="Whether the text was truncated.")
    start: int = Field(description="Offset of the passage in the document's text.")
    end: int
    citation: Citation


class PassageResult(ToolResult):
    """The requested passage and its neighbours, in the order of the document."""

    document: DocumentHead
    asked: str = Field(description="The name of the requested passage.")
    passages: list[Passage]
    total_passages: int = Field(description="The number of passages of the document.")


class CodeNode(ToolResult):
    """A code, an edition, or a node of its tree."""

    id: str = Field(description="For browse_code; that of a leaf also for get_document.")
    kind: str = Field(description="code, edition, title, chapter, section, …")
    label: str = Field(description="In the words of its publisher.")
    status: str | None = Field(description="repealed, reserved, …; null if in force.")
    is_leaf: bool = Field(description="Whether it has a text instead of children.")


class CodeListing(ToolResult):
    """A node and a page of its children, in the publisher's order."""

    node: CodeNode | None = Field(description="Null for the list of codes.")
    above: list[str] = Field(description="The ids from the code down to the parent of the node.")
    children: list[CodeNode]
    total_children: int
    next_offset: int | None = Field(description="The next offset; null at the end.")


class EditionCoverage(ToolResult):
    """An edition of a code, as far as it is in the library."""

    edition: str
    units: int
    complete_units: int
    sections: int
    is_newest: bool


class SourceCoverage(ToolResult):
    """The documents of one source, and how complete they are."""

    source: str
    title: str
    organization: str
    documents: int
    withdrawn: int
    kinds: dict[str, int] = Field(description="The number of documents of each kind.")
    first_published: date | None
    last_published: date | None
    last_retrieved_at: datetime | None
    last_success_at: datetime | None = Field(description="The end of the last complete run.")
    open_errors: int = Field(description="Items that could not be loaded.")
    waiting_for_text: int = Field(description="Documents whose text is not available yet.")
    editions: list[EditionCoverage]


class VectorCoverage(ToolResult):
    """How completely semantic search covers the library."""

    model: str | None = Field(description="Null while nothing has been embedded.")
    complete: bool
    waiting: int = Field(description="Documents that are not embedded yet.")


class Coverage(ToolResult):
    """The contents of the library; documents outside it cannot be found or ruled out."""

    as_of: datetime
    documents: int
    sources: list[SourceCoverage]
    not_held: list[str] = Field(description="Available sources that were not loaded.")
    vectors: VectorCoverage


def as_day(iso: str | None) -> date | None:
    """The day of an ISO date or time."""
    return date.fromisoformat(iso[:10]) if iso else None


MAX_MESSAGE_LENGTH: Final = 1000
_MAX_FIELD_ERRORS: Final = 5

Code = Literal["not_found", "bad_request", "ambiguous", "unavailable"]


_CODE_AND_HINT: Final[dict[type[FondsError], tuple[Code, str]]] = {
    UnknownDocumentError: (
        "not_found",
        "Find the id with search, resolve_citation or browse_code.",
    ),
    UnknownSourceError: ("bad_request", "list_sources lists the sources."),
    UsageError: ("bad_request", "Change the arguments and call the tool again."),
    EmbedError: ("unavailable", "Search with mode `lexical` instead."),
    FondsError: ("unavailable", "The operator of the server can find the cause in its log."),
}
"""The first match applies, from special to general."""


class ToolProblem(BaseModel):
    """A structured error of a tool."""

    code: Code
    message: str
    hint: str

    def as_result(self) -> CallToolResult:
        """The error as a result, structured and as text."""
        text = f"{self.code}: {self.message}. {self.hint}".strip()
        return CallToolResult(
            content=[TextContent(text=text)],
            structured_content={"error": self.model_dump()},
            is_error=True,
        )


class InvalidCallError(ToolError):
    """A call that a tool rejects, with a hint."""

    def __init__(self, code: Code, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.problem = _problem(code, message, hint)


def problem_of(error: BaseException) -> ToolProblem | None:
    """The structured error for an exception; None for an unexpected one."""
    if isinstance(error, InvalidCallError):
        return error.problem
    if isinstance(error, ValidationError):
        return _problem(
            "bad_request", _validation_message(error), "See the input schema of the tool."
        )
    if isinstance(error, SQLAlchemyError | StoreUnavailableError | OSError):
        # Their messages contain statements, parameters and paths.
        return _problem(
            "unavailable", "the database or the object store does not respond", "Try again later."
        )
    for kind, (code, hint) in _CODE_AND_HINT.items():
        if isinstance(error, kind):
            return _problem(code, str(error), hint)
    return None


def unexpected_problem() -> ToolProblem:
    """The structured error for an unexpected exception."""
    message = "unexpected error; the log of the server has details"
    return _problem("unavailable", message, "Other calls may work.")


def _problem(code: Code, message: str, hint: str) -> ToolProblem:
    if len(message) > MAX_MESSAGE_LENGTH:
        message = f"{message[:MAX_MESSAGE_LENGTH]}…"
    return ToolProblem(code=code, message=message, hint=hint)


def _validation_message(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors[:_MAX_FIELD_ERRORS]
    )
