"""Laws and compilations of statutes: from their files to rows and documents.

A law is cited by the Bluebook's rule 12.4, with the year it was approved in: `Pub. L. No. 119-21
(2026).` The compilation of a statute as amended is cited as the act it compiles, with the law it
is current through: `Geothermal Steam Act of 1970, Pub. L. No. 91-581 (as amended through Pub. L.
No. 116-260, Dec. 27, 2020).`

The text of an element of USLM is its printed line, without sidenotes and page numbers. Columns are
named after USLM's elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from lxml import etree
from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.citations.forms import bluebook_date
from fonds.errors import MalformedError, WrongContentError
from fonds.model import Body, Document, ParsedRecord, RawPart
from fonds.normalize.uslm import Uslm
from fonds.sources.formats.congress import bill_id, find_bill_numbers, law_id
from fonds.sources.formats.days import printed_day
from fonds.sources.formats.gpo_files import govinfo_id
from fonds.sources.formats.records import child_records, child_table, normalized_body
from fonds.stores.columns import document_key, owned_by, reference, texts
from fonds.stores.tables import metadata

# Marginal notes, page marks and footnotes are inside titles and headings since 2020.
_NOT_TEXT: Final = frozenset({"sidenote", "page", "footnote", "editorialNote"})
_SOFT_HYPHEN: Final = "\u00ad"
_DAY: Final = re.compile(r"([A-Z][a-z]+) ([0-9]{1,2}), ([0-9]{4})")


def printed(element: Any | None) -> str | None:
    """The words of an element on one line; None where there are none."""
    if element is None:
        return None
    text = "".join(_strings(element)).replace(_SOFT_HYPHEN, "")
    return " ".join(text.split()) or None


def printed_all(root: Any, path: str) -> list[str]:
    """The words of all elements at a path, without blank ones."""
    return [text for element in root.findall(path) if (text := printed(element))]


def iso_day(stated: str | None) -> date | None:
    """A day as an attribute or `meta` states it; None where it does not."""
    if not stated:
        return None
    try:
        return date.fromisoformat(stated)
    except ValueError:
        raise MalformedError(f"{stated[:40]!r} is not an ISO date") from None


def _first_day(text: str | None) -> date | None:
    """The first day a text names, such as `March 27, 2017`."""
    match = _DAY.search(text or "")
    return printed_day(match[0], "%B %d, %Y") if match else None


def _strings(root: Any) -> Iterator[str]:
    # By events, not by recursion: quoted structures nest as deep as they like.
    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        if event == "start":
            if element is not root and etree.QName(element).localname in _NOT_TEXT:
                walk.skip_subtree()
            else:
                yield element.text or ""
        elif element is not root:
            yield element.tail or ""


def cite_public_laws(
    *, congress: int, number: int, approved: date | None, is_private: bool = False
) -> str:
    """`Pub. L. No. 119-21 (2026).`; without a date no year, as the Congress sat in two."""
    year = f" ({approved.year})" if approved else ""
    return f"{law_number(congress=congress, number=number, is_private=is_private)}{year}."


def cite_compilation(
    *, title: str, law: str | None, through: str | None, amended: date | None
) -> str:
    """The act, the law it was made by where that is stated, and how far amendments are taken in.

    `law` and `through` are numbers as `law_number` writes them.
    """
    name = f"{title}, {law}" if law else title
    if through in (None, law):
        return f"{name}."
    when = f", {bluebook_date(amended)}" if amended else ""
    return f"{name} (as amended through {through}{when})."


def law_number(*, congress: int, number: int, is_private: bool = False) -> str:
    """`Pub. L. No. 119-21`, or `Priv. L. No. 119-3`."""
    return f"{'Priv' if is_private else 'Pub'}. L. No. {congress}-{number}"


# `Public Law 119–1`, `P.L. 116–326`, `Private Law 112–1`; some compilations state `116–326` alone.
_LAW_NUMBER: Final = re.compile(
    r"(?:P(?:ub(?:lic)?|(?P<private>riv(?:ate)?))?\.?\s*L(?:aw)?\.?\s*(?:No\.\s*)?)?"
    r"(?P<congress>[0-9]{1,3})\s?[-\u2010-\u2014]\s?(?P<number>[0-9]{1,4})(?![0-9])"
)
_FILE: Final = re.compile(r"PLAW-([0-9]{1,3})(publ|pvtl)([0-9]{1,4})(?:\.xml)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class LawNumber:
    """A public or private law of some Congress."""

    congress: int
    number: int
    is_private: bool = False

    @property
    def id(self) -> str:
        """The law's document: `plaw:119-21`."""
        return law_id(self.congress, self.number, private=self.is_private)

    @property
    def package(self) -> str:
        """`PLAW-119publ21`, its name at govinfo."""
        return f"PLAW-{self.congress}{'pvtl' if self.is_private else 'publ'}{self.number}"

    @property
    def cited(self) -> str:
        """`Pub. L. No. 119-21`."""
        return law_number(congress=self.congress, number=self.number, is_private=self.is_private)


