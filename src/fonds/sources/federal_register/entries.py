"""Entries of the Federal Register's API, and its files, as rows and documents with their citations.

Files are distinguished by their bytes: JSON of the API, XML of the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final

from fonds import ids
from fonds.citations.forms import bluebook_date
from fonds.errors import DuplicateKeyError, MalformedError, WrongContentError
from fonds.model import Archived, Body, Document, NormalizedBody, PageMark, ParsedRecord, RawPart
from fonds.normalize.fr import DOCUMENTS, FrXml, document_number, element_to_markdown, read_xml
from fonds.normalize.markdown import visible_text
from fonds.sources.federal_register import tables
from fonds.sources.formats.records import normalized_body

_YEAR: Final = re.compile(r"(?:[A-Z]\d+-)?((?:19|20)\d\d)-\d")


def cite_federal_register(
    *, number: str, volume: int | None, page: int | None, published: date | None
) -> str:
    """The citation as a brief would print it, `91 Fed. Reg. 12345 (Mar. 4, 2026).`, ready to paste.

    Without volume or page the document's own number replaces them, and without a date the
    year that number begins with: `FR Doc. 2016-12100 (2016).`
    """
    position = f"{volume} Fed. Reg. {page}" if volume and page else f"FR Doc. {number}"
    return f"{position} ({day})." if (day := _day(number, published)) else f"{position}."


def _day(number: str, published: date | None) -> str | None:
    if published is not None:
        return bluebook_date(published)
    match = _YEAR.match(number)
    return match[1] if match else None


NAME: Final = "federal_register"
SITE: Final = "https://www.federalregister.gov"
PUBLISHER: Final = "Office of the Federal Register"

Entry = Mapping[str, Any]

# The API's list calls the types by label, its conditions and the XML by code.
_KINDS: Final = {"prorule": "proposed_rule", "presdocu": "presidential_document"}
_CITED: Final = re.compile(r"(\d+) FR (\d+)")
_INTEGERS: Final = frozenset({"volume", "start_page", "end_page", "page_length"})
_OWN_COLUMNS: Final = frozenset({"id", "document_number", "title", "president", "significant"})

# Since 2010 a Federal Register number starts with its four-digit year, and a correction with
# its own prefix before it; older ones (`00-111`) were handed out again within days.
_UNIQUE_FR_NUMBER: Final = re.compile(r"(?:[A-Z]\d+-)?\d{4}-\d+")


def entry_number(entry: Entry) -> str:
    """The document's number, whatever dash it was written with."""
    number = entry.get("document_number")
    if not isinstance(number, str) or not number.strip():
        raise MalformedError("an entry has no document_number")
    return ids.federal_register_number(number)


def entry_date(entry: Entry) -> date | None:
    """The day of the issue, where the entry states it."""
    value = entry.get("publication_date")
    if value is None:
        return None
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        number = entry_number(entry)
        raise MalformedError(f"{number}: publication_date {value!r} is not an ISO date") from None


def federal_register_id(number: str, published: date | None) -> str:
    """`fr:2026-08558`; a number of the repeating kind carries its date: `fr:00-111@2000-01-14`."""
    cleaned = ids.federal_register_number(number)
    if published is None or _UNIQUE_FR_NUMBER.fullmatch(cleaned):
        return f"fr:{cleaned}"
    return f"fr:{cleaned}@{published.isoformat()}"


def entry_id(entry: Entry) -> str:
    """The document's id."""
    return federal_register_id(entry_number(entry), entry_date(entry))


def record(entry: Entry, *, raw: Archived, body: Body | None = None) -> ParsedRecord:
    """The row of an entry with all rows below it and the document it describes."""
    row = _row(entry)
    children = tuple(_children(row["id"], entry))
    parsed = ParsedRecord(
        source=NAME,
        table=tables.fr_documents.name,
        key=row["id"],
        payload=row,
        children=children,
        document=_document(row, entry, raw),
    )
    return parsed if body is None else with_body(parsed, body)


def with_body(parsed: ParsedRecord, body: Body) -> ParsedRecord:
    """The record of an entry, with a text that came by itself."""
    assert parsed.document is not None
    assert body.normalized is not None
    paged = replace(body, normalized=_on_first_page(body.normalized, parsed.payload["start_page"]))
    return replace(parsed, document=replace(parsed.document, body=paged))


