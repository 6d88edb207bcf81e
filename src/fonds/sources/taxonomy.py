"""Terms and agencies that other sources name: CRS subject terms, policy areas, FR agencies.

Quirks of the publishers:
- The Congressional Research Service publishes its terms as pages of congress.gov only, behind a
  challenge that no program passes. GovTrack keeps them as files: `liv111.xml` (terms since 2009,
  with the policy areas as headings), `crsnet.xml` (places, agencies and committees used as terms
  since 2009), `liv.xml` (the Legislative Indexing Vocabulary until 2008). They are copies of 2015
  with later additions by hand; a bill may bear a term that is in none of them.
- All three files look alike; a loose one is known by its headings.
- The headings of `liv111.xml` are 33: the 32 policy areas congress.gov counts, and `Private
  Legislation`, which bills bear as well.
- A term of `liv.xml` is below as many headings as it belongs to, and one of them appears twice
  below the same: `Elementary and secondary education`, `State aid to local areas`.
- Agencies are numbered by federalregister.gov alone. Its own seed files (`agencies_sections.csv`,
  with carriage returns for line ends), eCFR's list and the public inspection list name agencies
  without that number, so that no row can be made of them.
- Nothing here is a document: there is no `published_at`, and nothing for an audit to count.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from fonds.errors import DuplicateKeyError, MalformedError, WrongContentError
from fonds.model import Discovery, FetchTask, ParsedRecord, Part, Raw, RawPart, SourceState
from fonds.sources.base import Ask, Rate, SourceInfo
from fonds.sources.formats import fields, xml, yaml
from fonds.stores.columns import task_key, texts
from fonds.stores.tables import metadata

# Tables of the taxonomy source: the terms and agencies that other sources name.

AGENCY_TEXTS: Final = {
    "short_name": "USDA.",
    "slug": "The name in addresses: agriculture-department.",
    "url": "Its page at federalregister.gov.",
    "agency_url": "Its own site.",
    "json_url": "Its record in the API.",
    "description": "What it does, as the Federal Register describes it.",
}

policy_areas: Final = Table(
    "policy_areas",
    metadata,
    Column("name", Text, primary_key=True, comment="As bills state it: Agriculture and Food."),
    Column("ord", Integer, nullable=False, comment="Place in the publisher's list, from 1."),
    task_key(),
    comment="Policy areas, one of which the Congressional Research Service assigns to a bill.",
)

subjects: Final = Table(
    "subjects",
    metadata,
    Column(
        "vocabulary",
        Text,
        primary_key=True,
        comment="subjects or names, in use since 2009; liv, the vocabulary until 2008.",
    ),
    Column("top_term", Text, primary_key=True, comment="The heading the term is listed under."),
    Column("name", Text, primary_key=True, comment="The term, as bills state it."),
    Column("ord", Integer, nullable=False, comment="Place below its heading, from 1."),
    Column("policy_area_ref", Text, comment="The heading, where it is a policy area."),
    Column(
        "policy_area",
        ForeignKey("policy_areas.name", ondelete="SET NULL"),
        info={"resolves": "policy_area_ref"},
        comment="policy_areas.name once it is loaded.",
    ),
    task_key(),
    Index("ix_subjects_name", "name"),
    Index("ix_subjects_policy_area", "policy_area"),
    comment="Subject terms the Congressional Research Service describes bills by.",
)

agencies: Final = Table(
    "agencies",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False, comment="As upstream."),
    Column("name", Text, nullable=False, comment="Agriculture Department."),
    Column("parent_ref", Integer, comment="Id of the department above, as upstream states it."),
    Column(
        "parent_id",
        ForeignKey("agencies.id", ondelete="SET NULL"),
        info={"resolves": "parent_ref"},
        comment="The department above, once it is loaded.",
    ),
    *texts(**AGENCY_TEXTS),
    task_key(),
    Index("ix_agencies_slug", "slug"),
    Index("ix_agencies_parent_id", "parent_id"),
    comment="Federal agencies as the Federal Register knows them.",
)

TABLES: Final = (policy_areas, subjects, agencies)
"""Parents before children."""


# Lists of subject terms: `<liv>` with headings (`top-term`) and the terms below them.

NAME: Final = "taxonomy"
SUBJECTS: Final = "subjects"
NAMES: Final = "names"
OLD_SUBJECTS: Final = "liv"

# All three lists look alike; these headings are in one of them only.
_HEADING_OF: Final = {
    SUBJECTS: "Government Operations and Politics",
    NAMES: "Geographic Areas, Entities, and Committees",
    OLD_SUBJECTS: "Defense policy",
}

Headings = Mapping[str, list[str]]
"""The terms below each heading, in the publisher's order."""


def read_terms(data: bytes, vocabulary: str | None = None) -> Iterator[ParsedRecord]:
    """The terms of a list; of the one in use, its headings as policy areas before them."""
    headings = _headings(xml.read(data, "liv"))
    listed = _vocabulary(headings)
    if vocabulary not in (None, listed):
        raise WrongContentError(f"the list of {vocabulary} holds something else: {listed}")
    if listed == SUBJECTS:
        yield from _areas(headings)
    for heading, terms in headings.items():
        for ordinal, term in enumerate(terms, 1):
            yield _term(listed, heading, term, ordinal)


