"""The tables of lobbying filings; columns bear the names that the API gives its fields."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, Index, Integer, Numeric, Table, Text

from fonds.sources.formats.records import child_table
from fonds.stores.columns import (
    bulk_reference,
    document_key,
    owned_by,
    position,
    reference,
    texts,
)
from fonds.stores.tables import metadata


def _amount(name: str, comment: str) -> Column[Any]:
    # SQLite has no decimals of its own and returns floating-point numbers.
    return Column(name, Numeric(16, 2, asdecimal=False), comment=comment)


def _upstream_key(comment: str) -> Column[Any]:
    return Column("id", Text, primary_key=True, comment=comment)


FILING_TEXTS: Final = {
    "filing_type": "RR, RA, Q1, Q1Y, 1T, 1A, 1@, …, MM, YY.",
    "filing_type_display": "3rd Quarter - Report.",
    "filing_period": "third_quarter, mid_year, …; of a registration, the one it was made in.",
    "filing_period_display": "3rd Quarter (July 1 - Sep 30).",
    "filing_document_url": "The filing itself.",
    "filing_document_content_type": "text/html, or application/pdf for a scan.",
    "expenses_method": "a, b or c: how expenses were counted.",
    "expenses_method_display": "The same in words.",
    "posted_by_name": "Who filed it.",
    "dt_posted": "When, ISO 8601; as early as 1905 for filings of 1999.",
    "termination_date": "ISO day the lobbying ended.",
    "registrant_country": "The registrant's, as the filing states it.",
    "registrant_ppb_country": "Of its principal place of business, as the filing states it.",
    "registrant_address_1": "As the filing states it.",
    "registrant_address_2": "As the filing states it.",
    "registrant_city": "As the filing states it.",
    "registrant_state": "As the filing states it.",
    "registrant_zip": "As the filing states it.",
}

_PPB_TEXTS: Final = {
    "ppb_state": "Of the principal place of business: postal code.",
    "ppb_state_display": "The same in words.",
    "ppb_country": "Of the principal place of business: ISO code.",
    "ppb_country_display": "The same in words.",
}

_LOCATION_TEXTS: Final = {
    "state": "Postal code.",
    "state_display": "Virginia.",
    "country": "ISO code; empty where undetermined.",
    "country_display": "United States of America.",
}

_ADDRESS_TEXTS: Final = {
    "address_1": "First line; in the quarterly files the whole address.",
    "address_2": "Second line.",
    "address_3": "Third line.",
    "address_4": "Fourth line.",
    "city": "City.",
    "zip": "ZIP code.",
}

REGISTRANT_TEXTS: Final = {
    "url": "Its record in the API.",
    "name": "In capitals, mostly.",
    "description": "What it does.",
    **_ADDRESS_TEXTS,
    **_LOCATION_TEXTS,
    "ppb_country": _PPB_TEXTS["ppb_country"],
    "ppb_country_display": _PPB_TEXTS["ppb_country_display"],
    "contact_name": "Whom to ask.",
    "contact_telephone": "With country code.",
    "dt_updated": "When the registrant last changed its record, ISO 8601.",
}

CLIENT_TEXTS: Final = {
    "url": "Its record in the API.",
    "name": "In capitals, mostly.",
    "general_description": "What it does.",
    **_LOCATION_TEXTS,
    **_PPB_TEXTS,
    "effective_date": "ISO day its registration took effect.",
}

LOBBYIST_TEXTS: Final = {
    "prefix": "mr, dr, …",
    "prefix_display": "MR.",
    "first_name": "In capitals, mostly.",
    "nickname": "What others call them.",
    "middle_name": "Or its initial.",
    "last_name": "In capitals, mostly.",
    "suffix": "jr, esq, …",
    "suffix_display": "JR.",
}

ACTIVITY_TEXTS: Final = {
    "general_issue_code": "TAX; NULL in the quarterly files.",
    "general_issue_code_display": "Taxation/Internal Revenue Code.",
    "description": "The specific issues, as the registrant words them; bills by number.",
    "foreign_entity_issues": "The interest of foreign entities in them.",
}

FOREIGN_TEXTS: Final = {
    "name": "Of the entity.",
    "address": "Street.",
    "city": "City.",
    **_LOCATION_TEXTS,
    "ppb_city": "Of the principal place of business.",
    **_PPB_TEXTS,
}

AFFILIATED_TEXTS: Final = {
    "name": "Of the organization.",
    "url": "Where it lists its members.",
    **_ADDRESS_TEXTS,
    **_LOCATION_TEXTS,
    "ppb_city": "Of the principal place of business.",
    **_PPB_TEXTS,
}

lda_registrants: Final = Table(
    "lda_registrants",
    metadata,
    _upstream_key("registrant.id: the Senate's number of it."),
    Column("house_registrant_id", Integer, comment="The Clerk of the House's number of it."),
    *texts(**REGISTRANT_TEXTS),
    comment="Lobbying firms, and organizations with lobbyists of their own, as last published.",
)

lda_clients: Final = Table(
    "lda_clients",
    metadata,
    _upstream_key("client.id; <registrant>-<client_id> in the quarterly files."),
    Column("client_id", Integer, comment="The registrant's number of this client; not unique."),
    *reference("registrant", "lda_registrants", "Who lobbies for it."),
    *texts(**CLIENT_TEXTS),
    Column("client_government_entity", Boolean, comment="A state or local government."),
    Column("client_self_select", Boolean, comment="The registrant itself."),
    Column("contact_name", Text, comment="Whom to ask; in the quarterly files."),
    Column("status", Integer, comment="0 active, 1 ended, 2 ended by the office; quarterly files."),
    comment="Whom registrants lobby for; a client of two registrants has two rows.",
)

lda_lobbyists: Final = Table(
    "lda_lobbyists",
    metadata,
    _upstream_key("lobbyist.id."),
    *reference("registrant", "lda_registrants", "Whom they lobby with."),
    *texts(**LOBBYIST_TEXTS),
    comment="People who lobby; a person who changes registrants has two rows.",
)

lda_filings: Final = Table(
    "lda_filings",
    metadata,
    document_key("lda:<filing_uuid>"),
    Column("filing_uuid", Text, nullable=False, comment="An amendment has one of its own."),
    Column("filing_year", Integer, comment="The year reported on."),
    *texts(**FILING_TEXTS),
    _amount("income", "US dollars, of a lobbying firm from this client."),
    _amount("expenses", "US dollars, of an organization with lobbyists of its own."),
    _amount("amount", "Income or expenses; the quarterly files do not say which."),
    Column("registrant_different_address", Boolean, comment="Than in its registration."),
    *bulk_reference("registrant", "lda_registrants", "Who filed it."),
    Column("registrant_name", Text, comment="As published with this filing."),
    *bulk_reference("client", "lda_clients", "Whom it lobbied for."),
    Column("client_name", Text, comment="As published with this filing."),
    Column("affiliated_orgs_url", Text, comment="Where they are listed; quarterly files."),
    Index("ix_lda_filings_dt_posted", "dt_posted"),
    comment="Registrations and reports under the Lobbying Disclosure Act.",
)

lda_activities: Final = child_table(
    "lda_activities",
    owned_by("lda_filings", "filing_id"),
    *texts(**ACTIVITY_TEXTS),
    comment="What was lobbied on.",
)


def _activity() -> Column[Any]:
    comment = "lda_activities.ord; NULL where it is said of the filing as a whole."
    return Column("activity", Integer, comment=comment)


lda_activity_lobbyists: Final = Table(
    "lda_activity_lobbyists",
    metadata,
    owned_by("lda_filings", "filing_id"),
    position(comment="Place in the filing."),
    _activity(),
    *bulk_reference("lobbyist", "lda_lobbyists", "lobbyist.id; NULL in the quarterly files."),
    Column("name", Text, comment="As published with this filing."),
    Column("covered_position", Text, comment="Office held in the government before."),
    Column("new", Boolean, comment="Named for the first time."),
    Column("status", Integer, comment="0 active, 1 ended, 3 undetermined; quarterly files."),
    Column(
        "indicator", Integer, comment="Covered position: 0, 1 or 2; quarterly files, unreliable."
    ),
    comment="Who lobbied on what.",
)

lda_activity_entities: Final = Table(
    "lda_activity_entities",
    metadata,
    owned_by("lda_filings", "filing_id"),
    position(comment="Place in the filing."),
    _activity(),
    Column("entity_id", Integer, comment="Of the API's list; NULL in the quarterly files."),
    Column("name", Text, comment="HOUSE OF REPRESENTATIVES."),
    comment="Houses of Congress and agencies that were contacted.",
)

lda_foreign_entities: Final = child_table(
    "lda_foreign_entities",
    owned_by("lda_filings", "filing_id"),
    *texts(**FOREIGN_TEXTS),
    _amount("contribution", "US dollars towards the lobbying."),
    _amount("ownership_percentage", "Share in the client."),
    Column("status", Integer, comment="0 active, 1 ended, 3 undetermined; quarterly files."),
    comment="Foreign entities with an interest in the client.",
)

lda_affiliated_organizations: Final = child_table(
    "lda_affiliated_organizations",
    owned_by("lda_filings", "filing_id"),
    *texts(**AFFILIATED_TEXTS),
    comment="Organizations that pay for and take part in the lobbying.",
)

lda_convictions: Final = child_table(
    "lda_convictions",
    owned_by("lda_filings", "filing_id"),
    *reference("lobbyist", "lda_lobbyists", "lobbyist.id."),
    Column("name", Text, comment="Of the lobbyist."),
    Column("date", Text, comment="ISO day of the conviction."),
    Column("description", Text, comment="Of the offense."),
    comment="Convictions of lobbyists that a filing discloses (conviction_disclosures).",
)

TABLES: Final = (
    lda_registrants,
    lda_clients,
    lda_lobbyists,
    lda_filings,
    lda_activities,
    lda_activity_lobbyists,
    lda_activity_entities,
    lda_foreign_entities,
    lda_affiliated_organizations,
    lda_convictions,
)
"""Parents before children."""
