"""Parts of a crawl that run on machines of their own, each with a ledger beside the whole one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fonds.sites.models import CrawlError, DownloadedPDF
from fonds.sites.records.events import (
    Downloaded,
    Event,
    Failed,
    Opened,
    Outcome,
    Trouble,
    WebsiteDone,
    read_events,
)
from fonds.sites.records.layout import Stored, scan_metadata
from fonds.sites.records.output import JOURNAL, METADATA, Output


@dataclass(kw_only=True)
class PartTold:
    """What the ledger of a part tells, however it ended."""

    crawl_id: str
    files: list[DownloadedPDF] = field(default_factory=list)
    """Those of earlier crawls too."""
    errors: list[CrawlError] = field(default_factory=list)
    websites: dict[str, Outcome] = field(default_factory=dict)
    """How each ended that did."""


def stored_in(output: Output) -> Stored | None:
    """The metadata of an output or a part; None where there is none."""
    pieces = output.read(METADATA)
    path = f"{output.address}/{output.records}{METADATA}"
    return scan_metadata(pieces, path=path) if pieces else None


def read_part(part: Output) -> PartTold | None:
    """What a part tells; None where it has not begun."""
    stored = stored_in(part)
    if stored is None:
        return None
    told = PartTold(crawl_id=stored.opening.crawl_id)
    for entry in stored.entries:
        if isinstance(entry, DownloadedPDF):
            told.files.append(entry)
        else:
            told.errors.append(entry)
    for event in _journal(part, told.crawl_id):
        _add(told, event)
    return told


def _journal(part: Output, crawl_id: str) -> Iterator[Event]:
    """The events of a part, unless its journal is that of an earlier crawl."""
    events = read_events(b"".join(part.read(JOURNAL) or ()))
    first = next(events, None)
    if isinstance(first, Opened) and first.crawl_id == crawl_id:
        yield from events


def _add(told: PartTold, event: Event) -> None:
    match event:
        case Downloaded(pdfs=pdfs):
            told.files.extend(pdfs)
        case Failed(error=error) | Trouble(error=error):
            told.errors.append(error)
        case WebsiteDone(website_id=website, outcome=outcome, error=reason):
            told.websites[website] = outcome
            told.errors.extend([reason] if reason else [])
