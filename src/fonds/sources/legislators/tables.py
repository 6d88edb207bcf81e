"""Tables of the legislators source; columns are named as the publisher names its fields."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, Table, Text

from fonds.stores.tables import metadata


def _texts(**comments: str) -> list[Column[Any]]:
    return [Column(name, Text, comment=comment) for name, comment in comments.items()]


def _key(name: str, kind: Any = Integer, comment: str = "Place in the publisher's list.") -> Any:
    return Column(name, kind, primary_key=True, comment=comment)


def _below(parent: str, *columns: Column[Any]) -> list[Column[Any]]:
    table = f"{parent}s"
    owner: Column[Any] = Column(
        f"{parent}_id",
        ForeignKey(f"{table}.id", ondelete="CASCADE"),
        primary_key=True,
        comment=f"{table}.id",
    )
    return [owner, *columns]


def _legislator_link(*, primary_key: bool = False) -> list[Column[Any]]:
    return [
        Column(
            "legislator_ref",
            Text,
            primary_key=primary_key,
            comment="legislator:<bioguide>, whether that person is loaded or not.",
        ),
        Column(
            "legislator_id",
            ForeignKey("legislators.id"),
            index=True,
            comment="legislators.id once that person is loaded.",
            info={"resolves": "legislator_ref"},
        ),
    ]


def _person_columns() -> list[Column[Any]]:
    return _texts(
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
    return _texts(start="First day, ISO 8601.", end_date="Upstream `end`: last day, ISO 8601.")


_TASK_KEY_COMMENT: Final = "The input this row was last loaded from."

legislators: Final = Table(
    "legislators",
    metadata,
    Column("id", ForeignKey("documents.id"), primary_key=True, comment="legislator:<bioguide>"),
    Column("bioguide", Text, nullable=False, unique=True, comment="Of the Biographical Directory."),
    *_person_columns(),
    Column("in_office", Boolean, comment="Stands in the current file; NULL for a loose file."),
    *_texts(type="Of the latest term: sen or rep.", chamber="Of the latest term."),
    Column("state", Text, index=True, comment="Of the latest term; USPS abbreviation."),
    Column("district", Integer, comment="Of the latest term; 0 at large, -1 unknown."),
    *_texts(party="Of the latest term.", caucus="Of the latest term, for independents."),
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
    *_texts(**TERM_TEXTS),
)

legislator_party_affiliations: Final = Table(
    "legislator_party_affiliations",
    metadata,
    *_below("legislator", _key("term_ord", comment="legislator_terms.ord"), _key("ord")),
    *_span_columns(),
    *_texts(party="Held in these days.", caucus="Party an independent sat with."),
)

legislator_other_names: Final = Table(
    "legislator_other_names",
    metadata,
    *_below("legislator", _key("ord")),
    *_texts(first="If it differed.", middle="If it differed.", last="If it differed."),
    *_texts(suffix="If it differed.", nickname="If it differed."),
    *_span_columns(),
)

legislator_leadership_roles: Final = Table(
    "legislator_leadership_roles",
    metadata,
    *_below("legislator", _key("ord")),
    *_texts(title="Majority Leader, Speaker …", chamber="senate or house."),
    *_span_columns(),
)

legislator_family: Final = Table(
    "legislator_family",
    metadata,
    *_below("legislator", _key("ord")),
    *_texts(name="The relative.", relation="What the legislator is to that relative: son …"),
)

ACCOUNTS: Final = (
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
    *_texts(**dict.fromkeys(ACCOUNTS, "Official account; handle or numeric id.")),
    *_texts(task_key=_TASK_KEY_COMMENT),
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
    *_texts(**OFFICE_TEXTS),
    Column("latitude", Float, comment="Degrees north."),
    Column("longitude", Float, comment="Degrees east."),
    *_texts(task_key=_TASK_KEY_COMMENT),
)

executives: Final = Table(
    "executives",
    metadata,
    Column("id", ForeignKey("documents.id"), primary_key=True, comment="executive:<govtrack>"),
    Column("govtrack", Text, nullable=False, unique=True, comment="GovTrack.us person number."),
    Column("bioguide", Text, comment="Absent for those who never sat in Congress."),
    *_legislator_link(),
    *_person_columns(),
    *_texts(type="Of the latest term: prez or viceprez.", party="Of the latest term."),
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
    *_texts(party="From which elected.", how="election, succession or appointment."),
)
