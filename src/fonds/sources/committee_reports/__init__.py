"""Reports of committees and conferences to their chambers (CRPT).

Quirks of the publisher:
- Three series: House (`hrpt`), Senate (`srpt`) and Senate executive reports (`erpt`), whose
  numbers begin anew with each Congress. Conference reports are House or Senate reports.
- Parts of a report are granules of one package, `-pt2` being added to it months later with a
  date of its own, which only its `action` states. The first part goes by the name of the
  package, also where it is called `-pt1`; its text is then served under that name alone.
- The bill reported stands in the MODS twice, as `PRIMARY` and as `OTHER`; what is only `OTHER`
  is mentioned. A rule names the bills it is about in its title only.
- A text may be a cover that refers to the PDF, which then is the body.
- Walks of the API also name `ERP-…` and `GPO-…` packages, which are none of ours.
- congress.gov counts a report without parts as part 1; its files are understood when loose.
"""

from __future__ import annotations

from typing import Final

from fonds.sources.base import Rate, SourceInfo
from fonds.sources.committee_reports.records import NAME, from_json, from_text, record
from fonds.sources.committee_reports.tables import TABLES
from fonds.sources.families.govinfo import Collection
from fonds.sources.families.gpo_files import LooseReader
from fonds.sources.families.packages import PackageSource

COLLECTION: Final = Collection(source=NAME, code="CRPT", first_year=1995)
INFO: Final = SourceInfo(
    name=NAME,
    title="Congressional Committee Reports",
    organisation="U.S. Government Publishing Office",
    jurisdiction="United States",
    version="1.0.0",
    schedule="50 6 * * *",
    rate=Rate(per_second=4, burst=8),
    tables=TABLES,
    depends_on=("legislators", "committees", "bills"),
    # A backfill may ask for a year, or a day, with one; a sitemap without any is refused.
    at_least=1,
    published_at="originInfo/dateIssued of the MODS; of a later part, action/@date",
    options=("congresses",),
)


class CommitteeReports(PackageSource):
    """The source `committee_reports`."""


source: Final = CommitteeReports(
    INFO,
    COLLECTION,
    LooseReader(code=COLLECTION.code, record=record, from_text=from_text, from_json=from_json),
)
