"""The Federal Register's files, told apart by their bytes: JSON of the API, XML of the text."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.model import Archived, Body, ParsedRecord, RawPart
from fonds.normalize.fr import (
    DOCUMENTS,
    FrXml,
    document_number,
    element_to_markdown,
    read_xml,
)
from fonds.normalize.markdown import plain
from fonds.sources.federal_register.records import (
    Entry,
    once_each,
    record,
    with_body,
)

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

# What else people keep beside these files, and why it holds no document of ours.
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
    found = [parsed for part in parts for parsed in read_loose(part)]
    described = Counter(_number_of(parsed) for parsed in found if not _body_of(parsed))
    texts = {_number_of(parsed): body for parsed in found if (body := _body_of(parsed))}
    joined = {number for number in texts if described[number] == 1}
    for parsed in once_each(
        parsed for parsed in found if not (_body_of(parsed) and _number_of(parsed) in joined)
    ):
        number = _number_of(parsed)
        yield with_body(parsed, texts[number]) if number in joined else parsed


def _number_of(parsed: ParsedRecord) -> str:
    return str(parsed.payload.get("document_number"))


def _body_of(parsed: ParsedRecord) -> Body | None:
    return parsed.document.body if parsed.document else None


def read_loose(part: RawPart) -> Iterator[ParsedRecord]:
    """All records of a file somebody has at hand, whatever it is."""
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
    return Body(
        archived=part.archived,
        format="xml",
        normalizer=NORMALIZER.label,
        normalized=NORMALIZER.to_markdown(part.data),
    )


def entries_of(answer: Any) -> list[Entry]:
    """The entries of a list, of an answer for several numbers, or of a single document."""
    if isinstance(answer, dict) and "document_number" in answer:
        return [answer]
    results = answer.get("results", []) if isinstance(answer, dict) else answer
    if not isinstance(results, list):
        raise WrongContentError("`results` is not a list")
    return _all_objects(results)


def _all_objects(values: list[Any]) -> list[Entry]:
    if not all(isinstance(value, dict) for value in values):
        raise WrongContentError("a list of something else than objects")
    return values


# JSON -------------------------------------------------------------------------------------


def _from_json(answer: Any, archived: Archived) -> Iterator[ParsedRecord]:
    if isinstance(answer, dict):
        _refuse_json(answer)
    entries = entries_of(answer)
    if not entries:
        raise WrongContentError("a list without any document")
    if "document_number" not in entries[0] and {"id", "name"} <= entries[0].keys():
        raise WrongContentError("a list of agencies, which taxonomy reads")
    if "title" not in entries[0]:
        fields = ", ".join(sorted(entries[0]))
        raise WrongContentError(f"entries with the fields {fields} only; a record needs a title")
    for entry in entries:
        yield record(entry, raw=archived)


def _refuse_json(answer: dict[str, Any]) -> None:
    if "results" in answer or "document_number" in answer:
        return
    agencies = answer.get("agencies")
    if isinstance(agencies, list) and "document_categories" in str(agencies[:1]):
        raise WrongContentError(_CONTENTS)
    for key, what in _OTHER_JSON.items():
        if key in answer:
            raise WrongContentError(what)
    if "count" not in answer:
        raise WrongContentError("JSON of some other kind than the Federal Register's")


# XML --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """What stands around a document: the issue's volume and date, the page it begins on."""

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
        yield _xml_record(root, _Place(), part.archived, warnings)
        return
    found = False
    for document, place in _documents_of(root):
        found = True
        yield _xml_record(document, place, part.archived, warnings)
    if not found:
        raise WrongContentError(f"a <{root.tag}> without any document in it")


def _documents_of(issue: Any) -> Iterator[tuple[Any, _Place]]:
    volume, published = _number(issue.findtext("VOL")), _issue_date(issue)
    page: int | None = None
    for element in issue.iter("PRTPAGE", *DOCUMENTS):
        if element.tag == "PRTPAGE":
            page = _number(element.get("P"))
        else:
            yield element, _Place(volume=volume, published=published, page=page)


def _issue_date(issue: Any) -> date | None:
    stated = issue.findtext("DATE")
    if not stated:
        return None
    try:
        return datetime.strptime(stated.strip(), "%A, %B %d, %Y").date()  # noqa: DTZ007 — a day
    except ValueError:
        raise MalformedError(f"the issue is dated {stated!r}") from None


def _xml_record(
    document: Any, place: _Place, archived: Archived, warnings: tuple[str, ...]
) -> ParsedRecord:
    body = Body(
        archived=archived,
        format="xml",
        normalizer=NORMALIZER.label,
        normalized=element_to_markdown(document, warnings),
    )
    return record(_xml_entry(document, place), raw=archived, body=body)


def _xml_entry(document: Any, place: _Place) -> Entry:
    """What the text itself says, under the names the API would use."""
    number = document_number(document)
    if number is None:
        raise MalformedError("the document states no number ([FR Doc. …])")
    first, last = _pages(document, place)
    agencies = _texts(document, "AGENCY", "SUBAGY") or _texts(document, "PRES")[:1]
    headline = " ".join(_texts(document, "PROC", "EXECORDR"))
    return {
        "document_number": number,
        "publication_date": place.published.isoformat() if place.published else None,
        "type": _TYPES[document.tag],
        "title": _xml_title(document),
        "abstract": _section(document, "SUM"),
        "action": _section(document, "ACT"),
        "dates": _section(document, "DATES") or _section(document, "EFFDATE"),
        "volume": place.volume,
        "start_page": first,
        "end_page": last,
        "citation": f"{place.volume} FR {first}" if place.volume and first else None,
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
    """What those elements say in the head of the document."""
    found = (
        _reading(element)
        for element in document.iter(*tags)
        if element.getparent().tag in {"PREAMB", "PROCLA", "EXECORD"}
    )
    return [text for text in found if text]


def _section(document: Any, tag: str) -> str | None:
    section = document.find(f"PREAMB/{tag}")
    if section is None:
        return None
    return " ".join(_reading(paragraph) for paragraph in section.iterchildren("P", "FP")) or None


def _reading(element: Any) -> str:
    text = element_to_markdown(element).markdown
    return plain(re.sub(r"^#+ ", "", text))


def _pages(document: Any, place: _Place) -> tuple[int | None, int | None]:
    marks = [_number(mark.get("P")) for mark in document.iter("PRTPAGE")]
    pages = [page for page in marks if page is not None]
    if not pages:
        return place.page, place.page
    # A presidential document begins a page; the mark stands behind its first words.
    if document.tag == "PRESDOCU" or _begins_with_page(document):
        return pages[0], max(pages)
    return place.page or pages[0] - 1, max(pages)


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
