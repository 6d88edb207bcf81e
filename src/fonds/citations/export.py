"""The citation of a document for other programs: CSL-JSON 1.0.2 and BibTeX."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, Literal

_Document = Mapping[str, Any]

_MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)

# BibTeX counts braces before TeX reads backslashes: an escaped brace must still have its pair.
_ESCAPED: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_"},
}
_ESCAPES: Final = str.maketrans(_ESCAPED)
_URL_ESCAPES: Final = str.maketrans({"{": "%7B", "}": "%7D", "\\": "%5C", " ": "%20", '"': "%22"})
_NOT_IN_A_KEY: Final = re.compile(r"[^A-Za-z0-9:.+/-]+")


def csl_json(document: _Document, csl_type: str) -> dict[str, Any]:
    """A document's row as an item of CSL-JSON 1.0.2; what is unknown is left out."""
    item: dict[str, Any] = {
        "id": document["id"],
        "type": csl_type,
        "title": document["title"],
        "author": [{"literal": document["source_org"]}],
        "publisher": document["source_org"],
        "URL": document["source_url"],
        "note": document["citation_string"],
    }
    if document.get("summary"):
        item["abstract"] = document["summary"]
    if issued := _date_parts(document.get("published_at")):
        item["issued"] = {"date-parts": [issued]}
    retrieved: datetime | None = document.get("retrieved_at")
    if retrieved is not None:
        item["accessed"] = {"date-parts": [[retrieved.year, retrieved.month, retrieved.day]]}
    return item


def bibtex(document: _Document, csl_type: str) -> str:
    """A document's row as a BibTeX entry, in UTF-8, with everything special escaped."""
    is_report = csl_type == "report"
    organisation = _escaped(document["source_org"])
    # Two pairs of braces keep a style from lowering capitals and from taking names apart.
    fields = {
        "title": f"{{{{{_escaped(document['title'])}}}}}",
        "author": f"{{{{{organisation}}}}}",
        "institution" if is_report else "organization": f"{{{organisation}}}",
        **_bibtex_date(document.get("published_at")),
        "url": f"{{{document['source_url'].translate(_URL_ESCAPES)}}}",
        "note": f"{{{_escaped(document['citation_string'])}}}",
    }
    key = _NOT_IN_A_KEY.sub("-", document["id"])
    lines = [f"  {name} = {value}," for name, value in fields.items()]
    return "\n".join([f"@{'techreport' if is_report else 'misc'}{{{key},", *lines, "}"])


def _bibtex_date(published_at: str | None) -> dict[str, str]:
    parts = _date_parts(published_at)
    fields = {"year": f"{{{parts[0]}}}"} if parts else {}
    return {**fields, "month": _MONTHS[parts[1] - 1]} if len(parts) > 1 else fields


def _date_parts(published_at: str | None) -> list[int]:
    """Year, month and day of ISO text, as many as it states."""
    stated = (published_at or "")[:10]
    try:
        if len(stated) == len("2026-03-04"):
            day = date.fromisoformat(stated)
            return [day.year, day.month, day.day]
        parts = [int(part) for part in stated.split("-")]
        date(*[*parts, 1, 1][:3])
    except ValueError:
        return []
    return parts


def _escaped(text: str) -> str:
    return " ".join(text.split()).translate(_ESCAPES)


Style = Literal["bluebook", "csl", "bibtex"]


def cited_as(document: Mapping[str, Any], style: Style, csl_type: str) -> str:
    """The citation of a document's row, ready to paste; `csl_type` is its type in CSL."""
    if style == "csl":
        return json.dumps([csl_json(document, csl_type)], ensure_ascii=False, indent=2)
    return bibtex(document, csl_type) if style == "bibtex" else str(document["citation_string"])