def once_each(records: Iterable[ParsedRecord]) -> Iterator[ParsedRecord]:
    """The records, one that is repeated word for word only once."""
    by_key: dict[str, ParsedRecord] = {}
    for parsed in records:
        previous = by_key.setdefault(parsed.key, parsed)
        if previous is parsed:
            yield parsed
        elif previous != parsed:
            raise DuplicateKeyError(f"{parsed.key} means two different documents")


def _row(entry: Entry) -> dict[str, Any]:
    published = entry_date(entry)
    row = {
        column.name: _value(entry, column.name)
        for column in tables.fr_documents.columns
        if column.name not in _OWN_COLUMNS
    }
    volume, page = _volume_and_page(entry)
    president, significant = entry.get("president"), entry.get("significant")
    return row | {
        "id": entry_id(entry),
        "document_number": entry_number(entry),
        "publication_date": published.isoformat() if published else None,
        "title": _title(entry),
        "volume": volume,
        "start_page": page,
        "president": _text(president.get("identifier") if isinstance(president, dict) else None),
        "significant": significant if isinstance(significant, bool) else None,
    }


def _value(entry: Entry, field: str) -> Any:
    return _integer(entry, field) if field in _INTEGERS else _text(entry.get(field))


def _volume_and_page(entry: Entry) -> tuple[int | None, int | None]:
    volume, page = _integer(entry, "volume"), _integer(entry, "start_page")
    cited = _CITED.fullmatch(_text(entry.get("citation")) or "")
    return (volume or int(cited[1]), page or int(cited[2])) if cited else (volume, page)


def _integer(entry: Entry, field: str) -> int | None:
    value = entry.get(field)
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise MalformedError(f"{field} is {value!r}, which is not a number") from None


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return " ".join(str(value).replace("\0", "").split()) or None


def _title(entry: Entry) -> str:
    # A few hundred early documents have no title of their own.
    contents = [_text(entry.get(field)) for field in ("toc_subject", "toc_doc")]
    return (
        _text(entry.get("title"))
        or " ".join(part for part in contents if part)
        or f"{_text(entry.get('type')) or 'Document'} {entry_number(entry)}"
    )


def _children(document_id: str, entry: Entry) -> Iterator[ParsedRecord]:
    yield from _below(tables.document_agencies.name, "agency", document_id, _agencies(entry))
    references = [
        {
            "title": _integer(reference, "title"),
            "part": _text(reference.get("part")),
            "chapter": _text(reference.get("chapter")),
            "citation_url": _text(reference.get("citation_url")),
        }
        for reference in _objects(entry, "cfr_references")
    ]
    yield from _below(tables.document_cfr_references.name, "cfr", document_id, references)
    for table, label, field, column in (
        (tables.document_dockets, "docket", "docket_ids", "docket_id"),
        (tables.document_rins, "rin", "regulation_id_numbers", "regulation_id_number"),
        (tables.document_topics, "topic", "topics", "topic"),
    ):
        values = [_text(value) for value in entry.get(field) or ()]
        rows = [{column: value} for value in dict.fromkeys(values) if value]
        yield from _below(table.name, label, document_id, rows)


def _below(
    table: str, label: str, document_id: str, rows: Iterable[dict[str, Any]]
) -> Iterator[ParsedRecord]:
    for ord_, row in enumerate(rows):
        yield ParsedRecord(
            source=NAME,
            table=table,
            key=f"{document_id}#{label}/{ord_}",
            payload={"document_id": document_id, "ord": ord_, **row},
        )


def _agencies(entry: Entry) -> Iterator[dict[str, Any]]:
    # Names the publisher could not match have a raw_name and nothing else.
    for agency in _objects(entry, "agencies"):
        yield {
            "raw_name": _text(agency.get("raw_name")),
            "name": _text(agency.get("name")),
            "slug": _text(agency.get("slug")),
            "agency_ref": _integer(agency, "id"),
        }


def _objects(entry: Entry, field: str) -> list[dict[str, Any]]:
    values = entry.get(field) or []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise MalformedError(f"{field} is not a list of objects")
    return values


