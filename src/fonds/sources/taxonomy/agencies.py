"""Agencies as the Federal Register's API lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.model import ParsedRecord
from fonds.sources.families import fields
from fonds.sources.taxonomy.tables import AGENCY_TEXTS, agencies
from fonds.sources.taxonomy.terms import NAME

# What else comes as JSON, by a key of its first entry, and why it holds no row of ours.
_OTHER_AGENCY_LISTS: Final = {
    "cfr_references": "eCFR's list of agencies, which does not number them as documents do",
    "value": "constants of the lobbying disclosure API, which are its own",
    "document_number": "documents of the Federal Register, which federal_register reads",
}


def agency_records(loaded: Any) -> Iterator[ParsedRecord]:
    """The rows of the API's list, or of its answer for one agency."""
    listed = _listed(loaded)
    if not listed:
        raise WrongContentError("a list without any agency")
    for other, what in _OTHER_AGENCY_LISTS.items():
        if other in listed[0]:
            raise WrongContentError(what)
    if not {"id", "slug"} <= listed[0].keys():
        raise WrongContentError(f"expected agencies, found {fields.describe(listed[0])}")
    yield from map(_record, listed)


def _listed(loaded: Any) -> list[Mapping[str, Any]]:
    if isinstance(loaded, list):
        return [fields.mapping(entry) for entry in loaded]
    # eCFR wraps its list; the API answers for one agency with the agency itself.
    wrapped = fields.mapping(loaded).get("agencies")
    return [loaded] if wrapped is None else fields.sections(loaded, "agencies")


def _record(agency: Mapping[str, Any]) -> ParsedRecord:
    number = fields.whole(agency, "id")
    if number is None:
        raise MalformedError("an agency has no id")
    row: dict[str, Any] = {column: _folded(agency, column) for column in AGENCY_TEXTS}
    row |= {
        "id": number,
        "name": " ".join(fields.required(agency, "name").split()),
        "parent_ref": fields.whole(agency, "parent_id"),
    }
    return ParsedRecord(source=NAME, table=agencies.name, key=f"agency/{number}", payload=row)


def _folded(agency: Mapping[str, Any], field: str) -> str | None:
    # Descriptions were pasted from web pages, line breaks and NUL bytes included.
    value = (fields.text(agency, field) or "").replace("\0", "")
    return " ".join(value.split()) or None
