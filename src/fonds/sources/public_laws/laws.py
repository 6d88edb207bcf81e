"""From a file of one law to its rows and its document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, Final

from fonds import ids
from fonds.citations.public_laws import cite_public_laws
from fonds.errors import MalformedError, WrongContentError
from fonds.model import Body, Document, ParsedRecord, RawPart
from fonds.normalize.uslm import Uslm
from fonds.sources.families.bill_numbers import find_bill_numbers
from fonds.sources.public_laws import tables
from fonds.sources.public_laws.numbers import LawNumber, read_law_number
from fonds.sources.public_laws.printed import iso_day, printed, printed_all, written_day

NAME: Final = "public_laws"
DETAILS: Final = "https://www.govinfo.gov/app/details"

_NORMALIZER: Final = Uslm()
_WHOLE_LAW: Final = frozenset({"act", "bill", "jointResolution", "law", "resolution"})
_STATUTES: Final = re.compile(r"([0-9]{1,3}) Stat\. ([0-9A-Z][0-9A-Za-z.-]*)", re.IGNORECASE)
_BILL: Final = re.compile(r"/us/bill/([0-9]{1,3})/([a-z]+)/([0-9]{1,5})")
_CODE: Final = re.compile(r"/us/usc/t([0-9]+[A-Za-z]*)(?:/s([^/]+))?")
_NOTE: Final = re.compile(r"\bnotes?\b")
_QUOTES: Final = "\u2018\u2019\u201c\u201d\"' "
_BOX_CORNER: Final = "\u2510"
"""A trace of GPO's typesetting before the numbers of reports."""

_Row = dict[str, Any]


def law_record(root: Any, part: RawPart) -> ParsedRecord:
    """The record of a law with its sections, its places in the Code, its history and its text."""
    number = stated_number(root)
    row = _row(root, number)
    children = (
        *_below(number.id, tables.public_law_sections.name, _sections(root)),
        *_below(number.id, tables.public_law_usc_references.name, _code_references(root)),
        *_below(number.id, tables.public_law_history.name, _history(root)),
    )
    return ParsedRecord(
        source=NAME,
        table=tables.public_laws.name,
        key=number.id,
        payload=row,
        children=children,
        document=_document(number, row, part),
    )


def stated_number(root: Any) -> LawNumber:
    """The number that the head of a file states."""
    for cited in printed_all(root, "meta/citableAs"):
        if "Law" in cited and (number := read_law_number(cited)):
            return number
    numbered = printed(root.find("preface/docNumber")) or ""
    kind = printed(root.find("preface/type")) or printed(root.find("meta/type")) or "Public Law"
    if (number := read_law_number(f"{kind} {numbered}")) is None:
        raise MalformedError("the law states no number; it should be cited as Public Law 119–21")
    return number


def check_is(number: LawNumber, task_key: str) -> None:
    """Refuse a file that holds another law than the one asked for."""
    if number.id != task_key:
        raise WrongContentError(f"the file of {task_key} holds {number.id}")


def xml_body(part: RawPart) -> Body:
    """The whole file as a body."""
    return Body(
        archived=part.archived,
        format="xml",
        normalizer=_NORMALIZER.label,
        normalized=_NORMALIZER.to_markdown(part.data),
    )


# The law ----------------------------------------------------------------------------------


def _row(root: Any, number: LawNumber) -> _Row:
    approved = _approved(root)
    volume, page = _first_page(root)
    return {
        "id": number.id,
        "package_id": number.package,
        "congress": number.congress,
        "doc_number": number.number,
        "public_private": "private" if number.is_private else "public",
        "doc_title": printed(root.find("main/longTitle/docTitle")),
        "official_title": _official_title(root),
        "short_title": _short_title(root),
        "approved_date": approved.isoformat() if approved else None,
        "stat_citation": f"{volume} Stat. {page}" if volume else None,
        "stat_volume": volume,
        "stat_page": page,
        "bill_ref": _bill(root, number.congress),
        "processed_date": printed(root.find("meta/processedDate")),
    }


def _official_title(root: Any) -> str | None:
    if title := printed(root.find("main/longTitle/officialTitle")):
        return title
    # `Public Law 115–11: Disapproving the rule …`
    stated = printed(root.find("meta/title")) or ""
    return stated.partition(": ")[2] or stated or None


def _short_title(root: Any) -> str | None:
    for element in root.iter("shortTitle"):
        if element.get("role") in _WHOLE_LAW and not _is_quoted(element):
            return (printed(element) or "").strip(_QUOTES) or None
    return None


def _approved(root: Any) -> date | None:
    # Files of 2018 have no approvedDate; the line below the text is in all of them, but for
    # laws made over a veto.
    stated = iso_day(printed(root.find("meta/approvedDate")))
    return stated or written_day(printed(root.find("main/action")))


def _first_page(root: Any) -> tuple[int | None, str | None]:
    # Private laws of the first months are printed without a page: `?1`.
    for text in (*printed_all(root, "meta/citableAs"), *_marks(root)):
        if found := _STATUTES.fullmatch(text):
            return int(found[1]), found[2]
    return None, None