def _document(row: Mapping[str, Any], entry: Entry, raw: Archived) -> Document:
    number, published = row["document_number"], row["publication_date"]
    return Document(
        id=row["id"],
        source=NAME,
        kind=_kind(row["type"]),
        title=row["title"],
        summary=row["abstract"],
        source_url=row["html_url"] or f"{SITE}/d/{number}",
        source_org=_organisation(entry),
        published_at=published,
        citation_string=cite_federal_register(
            number=number,
            volume=row["volume"],
            page=row["start_page"],
            published=entry_date(entry),
        ),
        raw=raw,
        aliases=tuple(_aliases(row)),
    )


def _kind(type_: str | None) -> str:
    if type_ is None:
        return "document"
    slug = re.sub(r"\W+", "_", type_.lower())
    return _KINDS.get(slug, slug)


def _organisation(entry: Entry) -> str:
    names = [agency["name"] or agency["raw_name"] for agency in _agencies(entry)]
    return "; ".join(dict.fromkeys(name for name in names if name)) or PUBLISHER


def _aliases(row: Mapping[str, Any]) -> Iterator[str]:
    number = row["document_number"]
    if row["volume"] and row["start_page"]:
        yield f"{row['volume']} FR {row['start_page']}"
        yield f"{row['volume']} Fed. Reg. {row['start_page']}"
    yield f"FR Doc. {number}"
    if row["id"] != f"fr:{number}":
        yield f"fr:{number}"
    if order := row["executive_order_number"]:
        yield f"E.O. {order}"
        yield f"Executive Order {order}"
    if proclamation := row["proclamation_number"]:
        yield f"Proclamation {proclamation}"


def _on_first_page(body: NormalizedBody, page: int | None) -> NormalizedBody:
    # The XML marks where a page begins; what comes before the first mark is on the start page.
    first = body.pages[0] if body.pages else None
    if page is None or (first and first.offset == 0):
        return body
    later = body.pages[1:] if first and first.page == str(page) else body.pages
    return replace(body, pages=(PageMark(offset=0, page=str(page)), *later))


NORMALIZER: Final = FrXml()

_TYPES: Final = {
    "RULE": "Rule",
    "PRORULE": "Proposed Rule",
    "NOTICE": "Notice",
    "PRESDOCU": "Presidential Document",
    "CORRECT": "Correction",
}
_RIN: Final = re.compile(r"\d{4}-[A-Z]{2}-?\d{2}")
_CFR: Final = re.compile(
    r"(\d+)\s+CFR\s+(?:Chapter\s+([IVXLC]+)|Parts?\s+([\d\s,and]+))", re.IGNORECASE
)
_EXECUTIVE_ORDER: Final = re.compile(r"Executive Order (\d+)")
_PROCLAMATION: Final = re.compile(r"Proclamation (\d+)")

# Other files that are kept with these, and why they contain no document.
_OTHER_JSON: Final = {
    "suggestions": "a search suggestion, which names documents but does not describe them",
    "granules": "govinfo's list of an issue, which gives titles without type, agency or page",
    "packageId": "govinfo's description of the issue or granule, without page or text",
    "status": "an error message of the API",
    "code": "an error message of the API",
}
_CONTENTS: Final = (
    "the table of contents of an issue, which lists numbers but describes no document; "
    "`audit` reads it"
)


def read_together(parts: Sequence[RawPart]) -> Iterator[ParsedRecord]:
    """All records of files that belong together: a text joins the entry that has its number."""
    records = [parsed for part in parts for parsed in read_loose(part)]
    described = Counter(_number_of(parsed) for parsed in records if not _parsed_body(parsed))
    texts = {_number_of(parsed): body for parsed in records if (body := _parsed_body(parsed))}
    joined = {number for number in texts if described[number] == 1}
    for parsed in once_each(
        parsed for parsed in records if not (_parsed_body(parsed) and _number_of(parsed) in joined)
    ):
        number = _number_of(parsed)
        yield with_body(parsed, texts[number]) if number in joined else parsed


def _number_of(parsed: ParsedRecord) -> str:
    return str(parsed.payload.get("document_number"))


