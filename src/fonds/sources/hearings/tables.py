"""The tables of hearings; columns bear the names the MODS gives its fields."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.stores.columns import Json, document_key, owned_by, position, reference, texts
from fonds.stores.tables import metadata

hearings: Final = Table(
    "hearings",
    metadata,
    document_key("chrg:<package or granule>"),
    Column("package_id", Text, nullable=False, comment="The printed jacket: CHRG-119hhrg58888."),
    Column("access_id", Text, nullable=False, comment="The granule; differs for volumes, parts."),
    Column("title", Text, nullable=False, comment="In capitals, as the cover prints it."),
    Column("congress", Integer, comment="119."),
    Column("session", Integer, comment="Of that Congress: 1 or 2."),
    *texts(
        chamber="HOUSE, SENATE or JOINT.",
        doc_class="HHRG, SHRG or JHRG.",
        type="F field, M markup, O oversight, AU, AP, N nomination, T treaty, G general.",
        number="Of a Senate hearing: 889 of S. Hrg. 117-889.",
        preferred_citation="Serial No. 118-30, S. Hrg. 117-889; serials repeat.",
        jacket_id="52-385.",
        event_id="Of the meeting at congress.gov.",
        heading="Part 2, Volume III, Errata.",
        part_number="2, 1a.",
        volume_number="2.",
        fiscalyear="Of an appropriation.",
        other_hosting_org="Who held it where no committee did.",
        date_issued="Day held, by the publisher; ISO 8601.",
        held_date="First day held, ISO 8601; NULL where it is only a placeholder.",
    ),
    Column("held_dates", Json, nullable=False, comment="All days the publisher states."),
    Column(
        "date_is_placeholder",
        Boolean,
        nullable=False,
        comment="A scan whose day is unknown: the last of its year stands for it.",
    ),
    Column("is_appropriation", Boolean, comment="On money for a fiscal year."),
    Column("is_nomination", Boolean, comment="On somebody's nomination."),
    Column("is_errata", Boolean, comment="Corrections to another print."),
    Index("ix_hearings_package_id", "package_id"),
    Index("ix_hearings_held_date", "held_date"),
    comment="Printed hearings of committees of Congress.",
)

hearing_witnesses: Final = Table(
    "hearing_witnesses",
    metadata,
    owned_by("hearings", "hearing_id"),
    position(),
    Column("witness", Text, nullable=False, comment="The whole line: name, office, organisation."),
    comment="Who testified, as the cover lists them.",
)

hearing_committees: Final = Table(
    "hearing_committees",
    metadata,
    owned_by("hearings", "hearing_id"),
    position(),
    *reference("committee", "committees", "committee:<code>"),
    Column("name", Text, nullable=False, comment="Committee on Natural Resources."),
    *texts(
        authority_id="hsii00; NULL for a committee the authority file does not know.",
        short_name="Natural Resources.",
        chamber="H, S or J.",
        type="S standing, L select, P special, J joint, T task force, O other.",
    ),
    Column("subcommittees", Json, nullable=False, comment="Names of those that sat."),
    comment="Committees that held a hearing.",
)

hearing_members: Final = Table(
    "hearing_members",
    metadata,
    owned_by("hearings", "hearing_id"),
    position(),
    *reference("legislator", "legislators", "legislator:<bioguide>"),
    Column("name", Text, nullable=False, comment="First name first."),
    *texts(
        bioguide="Of the Biographical Directory.",
        parsed="As printed.",
        role="COMMMEMBER.",
        chamber="H or S.",
        party="D, R, I.",
        state="Postal code.",
    ),
    comment="Members of the committees, as the hearing lists them.",
)

hearing_bills: Final = Table(
    "hearing_bills",
    metadata,
    owned_by("hearings", "hearing_id"),
    position(),
    *reference("bill", "bills", "bill:<congress>-<type>-<number>"),
    Column("congress", Integer, comment="Of the bill."),
    Column("type", Text, comment="HR, S, HJRES, …"),
    Column("number", Integer, comment="Of the bill."),
    Column("context", Text, comment="COVER: the hearing is about it; BODY: it is mentioned."),
    comment="Bills a hearing names.",
)

TABLES: Final = (hearings, hearing_witnesses, hearing_committees, hearing_members, hearing_bills)
"""Parents before children."""
