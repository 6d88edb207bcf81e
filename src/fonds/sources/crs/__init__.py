"""Reports of the Congressional Research Service, all versions of them, since the 1990s.

EveryCRSReport.com is read, since it needs no key and has files under stable names; congress.gov
has the official list, by which the audit counts.

Quirks of the publishers:
- reports.csv lists every report with the SHA-1 of its metadata, which changes whenever anything
  does; its dates are those on the cover of the newest version.
- The HTML is a fragment without a head. Of versions that were only printed it is the output of a
  program that reads PDFs, with its lines as they are; where `latestHTML` is empty, there is only
  the PDF. An HTML that is announced and missing is replaced by the PDF.
- Authors' names are struck from everything at EveryCRSReport.com; congress.gov has them.
- Versions out of the archive of the University of North Texas that are known by their year or
  month only are dated to its first day.
- Some summaries of old reports are the whole report; a document has them only if it has no text.
- congress.gov dates by midnight in Washington, written in UTC, and escapes the names of topics.
- SearchResults.csv of crsreports.congress.gov has `CoverDate` as 3/7/2025, of the newest version,
  and `PublicationDate` as 03/05/2018, of the first one.

A backfill without a range takes everything; `since` and `until` go by the date of the newest
version. A run looks at all reports from the first day that a backfill has reached without a gap,
or else at those of the last thirty days, and asks for those whose entry changed.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta
from typing import Any, Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds import ids
from fonds.citations.forms import bluebook_date
from fonds.errors import SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Body,
    Discovery,
    Document,
    FetchTask,
    Listing,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.normalize.registry import get_normalizer, sniff
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.crs.reports import (
    LIST_COLUMNS,
    NUMBER,
    CrsReport,
    Row,
    publish_day,
    read_congress_gov,
    read_csv,
    read_everycrs,
    read_search_results,
)
from fonds.sources.formats import congress, fields
from fonds.sources.formats.records import child_records, child_table, normalized_body
from fonds.stores.columns import Json, Timestamp, document_key, owned_by, position, texts
from fonds.stores.tables import metadata

# Tables of the Congressional Research Service's reports.

crs_reports: Final = Table(
    "crs_reports",
    metadata,
    document_key("crs:R48481, documents.id."),
    Column("number", Text, nullable=False, comment="R48481, 98-807: what CRS calls it."),
    Column("title", Text, nullable=False, comment="Of the newest version."),
    *texts(
        type="`CRS Report`, `CRS Insight`, …, as EveryCRSReport.com words it.",
        type_id="`REPORTS`, `INSIGHTS`, …: the same as a code.",
        source="Where EveryCRSReport.com has it from; several are joined by commas.",
        content_type="`Reports`, `In Focus`, …, as congress.gov words it.",
        status="`Active` or `Archived`, as congress.gov has it.",
    ),
    Column("active", Boolean, comment="Whether CRS still maintained it when it was last seen."),
    Column("version", Integer, comment="Number of the newest version, as CRS counts them."),
    *texts(
        latest_pub_date="ISO day of the newest version: its cover date.",
        publication_date="ISO day of the first version, from SearchResults.csv.",
    ),
    Column("publish_date", Timestamp, comment="publishDate of congress.gov."),
    Column("update_date", Timestamp, comment="updateDate of congress.gov: of its record."),
    *texts(
        summary="Of the newest version, as plain text.",
        latest_html="Path or address of the newest version's HTML.",
        latest_pdf="Path or address of the newest version's PDF.",
        sha1="Of the metadata file, as the list of EveryCRSReport.com has it.",
    ),
    Column("authors", Json, comment="Names, from congress.gov; EveryCRSReport.com strikes them."),
    Column(
        "related_materials",
        Json,
        comment="Bills and laws it is about, from congress.gov: title, congress, type, number.",
    ),
    Index("ix_crs_reports_number", "number"),
    comment="Reports and other products of the Congressional Research Service.",
)

crs_versions: Final = Table(
    "crs_versions",
    metadata,
    owned_by("crs_reports", "report_id"),
    position(comment="Place in the publisher's list, the newest first."),
    Column("title", Text, nullable=False, comment="As this version has it."),
    *texts(
        version_id="The version's own id, or its number.",
        date="ISO day on its cover.",
        retrieved="ISO moment at which EveryCRSReport.com found it; no zone is stated.",
        source="Where EveryCRSReport.com has it from.",
        source_link="Its page there.",
        summary="As plain text.",
        html="Path or address of its HTML.",
        pdf="Path or address of its PDF.",
        html_sha1="SHA-1 of the HTML as CRS served it.",
        pdf_sha1="SHA-1 of the PDF as CRS served it.",
    ),
    comment="Every version of a report that is known.",
)

crs_topics: Final = child_table(
    "crs_topics",
    owned_by("crs_reports", "report_id"),
    Column("name", Text, nullable=False, comment="The topic."),
    *texts(
        source="Whose topic it is: IBCList, CongOpsList, EveryCRSReport.com, congress.gov, …",
        topic_id="Its id in that list.",
    ),
    comment="What the newest version of a report is about.",
)

TABLES: Final = (crs_reports, crs_versions, crs_topics)
"""Parents before children."""


# How a product of the Congressional Research Service is cited.


def cite_crs(*, number: str, title: str, published: date | None) -> str:
    """`Cong. Rsch. Serv., R48481, Wildfire Emergency Spending (Mar. 15, 2025).`; undated without.

    The day is that of the newest version.
    """
    words = title.strip().rstrip(".").rstrip()
    name = f"{number}, {words}" if words and words != number else number
    dated = f" ({bluebook_date(published)})" if published else ""
    return f"Cong. Rsch. Serv., {name}{dated}."


# From a report and its text to rows and a document.

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


def crs_id(number: str) -> str:
    """`crs:R48481`."""
    return f"crs:{number.upper()}"


def record(report: CrsReport, *, raw: Archived, body: Body | None = None) -> ParsedRecord:
    """The rows of a report and the document it is."""
    key, newest = crs_id(report.number), report.newest
    row: dict[str, Any] = {
        **dict.fromkeys(crs_reports.columns.keys()),
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
        table=crs_reports.name,
        key=key,
        payload=row,
        children=(
            *child_records(
                NAME, crs_versions, key, [asdict(version) for version in report.versions]
            ),
            *child_records(NAME, crs_topics, key, [asdict(topic) for topic in report.topics]),
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
    return normalized_body(part, "html", normalizer, part.archived.url)


def pdf_body(part: RawPart) -> Body:
    """A PDF, whose text is too expensive to be read while loading."""
    if not part.data.startswith(b"%PDF-"):
        raise WrongContentError(f"{part.archived.url} is not a PDF")
    return Body(archived=part.archived, format="pdf")


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


def _summary(stated: str | None, body: Body | None) -> str | None:
    text = body.normalized if body else None
    # Some old summaries repeat the whole report.
    is_text = stated is not None and text is not None and 2 * len(stated) > len(text.markdown)
    return None if is_text else stated


# Loose files: descriptions of reports, texts, and others.

_JSON: Final = re.compile(rb'\s*(?:\{\s*["}]|\[)')
_MARKUP: Final = re.compile(rb"\s*<|.*<(?:p|div|h[1-6]|table)[ >]", re.DOTALL | re.IGNORECASE)
_BOM: Final = b"\xef\xbb\xbf"

_Described = tuple[CrsReport, Archived]


def read_loose(parts: Sequence[RawPart]) -> Iterator[ParsedRecord]:
    """The records of files given together: lists, or what several files say of one report."""
    described: list[_Described] = []
    texts: list[RawPart] = []
    for part in parts:
        if _is_text(part.data):
            texts.append(part)
        else:
            described += _reports(part)
    if not texts:
        yield from (record(report, raw=raw) for report, raw in _merged(described))
        return
    yield _with_text(_merged(described), texts)


def _is_text(data: bytes) -> bool:
    start = data.removeprefix(_BOM)[:4096]
    if start.startswith(b"%PDF-"):
        return True
    is_xml = start.lstrip().startswith((b"<?xml", b"<rss"))
    return not is_xml and not _JSON.match(start) and _MARKUP.match(start) is not None


def _with_text(described: list[_Described], texts: Sequence[RawPart]) -> ParsedRecord:
    if not described:
        raise WrongContentError(
            "a text or a page, which does not say which report it is; give the metadata file "
            "(reports/….json) of the report with it, under the same name"
        )
    if len(described) > 1:
        raise WrongContentError(f"a text given together with the metadata of {len(described)}")
    report, raw = described[0]
    return record(report, raw=raw, body=_body(texts))


def _body(texts: Sequence[RawPart]) -> Body:
    """The HTML where there is one, since it keeps headings and tables."""
    for part in texts:
        if not part.data.startswith(b"%PDF-"):
            return html_body(part)
    return pdf_body(texts[0])


def _reports(part: RawPart) -> Iterator[_Described]:
    data = part.data.removeprefix(_BOM)
    if _JSON.match(data):
        content = congress.read_object(data, part.archived.url)
        yield from ((report, part.archived) for report in _in_json(content))
    elif data.startswith(b"RowNumber,"):
        yield from ((report, part.archived) for report in read_search_results(data))
    elif data.startswith(b"number,url,"):
        raise WrongContentError("the list of EveryCRSReport.com, by which reports are found")
    elif data.lstrip().startswith((b"<?xml", b"<rss")):
        raise WrongContentError("a feed, which announces reports that the lists hold in full")
    else:
        raise WrongContentError("neither metadata, nor a list, nor the text of CRS reports")


def _in_json(content: Mapping[str, Any]) -> Iterator[CrsReport]:
    if "CRSReport" in content:
        yield read_congress_gov(fields.section(content, "CRSReport"))
    elif "CRSReports" in content:
        yield from map(read_congress_gov, fields.sections(content, "CRSReports"))
    elif "versions" in content:
        yield read_everycrs(content)
    elif "SearchResults" in content:
        raise WrongContentError(
            "search results of crs.gov, which list files and no titles; the metadata of "
            f"{SITE} has both"
        )
    else:
        raise WrongContentError(f"no report of CRS, but {fields.describe(content)}")


def _merged(described: Sequence[_Described]) -> list[_Described]:
    """Each report once where both publishers describe it: EveryCRSReport.com has all versions."""
    whole = {report.number for report, _ in described if report.is_whole}
    partial = {report.number: report for report, _ in described if not report.is_whole}
    return [
        (report.completed_by(partial.get(report.number)), raw)
        for report, raw in described
        if report.is_whole or report.number not in whole
    ]


LIST: Final = f"{SITE}/reports.csv"
FIRST_RUN: Final = timedelta(days=30)

_FILE: Final = re.compile(r"(?:reports|files)/[\w.-]*\w")
_PDF: Final = "#pdf"


class Crs:
    """The source `crs`."""

    info = SourceInfo(
        name=NAME,
        title="CRS reports",
        summary="reports of the Congressional Research Service, in full",
        organisation=PUBLISHER,
        addresses=(LIST,),
        jurisdiction="United States",
        version="1.0.0",
        # EveryCRSReport.com is brought up to date in the night.
        schedule="20 8 * * *",
        rate=Rate(per_second=2, burst=4),
        tables=TABLES,
        published_at="date of the newest version (latestPubDate)",
        csl_type="report",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The reports of the list, the oldest first, each with its newest text."""
        listing = await ask(LIST, path="reports.csv")
        rows, unusable = _read_list(listing.data)
        since, until = _requested_days(state)
        for day, row in rows:
            if since <= day <= until:
                yield _task(row, listing.archived)
        days = [day for day, _ in rows]
        keys = frozenset(crs_id(row["number"]) for _, row in rows)
        yield Listing(
            since=days[0], until=days[-1], task_keys=keys | {f"{key}{_PDF}" for key in keys}
        )
        if (reached := _reached(state, since)) is not None:
            yield Watermark(last_seen_key=days[-1].isoformat(), custom={"since": reached})
        if unusable:
            raise WrongContentError(
                f"reports.csv has {len(unusable)} rows that lead to no report of this site, which "
                f"were left out; the first is {unusable[0]}"
            )

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """A report as its metadata and newest text tell; loose files may be lists of reports.

        Loose files that are parsed together may be metadata of one report from both publishers,
        and its text.
        """
        if "row" in raw.task.params:
            yield _report(raw)
        yield from fields.distinct(read_loose([part for part in raw.parts if not part.name]))

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """Count by the list of api.congress.gov, which wants `data_gov_key`: a scope a year.

        Without days: the thirty before the newest report. The list has only what CRS published
        since the public may read it, and what was current then.
        """
        entries = await congress.read_list(
            ask, "crsreport", "CRSReports", path="audit/crsreport", identify=_official_id
        )
        days = {_official_id(entry): publish_day(entry) or date.min for entry in entries}
        if since is None and until is None:
            since = max(days.values()) - FIRST_RUN
        years: dict[int, set[str]] = {}
        for document_id, day in days.items():
            if (since or date.min) <= day <= (until or date.max):
                years.setdefault(day.year, set()).add(document_id)
        for year in sorted(years):
            scope = f"published in {year}" if year > 1 else "undated"
            yield Expected(scope=scope, document_ids=frozenset(years[year]))


