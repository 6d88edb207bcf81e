"""What the journal of a crawl tells: an object to a line, each with its time and the counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fonds.sites.models import Count, CrawlError, DownloadedPDF, Id, Moment, PdfState

Outcome = Literal["crawled", "failed"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Totals(_Model):
    """The counts of a crawl at one moment; they grow with it, and so tell its moments apart."""

    websites_crawled: Count = 0
    websites_failed: Count = 0
    pdfs_discovered: Count = 0
    pdfs_downloaded: Count = 0
    pdfs_failed: Count = 0
    bytes_downloaded: Count = 0

    @property
    def progress(self) -> int:
        """How far a crawl has come; a failed PDF that is fetched after all is a step ahead."""
        websites = self.websites_crawled + self.websites_failed
        return websites + self.pdfs_discovered + 2 * self.pdfs_downloaded + self.pdfs_failed


class _Line(_Model):
    at: Moment
    totals: Totals


class Opened(_Line):
    """The journal begins here; what came before stands in the metadata."""

    event: Literal["opened"] = "opened"
    crawl_id: Id


class Discovered(_Line):
    """A website lists some PDFs."""

    event: Literal["discovered"] = "discovered"
    website_id: str
    urls: tuple[str, ...]


class Downloaded(_Line):
    """Some PDFs are in the output."""

    event: Literal["downloaded"] = "downloaded"
    pdfs: tuple[DownloadedPDF, ...]


class Unchanged(_Line):
    """A PDF is what an earlier crawl got."""

    event: Literal["unchanged"] = "unchanged"
    url: str


class Failed(_Line):
    """A PDF was not fetched."""

    event: Literal["failed"] = "failed"
    url: str
    error: CrawlError


class Trouble(_Line):
    """Something else went wrong: a page, an answer that makes no sense."""

    event: Literal["trouble"] = "trouble"
    error: CrawlError


class Moved(_Line):
    """Some PDFs have come so far."""

    event: Literal["state"] = "state"
    urls: tuple[str, ...]
    state: PdfState


class WebsiteDone(_Line):
    """A website has been gone through, or given up."""

    event: Literal["website"] = "website"
    website_id: str
    outcome: Outcome
    error: CrawlError | None = None


Event = Opened | Discovered | Downloaded | Unchanged | Failed | Trouble | Moved | WebsiteDone
_LINE: Final[TypeAdapter[Event]] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def line_of(event: Event) -> bytes:
    """An event as it stands in the journal."""
    return event.model_dump_json().encode() + b"\n"


def read_events(journal: bytes) -> Iterator[Event]:
    """The events of a journal, up to where it is torn."""
    *lines, _ = journal.split(b"\n")
    for line in lines:
        try:
            yield _LINE.validate_json(line)
        except ValidationError:
            return
