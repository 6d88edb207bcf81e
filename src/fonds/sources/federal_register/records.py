"""From one entry of the Federal Register's API to rows and a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any, Final

from fonds import ids
from fonds.citations.federal_register import cite_federal_register
from fonds.errors import DuplicateKeyError, MalformedError
from fonds.model import Archived, Body, Document, NormalizedBody, PageMark, ParsedRecord
from fonds.sources.federal_register import tables

NAME: Final = "federal_register"
SITE: Final = "https://www.federalregister.gov"
PUBLISHER: Final = "Office of the Federal Register"

Entry = Mapping[str, Any]

# The API's list calls the types by label, its conditions and the XML by code.
_KINDS: Final = {"prorule": "proposed_rule", "presdocu": "presidential_document"}
_CITED: Final = re.compile(r"(\d+) FR (\d+)")
_INTEGERS: Final = frozenset({"volume", "start_page", "end_page", "page_length"})
_SET_APART: Final = frozenset({"id", "document_number", "title", "president", "significant"})


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
        raise MalformedError(f"{number}: publication_date {value!r} is no ISO date") from None


def entry_id(entry: Entry) -> str:
    """The document's id."""
    return ids.federal_register_id(entry_number(entry), entry_date(entry))


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
    seen: dict[str, ParsedRecord] = {}
    for parsed in records:
        former = seen.setdefault(parsed.key, parsed)
        if former is parsed:
            yield parsed
        elif former != parsed:
            raise DuplicateKeyError(f"{parsed.key} stands for two different documents")


def _row(entry: Entry) -> dict[str, Any]:
    published = entry_date(entry)
    row = {
        column.name: _value(entry, column.name)
        for column in tables.fr_documents.columns
        if column.name not in _SET_APART
    }
    volume, page = _place(entry)
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


def _place(entry: Entry) -> tuple[int | None, int | None]:
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
        raise MalformedError(f"{field} is {value!r}, which is no number") from None


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