source: Final = Crs()


# The list ---------------------------------------------------------------------------------


def _read_list(data: bytes) -> tuple[list[tuple[date, Row]], list[str]]:
    """The rows that can be used, the oldest first, and what is wrong with the others."""
    rows: dict[str, tuple[date, Row]] = {}
    unusable: list[str] = []
    for row in read_csv(data, LIST_COLUMNS, "reports.csv"):
        number, day = row["number"], _day(row)
        if day is None or (wrong := _wrong_column(row)):
            unusable.append(f"{number[:40]!r}: {'latestPubDate' if day is None else wrong}")
        elif number in rows:
            raise SuspiciousYieldError(f"reports.csv names {number} twice")
        else:
            rows[number] = (day, row)
    if not rows:
        raise SuspiciousYieldError("reports.csv lists no report; it always has all of them")
    return sorted(rows.values(), key=lambda entry: (entry[0], entry[1]["number"])), unusable


def _wrong_column(row: Row) -> str | None:
    """The first column that would lead elsewhere than to the reports of this site."""
    if not NUMBER.fullmatch(row["number"]):
        return "number"
    if not _FILE.fullmatch(row["url"]):
        return "url"
    files = ("latestHTML", "latestPDF")
    return next((name for name in files if row[name] and not _FILE.fullmatch(row[name])), None)


