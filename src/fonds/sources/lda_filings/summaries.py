"""What a filing is called and what it says, in words that a search finds.

A filing has no text of its own: its passage is made of title and summary, so all that somebody
might look for stands there. Bills are named only inside the registrant's descriptions
(`H.R. 2101`); citations are looked for in bodies, so they are not linked from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from fonds.sources.lda_filings.filing import Filing, Row

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
    named = " ".join(["Lobbying", *parties]) if parties else "Lobbying Disclosure Act filing"
    return folded(f"{named}: {when}" if when else f"{named} {row['filing_uuid']}")


def summary_of(filing: Filing) -> str:
    """Who lobbied for whom, when, for how much, on what, and whom they talked to."""
    paragraphs = (
        " ".join(_head(filing)),
        *_issues(filing.below["lda_activities"]),
        _listed("Lobbyists", _people(filing.below["lda_activity_lobbyists"])),
        _listed("Contacted", _names(filing, "lda_activity_entities")),
        _listed("Foreign entities", _names(filing, "lda_foreign_entities")),
        _listed("Affiliated organizations", _names(filing, "lda_affiliated_organizations")),
        _listed("Convictions disclosed", _convictions(filing)),
    )
    return "\n\n".join(filter(None, map(folded, paragraphs)))


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
            held = row["covered_position"]
            yield f"{row['name']} ({held})" if _says_something(held) else row["name"]


def _says_something(position: str | None) -> bool:
    return bool(position) and str(position).strip(" .").lower() not in _NOTHING


def _convictions(filing: Filing) -> Iterator[str]:
    for row in filing.below.get("lda_convictions", ()):
        yield ", ".join(filter(None, (row["name"], row["date"], row["description"])))


def _names(filing: Filing, table: str) -> Iterator[str]:
    return (row["name"] for row in filing.below[table] if row["name"])


def _listed(label: str, items: Iterable[str]) -> str:
    each_once = "; ".join(dict.fromkeys(items))
    return f"{label}: {each_once}." if each_once else ""


def folded(text: str) -> str:
    """The text on one line, without what nobody sees."""
    return " ".join(text.translate(_INVISIBLE).split())
