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
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

from fonds import ids
from fonds.errors import SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Discovery,
    FetchTask,
    Listing,
    ParsedRecord,
    Part,
    Raw,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.crs.files import read_loose
from fonds.sources.crs.records import NAME, PUBLISHER, SITE, html_body, pdf_body, record
from fonds.sources.crs.reports import (
    LIST_COLUMNS,
    NUMBER,
    Row,
    publish_day,
    read_csv,
    read_everycrs,
)
from fonds.sources.crs.tables import TABLES
from fonds.sources.families import congress_gov, fields

LIST: Final = f"{SITE}/reports.csv"
FIRST_RUN: Final = timedelta(days=30)

_FILE: Final = re.compile(r"(?:reports|files)/[\w.-]*\w")
_PDF: Final = "#pdf"


class Crs:
    """The source `crs`."""

    info = SourceInfo(
        name=NAME,
        title="CRS reports",
        organisation=PUBLISHER,
        jurisdiction="United States",
        version="1.0.0",
        # EveryCRSReport.com is brought up to date in the night.
        schedule="20 8 * * *",
        rate=Rate(per_second=2, burst=4),
        tables=TABLES,
        at_least=1,
        published_at="date of the newest version (latestPubDate)",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The reports of the list, the oldest first, each with its newest text."""
        answer = await ask(LIST, path="reports.csv")
        rows, unusable = _read_list(answer.data)
        since, until = _asked_for(state)
        for day, row in rows:
            if since <= day <= until:
                yield _task(row, answer.archived)
        days = [day for day, _ in rows]
        keys = frozenset(ids.crs_id(row["number"]) for _, row in rows)
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
        entries = await congress_gov.read_list(
            ask, "crsreport", "CRSReports", path="audit/crsreport", identify=_official_id
        )
        days = {_official_id(entry): publish_day(entry) or date.min for entry in entries}
        if since is None and until is None:
            since = max(days.values()) - FIRST_RUN
        years: dict[int, set[str]] = {}
        for known, day in days.items():
            if (since or date.min) <= day <= (until or date.max):
                years.setdefault(day.year, set()).add(known)
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


def _asked_for(state: SourceState) -> tuple[date, date]:
    if state.backfill:
        return state.since or date.min, state.until or date.max
    if since := state.custom.get("since"):
        return date.fromisoformat(since), date.max
    return (state.now - FIRST_RUN).date(), date.max


def _reached(state: SourceState, since: date) -> str | None:
    """The first day from which on everything was listed; None where this run leaves a gap."""
    known: str | None = state.custom.get("since")
    if state.backfill and state.until is not None and (known or "~") > state.until.isoformat():
        return None
    return min(known or "~", since.isoformat())


# Tasks ------------------------------------------------------------------------------------


def _task(row: Row, origin: Archived) -> FetchTask:
    text = "latestHTML" if row["latestHTML"] else "latestPDF"
    parts = [_part("metadata", row["url"])]
    if row[text]:
        part = _part("html" if text == "latestHTML" else "pdf", row[text])
        parts.append(replace(part, optional=True))
    return FetchTask(
        source=NAME,
        key=ids.crs_id(row["number"]),
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
    report = read_everycrs(congress_gov.read_object(metadata.data, metadata.archived.url))
    if report.number != row["number"]:
        raise WrongContentError(f"the metadata of {row['number']} describes {report.number}")
    body = html_body(html) if html else pdf_body(pdf) if pdf else None
    report = report.with_columns({"sha1": row["sha1"] or None})
    return record(report, raw=metadata.archived, body=body)


def _official_id(entry: Mapping[str, Any]) -> str:
    return ids.crs_id(fields.required(entry, "id"))
