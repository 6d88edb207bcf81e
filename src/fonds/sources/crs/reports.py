"""Reports as EveryCRSReport.com, congress.gov and crsreports.congress.gov describe them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.encodings import decode
from fonds.sources.formats import fields
from fonds.sources.formats.days import WASHINGTON, day_in_washington
from fonds.sources.formats.feeds import text_only

EVERYCRS: Final = "EveryCRSReport.com"
CONGRESS_GOV: Final = "congress.gov"
LIST_COLUMNS: Final = ("number", "url", "sha1", "latestPubDate", "latestPDF", "latestHTML")
"""Of reports.csv; its title came later."""
SEARCH_COLUMNS: Final = ("ProductNumber", "CoverDate", "Title", "Url", "Version", "PublicationDate")

NUMBER: Final = re.compile(r"[0-9A-Z][0-9A-Z-]*")
"""The number of a report, with only characters that can be in an address."""

Row = Mapping[str, str]

_AMERICAN: Final = "%m/%d/%Y"


@dataclass(frozen=True, kw_only=True, slots=True)
class CrsVersion:
    """One version of a report; its fields are columns."""

    title: str
    version_id: str | None = None
    date: str | None = None
    retrieved: str | None = None
    source: str | None = None
    source_link: str | None = None
    summary: str | None = None
    html: str | None = None
    pdf: str | None = None
    html_sha1: str | None = None
    pdf_sha1: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """A topic of a report, in the words of one list; its fields are columns."""

    name: str
    source: str | None = None
    topic_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CrsReport:
    """A report with its versions, in the publisher's order."""

    number: str
    versions: tuple[CrsVersion, ...]
    topics: tuple[Topic, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Further columns of crs_reports."""
    is_whole: bool = False
    """With all its versions, not only the newest."""

    @property
    def newest(self) -> CrsVersion:
        """The version with the latest date; of several, the first in the list."""
        return max(self.versions, key=lambda version: version.date or "")

    def with_columns(self, columns: Mapping[str, Any]) -> CrsReport:
        """The same report with columns that it does not know by itself."""
        stated = {name: value for name, value in self.columns.items() if value is not None}
        return replace(self, columns={**columns, **stated})

    def completed_by(self, other: CrsReport | None) -> CrsReport:
        """The same report with what another publisher knows besides: authors, topics, status."""
        if other is None or other is self:
            return self
        return replace(
            self.with_columns(other.columns),
            topics=tuple(dict.fromkeys((*self.topics, *other.topics))),
        )


def report_number(text: str | None) -> str:
    """The number of a report, fit for addresses."""
    number = (text or "").strip().upper()
    if not NUMBER.fullmatch(number):
        raise MalformedError(f"{number[:40]!r} is not the number of a CRS report")
    return number


# EveryCRSReport.com -----------------------------------------------------------------------


def read_everycrs(content: Mapping[str, Any]) -> CrsReport:
    """The report that a metadata file describes."""
    # In the oldest files `id` is a number of a database, and `number` the report's.
    number = report_number(fields.text(content, "number") or fields.required(content, "id"))
    versions = tuple(
        _everycrs_version(version, number) for version in fields.sections(content, "versions")
    )
    if not versions:
        raise WrongContentError(f"the metadata of {number} names no version of it")
    report = CrsReport(number=number, versions=versions, is_whole=True)
    newest = fields.sections(content, "versions")[versions.index(report.newest)]
    topics = (Topic(name=name, source=EVERYCRS) for name in _names(content, "topics"))
    return replace(
        report,
        topics=tuple(dict.fromkeys((*_everycrs_topics(newest), *topics))),
        columns={
            "type": fields.text(content, "type"),
            "type_id": fields.text(content, "typeId"),
            "source": fields.text(content, "source"),
            "active": _flag(content, "active"),
        },
    )


def _everycrs_version(version: Mapping[str, Any], number: str) -> CrsVersion:
    formats = {
        (fields.text(file, "format") or "").upper(): file
        for file in fields.sections(version, "formats")
    }
    html, pdf = formats.get("HTML", {}), formats.get("PDF", {})
    return CrsVersion(
        title=text_only(fields.text(version, "title")) or number,
        version_id=fields.text(version, "id"),
        date=_day(fields.text(version, "date")),
        retrieved=fields.text(version, "retrieved"),
        source=fields.text(version, "source"),
        source_link=fields.text(version, "sourceLink"),
        summary=text_only(fields.text(version, "summary")),
        html=fields.text(html, "filename"),
        pdf=fields.text(pdf, "filename"),
        html_sha1=fields.text(html, "sha1"),
        pdf_sha1=fields.text(pdf, "sha1"),
    )


def _everycrs_topics(version: Mapping[str, Any]) -> Iterator[Topic]:
    for topic in fields.sections(version, "topics"):
        if name := text_only(fields.text(topic, "name")):
            yield Topic(
                name=name, source=fields.text(topic, "source"), topic_id=fields.text(topic, "id")
            )


# congress.gov -----------------------------------------------------------------------------


def read_congress_gov(entry: Mapping[str, Any]) -> CrsReport:
    """The report that the API describes, whole or as an entry of its list."""
    number = report_number(fields.required(entry, "id"))
    published = _timestamp(entry, "publishDate")
    formats = {
        (fields.text(file, "format") or "").upper(): fields.text(file, "url")
        for file in fields.sections(entry, "formats")
    }
    version = CrsVersion(
        title=text_only(fields.text(entry, "title")) or number,
        version_id=fields.text(entry, "version"),
        date=day_in_washington(published).isoformat() if published else None,
        source=CONGRESS_GOV,
        summary=text_only(fields.text(entry, "summary")),
        html=formats.get("HTML"),
        pdf=formats.get("PDF"),
    )
    topics = (text_only(fields.text(topic, "topic")) for topic in fields.sections(entry, "topics"))
    return CrsReport(
        number=number,
        versions=(version,),
        topics=tuple(Topic(name=name, source=CONGRESS_GOV) for name in topics if name),
        columns={
            "content_type": fields.text(entry, "contentType"),
            "status": fields.text(entry, "status"),
            "version": fields.whole(entry, "version"),
            "publish_date": published,
            "update_date": _timestamp(entry, "updateDate"),
            "authors": _authors(entry),
            "related_materials": _related(entry),
        },
    )


def publish_day(entry: Mapping[str, Any]) -> date | None:
    """The day in Washington on which an entry of the API's list was published."""
    published = _timestamp(entry, "publishDate")
    return day_in_washington(published) if published else None


def _authors(entry: Mapping[str, Any]) -> list[str] | None:
    names = (
        text_only(fields.text(author, "author")) for author in fields.sections(entry, "authors")
    )
    return list(dict.fromkeys(name for name in names if name)) or None


def _related(entry: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    related: list[dict[str, Any]] = []
    for material in fields.sections(entry, "relatedMaterials"):
        row = {
            "title": text_only(fields.text(material, "title")),
            "congress": fields.whole(material, "congress"),
            "type": fields.text(material, "type"),
            "number": fields.text(material, "number"),
        }
        # The API repeats bills that a report cites several times.
        if row not in related:
            related.append(row)
    return related or None


# Lists ------------------------------------------------------------------------------------


def read_csv(data: bytes, columns: tuple[str, ...], what: str) -> Iterator[Row]:
    """The rows of a list that has at least these columns; anything else in its place is refused."""
    reader = csv.DictReader(io.StringIO(decode(data).text, newline=""), strict=True)
    try:
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise WrongContentError(f"{what} has no column {missing[0]}; it is some other file")
        for row in reader:
            if None in row or None in row.values():
                raise MalformedError(f"line {reader.line_num} of {what} is cut off or too long")
            yield row
    except csv.Error as error:
        raise MalformedError(f"{what}, after line {reader.line_num}: {error}") from error


def read_search_results(data: bytes) -> Iterator[CrsReport]:
    """The reports of SearchResults.csv, which has its two dates in two formats."""
    for row in read_csv(data, SEARCH_COLUMNS, "SearchResults.csv"):
        number = report_number(row["ProductNumber"])
        version = CrsVersion(
            title=text_only(row["Title"]) or number,
            version_id=row["Version"] or None,
            date=_american_day(row, "CoverDate"),
            source="crsreports.congress.gov",
            pdf=row["Url"] or None,
        )
        yield CrsReport(
            number=number,
            versions=(version,),
            columns={
                "version": fields.whole(row, "Version"),
                "publication_date": _american_day(row, "PublicationDate"),
            },
        )


# Values -----------------------------------------------------------------------------------


def _names(content: Mapping[str, Any], name: str) -> Iterator[str]:
    yield from filter(None, map(text_only, fields.texts(content, name)))


def _flag(content: Mapping[str, Any], name: str) -> bool | None:
    value = content.get(name)
    return value if isinstance(value, bool) else None


def _day(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).date().isoformat()
    except ValueError as error:
        raise MalformedError(f"`date` should be a day and is {text[:40]!r}") from error


def _american_day(row: Row, name: str) -> str | None:
    text = row[name].strip()
    if not text:
        return None
    try:
        return datetime.strptime(text, _AMERICAN).date().isoformat()  # noqa: DTZ007 — a day has no zone
    except ValueError as error:
        raise MalformedError(f"`{name}` should be a day and is {text[:40]!r}") from error


def _timestamp(entry: Mapping[str, Any], name: str) -> datetime | None:
    text = fields.text(entry, name)
    if text is None:
        return None
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError as error:
        raise MalformedError(f"`{name}` should be a moment and is {text[:40]!r}") from error
    # A bare day is one of Washington, where the others are midnight too.
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=WASHINGTON)