def _parsed_body(parsed: ParsedRecord) -> Body | None:
    return parsed.document.body if parsed.document else None


def read_loose(part: RawPart) -> Iterator[ParsedRecord]:
    """All records of a file of any of the formats."""
    start = part.data[:2048].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        raise MalformedError("the file is empty")
    if start.startswith((b"{", b"[")):
        yield from once_each(_from_json(read_json(part.data), part.archived))
    elif start.startswith(b"<"):
        yield from once_each(_from_xml(part, start))
    elif b"http_interactions:" in start:
        raise WrongContentError(
            "a cassette of recorded HTTP exchanges, not a file of the publisher"
        )
    else:
        raise WrongContentError("neither JSON nor XML, so no file of the Federal Register")


def read_json(data: bytes) -> Any:
    """A JSON answer; an HTML page in its place is named as such."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        pass
    start = data[:512].lstrip().lower()
    if start.startswith(b"<"):
        raise WrongContentError("an HTML page where JSON was expected")
    raise MalformedError("the file is empty" if not start else "not well-formed JSON")


def read_body(part: RawPart) -> Body:
    """A full text with what the normalizer makes of it."""
    return normalized_body(part, "xml", NORMALIZER)


def entries_of(content: Any) -> list[Entry]:
    """The entries of a list, of an answer for several numbers, or of a single document."""
    if isinstance(content, dict) and "document_number" in content:
        return [content]
    results = content.get("results", []) if isinstance(content, dict) else content
    if not isinstance(results, list):
        raise WrongContentError("`results` is not a list")
    return _all_objects(results)


def _all_objects(values: list[Any]) -> list[Entry]:
    if not all(isinstance(value, dict) for value in values):
        raise WrongContentError("a list of something else than objects")
    return values


# JSON -------------------------------------------------------------------------------------


def _from_json(content: Any, archived: Archived) -> Iterator[ParsedRecord]:
    if isinstance(content, dict):
        _refuse_json(content)
    entries = entries_of(content)
    if not entries:
        raise WrongContentError("a list without any document")
    if "document_number" not in entries[0] and {"id", "name"} <= entries[0].keys():
        raise WrongContentError("a list of agencies, which taxonomy reads")
    if "title" not in entries[0]:
        fields = ", ".join(sorted(entries[0]))
        raise WrongContentError(f"entries with the fields {fields} only; a record needs a title")
    for entry in entries:
        yield record(entry, raw=archived)


def _refuse_json(content: dict[str, Any]) -> None:
    if "results" in content or "document_number" in content:
        return
    agencies = content.get("agencies")
    if isinstance(agencies, list) and "document_categories" in str(agencies[:1]):
        raise WrongContentError(_CONTENTS)
    for key, what in _OTHER_JSON.items():
        if key in content:
            raise WrongContentError(what)
    if "count" not in content:
        raise WrongContentError("JSON of some other kind than the Federal Register's")


# XML --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _IssuePosition:
    """The position of a document: the issue's volume and date, the page it begins on."""

    volume: int | None = None
    published: date | None = None
    page: int | None = None


def _from_xml(part: RawPart, start: bytes) -> Iterator[ParsedRecord]:
    if b"schemas.gpo.gov/xml/uslm" in start:
        raise WrongContentError(
            "an issue in USLM, GPO's beta format; the same issue is read from its FEDREG XML"
        )
    root, warnings = read_xml(part.data)
    if root.tag in DOCUMENTS:
        yield _xml_record(root, _IssuePosition(), part.archived, warnings)
        return
    has_documents = False
    for document, position in _documents_of(root):
        has_documents = True
        yield _xml_record(document, position, part.archived, warnings)
    if not has_documents:
        raise WrongContentError(f"a <{root.tag}> without any document in it")


def _documents_of(issue: Any) -> Iterator[tuple[Any, _IssuePosition]]:
    volume, published = _number(issue.findtext("VOL")), _issue_date(issue)
    page: int | None = None
    for element in issue.iter("PRTPAGE", *DOCUMENTS):
        if element.tag == "PRTPAGE":
            page = _number(element.get("P"))
        else:
            yield element, _IssuePosition(volume=volume, published=published, page=page)


