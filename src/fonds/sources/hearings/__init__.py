"""Hearings of committees of Congress, as the Government Publishing Office prints them (CHRG).

Quirks of the publisher:
- A transcript appears months to years after its hearing, in the sitemap of the year it was held
  or printed, so a Congress is looked for in the two years after it as well.
- A package is a printed jacket. Most are one hearing; a few have volumes, parts or errata, each
  a document of its own, and the first goes by the name of the package.
- `heldDate` is repeated for a hearing of several days, and missing for some. Scans of old prints
  whose day is unknown state the last day of the year: `date_is_placeholder`, no `held_date`.
- Witnesses are whole lines, sometimes with the panel before the name; subcommittees have a name
  and no code; committees before the authority file have no code either.
- Scans offer a PDF only, and some texts are a cover that refers to the PDF; both get the PDF.
- Serial numbers repeat from committee to committee: only `S. Hrg.` numbers are aliases.
- congress.gov describes a hearing without its witnesses; such files are understood when loose.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Final

from fonds import ids
from fonds.model import Discovery, FetchTask, ParsedRecord, Raw, SourceState
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.families.govinfo import Collection
from fonds.sources.families.gpo_files import LooseReader
from fonds.sources.hearings.records import NAME, from_json, from_text, record
from fonds.sources.hearings.tables import TABLES

COLLECTION: Final = Collection(source=NAME, code="CHRG", first_year=1941, late_years=2)


class Hearings:
    """The source `hearings`."""

    info = SourceInfo(
        name=NAME,
        title="Congressional Hearings",
        organisation="U.S. Government Publishing Office",
        version="1.0.0",
        schedule="20 7 * * *",
        rate=Rate(per_second=4, burst=8),
        tables=TABLES,
        depends_on=("legislators", "committees", "bills"),
        # A backfill may ask for a year, or a day, with one; a sitemap without any is refused.
        at_least=1,
        published_at="originInfo/dateIssued of the MODS: the first day held",
        options=("congresses",),
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The packages of the years asked for; see `Collection.discover` for the defaults."""
        async for found in COLLECTION.discover(state, ask):
            yield found

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """A hearing for each granule of a package; the PDF of one without text is asked for."""
        if loose := [part for part in raw.parts if part.name == ""]:
            reader = LooseReader(
                code=COLLECTION.code, record=record, from_text=from_text, from_json=from_json
            )
            yield from reader.read(loose)
        else:
            yield from COLLECTION.parse(raw, record)

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The packages that the API of govinfo lists by the day; it wants `data_gov_key`."""
        async for day, packages in COLLECTION.published(ask, since, until):
            yield Expected(scope=day, document_ids=frozenset(map(ids.govinfo_id, packages)))


source: Final = Hearings()
