"""The daily edition of the Congressional Record since 1994 (CREC).

Quirks of the publisher:
- A package is an issue and offers a PDF of the whole; its MODS lists some hundred granules, each
  with a page of text. What is fetched: the MODS, then one small text for each granule. That is
  20,000 requests for a year, and a package whose `lastmod` changes costs its granules again, as
  conditional requests. The zip of a package would be one request and hold the PDFs too: five
  gigabytes a year for two hundred megabytes of text.
- Two issues of one day: `CREC-2018-01-03` and `CREC-2018-01-03-v164`; granules that do not carry
  the distinction get it (`…@v164`).
- Extensions of Remarks are printed days after the `granuleDate`; the issue's day is cited.
- A granule without a heading has its first sentence for a title. Front matter is a granule
  (`PgS-FrontMatter`), and some are called `Pgnull-2` and have no page.
- Speakers stand in the granule's extension; the members inside its votes are no speakers.
- `[[Page H6117]]` within a text becomes a page of the body's map.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Final

from fonds.errors import SuspiciousYieldError
from fonds.model import FetchTask, ParsedRecord, Raw
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.congressional_record.records import (
    NAME,
    document_id,
    from_json,
    from_text,
    issue_record,
    record,
)
from fonds.sources.congressional_record.tables import TABLES
from fonds.sources.families.govinfo import API, Collection, walk
from fonds.sources.families.gpo_files import LooseReader
from fonds.sources.families.packages import PackageSource

COLLECTION: Final = Collection(source=NAME, code="CREC", first_year=1994, own_text=False)
INFO: Final = SourceInfo(
    name=NAME,
    title="Congressional Record, daily edition",
    organisation="U.S. Government Publishing Office",
    jurisdiction="United States",
    version="1.0.0",
    # The issue of a day is online the next morning.
    schedule="40 9 * * *",
    rate=Rate(per_second=6, burst=12),
    tables=TABLES,
    depends_on=("legislators", "bills"),
    # A backfill may ask for a year, or a day, with one; a sitemap without any is refused.
    at_least=1,
    published_at="originInfo/dateIssued of the issue's MODS",
    options=("congresses",),
)


class CongressionalRecord(PackageSource):
    """The source `congressional_record`: an issue is a row, and its granules are the documents."""

    def parse_fetched(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The issue and a task for each of its granules, or a granule with its text."""
        if raw.part("mods") is None:
            yield from self.collection.parse(raw, record)
            return
        package = self.collection.read_package(raw)
        yield issue_record(package)
        yield from self.collection.parse_package(raw, package, record)

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The granules that the API of govinfo lists for each issue; it wants `data_gov_key`."""
        async for _, packages in self.collection.published(ask, since, until):
            for package in sorted(packages):
                address = f"{API}/packages/{package}/granules"
                listed = walk(ask, address, "granules", f"audit/{package}")
                granules = {
                    document_id(package, str(entry.get("granuleId"))) async for entry in listed
                }
                if not granules:
                    raise SuspiciousYieldError(f"the API lists no granule of {package}")
                yield Expected(scope=package, document_ids=frozenset(granules))


source: Final = CongressionalRecord(
    INFO,
    COLLECTION,
    LooseReader(code=COLLECTION.code, record=record, from_text=from_text, from_json=from_json),
)
