"""From the compilation of a statute, its amendments taken in, to its row and its document."""

from __future__ import annotations

import re
from typing import Any, Final

from fonds import ids
from fonds.citations.public_laws import cite_compilation
from fonds.errors import MalformedError
from fonds.model import Document, ParsedRecord, RawPart
from fonds.sources.public_laws.laws import DETAILS, NAME, xml_body
from fonds.sources.public_laws.numbers import LawNumber, read_law_number
from fonds.sources.public_laws.printed import iso_day, printed, printed_all
from fonds.sources.public_laws.tables import statute_compilations

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
        "id": ids.govinfo_id(f"COMPS-{file}"),
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
    spelled = printed_all(root, "meta/containsShortTitle")
    same = (name for name in spelled if name.casefold() == title.casefold() != name)
    return next((name for name in same if not name.isupper()), title)


def _compiled(root: Any) -> LawNumber | None:
    for cited in printed_all(root, "meta/citableAs"):
        if "Law" in cited and (law := read_law_number(cited)):
            return law
    # A few cite nothing; their sections are identified by the number all the same.
    for element in root.iterfind(".//*[@identifier]"):
        if found := _IDENTIFIED.match(element.get("identifier")):
            return LawNumber(congress=int(found[1]), number=int(found[2]))
    return None


def _through(root: Any) -> LawNumber | None:
    # `meta` repeats the act itself in some files; the note that people read is right.
    for path in ("preface/editionNote/currentThroughPublicLaw", "meta/currentThroughPublicLaw"):
        for stated in printed_all(root, path):
            if law := read_law_number(stated):
                return law
    return None
