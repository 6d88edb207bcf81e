"""Lists of subject terms: `<liv>` with headings (`top-term`) and the terms below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fonds.errors import DuplicateKeyError, MalformedError, WrongContentError
from fonds.model import ParsedRecord
from fonds.sources.families import xml_files
from fonds.sources.taxonomy.tables import policy_areas, subjects

NAME: Final = "taxonomy"
SUBJECTS: Final = "subjects"
NAMES: Final = "names"
OLD_SUBJECTS: Final = "liv"

# All three lists look alike; these headings stand in one of them only.
_HEADING_OF: Final = {
    SUBJECTS: "Government Operations and Politics",
    NAMES: "Geographic Areas, Entities, and Committees",
    OLD_SUBJECTS: "Defense policy",
}

Headings = Mapping[str, list[str]]
"""The terms below each heading, in the publisher's order."""


def read_terms(data: bytes, vocabulary: str | None = None) -> Iterator[ParsedRecord]:
    """The terms of a list; of the one in use, its headings as policy areas before them."""
    headings = _headings(xml_files.read(data, "liv"))
    found = _vocabulary(headings)
    if vocabulary not in (None, found):
        raise WrongContentError(f"the list of {vocabulary} holds something else: {found}")
    if found == SUBJECTS:
        yield from _areas(headings)
    for heading, terms in headings.items():
        for place, term in enumerate(terms, 1):
            yield _term(found, heading, term, place)


def _vocabulary(headings: Headings) -> str:
    for vocabulary, heading in _HEADING_OF.items():
        if heading in headings:
            return vocabulary
    raise WrongContentError("a list of terms, but none of the three that CRS has published")


def _headings(root: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for top in root.iterchildren("top-term"):
        heading = _value(top)
        if heading in found:
            raise DuplicateKeyError(f"the heading {heading!r} stands twice in one list")
        # A few terms are listed twice below one heading; it is one term all the same.
        found[heading] = list(dict.fromkeys(map(_value, top.iterchildren("term"))))
    if not any(found.values()):
        raise WrongContentError("a list without any term")
    return found


def _value(element: Any) -> str:
    value = " ".join((element.get("value") or "").split())
    if not value:
        raise MalformedError(f"a <{element.tag}> has no value")
    return value


def _areas(headings: Headings) -> Iterator[ParsedRecord]:
    for place, heading in enumerate(headings, 1):
        yield ParsedRecord(
            source=NAME,
            table=policy_areas.name,
            key=f"policy_area/{heading}",
            payload={"name": heading, "ord": place},
        )


def _term(vocabulary: str, heading: str, term: str, place: int) -> ParsedRecord:
    return ParsedRecord(
        source=NAME,
        table=subjects.name,
        key=f"subject/{vocabulary}/{heading}/{term}",
        payload={
            "vocabulary": vocabulary,
            "top_term": heading,
            "name": term,
            "ord": place,
            "policy_area_ref": heading if vocabulary == SUBJECTS else None,
        },
    )
