"""Filings as records: the document with its rows, and the parties it shares with other filings.

A filing has no text of its own: its passage is made of title and summary, so everything that
a reader might look for is there. Bills are named only inside the registrant's descriptions
(`H.R. 2101`); citations are looked for in bodies, so they are not linked from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from fonds.model import Archived, Document, ParsedRecord
from fonds.sources.formats.fields import distinct
from fonds.sources.formats.records import child_records
from fonds.sources.lda_filings.formats import Filing, Row
from fonds.stores.tables import metadata

# What is left of pasted texts: zero-width space, soft hyphen, byte order mark.
_INVISIBLE: Final = dict.fromkeys((0x200B, 0xAD, 0xFEFF))
_NOTHING: Final = frozenset({"n/a", "na", "none", "not applicable"})


def title_of(filing: Filing) -> str:
    """`Lobbying for HARBOR COALITION by TIDE GROUP LLC: 3rd Quarter - Report, 2025`."""
    row = filing.row
    client, registrant = row["client_name"], row["registrant_name"]
    parties = [f"for {client}"] if client and client != registrant else []
    parties += [f"by {registrant}"] if registrant else []
    what = row["filing_type_display"] or row["filing_type"]
    when = ", ".join(str(part) for part in (what, row["filing_year"]) if part)
    title = " ".join(["Lobbying", *parties]) if parties else "Lobbying Disclosure Act filing"
    return casefolded(f"{title}: {when}" if when else f"{title} {row['filing_uuid']}")


def summary_of(filing: Filing) -> str:
    """The registrant, client, period, amount, issues and government entities of a filing."""
    paragraphs = (
        " ".join(_head(filing)),
        *_issues(filing.below["lda_activities"]),
        _listed("Lobbyists", _people(filing.below["lda_activity_lobbyists"])),
        _listed("Contacted", _names(filing, "lda_activity_entities")),
        _listed("Foreign entities", _names(filing, "lda_foreign_entities")),
        _listed("Affiliated organizations", _names(filing, "lda_affiliated_organizations")),
        _listed("Convictions disclosed", _convictions(filing)),
    )
    return "\n\n".join(filter(None, map(casefolded, paragraphs)))


def _head(filing: Filing) -> Iterator[str]:
    row, registrant, client = filing.row, filing.registrant or {}, filing.client or {}
    if row["registrant_name"]:
        yield _described("Registrant", row["registrant_name"], registrant.get("description"))
    if row["client_name"]:
        yield _described("Client", row["client_name"], client.get("general_description"))
    if period := row["filing_period_display"]:
        yield f"Period: {period} {row['filing_year'] or ''}".rstrip() + "."
    for name in ("income", "expenses", "amount"):
        if isinstance(sum_ := row.get(name), Decimal):
            yield f"{name.capitalize()}: ${sum_:,.2f}."
    if row.get("termination_date"):
        yield f"Ended {row['termination_date']}."


def _described(role: str, name: str, description: str | None) -> str:
    return f"{role}: {name} ({description})." if description else f"{role}: {name}."


def _issues(activities: Iterable[Row]) -> Iterator[str]:
    for row in activities:
        parts = (row.get("general_issue_code_display"), row.get("description"))
        yield ": ".join(filter(None, parts))
        if foreign := row.get("foreign_entity_issues"):
            yield f"Interest of foreign entities: {foreign}"


def _people(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if row["name"]:
            position = row["covered_position"]
            yield f"{row['name']} ({position})" if _is_stated(position) else row["name"]


def _is_stated(position: str | None) -> bool:
    return bool(position) and str(position).strip(" .").lower() not in _NOTHING


def _convictions(filing: Filing) -> Iterator[str]:
    for row in filing.below.get("lda_convictions", ()):
        yield ", ".join(filter(None, (row["name"], row["date"], row["description"])))


def _names(filing: Filing, table: str) -> Iterator[str]:
    return (row["name"] for row in filing.below[table] if row["name"])


def _listed(label: str, items: Iterable[str]) -> str:
    each_once = "; ".join(dict.fromkeys(items))
    return f"{label}: {each_once}." if each_once else ""


def casefolded(text: str) -> str:
    """The text on one line, without invisible characters."""
    return " ".join(text.translate(_INVISIBLE).split())


# Q3, 3A, 3T, 3@Y; MM, MA, M@; YY, YA, Y@; RR and RA for registrations.
_QUARTER: Final = re.compile(r"Q?([1-4])")
_HALVES: Final = {"M": "Mid-Year", "Y": "Year-End"}
_PERIODS: Final = {
    "first_quarter": "Q1",
    "second_quarter": "Q2",
    "third_quarter": "Q3",
    "fourth_quarter": "Q4",
    "mid_year": "Mid-Year",
    "year_end": "Year-End",
}


def cite_lda_filings(
    *,
    filing_uuid: str,
    client: str | None,
    registrant: str | None,
    filing_type: str | None,
    filing_period: str | None,
    year: int | None,
) -> str:
    """The citation, ready to paste; what is unknown is left out.

    `Lobbying Disclosure Act Filing {filing_uuid}, {client} via {registrant} (Q3 2025).`
    """
    parties = " via ".join(filter(None, (client, registrant)))
    cited = ", ".join(filter(None, (f"Lobbying Disclosure Act Filing {filing_uuid}", parties)))
    when = period_name(filing_type, filing_period, year)
    return f"{cited} ({when})." if when else f"{cited.removesuffix('.')}."


def period_name(filing_type: str | None, filing_period: str | None, year: int | None) -> str:
    """`Q3 2025`, `Mid-Year 2005`, or the year alone for a registration, which reports on none."""
    name = _period(filing_type or "", filing_period or "")
    return " ".join(filter(None, (name, str(year or ""))))


def _period(filing_type: str, filing_period: str) -> str:
    if filing_type.startswith("R"):
        return ""
    if quarter := _QUARTER.match(filing_type):
        return f"Q{quarter[1]}"
    return _HALVES.get(filing_type[:1]) or _PERIODS.get(filing_period, "")


NAME: Final = "lda_filings"
PUBLISHER: Final = "Secretary of the Senate and Clerk of the House of Representatives"
SITE: Final = "https://lda.gov"
API: Final = f"{SITE}/api/v1"

_OLD_SITE: Final = "https://lda.senate.gov"
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
    for filing, _ in sorted(read, key=lambda pair: pair[0].row["dt_posted"] or ""):
        parties |= {record.key: record for record in _parties(filing)}
    # Parents first: a client refers to its registrant.
    yield from sorted(parties.values(), key=lambda record: _PARTIES.index(record.table))
    yield from distinct(filing_record(filing, raw) for filing, raw in read)


def party_record(table: str, row: Row) -> ParsedRecord:
    """A registrant, client or lobbyist."""
    return ParsedRecord(source=NAME, table=table, key=f"{table}/{row['id']}", payload=row)


def lda_id(filing_uuid: str) -> str:
    """`lda:<filing_uuid>`."""
    return f"lda:{filing_uuid.lower()}"


def filing_record(filing: Filing, raw: Archived) -> ParsedRecord:
    """The filing itself, with the rows that live and die with it."""
    key = lda_id(filing.row["filing_uuid"])
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


def posted_on(timestamp: str | None) -> str | None:
    """The day of `dt_posted`, in Washington, as it is stated; None where it states none."""
    day = (timestamp or "")[:10]
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
        yield from child_records(NAME, metadata.tables[table], key, rows)


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
            client=casefolded(row["client_name"] or ""),
            registrant=casefolded(row["registrant_name"] or ""),
            filing_type=row["filing_type"],
            filing_period=row["filing_period"],
            year=row["filing_year"],
        ),
        published_at=posted_on(row["dt_posted"]),
        aliases=(
            uuid,
            page_of(uuid),
            page_of(uuid, _OLD_SITE),
        ),
        raw=raw,
    )
