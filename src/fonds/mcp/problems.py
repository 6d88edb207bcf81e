"""What went wrong, told to an agent: a code to act on, a message, a hint; never a trace."""

from __future__ import annotations

from typing import Final, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import (
    EmbedError,
    FondsError,
    UnknownDocumentError,
    UnknownSourceError,
    UsageError,
)

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


class Problem(BaseModel):
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


class RefusedError(ToolError):
    """A tool knows itself why it cannot answer."""

    def __init__(self, code: Code, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.problem = _problem(code, message, hint)


def problem_of(error: BaseException) -> Problem | None:
    """What an agent is told of an error; None for one that nobody foresaw."""
    if isinstance(error, RefusedError):
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


def unforeseen() -> Problem:
    """What an agent is told of an error that nobody foresaw; the log has the rest."""
    message = "something went wrong inside the server, and is in its log"
    return _problem("unavailable", message, "Other questions may work.")


def _problem(code: Code, message: str, hint: str) -> Problem:
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}…"
    return Problem(code=code, message=message, hint=hint)


def _complaints(error: ValidationError) -> str:
    complaints = error.errors(include_url=False, include_input=False, include_context=False)
    told = [
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in complaints[:_MOST_COMPLAINTS]
    ]
    return "; ".join(told)
