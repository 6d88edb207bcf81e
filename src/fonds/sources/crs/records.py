"""From a report and its text to rows and a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any, Final

from fonds import ids
from fonds.citations.crs import cite_crs
from fonds.errors import WrongContentError
from fonds.model import Archived, Body, Document, ParsedRecord, RawPart
from fonds.normalize.registry import get_normalizer, sniff
from fonds.sources.crs import tables
from fonds.sources.crs.reports import Report

NAME: Final = "crs"
PUBLISHER: Final = "Congressional Research Service"
SITE: Final = "https://www.everycrsreport.com"

# The letters of a number say what it is; all others are reports (R, RL, RS, 98-807, …).
_KINDS: Final = {
    "IF": "in_focus",
    "IG": "infographic",
    "IN": "insight",
    "LSB": "legal_sidebar",
    "TE": "testimony",
}
_PAGE: Final = re.compile(rb"\s*<(?:!doctype|html|head|body)\b", re.IGNORECASE)


def record(report: Report, *, raw: Archived, body: Body | None = None) -> ParsedRecord:
    """The rows of a report and the document it is."""
    key, newest = ids.crs_id(report.number), report.newest
    row: dict[str, Any] = {
        **dict.fromkeys(tables.crs_reports.columns.keys()),
        **report.columns,
        "id": key,
        "number": report.number,
        "title": newest.title,
        "latest_pub_date": newest.date,
        "summary": newest.summary,
        "latest_html": newest.html,
        "latest_pdf": newest.pdf,
    }
    return ParsedRecord(
        source=NAME,
        table=tables.crs_reports.name,
        key=key,
        payload=row,
        children=(
            *_below(tables.crs_versions.name, key, [asdict(one) for one in report.versions]),
            *_below(tables.crs_topics.name, key, [asdict(one) for one in report.topics]),
        ),
        document=_document(row, raw, body),
    )


def html_body(part: RawPart) -> Body:
    """The text of a version: a fragment of HTML, or what a program read out of its PDF."""
    if _PAGE.match(part.data):
        raise WrongContentError(f"{part.archived.url} is a page, not the text of a report")
    # Versions that were only printed are the lines of the PDF in one element.
    typed = part.data.lstrip().startswith(b"<") and sniff(part.data) == "text_v1"
    normalizer = get_normalizer("text_v1" if typed else "html_v1")
    return Body(
        archived=part.archived,
        format="html",
        normalizer=normalizer.label,
        normalized=normalizer.to_markdown(part.data, part.archived.url),
    )


def pdf_body(part: RawPart) -> Body:
    """A PDF, whose text is too expensive to be read while loading."""
    if not part.data.startswith(b"%PDF-"):
        raise WrongContentError(f"{part.archived.url} is not a PDF")
    return Body(archived=part.archived, format="pdf")


def _below(table: str, key: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[ParsedRecord]:
    for place, row in enumerate(rows, 1):
        yield ParsedRecord(
            source=NAME,
            table=table,
            key=f"{key}#{table}/{place}",
            payload={"report_id": key, "ord": place, **row},
        )


def _document(row: Mapping[str, Any], raw: Archived, body: Body | None) -> Document:
    number, published = row["number"], row["latest_pub_date"]
    return Document(
        id=row["id"],
        source=NAME,
        kind=_KINDS.get(number.rstrip("-0123456789"), "report"),
        title=row["title"],
        summary=_summary(row["summary"], body),
        source_url=f"https://www.congress.gov/crs-product/{number}",
        source_org=PUBLISHER,
        published_at=published,
        citation_string=cite_crs(
            number=number,
            title=row["title"],
            published=date.fromisoformat(published) if published else None,
        ),
        raw=raw,
        body=body,
        aliases=(
            number,
            f"CRS {number}",
            f"CRS Report {number}",
            f"{SITE}/reports/{number}.html",
        ),
    )


def _summary(written: str | None, body: Body | None) -> str | None:
    text = body.normalized if body else None
    # Some old summaries are the whole report once more.
    is_text = written is not None and text is not None and 2 * len(written) > len(text.markdown)
    return None if is_text else written