def _vocabulary(headings: Headings) -> str:
    for vocabulary, heading in _HEADING_OF.items():
        if heading in headings:
            return vocabulary
    raise WrongContentError("a list of terms, but none of the three that CRS has published")


def _headings(root: Any) -> dict[str, list[str]]:
    by_heading: dict[str, list[str]] = {}
    for top in root.iterchildren("top-term"):
        heading = _value(top)
        if heading in by_heading:
            raise DuplicateKeyError(f"the heading {heading!r} appears twice in one list")
        # A few terms are listed twice below one heading; it is one term all the same.
        by_heading[heading] = list(dict.fromkeys(map(_value, top.iterchildren("term"))))
    if not any(by_heading.values()):
        raise WrongContentError("a list without any term")
    return by_heading


def _value(element: Any) -> str:
    value = " ".join((element.get("value") or "").split())
    if not value:
        raise MalformedError(f"a <{element.tag}> has no value")
    return value


def _areas(headings: Headings) -> Iterator[ParsedRecord]:
    for ordinal, heading in enumerate(headings, 1):
        yield ParsedRecord(
            source=NAME,
            table=policy_areas.name,
            key=f"policy_area/{heading}",
            payload={"name": heading, "ord": ordinal},
        )


def _term(vocabulary: str, heading: str, term: str, ordinal: int) -> ParsedRecord:
    return ParsedRecord(
        source=NAME,
        table=subjects.name,
        key=f"subject/{vocabulary}/{heading}/{term}",
        payload={
            "vocabulary": vocabulary,
            "top_term": heading,
            "name": term,
            "ord": ordinal,
            "policy_area_ref": heading if vocabulary == SUBJECTS else None,
        },
    )


# Agencies as the Federal Register's API lists them.

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
    row: dict[str, Any] = {column: _single_line(agency, column) for column in AGENCY_TEXTS}
    row |= {
        "id": number,
        "name": " ".join(fields.required(agency, "name").split()),
        "parent_ref": fields.whole(agency, "parent_id"),
    }
    return ParsedRecord(source=NAME, table=agencies.name, key=f"agency/{number}", payload=row)


def _single_line(agency: Mapping[str, Any], field: str) -> str | None:
    # Descriptions were pasted from web pages, line breaks and NUL bytes included.
    value = (fields.text(agency, field) or "").replace("\0", "")
    return " ".join(value.split()) or None


AGENCIES: Final = "agencies"

_REGISTER: Final = "https://www.federalregister.gov/api/v1/agencies"
_TERMS: Final = "https://raw.githubusercontent.com/govtrack/govtrack.us-web/main/bill"
_FILES: Final = {SUBJECTS: "liv111.xml", NAMES: "crsnet.xml", OLD_SUBJECTS: "liv.xml"}

# Text files people keep beside these lists, by how they begin.
_OTHERS: Final = {
    rb"bill_type,": "nicknames of bills, which are not assigned as terms",
    rb"agency_name,": "agencies by name only, without the number that documents name them by",
    rb"pai_identifier,": "agencies by name only, without the number that documents name them by",
    rb"section_title,": "sections of federalregister.gov by part of the CFR; no agency, no term",
    rb"number,citation,": "executive orders, which federal_register loads as documents",
    rb"[0-9]{4},": "pages of the Federal Register by year; no agency, no term",
    rb"---\s+(?:openapi|endpoints):": "a description of the Federal Register's API, not its answer",
}


class Taxonomy:
    """The source `taxonomy`."""

    info = SourceInfo(
        name=NAME,
        title="Subject terms, policy areas and agencies",
        summary="subject terms, policy areas, federal agencies",
        organisation="Congressional Research Service and Office of the Federal Register",
        addresses=(_TERMS, _REGISTER),
        jurisdiction="United States",
        version="1.0.0",
        # The lists change a few times a year.
        schedule="15 4 * * 1",
        rate=Rate(per_second=1, burst=2),
        tables=TABLES,
        at_least=5000,
        published_at="none: terms and agencies are not documents",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The list of agencies and the three lists of terms, always all of them."""
        del state, ask  # The list of files is fixed.
        yield _task(AGENCIES, _REGISTER, "agencies.json")
        for vocabulary, file in _FILES.items():
            yield _task(vocabulary, f"{_TERMS}/{file}", file)

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """The rows of each list; a loose one is known by its bytes."""
        return fields.distinct(record for part in raw.parts for record in _rows(part))


source: Final = Taxonomy()


def _task(name: str, url: str, path: str) -> FetchTask:
    return FetchTask(source=NAME, key=name, parts=(Part(name=name, url=url, path=path),))


def _rows(part: RawPart) -> Iterator[ParsedRecord]:
    start = part.data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if part.name == AGENCIES or (not part.name and start.startswith((b"[", b"{"))):
        return agency_records(yaml.load(part.data))
    if part.name or start.startswith(b"<"):
        return read_terms(part.data, part.name or None)
    raise WrongContentError(_described(start))


def _described(start: bytes) -> str:
    for beginning, what in _OTHERS.items():
        if re.match(beginning, start):
            return what
    return "neither a list of terms in XML nor a list of agencies in JSON"