def read_law_number(text: str) -> LawNumber | None:
    """The law a text begins with, or None where it begins otherwise."""
    match = _LAW_NUMBER.match(text.strip())
    if match is None:
        return None
    return LawNumber(
        congress=int(match["congress"]),
        number=int(match["number"]),
        is_private=match["private"] is not None,
    )


def read_file_name(name: str) -> LawNumber | None:
    """The law a file of the bulk folders holds, or None for other files."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    return LawNumber(congress=int(match[1]), number=int(match[3]), is_private=match[2] == "pvtl")


public_laws: Final = Table(
    "public_laws",
    metadata,
    document_key("plaw:119-21, or plaw:119-pvt-3 for a private law."),
    Column("package_id", Text, nullable=False, comment="At govinfo: PLAW-119publ21."),
    Column("congress", Integer, nullable=False, comment="That passed it."),
    Column("doc_number", Integer, nullable=False, comment="Its number among that Congress's."),
    Column("public_private", Text, nullable=False, comment="public or private."),
    *texts(
        doc_title="An Act, or Joint Resolution.",
        official_title="To …, as enacted.",
        short_title="By which it may be cited, where it says so.",
        approved_date="Day it became law, ISO 8601.",
        stat_citation="First page in the Statutes at Large: 139 Stat. 3.",
    ),
    Column("stat_volume", Integer, comment="Volume of the Statutes at Large."),
    Column("stat_page", Text, comment="First page there."),
    *reference("bill", "bills", "bill:119-hr-2102, of which it was made."),
    *texts(processed_date="Day GPO converted the file, ISO 8601."),
    Index("ix_public_laws_congress_doc_number", "congress", "doc_number"),
    Index("ix_public_laws_stat_volume_stat_page", "stat_volume", "stat_page"),
    comment="Public and private laws as enacted.",
)


def _child(name: str, *columns: Column[Any], comment: str) -> Table:
    return child_table(name, owned_by("public_laws", "law_id"), *columns, comment=comment)


public_law_sections: Final = _child(
    "public_law_sections",
    *texts(
        num="As numbered: 101; NULL for the section without a number.",
        heading="As printed.",
        identifier="GPO's own: /us/pl/119/21/s101; NULL before 2020 or so.",
        page="Page of the Statutes at Large it begins on.",
    ),
    comment="Sections of a law; those it quotes to put them into other laws are left out.",
)

public_law_usc_references: Final = _child(
    "public_law_usc_references",
    Column("href", Text, nullable=False, comment="/us/usc/t42/s1861."),
    Column("text", Text, nullable=False, comment="As printed in the margin: 42 USC 1861 note."),
    Column("title", Text, comment="Title of the Code, its appendix with a letter: 5a."),
    Column("section", Text, index=True, comment="Section of the Code; NULL for a whole title."),
    Column("is_note", Boolean, nullable=False, comment="Classified as a note to that section."),
    comment="Where the Code holds parts of a law, as its sidenotes say.",
)

public_law_history: Final = _child(
    "public_law_history",
    Column("heading", Text, comment="HOUSE REPORTS, CONGRESSIONAL RECORD, …"),
    Column("subheading", Text, comment="Volume and year, where entries are parted by them."),
    Column("text", Text, nullable=False, comment="Oct. 9, considered and passed House."),
    comment="Legislative history, entry by entry, as printed at the end of a law.",
)

statute_compilations: Final = Table(
    "statute_compilations",
    metadata,
    document_key("comps:COMPS-1088."),
    Column("file_id", Integer, nullable=False, comment="Number of the House Legislative Counsel."),
    Column("title", Text, nullable=False, comment="Of the act, in its own spelling."),
    *texts(
        citable_as="The law it compiles, as stated: Public Law 84–885, as amended.",
        approved_date="Day the act became law, ISO 8601.",
        amended_date="Day the last amendment taken in became law, ISO 8601.",
        processed_date="Day GPO converted the file, ISO 8601.",
    ),
    *reference("law", "public_laws", "plaw:84-885, which it compiles."),
    *reference("through_law", "public_laws", "plaw:116-326, the last amendment taken in."),
    comment="Statutes with all amendments taken in, as the House Legislative Counsel keeps them.",
)

TABLES: Final = (
    public_laws,
    public_law_sections,
    public_law_usc_references,
    public_law_history,
    statute_compilations,
)
"""Parents before children."""


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
        *child_records(NAME, public_law_sections, number.id, _sections(root)),
        *child_records(NAME, public_law_usc_references, number.id, _code_references(root)),
        *child_records(NAME, public_law_history, number.id, _history(root)),
    )
    return ParsedRecord(
        source=NAME,
        table=public_laws.name,
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
    return normalized_body(part, "xml", _NORMALIZER)


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
    return stated or _first_day(printed(root.find("main/action")))


def _first_page(root: Any) -> tuple[int | None, str | None]:
    # Private laws of the first months are printed without a page: `?1`.
    for text in (*printed_all(root, "meta/citableAs"), *_marks(root)):
        if match := _STATUTES.fullmatch(text):
            return int(match[1]), match[2]
    return None, None


def _marks(root: Any) -> list[str]:
    return [text for page in root.iter("page") if (text := " ".join(page.itertext()).strip())][:1]


def _bill(root: Any, congress: int) -> str | None:
    margin = root.findall("main/longTitle//sidenote")
    history = root.findall("legislativeHistory/heading")
    for element in (*margin, *history):
        for ref in element.iter("ref"):
            if match := _BILL.fullmatch(ref.get("href") or ""):
                return bill_id(int(match[1]), match[2], int(match[3]))
        if numbers := find_bill_numbers(" ".join(element.itertext())):
            return numbers[0].document_id(congress)
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
    numbered = f"{number.congress}-{number.number}"
    kinds = ("Priv. L.", "Private Law") if number.is_private else ("Pub. L.", "Public Law")
    yield from (f"{kind} {numbered}" for kind in kinds)
    # Short laws share a page, so this may name two of them.
    if row["stat_citation"]:
        yield row["stat_citation"]
    yield number.package
    folder = f"{'pvtl' if number.is_private else 'publ'}{number.number}"
    page = f"https://www.congress.gov/{number.congress}/plaws/{folder}/{number.package}"
    yield f"{page}.htm"
    yield f"{page}.pdf"


# What is below it ---------------------------------------------------------------------


def _is_quoted(element: Any) -> bool:
    return next(element.iterancestors("quotedContent"), None) is not None


def _sections(root: Any) -> Iterator[_Row]:
    page = None
    for element in root.iter("page", "section"):
        if element.tag == "page":
            match = _STATUTES.fullmatch(" ".join(element.itertext()).strip())
            page = match[2] if match else None
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
        for ref in note.iter("ref"):
            href, text = ref.get("href") or "", printed(ref)
            match = _CODE.match(href)
            if match and text:
                section = match[2].replace("\u2013", "-") if match[2] else None
                yield {
                    "href": href,
                    "text": text,
                    "title": match[1],
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
    """Text outside of paragraphs, such as `No. 113–44 (Comm. on the Judiciary)`."""
    parts = [note.text or ""]
    for element in note.iterchildren():
        if element.tag not in ("heading", "headingText", "subheading", "p"):
            parts.append(printed(element) or "" if isinstance(element.tag, str) else "")
        parts.append(element.tail or "")
    return " ".join("".join(parts).replace(_BOX_CORNER, "").split()) or None


_IDENTIFIED: Final = re.compile(r"/us/sComp/([0-9]{1,3})/([0-9]{1,4})(?:/|$)")


def compilation_record(root: Any, part: RawPart) -> ParsedRecord:
    """The record of a compilation with its text."""
    law, through = _compiled(root), _through(root)
    row = _compilation_row(root, law, through)
    cited = cite_compilation(
        title=row["title"],
        law=law.cited if law else None,
        through=through.cited if through else None,
        amended=iso_day(row["amended_date"]),
    )
    package = f"COMPS-{row['file_id']}"
    document = Document(
        id=row["id"],
        source=NAME,
        kind="compilation",
        title=row["title"],
        source_url=f"{DETAILS}/{package}",
        source_org="Office of the Legislative Counsel, U.S. House of Representatives",
        published_at=row["amended_date"] or row["approved_date"],
        citation_string=cited,
        raw=part.archived,
        body=xml_body(part),
        aliases=(package,),
    )
    table = statute_compilations.name
    return ParsedRecord(source=NAME, table=table, key=row["id"], payload=row, document=document)


def _compilation_row(root: Any, law: LawNumber | None, through: LawNumber | None) -> dict[str, Any]:
    file = printed(root.find("meta/property[@role='fileId']")) or ""
    if not file.isdecimal():
        raise MalformedError("the compilation states no file number")
    amended = next((day.get("date") for day in root.iterfind("preface/editionNote/date")), None)
    approved = iso_day(printed(root.find("meta/approvedDate")))
    return {
        "id": govinfo_id(f"COMPS-{file}"),
        "file_id": int(file),
        "title": _title(root),
        "citable_as": next(iter(printed_all(root, "meta/citableAs")), None),
        "approved_date": approved.isoformat() if approved else None,
        "amended_date": amended if iso_day(amended) else None,
        "processed_date": printed(root.find("meta/processedDate")),
        "law_ref": law.id if law else None,
        "through_law_ref": through.id if through else None,
    }


def _title(root: Any) -> str:
    title = printed(root.find("meta/title"))
    if title is None:
        raise MalformedError("the compilation has no title")
    # Older acts are titled in capitals; among their short titles is the same in its own spelling.
    titles = printed_all(root, "meta/containsShortTitle")
    same = (name for name in titles if name.casefold() == title.casefold() != name)
    return next((name for name in same if not name.isupper()), title)


def _compiled(root: Any) -> LawNumber | None:
    for cited in printed_all(root, "meta/citableAs"):
        if "Law" in cited and (law := read_law_number(cited)):
            return law
    # A few cite nothing; their sections are identified by the number all the same.
    for element in root.iterfind(".//*[@identifier]"):
        if match := _IDENTIFIED.match(element.get("identifier")):
            return LawNumber(congress=int(match[1]), number=int(match[2]))
    return None


def _through(root: Any) -> LawNumber | None:
    # `meta` repeats the act itself in some files; the note that people read is right.
    for path in ("preface/editionNote/currentThroughPublicLaw", "meta/currentThroughPublicLaw"):
        for stated in printed_all(root, path):
            if law := read_law_number(stated):
                return law
    return None