def _day(row: Row) -> date | None:
    try:
        return date.fromisoformat(row["latestPubDate"])
    except ValueError:
        return None


def _requested_days(state: SourceState) -> tuple[date, date]:
    if state.backfill:
        return state.since or date.min, state.until or date.max
    if since := state.custom.get("since"):
        return date.fromisoformat(since), date.max
    return (state.now - FIRST_RUN).date(), date.max


def _reached(state: SourceState, since: date) -> str | None:
    """The first day from which on everything was listed; None where this run leaves a gap."""
    reached: str | None = state.custom.get("since")
    if state.backfill and state.until is not None and (reached or "~") > state.until.isoformat():
        return None
    return min(reached or "~", since.isoformat())


# Tasks ------------------------------------------------------------------------------------


def _task(row: Row, origin: Archived) -> FetchTask:
    text = "latestHTML" if row["latestHTML"] else "latestPDF"
    parts = [_part("metadata", row["url"])]
    if row[text]:
        part = _part("html" if text == "latestHTML" else "pdf", row[text])
        parts.append(replace(part, optional=True))
    return FetchTask(
        source=NAME,
        key=crs_id(row["number"]),
        parts=tuple(parts),
        params={"row": dict(row)},
        fingerprint=ids.json_sha256(row),
        origin=origin,
    )