def _issue_date(issue: Any) -> date | None:
    stated = issue.findtext("DATE")
    if not stated:
        return None
    try:
        return datetime.strptime(stated.strip(), "%A, %B %d, %Y").date()  # noqa: DTZ007 — a day
    except ValueError:
        raise MalformedError(f"the issue is dated {stated!r}") from None


def _xml_record(
    document: Any, position: _IssuePosition, archived: Archived, warnings: tuple[str, ...]
) -> ParsedRecord:
    body = Body(
        archived=archived,
        format="xml",
        normalizer=NORMALIZER.label,
        normalized=element_to_markdown(document, warnings),
    )
    return record(_xml_entry(document, position), raw=archived, body=body)


def _xml_entry(document: Any, position: _IssuePosition) -> Entry:
    """The facts in the text itself, under the names that the API would use."""
    number = document_number(document)
    if number is None:
        raise MalformedError("the document states no number ([FR Doc. …])")
    first, last = _pages(document, position)
    agencies = _texts(document, "AGENCY", "SUBAGY") or _texts(document, "PRES")[:1]
    headline = " ".join(_texts(document, "PROC", "EXECORDR"))
    return {
        "document_number": number,
        "publication_date": position.published.isoformat() if position.published else None,
        "type": _TYPES[document.tag],
        "title": _xml_title(document),
        "abstract": _section(document, "SUM"),
        "action": _section(document, "ACT"),
        "dates": _section(document, "DATES") or _section(document, "EFFDATE"),
        "volume": position.volume,
        "start_page": first,
        "end_page": last,
        "citation": f"{position.volume} FR {first}" if position.volume and first else None,
        "agencies": [{"raw_name": name} for name in agencies],
        "docket_ids": [docket.strip("[]") for docket in _texts(document, "DEPDOC")],
        "regulation_id_numbers": _RIN.findall(" ".join(_texts(document, "RIN"))),
        "cfr_references": _cfr_references(" ".join(_texts(document, "CFR"))),
        "executive_order_number": _first(_EXECUTIVE_ORDER, headline),
        "proclamation_number": _first(_PROCLAMATION, headline),
    }


def _xml_title(document: Any) -> str | None:
    # Where there are two subjects, the first repeats the agency.
    subjects = _texts(document, "SUBJECT")
    if subjects:
        return subjects[-1]
    heading = next(document.iter("HD"), None) if document.tag == "PRESDOCU" else None
    return None if heading is None else _reading(heading)


def _texts(document: Any, *tags: str) -> list[str]:
    """The texts of those elements in the head of the document."""
    elements = (
        _reading(element)
        for element in document.iter(*tags)
        if element.getparent().tag in {"PREAMB", "PROCLA", "EXECORD"}
    )
    return [text for text in elements if text]


def _section(document: Any, tag: str) -> str | None:
    section = document.find(f"PREAMB/{tag}")
    if section is None:
        return None
    return " ".join(_reading(paragraph) for paragraph in section.iterchildren("P", "FP")) or None


def _reading(element: Any) -> str:
    text = element_to_markdown(element).markdown
    return visible_text(re.sub(r"^#+ ", "", text))


def _pages(document: Any, position: _IssuePosition) -> tuple[int | None, int | None]:
    marks = [_number(mark.get("P")) for mark in document.iter("PRTPAGE")]
    pages = [page for page in marks if page is not None]
    if not pages:
        return position.page, position.page
    # A presidential document begins a page; the mark follows its first words.
    if document.tag == "PRESDOCU" or _begins_with_page(document):
        return pages[0], max(pages)
    return position.page or pages[0] - 1, max(pages)


def _begins_with_page(document: Any) -> bool:
    for element in document.iter("*"):
        if element.tag == "PRTPAGE":
            return True
        if (element.text or "").strip():
            return False
    return False


def _cfr_references(stated: str) -> list[dict[str, Any]]:
    references: list[dict[str, Any]] = []
    for title, chapter, parts in _CFR.findall(stated):
        if chapter:
            references.append({"title": int(title), "chapter": chapter})
        references += [{"title": int(title), "part": part} for part in re.findall(r"\d+", parts)]
    return references


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1] if match else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdecimal() else None
