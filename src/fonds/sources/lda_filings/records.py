"""Filings as records: the document with its rows, and the parties it shares with other filings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from fonds import ids
from fonds.citations.lda_filings import cite_lda_filings
from fonds.model import Archived, Document, ParsedRecord
from fonds.sources.families.fields import distinct
from fonds.sources.lda_filings.filing import Filing, Row
from fonds.sources.lda_filings.summaries import folded, summary_of, title_of

NAME: Final = "lda_filings"
PUBLISHER: Final = "Secretary of the Senate and Clerk of the House of Representatives"
SITE: Final = "https://lda.gov"
API: Final = f"{SITE}/api/v1"

_FORMER_SITE: Final = "https://lda.senate.gov"
_PARTIES: Final = ("lda_registrants", "lda_clients", "lda_lobbyists")
_DAY: Final = re.compile(r"[12][0-9]{3}-[01][0-9]-[0-3][0-9]")


def records_of(
    filings: Iterable[tuple[Filing, Archived]], listed: Iterable[ParsedRecord] = ()
) -> Iterator[ParsedRecord]:
    """The parties to filings, each once, then the filings.

    A party is what the filing posted last says of it; `listed` are parties of lists of their own.
    """
    read = list(filings)
    parties = {record.key: record for record in listed}
    for filing, _ in sorted(read, key=lambda one: one[0].row["dt_posted"] or ""):
        parties |= {record.key: record for record in _parties(filing)}
    # Parents first: a client refers to its registrant.
    yield from sorted(parties.values(), key=lambda record: _PARTIES.index(record.table))
    yield from distinct(filing_record(filing, raw) for filing, raw in read)


def party_record(table: str, row: Row) -> ParsedRecord:
    """A registrant, client or lobbyist."""
    return ParsedRecord(source=NAME, table=table, key=f"{table}/{row['id']}", payload=row)


def filing_record(filing: Filing, raw: Archived) -> ParsedRecord:
    """The filing itself, with the rows that live and die with it."""
    key = ids.lda_id(filing.row["filing_uuid"])
    return ParsedRecord(
        source=NAME,
        table="lda_filings",
        key=key,
        payload={"id": key, **filing.row},
        children=tuple(_children(key, filing)),
        document=_document(key, filing, raw),
    )


def page_of(filing_uuid: str, site: str = SITE) -> str:
    """The filing as a person would read it."""
    return f"{site}/filings/public/filing/{filing_uuid}/print/"


def posted_on(moment: str | None) -> str | None:
    """The day of `dt_posted`, in Washington, as it is stated; None where it states none."""
    day = (moment or "")[:10]
    return day if _DAY.fullmatch(day) else None


def _parties(filing: Filing) -> Iterator[ParsedRecord]:
    if filing.registrant:
        yield party_record("lda_registrants", filing.registrant)
    if filing.client:
        yield party_record("lda_clients", filing.client)
    for row in filing.lobbyists:
        yield party_record("lda_lobbyists", row)


def _children(key: str, filing: Filing) -> Iterator[ParsedRecord]:
    for table, rows in filing.below.items():
        for place, row in enumerate(rows, 1):
            yield ParsedRecord(
                source=NAME,
                table=table,
                key=f"{key}#{table}/{place}",
                payload={"filing_id": key, "ord": place, **row},
            )


def _document(key: str, filing: Filing, raw: Archived) -> Document:
    row = filing.row
    uuid = row["filing_uuid"]
    code = row["filing_type"] or ""
    return Document(
        id=key,
        source=NAME,
        kind="lobbying_registration" if code in {"RR", "RA"} else "lobbying_report",
        title=title_of(filing),
        summary=summary_of(filing) or None,
        source_url=page_of(uuid),
        source_org=PUBLISHER,
        citation_string=cite_lda_filings(
            filing_uuid=uuid,
            client=folded(row["client_name"] or ""),
            registrant=folded(row["registrant_name"] or ""),
            filing_type=row["filing_type"],
            filing_period=row["filing_period"],
            year=row["filing_year"],
        ),
        published_at=posted_on(row["dt_posted"]),
        aliases=(
            uuid,
            page_of(uuid),
            page_of(uuid, _FORMER_SITE),
        ),
        raw=raw,
    )
