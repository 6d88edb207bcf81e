"""What search gives: passages, each with the citation to paste. Part of every face's contract."""

from __future__ import annotations

import operator
from datetime import date

from pydantic import BaseModel, ConfigDict, Field


class ChunkLocator(BaseModel):
    """The place of a passage in its document."""

    model_config = ConfigDict(frozen=True)

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
