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
- A term of `liv.xml` stands below as many headings as it belongs to, and one of them stands twice
  below the same: `Elementary and secondary education`, `State aid to local areas`.
- Agencies are numbered by federalregister.gov alone. Its own seed files (`agencies_sections.csv`,
  with carriage returns for line ends), eCFR's list and the public inspection desk's name agencies
  without that number, so that no row can be made of them.
- Nothing here is a document: there is no `published_at`, and nothing for an audit to count.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from fonds.errors import WrongContentError
from fonds.model import Discovery, FetchTask, ParsedRecord, Part, Raw, RawPart, SourceState
from fonds.sources.base import Ask, Rate, SourceInfo
from fonds.sources.families import fields, yaml_files
from fonds.sources.taxonomy.agencies import agency_records
from fonds.sources.taxonomy.tables import TABLES
from fonds.sources.taxonomy.terms import NAME, NAMES, OLD_SUBJECTS, SUBJECTS, read_terms

AGENCIES: Final = "agencies"

_REGISTER: Final = "https://www.federalregister.gov/api/v1/agencies"
_TERMS: Final = "https://raw.githubusercontent.com/govtrack/govtrack.us-web/main/bill"
_FILES: Final = {SUBJECTS: "liv111.xml", NAMES: "crsnet.xml", OLD_SUBJECTS: "liv.xml"}

# Text files people keep beside these lists, by how they begin.
_OTHERS: Final = {
    rb"bill_type,": "nicknames of bills, which are no terms that anybody assigns",
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
        organisation="Congressional Research Service and Office of the Federal Register",
        jurisdiction="United States",
        version="1.0.0",
        # The lists change a few times a year.
        schedule="15 4 * * 1",
        rate=Rate(per_second=1, burst=2),
        tables=TABLES,
        at_least=5000,
        published_at="none: terms and agencies are no documents",
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
        return agency_records(yaml_files.load(part.data))
    if part.name or start.startswith(b"<"):
        return read_terms(part.data, part.name or None)
    raise WrongContentError(_described(start))


def _described(start: bytes) -> str:
    for beginning, what in _OTHERS.items():
        if re.match(beginning, start):
            return what
    return "neither a list of terms in XML nor a list of agencies in JSON"