def _marks(root: Any) -> list[str]:
    return [text for page in root.iter("page") if (text := " ".join(page.itertext()).strip())][:1]


def _bill(root: Any, congress: int) -> str | None:
    margin = root.findall("main/longTitle//sidenote")
    history = root.findall("legislativeHistory/heading")
    for place in (*margin, *history):
        for reference in place.iter("ref"):
            if found := _BILL.fullmatch(reference.get("href") or ""):
                return ids.bill_id(int(found[1]), found[2], int(found[3]))
        if named := find_bill_numbers(" ".join(place.itertext())):
            return named[0].document_id(congress)
    return None


def _document(number: LawNumber, row: _Row, part: RawPart) -> Document:
    whole = " ".join(filter(None, (row["doc_title"], row["official_title"])))
    return Document(
        id=number.id,
        source=NAME,
        kind="private_law" if number.is_private else "public_law",
        title=row["short_title"] or whole or number.cited,
        summary=whole if row["short_title"] else None,
        source_url=f"{DETAILS}/{number.package}",
        source_org="U.S. Congress",
        published_at=row["approved_date"],
        citation_string=cite_public_laws(
            congress=number.congress,
            number=number.number,
            approved=iso_day(row["approved_date"]),
            is_private=number.is_private,
        ),
        raw=part.archived,
        body=xml_body(part),
        aliases=tuple(_aliases(number, row)),
    )


def _aliases(number: LawNumber, row: _Row) -> Iterator[str]:
    named = f"{number.congress}-{number.number}"
    kinds = ("Priv. L.", "Private Law") if number.is_private else ("Pub. L.", "Public Law")
    yield from (f"{kind} {named}" for kind in kinds)
    # Short laws share a page, so this may name two of them.
    if row["stat_citation"]:
        yield row["stat_citation"]
    yield number.package
    folder = f"{'pvtl' if number.is_private else 'publ'}{number.number}"
    page = f"https://www.congress.gov/{number.congress}/plaws/{folder}/{number.package}"
    yield f"{page}.htm"
    yield f"{page}.pdf"


# What stands below it ---------------------------------------------------------------------


def _below(law: str, table: str, rows: Iterable[_Row]) -> Iterator[ParsedRecord]:
    for place, row in enumerate(rows, 1):
        yield ParsedRecord(
            source=NAME,
            table=table,
            key=f"{law}#{table}/{place}",
            payload={"law_id": law, "ord": place, **row},
        )


def _is_quoted(element: Any) -> bool:
    return next(element.iterancestors("quotedContent"), None) is not None


def _sections(root: Any) -> Iterator[_Row]:
    page = None
    for element in root.iter("page", "section"):
        if element.tag == "page":
            found = _STATUTES.fullmatch(" ".join(element.itertext()).strip())
            page = found[2] if found else None
        elif not _is_quoted(element):
            num = element.find("num")
            value = None if num is None else num.get("value")
            yield {
                "num": value or printed(num),
                "heading": printed(element.find("heading")),
                "identifier": element.get("identifier"),
                "page": page,
            }


def _code_references(root: Any) -> Iterator[_Row]:
    for note in root.iter("sidenote"):
        for reference in note.iter("ref"):
            href, text = reference.get("href") or "", printed(reference)
            found = _CODE.match(href)
            if found and text:
                section = found[2].replace("\u2013", "-") if found[2] else None
                yield {
                    "href": href,
                    "text": text,
                    "title": found[1],
                    "section": section,
                    "is_note": _NOTE.search(text) is not None,
                }


def _history(root: Any) -> list[_Row]:
    rows: list[_Row] = []
    for note in root.findall("legislativeHistory/note"):
        for row in _entries(note):
            # A line too long for the column goes on in a paragraph of its own.
            if rows and row["text"][0].islower():
                rows[-1]["text"] += f" {row['text']}"
            else:
                rows.append(row)
    return rows


def _entries(note: Any) -> Iterator[_Row]:
    heading = printed(note.find("heading")) or printed(note.find("headingText"))
    heading = heading.rstrip(":") if heading else None
    if running := _running(note):
        yield {"heading": heading, "subheading": None, "text": running}
    subheading = None
    for element in note.iterchildren("subheading", "p"):
        text = printed(element)
        if element.tag == "subheading":
            subheading = text.rstrip(":") if text else None
        elif text:
            yield {"heading": heading, "subheading": subheading, "text": text}


def _running(note: Any) -> str | None:
    """Text that stands in no paragraph, such as `No. 113–44 (Comm. on the Judiciary)`."""
    pieces = [note.text or ""]
    for element in note.iterchildren():
        if element.tag not in ("heading", "headingText", "subheading", "p"):
            pieces.append(printed(element) or "" if isinstance(element.tag, str) else "")
        pieces.append(element.tail or "")
    return " ".join("".join(pieces).replace(_BOX_CORNER, "").split()) or None
