"""Loose files: which of them describe reports, which are texts, and what the others are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.model import Archived, Body, ParsedRecord, RawPart
from fonds.sources.crs.records import SITE, html_body, pdf_body, record
from fonds.sources.crs.reports import (
    Report,
    read_congress_gov,
    read_everycrs,
    read_search_results,
)
from fonds.sources.families import congress_gov, fields

_JSON: Final = re.compile(rb'\s*(?:\{\s*["}]|\[)')
_MARKUP: Final = re.compile(rb"\s*<|.*<(?:p|div|h[1-6]|table)[ >]", re.DOTALL | re.IGNORECASE)
_BOM: Final = b"\xef\xbb\xbf"

_Described = tuple[Report, Archived]


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
        content = congress_gov.read_object(data, part.archived.url)
        yield from ((report, part.archived) for report in _in_json(content))
    elif data.startswith(b"RowNumber,"):
        yield from ((report, part.archived) for report in read_search_results(data))
    elif data.startswith(b"number,url,"):
        raise WrongContentError("the list of EveryCRSReport.com, by which reports are found")
    elif data.lstrip().startswith((b"<?xml", b"<rss")):
        raise WrongContentError("a feed, which announces reports that the lists hold in full")
    else:
        raise WrongContentError("neither metadata, nor a list, nor the text of CRS reports")


def _in_json(content: Mapping[str, Any]) -> Iterator[Report]:
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
