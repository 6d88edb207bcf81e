"""Tables of the legislators source; columns are named as the publisher names its fields."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, Float, Index, Integer, Table, Text

from fonds.stores.columns import document_key, owned_by, reference, task_key, texts
from fonds.stores.tables import metadata


def _key(name: str, kind: Any = Integer, comment: str = "Place in the publisher's list.") -> Any:
    return Column(name, kind, primary_key=True, comment=comment)


def _below(parent: str, *columns: Column[Any]) -> list[Column[Any]]:
    return [owned_by(f"{parent}s", f"{parent}_id"), *columns]


def _legislator_link(*, primary_key: bool = False) -> tuple[Column[Any], Column[Any]]:
    comment = "legislator:<bioguide>, whether that person is loaded or not."
    return reference("legislator", "legislators", comment, primary_key=primary_key)


def _person_columns() -> list[Column[Any]]:
    return texts(
        first="Given name, at times an initial.",
        middle="Middle name or initial.",
        last="Family name.",
        suffix="Jr., III.",
        nickname="Common alternative to the given name.",
        official_full="Full name as the chamber writes it; since 2012.",
        birthday="ISO 8601.",
        gender="M or F.",
    )


def _span_columns() -> list[Column[Any]]:
    return texts(start="First day, ISO 8601.", end_date="Upstream `end`: last day, ISO 8601.")


legislators: Final = Table(
    "legislators",
    metadata,
    document_key("legislator:<bioguide>"),
    Column("bioguide", Text, nullable=False, unique=True, comment="Of the Biographical Directory."),
    *_person_columns(),
    Column("in_office", Boolean, comment="Is in the current file; NULL for a loose file."),
    *texts(type="Of the latest term: sen or rep.", chamber="Of the latest term."),
    Column("state", Text, index=True, comment="Of the latest term; USPS abbreviation."),
    Column("district", Integer, comment="Of the latest term; 0 at large, -1 unknown."),
    *texts(party="Of the latest term.", caucus="Of the latest term, for independents."),
    *_span_columns(),
)

legislator_ids: Final = Table(
    "legislator_ids",
    metadata,
    *_below("legislator", _key("scheme", Text, "thomas, lis, govtrack, fec …"), _key("ord")),
    Column("value", Text, nullable=False, comment="As published, leading zeros included."),
    Index("ix_legislator_ids_scheme_value", "scheme", "value"),
)

TERM_TEXTS: Final = {
    "state": "USPS abbreviation; DK, OL and PI are former territories.",
    "state_rank": "junior or senior, for senators.",
    "party": "The last one held during the term.",
    "caucus": "Party an independent sits with.",
    "url": "Official website.",
    "address": "Washington office.",
    "phone": "Washington office.",
    "fax": "Washington office.",
    "contact_form": "Address of the contact page.",
    "office": "Room and building.",
    "rss_url": "Feed of the official website.",
    "how": "appointment or special-election, where not a regular election.",
}

legislator_terms: Final = Table(
    "legislator_terms",
    metadata,
    *_below("legislator", _key("ord")),
    Column("type", Text, nullable=False, comment="sen or rep."),
    *_span_columns(),
    Column("end_type", Text, comment="Upstream `end-type`: why an appointment ends early."),
    Column("district", Integer, comment="0 at large, -1 unknown."),
    Column("class", Integer, comment="Election class of a senator."),
    *texts(**TERM_TEXTS),
)

legislator_party_affiliations: Final = Table(
    "legislator_party_affiliations",
    metadata,
    *_below("legislator", _key("term_ord", comment="legislator_terms.ord"), _key("ord")),
    *_span_columns(),
    *texts(party="Held in these days.", caucus="Party an independent sat with."),
)

legislator_other_names: Final = Table(
    "legislator_other_names",
    metadata,
    *_below("legislator", _key("ord")),
    *texts(first="If it differed.", middle="If it differed.", last="If it differed."),
    *texts(suffix="If it differed.", nickname="If it differed."),
    *_span_columns(),
)

legislator_leadership_roles: Final = Table(
    "legislator_leadership_roles",
    metadata,
    *_below("legislator", _key("ord")),
    *texts(title="Majority Leader, Speaker …", chamber="senate or house."),
    *_span_columns(),
)

legislator_family: Final = Table(
    "legislator_family",
    metadata,
    *_below("legislator", _key("ord")),
    *texts(name="The relative.", relation="What the legislator is to that relative: son …"),
)

SOCIAL_NETWORKS: Final = (
    "twitter",
    "twitter_id",
    "facebook",
    "facebook_id",
    "youtube",
    "youtube_id",
    "instagram",
    "instagram_id",
    "mastodon",
)

legislator_social_media: Final = Table(
    "legislator_social_media",
    metadata,
    *_legislator_link(primary_key=True),
    *texts(**dict.fromkeys(SOCIAL_NETWORKS, "Official account; handle or numeric id.")),
    task_key(),
)

OFFICE_TEXTS: Final = {
    "address": "Street and number.",
    "suite": "Suite or room.",
    "building": "Name of the building.",
    "city": "City.",
    "state": "USPS abbreviation.",
    "zip": "Postal code, leading zeros included.",
    "phone": "Of the office.",
    "fax": "Of the office.",
    "hours": "In the office's own words.",
}

legislator_offices: Final = Table(
    "legislator_offices",
    metadata,
    _key("id", Text, "The publisher's: <bioguide>-<city>."),
    *_legislator_link(),
    *texts(**OFFICE_TEXTS),
    Column("latitude", Float, comment="Degrees north."),
    Column("longitude", Float, comment="Degrees east."),
    task_key(),
)

executives: Final = Table(
    "executives",
    metadata,
    document_key("executive:<govtrack>"),
    Column("govtrack", Text, nullable=False, unique=True, comment="GovTrack.us person number."),
    Column("bioguide", Text, comment="Absent for those who never sat in Congress."),
    *_legislator_link(),
    *_person_columns(),
    *texts(type="Of the latest term: prez or viceprez.", party="Of the latest term."),
    *_span_columns(),
)

executive_ids: Final = Table(
    "executive_ids",
    metadata,
    *_below("executive", _key("scheme", Text, "icpsr_prez, wikidata …"), _key("ord")),
    Column("value", Text, nullable=False, comment="As published."),
)

executive_terms: Final = Table(
    "executive_terms",
    metadata,
    *_below("executive", _key("ord")),
    Column("type", Text, nullable=False, comment="prez or viceprez."),
    *_span_columns(),
    *texts(party="From which elected.", how="election, succession or appointment."),
)
