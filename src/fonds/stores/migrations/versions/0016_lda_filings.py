"""Tables of the lda_filings source."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_lda_registrants()
    _create_lda_clients()
    _create_lda_lobbyists()
    _create_lda_filings()
    _create_lda_activities()
    _create_lda_activity_entities()
    _create_lda_activity_lobbyists()
    _create_lda_affiliated_organizations()
    _create_lda_convictions()
    _create_lda_foreign_entities()


def _create_lda_registrants() -> None:
    op.create_table(
        "lda_registrants",
        sa.Column(
            "id", sa.Text(), nullable=False, comment="registrant.id: the Senate's number of it."
        ),
        sa.Column(
            "house_registrant_id",
            sa.Integer(),
            nullable=True,
            comment="The Clerk of the House's number of it.",
        ),
        sa.Column("url", sa.Text(), nullable=True, comment="Its record in the API."),
        sa.Column("name", sa.Text(), nullable=True, comment="In capitals, mostly."),
        sa.Column("description", sa.Text(), nullable=True, comment="What it does."),
        sa.Column(
            "address_1",
            sa.Text(),
            nullable=True,
            comment="First line; in the quarterly files the whole address.",
        ),
        sa.Column("address_2", sa.Text(), nullable=True, comment="Second line."),
        sa.Column("address_3", sa.Text(), nullable=True, comment="Third line."),
        sa.Column("address_4", sa.Text(), nullable=True, comment="Fourth line."),
        sa.Column("city", sa.Text(), nullable=True, comment="City."),
        sa.Column("zip", sa.Text(), nullable=True, comment="ZIP code."),
        sa.Column("state", sa.Text(), nullable=True, comment="Postal code."),
        sa.Column("state_display", sa.Text(), nullable=True, comment="Virginia."),
        sa.Column(
            "country", sa.Text(), nullable=True, comment="ISO code; empty where undetermined."
        ),
        sa.Column("country_display", sa.Text(), nullable=True, comment="United States of America."),
        sa.Column(
            "ppb_country",
            sa.Text(),
            nullable=True,
            comment="Of the principal place of business: ISO code.",
        ),
        sa.Column("ppb_country_display", sa.Text(), nullable=True, comment="The same in words."),
        sa.Column("contact_name", sa.Text(), nullable=True, comment="Whom to ask."),
        sa.Column("contact_telephone", sa.Text(), nullable=True, comment="With country code."),
        sa.Column(
            "dt_updated",
            sa.Text(),
            nullable=True,
            comment="When the registrant last changed its record, ISO 8601.",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lda_registrants")),
        comment="Lobbying firms, and organizations with lobbyists of their own, as last published.",
    )


def _create_lda_clients() -> None:
    op.create_table(
        "lda_clients",
        sa.Column(
            "id",
            sa.Text(),
            nullable=False,
            comment="client.id; <registrant>-<client_id> in the quarterly files.",
        ),
        sa.Column(
            "client_id",
            sa.Integer(),
            nullable=True,
            comment="The registrant's number of this client; not unique.",
        ),
        sa.Column("registrant_ref", sa.Text(), nullable=True, comment="Who lobbies for it."),
        sa.Column(
            "registrant_id",
            sa.Text(),
            nullable=True,
            comment="lda_registrants.id once it is loaded.",
        ),
        sa.Column("url", sa.Text(), nullable=True, comment="Its record in the API."),
        sa.Column("name", sa.Text(), nullable=True, comment="In capitals, mostly."),
        sa.Column("general_description", sa.Text(), nullable=True, comment="What it does."),
        sa.Column("state", sa.Text(), nullable=True, comment="Postal code."),
        sa.Column("state_display", sa.Text(), nullable=True, comment="Virginia."),
        sa.Column(
            "country", sa.Text(), nullable=True, comment="ISO code; empty where undetermined."
        ),
        sa.Column("country_display", sa.Text(), nullable=True, comment="United States of America."),
        sa.Column(
            "ppb_state",
            sa.Text(),
            nullable=True,
            comment="Of the principal place of business: postal code.",
        ),
        sa.Column("ppb_state_display", sa.Text(), nullable=True, comment="The same in words."),
        sa.Column(
            "ppb_country",
            sa.Text(),
            nullable=True,
            comment="Of the principal place of business: ISO code.",
        ),
        sa.Column("ppb_country_display", sa.Text(), nullable=True, comment="The same in words."),
        sa.Column(
            "effective_date",
            sa.Text(),
            nullable=True,
            comment="ISO day its registration took effect.",
        ),
        sa.Column(
            "client_government_entity",
            sa.Boolean(),
            nullable=True,
            comment="A state or local government.",
        ),
        sa.Column(
            "client_self_select", sa.Boolean(), nullable=True, comment="The registrant itself."
        ),
        sa.Column(
            "contact_name", sa.Text(), nullable=True, comment="Whom to ask; in the quarterly files."
        ),
        sa.Column(
            "status",
            sa.Integer(),
            nullable=True,
            comment="0 active, 1 ended, 2 ended by the office; quarterly files.",
        ),
        sa.ForeignKeyConstraint(
            ["registrant_id"], ["lda_registrants.id"], name=op.f("fk_lda_clients_registrant_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lda_clients")),
        comment="Whom registrants lobby for; a client of two registrants has two rows.",
    )
    op.create_index(
        op.f("ix_lda_clients_registrant_id"), "lda_clients", ["registrant_id"], unique=False
    )


def _create_lda_lobbyists() -> None:
    op.create_table(
        "lda_lobbyists",
        sa.Column("id", sa.Text(), nullable=False, comment="lobbyist.id."),
        sa.Column("registrant_ref", sa.Text(), nullable=True, comment="Whom they lobby with."),
        sa.Column(
            "registrant_id",
            sa.Text(),
            nullable=True,
            comment="lda_registrants.id once it is loaded.",
        ),
        sa.Column("prefix", sa.Text(), nullable=True, comment="mr, dr, …"),
        sa.Column("prefix_display", sa.Text(), nullable=True, comment="MR."),
        sa.Column("first_name", sa.Text(), nullable=True, comment="In capitals, mostly."),
        sa.Column("nickname", sa.Text(), nullable=True, comment="What others call them."),
        sa.Column("middle_name", sa.Text(), nullable=True, comment="Or its initial."),
        sa.Column("last_name", sa.Text(), nullable=True, comment="In capitals, mostly."),
        sa.Column("suffix", sa.Text(), nullable=True, comment="jr, esq, …"),
        sa.Column("suffix_display", sa.Text(), nullable=True, comment="JR."),
        sa.ForeignKeyConstraint(
            ["registrant_id"], ["lda_registrants.id"], name=op.f("fk_lda_lobbyists_registrant_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lda_lobbyists")),
        comment="People who lobby; somebody who changes registrants has two rows.",
    )
    op.create_index(
        op.f("ix_lda_lobbyists_registrant_id"), "lda_lobbyists", ["registrant_id"], unique=False
    )


def _create_lda_filings() -> None:
    op.create_table(
        "lda_filings",
        *_lda_filings_columns_1(),
        *_lda_filings_columns_2(),
        *_lda_filings_columns_3(),
        sa.ForeignKeyConstraint(
            ["client_id"], ["lda_clients.id"], name=op.f("fk_lda_filings_client_id")
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_lda_filings_id")),
        sa.ForeignKeyConstraint(
            ["registrant_id"], ["lda_registrants.id"], name=op.f("fk_lda_filings_registrant_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lda_filings")),
        comment="Registrations and reports under the Lobbying Disclosure Act.",
    )
    op.create_index(
        op.f("ix_lda_filings_client_id_client_ref"),
        "lda_filings",
        ["client_id", "client_ref"],
        unique=False,
    )
    op.create_index("ix_lda_filings_dt_posted", "lda_filings", ["dt_posted"], unique=False)
    op.create_index(
        op.f("ix_lda_filings_registrant_id_registrant_ref"),
        "lda_filings",
        ["registrant_id", "registrant_ref"],
        unique=False,
    )


def _lda_filings_columns_1() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.Text(), nullable=False, comment="lda:<filing_uuid>"),
        sa.Column(
            "filing_uuid", sa.Text(), nullable=False, comment="An amendment has one of its own."
        ),
        sa.Column("filing_year", sa.Integer(), nullable=True, comment="The year reported on."),
        sa.Column(
            "filing_type",
            sa.Text(),
            nullable=True,
            comment="RR, RA, Q1, Q1Y, 1T, 1A, 1@, …, MM, YY.",
        ),
        sa.Column("filing_type_display", sa.Text(), nullable=True, comment="3rd Quarter - Report."),
        sa.Column(
            "filing_period",
            sa.Text(),
            nullable=True,
            comment="third_quarter, mid_year, …; of a registration, the one it was made in.",
        ),
        sa.Column(
            "filing_period_display",
            sa.Text(),
            nullable=True,
            comment="3rd Quarter (July 1 - Sep 30).",
        ),
        sa.Column("filing_document_url", sa.Text(), nullable=True, comment="The filing itself."),
        sa.Column(
            "filing_document_content_type",
            sa.Text(),
            nullable=True,
            comment="text/html, or application/pdf for a scan.",
        ),
        sa.Column(
            "expenses_method",
            sa.Text(),
            nullable=True,
            comment="a, b or c: how expenses were counted.",
        ),
        sa.Column(
            "expenses_method_display", sa.Text(), nullable=True, comment="The same in words."
        ),
    ]


def _lda_filings_columns_2() -> list[sa.Column[Any]]:
    return [
        sa.Column("posted_by_name", sa.Text(), nullable=True, comment="Who filed it."),
        sa.Column(
            "dt_posted",
            sa.Text(),
            nullable=True,
            comment="When, ISO 8601; as early as 1905 for filings of 1999.",
        ),
        sa.Column(
            "termination_date", sa.Text(), nullable=True, comment="ISO day the lobbying ended."
        ),
        sa.Column(
            "registrant_country",
            sa.Text(),
            nullable=True,
            comment="The registrant's, as the filing states it.",
        ),
        sa.Column(
            "registrant_ppb_country",
            sa.Text(),
            nullable=True,
            comment="Of its principal place of business, as the filing states it.",
        ),
        sa.Column(
            "registrant_address_1", sa.Text(), nullable=True, comment="As the filing states it."
        ),
        sa.Column(
            "registrant_address_2", sa.Text(), nullable=True, comment="As the filing states it."
        ),
        sa.Column("registrant_city", sa.Text(), nullable=True, comment="As the filing states it."),
        sa.Column("registrant_state", sa.Text(), nullable=True, comment="As the filing states it."),
        sa.Column("registrant_zip", sa.Text(), nullable=True, comment="As the filing states it."),
        sa.Column(
            "income",
            sa.Numeric(precision=16, scale=2, asdecimal=False),
            nullable=True,
            comment="US dollars, of a lobbying firm from this client.",
        ),
    ]


def _lda_filings_columns_3() -> list[sa.Column[Any]]:
    return [
        sa.Column(
            "expenses",
            sa.Numeric(precision=16, scale=2, asdecimal=False),
            nullable=True,
            comment="US dollars, of an organization with lobbyists of its own.",
        ),
        sa.Column(
            "amount",
            sa.Numeric(precision=16, scale=2, asdecimal=False),
            nullable=True,
            comment="Income or expenses; the quarterly files do not say which.",
        ),
        sa.Column(
            "registrant_different_address",
            sa.Boolean(),
            nullable=True,
            comment="Than in its registration.",
        ),
        sa.Column("registrant_ref", sa.Text(), nullable=True, comment="Who filed it."),
        sa.Column(
            "registrant_id",
            sa.Text(),
            nullable=True,
            comment="lda_registrants.id once it is loaded.",
        ),
        sa.Column(
            "registrant_name", sa.Text(), nullable=True, comment="As published with this filing."
        ),
        sa.Column("client_ref", sa.Text(), nullable=True, comment="Whom it lobbied for."),
        sa.Column(
            "client_id", sa.Text(), nullable=True, comment="lda_clients.id once it is loaded."
        ),
        sa.Column(
            "client_name", sa.Text(), nullable=True, comment="As published with this filing."
        ),
        sa.Column(
            "affiliated_orgs_url",
            sa.Text(),
            nullable=True,
            comment="Where they are listed; quarterly files.",
        ),
    ]


def _create_lda_activities() -> None:
    op.create_table(
        "lda_activities",
        sa.Column("filing_id", sa.Text(), nullable=False, comment="lda_filings.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "general_issue_code",
            sa.Text(),
            nullable=True,
            comment="TAX; NULL in the quarterly files.",
        ),
        sa.Column(
            "general_issue_code_display",
            sa.Text(),
            nullable=True,
            comment="Taxation/Internal Revenue Code.",
        ),
        sa.Column(
            "description",
            sa.Text(),
            nullable=True,
            comment="The specific issues, as the registrant words them; bills by number.",
        ),
        sa.Column(
            "foreign_entity_issues",
            sa.Text(),
            nullable=True,
            comment="The interest of foreign entities in them.",
        ),
        sa.ForeignKeyConstraint(
            ["filing_id"],
            ["lda_filings.id"],
            name=op.f("fk_lda_activities_filing_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("filing_id", "ord", name=op.f("pk_lda_activities")),
        comment="What was lobbied on.",
    )


def _create_lda_activity_entities() -> None:
    op.create_table(
        "lda_activity_entities",
        sa.Column("filing_id", sa.Text(), nullable=False, comment="lda_filings.id"),
        sa.Column(
            "ord", sa.Integer(), autoincrement=False, nullable=False, comment="Place in the filing."
        ),
        sa.Column(
            "activity",
            sa.Integer(),
            nullable=True,
            comment="lda_activities.ord; NULL where it is said of the filing as a whole.",
        ),
        sa.Column(
            "entity_id",
            sa.Integer(),
            nullable=True,
            comment="Of the API's list; NULL in the quarterly files.",
        ),
        sa.Column("name", sa.Text(), nullable=True, comment="HOUSE OF REPRESENTATIVES."),
        sa.ForeignKeyConstraint(
            ["filing_id"],
            ["lda_filings.id"],
            name=op.f("fk_lda_activity_entities_filing_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("filing_id", "ord", name=op.f("pk_lda_activity_entities")),
        comment="Houses of Congress and agencies that were contacted.",
    )


def _create_lda_activity_lobbyists() -> None:
    op.create_table(
        "lda_activity_lobbyists",
        sa.Column("filing_id", sa.Text(), nullable=False, comment="lda_filings.id"),
        sa.Column(
            "ord", sa.Integer(), autoincrement=False, nullable=False, comment="Place in the filing."
        ),
        sa.Column(
            "activity",
            sa.Integer(),
            nullable=True,
            comment="lda_activities.ord; NULL where it is said of the filing as a whole.",
        ),
        sa.Column(
            "lobbyist_ref",
            sa.Text(),
            nullable=True,
            comment="lobbyist.id; NULL in the quarterly files.",
        ),
        sa.Column(
            "lobbyist_id", sa.Text(), nullable=True, comment="lda_lobbyists.id once it is loaded."
        ),
        sa.Column("name", sa.Text(), nullable=True, comment="As published with this filing."),
        sa.Column(
            "covered_position",
            sa.Text(),
            nullable=True,
            comment="Office held in the government before.",
        ),
        sa.Column("new", sa.Boolean(), nullable=True, comment="Named for the first time."),
        sa.Column(
            "status",
            sa.Integer(),
            nullable=True,
            comment="0 active, 1 ended, 3 undetermined; quarterly files.",
        ),
        sa.Column(
            "indicator",
            sa.Integer(),
            nullable=True,
            comment="Covered position: 0, 1 or 2; quarterly files, unreliable.",
        ),
        sa.ForeignKeyConstraint(
            ["filing_id"],
            ["lda_filings.id"],
            name=op.f("fk_lda_activity_lobbyists_filing_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["lobbyist_id"],
            ["lda_lobbyists.id"],
            name=op.f("fk_lda_activity_lobbyists_lobbyist_id"),
        ),
        sa.PrimaryKeyConstraint("filing_id", "ord", name=op.f("pk_lda_activity_lobbyists")),
        comment="Who lobbied on what.",
    )
    op.create_index(
        op.f("ix_lda_activity_lobbyists_lobbyist_id_lobbyist_ref"),
        "lda_activity_lobbyists",
        ["lobbyist_id", "lobbyist_ref"],
        unique=False,
    )


def _create_lda_affiliated_organizations() -> None:
    op.create_table(
        "lda_affiliated_organizations",
        sa.Column("filing_id", sa.Text(), nullable=False, comment="lda_filings.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("name", sa.Text(), nullable=True, comment="Of the organization."),
        sa.Column("url", sa.Text(), nullable=True, comment="Where it lists its members."),
        sa.Column(
            "address_1",
            sa.Text(),
            nullable=True,
            comment="First line; in the quarterly files the whole address.",
        ),
        sa.Column("address_2", sa.Text(), nullable=True, comment="Second line."),
        sa.Column("address_3", sa.Text(), nullable=True, comment="Third line."),
        sa.Column("address_4", sa.Text(), nullable=True, comment="Fourth line."),
        sa.Column("city", sa.Text(), nullable=True, comment="City."),
        sa.Column("zip", sa.Text(), nullable=True, comment="ZIP code."),
        sa.Column("state", sa.Text(), nullable=True, comment="Postal code."),
        sa.Column("state_display", sa.Text(), nullable=True, comment="Virginia."),
        sa.Column(
            "country", sa.Text(), nullable=True, comment="ISO code; empty where undetermined."
        ),
        sa.Column("country_display", sa.Text(), nullable=True, comment="United States of America."),
        sa.Column(
            "ppb_city", sa.Text(), nullable=True, comment="Of the principal place of business."
        ),
        sa.Column(
            "ppb_state",
            sa.Text(),
            nullable=True,
            comment="Of the principal place of business: postal code.",
        ),
        sa.Column("ppb_state_display", sa.Text(), nullable=True, comment="The same in words."),
        sa.Column(
            "ppb_country",
            sa.Text(),
            nullable=True,
            comment="Of the principal place of business: ISO code.",
        ),
        sa.Column("ppb_country_display", sa.Text(), nullable=True, comment="The same in words."),
        sa.ForeignKeyConstraint(
            ["filing_id"],
            ["lda_filings.id"],
            name=op.f("fk_lda_affiliated_organizations_filing_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("filing_id", "ord", name=op.f("pk_lda_affiliated_organizations")),
        comment="Organizations that pay for and take part in the lobbying.",
    )


def _create_lda_convictions() -> None:
    op.create_table(
        "lda_convictions",
        sa.Column("filing_id", sa.Text(), nullable=False, comment="lda_filings.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("lobbyist_ref", sa.Text(), nullable=True, comment="lobbyist.id."),
        sa.Column(
            "lobbyist_id", sa.Text(), nullable=True, comment="lda_lobbyists.id once it is loaded."
        ),
        sa.Column("name", sa.Text(), nullable=True, comment="Of the lobbyist."),
        sa.Column("date", sa.Text(), nullable=True, comment="ISO day of the conviction."),
        sa.Column("description", sa.Text(), nullable=True, comment="Of the offense."),
        sa.ForeignKeyConstraint(
            ["filing_id"],
            ["lda_filings.id"],
            name=op.f("fk_lda_convictions_filing_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["lobbyist_id"], ["lda_lobbyists.id"], name=op.f("fk_lda_convictions_lobbyist_id")
        ),
        sa.PrimaryKeyConstraint("filing_id", "ord", name=op.f("pk_lda_convictions")),
        comment="Convictions of lobbyists that a filing discloses (conviction_disclosures).",
    )
    op.create_index(
        op.f("ix_lda_convictions_lobbyist_id"), "lda_convictions", ["lobbyist_id"], unique=False
    )


def _create_lda_foreign_entities() -> None:
    op.create_table(
        "lda_foreign_entities",
        sa.Column("filing_id", sa.Text(), nullable=False, comment="lda_filings.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("name", sa.Text(), nullable=True, comment="Of the entity."),
        sa.Column("address", sa.Text(), nullable=True, comment="Street."),
        sa.Column("city", sa.Text(), nullable=True, comment="City."),
        sa.Column("state", sa.Text(), nullable=True, comment="Postal code."),
        sa.Column("state_display", sa.Text(), nullable=True, comment="Virginia."),
        sa.Column(
            "country", sa.Text(), nullable=True, comment="ISO code; empty where undetermined."
        ),
        sa.Column("country_display", sa.Text(), nullable=True, comment="United States of America."),
        sa.Column(
            "ppb_city", sa.Text(), nullable=True, comment="Of the principal place of business."
        ),
        sa.Column(
            "ppb_state",
            sa.Text(),
            nullable=True,
            comment="Of the principal place of business: postal code.",
        ),
        sa.Column("ppb_state_display", sa.Text(), nullable=True, comment="The same in words."),
        sa.Column(
            "ppb_country",
            sa.Text(),
            nullable=True,
            comment="Of the principal place of business: ISO code.",
        ),
        sa.Column("ppb_country_display", sa.Text(), nullable=True, comment="The same in words."),
        sa.Column(
            "contribution",
            sa.Numeric(precision=16, scale=2, asdecimal=False),
            nullable=True,
            comment="US dollars towards the lobbying.",
        ),
        sa.Column(
            "ownership_percentage",
            sa.Numeric(precision=16, scale=2, asdecimal=False),
            nullable=True,
            comment="Share in the client.",
        ),
        sa.Column(
            "status",
            sa.Integer(),
            nullable=True,
            comment="0 active, 1 ended, 3 undetermined; quarterly files.",
        ),
        sa.ForeignKeyConstraint(
            ["filing_id"],
            ["lda_filings.id"],
            name=op.f("fk_lda_foreign_entities_filing_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("filing_id", "ord", name=op.f("pk_lda_foreign_entities")),
        comment="Foreign entities with an interest in the client.",
    )
