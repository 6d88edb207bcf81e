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

from typing import Final

from fonds.sources.base import Rate, SourceInfo
from fonds.sources.families.govinfo import Collection
from fonds.sources.families.gpo_files import LooseReader
from fonds.sources.families.packages import PackageSource
from fonds.sources.hearings.records import NAME, from_json, from_text, record
from fonds.sources.hearings.tables import TABLES

COLLECTION: Final = Collection(source=NAME, code="CHRG", first_year=1941, late_years=2)
INFO: Final = SourceInfo(
    name=NAME,
    title="Congressional Hearings",
    organisation="U.S. Government Publishing Office",
    jurisdiction="United States",
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


class Hearings(PackageSource):
    """The source `hearings`."""


source: Final = Hearings(
    INFO,
    COLLECTION,
    LooseReader(code=COLLECTION.code, record=record, from_text=from_text, from_json=from_json),
)