def _part(name: str, path: str) -> Part:
    return Part(name=name, url=f"{SITE}/{path}", path=path)


def _with_pdf(task: FetchTask, row: Row) -> FetchTask:
    pdf = replace(_part("pdf", row["latestPDF"]), optional=True)
    return replace(task, key=f"{task.key}{_PDF}", parts=(task.parts[0], pdf))


def _report(raw: Raw) -> ParsedRecord | FetchTask:
    row: Row = raw.task.params["row"]
    metadata, html, pdf = (raw.part(name) for name in ("metadata", "html", "pdf"))
    if metadata is None:
        raise WrongContentError(f"{raw.task.key} has no metadata")
    if html is None and row["latestHTML"] and row["latestPDF"] and not raw.task.key.endswith(_PDF):
        return _with_pdf(raw.task, row)
    report = read_everycrs(congress.read_object(metadata.data, metadata.archived.url))
    if report.number != row["number"]:
        raise WrongContentError(f"the metadata of {row['number']} describes {report.number}")
    body = html_body(html) if html else pdf_body(pdf) if pdf else None
    report = report.with_columns({"sha1": row["sha1"] or None})
    return record(report, raw=metadata.archived, body=body)


def _official_id(entry: Mapping[str, Any]) -> str:
    return crs_id(fields.required(entry, "id"))
