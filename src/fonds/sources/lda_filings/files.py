"""Files of the publisher, told apart by their bytes; what holds no filing or party is named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.model import Archived, ParsedRecord, RawPart
from fonds.sources.families.fields import describe, mapping, section
from fonds.sources.lda_filings import legacy
from fonds.sources.lda_filings.api import (
    Entry,
    read_client,
    read_filing,
    read_lobbyist,
    read_registrant,
)
from fonds.sources.lda_filings.filing import Filing, Row
from fonds.sources.lda_filings.records import party_record, records_of

_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_UTF_8: Final = b"\xef\xbb\xbf"
_ZIP: Final = b"PK\x03\x04"

_FILING: Final = frozenset({"filing_uuid", "lobbying_activities"})
# A field that only this kind of answer has, and what it is.
_NO_FILINGS: Final = {
    "filer_type": "a report on contributions (LD-203), not on lobbying",
    "document_id": "a form (LD-1 or LD-2) as another program read it; it names no filing",
    "detail": "a refusal of the API",
    "constants/filing/filingtypes": "the index of the API",
}


def read_together(parts: Sequence[RawPart]) -> Iterator[ParsedRecord]:
    """The records of loose files."""
    filings: list[tuple[Filing, Archived]] = []
    parties: list[ParsedRecord] = []
    for part in parts:
        if is_xml(part.data):
            filings += ((filing, part.archived) for filing in legacy.read_filings(part.data))
            continue
        for entry in _entries(read_json(part.data)):
            if entry.keys() >= _FILING:
                filings.append((read_filing(entry), part.archived))
            else:
                parties += _parties(entry)
    yield from records_of(filings, parties)


def read_json(data: bytes) -> Any:
    """A JSON answer; anything else in its place is named."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        pass
    start = data[:512].lstrip().lower()
    if start.startswith(b"<"):
        raise WrongContentError("an HTML page where JSON was expected")
    if b"http_interactions:" in start:
        raise WrongContentError("a recording of requests by another program, not an answer itself")
    if start.startswith(_ZIP.lower()):
        raise WrongContentError("a zip archive; unpack it and give the XML files inside")
    if start.startswith((b"{", b"[")) or not start:
        raise MalformedError("not well-formed JSON" if start else "the file is empty")
    raise WrongContentError("neither JSON of the API nor XML of the quarterly files")


def is_xml(data: bytes) -> bool:
    """Whether this is a quarterly file rather than an answer of the API."""
    return data.startswith(_UTF_16) or data.removeprefix(_UTF_8).lstrip()[:1] == b"<"


def _entries(content: Any) -> list[Entry]:
    if isinstance(content, list):
        raise WrongContentError(f"a list of names for codes with {len(content)} entries")
    entry = mapping(content, "the answer")
    found = entry.get("results", [entry])
    if not isinstance(found, list) or not found:
        raise WrongContentError("a list of the API without any entry")
    return [mapping(item) for item in found]


def _parties(entry: Entry) -> Iterator[ParsedRecord]:
    registrant = read_registrant(section(entry, "registrant"))
    found: Mapping[str, Row | None]
    if "house_registrant_id" in entry:
        found = {"lda_registrants": read_registrant(entry)}
    elif "client_id" in entry:
        found = {"lda_registrants": registrant, "lda_clients": read_client(entry)}
    elif "last_name" in entry:
        found = {"lda_registrants": registrant, "lda_lobbyists": read_lobbyist(entry)}
    else:
        raise WrongContentError(_what_it_is(entry))
    for table, row in found.items():
        if row is not None:
            yield party_record(table, row)


def _what_it_is(entry: Entry) -> str:
    for field, kind in _NO_FILINGS.items():
        if field in entry:
            return kind
    return f"neither a filing nor a party to one: {describe(entry)}"
