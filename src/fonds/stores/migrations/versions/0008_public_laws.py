"""Tables of the public_laws source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_public_laws()
    _create_bill_laws()
    _create_public_law_history()
    _create_public_law_sections()
    _create_public_law_usc_references()
    _create_statute_compilations()


def _create_public_laws() -> None:
    op.create_table(
        "public_laws",
        sa.Column(
            "id",
            sa.Text(),
            nullable=False,
            comment="plaw:119-21, or plaw:119-pvt-3 for a private law.",
        ),
        sa.Column("package_id", sa.Text(), nullable=False, comment="At govinfo: PLAW-119publ21."),
        sa.Column("congress", sa.Integer(), nullable=False, comment="That passed it."),
        sa.Column(
            "doc_number", sa.Integer(), nullable=False, comment="Its number among that Congress's."
        ),
        sa.Column("public_private", sa.Text(), nullable=False, comment="public or private."),
        sa.Column("doc_title", sa.Text(), nullable=True, comment="An Act, or Joint Resolution."),
        sa.Column("official_title", sa.Text(), nullable=True, comment="To …, as enacted."),
        sa.Column(
            "short_title",
            sa.Text(),
            nullable=True,
            comment="By which it may be cited, where it says so.",
        ),
        sa.Column(
            "approved_date", sa.Text(), nullable=True, comment="Day it became law, ISO 8601."
        ),
        sa.Column(
            "stat_citation",
            sa.Text(),
            nullable=True,
            comment="First page in the Statutes at Large: 139 Stat. 3.",
        ),
        sa.Column(
            "stat_volume", sa.Integer(), nullable=True, comment="Volume of the Statutes at Large."
        ),
        sa.Column("stat_page", sa.Text(), nullable=True, comment="First page there."),
        sa.Column(
            "bill_ref", sa.Text(), nullable=True, comment="bill:119-hr-2102, of which it was made."
        ),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.Column(
            "processed_date",
            sa.Text(),
            nullable=True,
            comment="Day GPO converted the file, ISO 8601.",
        ),
        sa.ForeignKeyConstraint(["bill_id"], ["bills.id"], name=op.f("fk_public_laws_bill_id")),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_public_laws_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_public_laws")),
        comment="Public and private laws as enacted.",
    )
    op.create_index(op.f("ix_public_laws_bill_id"), "public_laws", ["bill_id"], unique=False)
    op.create_index(
        "ix_public_laws_congress_doc_number",
        "public_laws",
        ["congress", "doc_number"],
        unique=False,
    )
    op.create_index(
        "ix_public_laws_stat_volume_stat_page",
        "public_laws",
        ["stat_volume", "stat_page"],
        unique=False,
    )


def _create_bill_laws() -> None:
    op.create_table(
        "bill_laws",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("type", sa.Text(), nullable=True, comment="Public Law or Private Law."),
        sa.Column("number", sa.Text(), nullable=True, comment="119-21."),
        sa.Column("law_ref", sa.Text(), nullable=True, comment="plaw:119-21."),
        sa.Column("law_id", sa.Text(), nullable=True, comment="public_laws.id once it is loaded."),
        sa.Column(
            "text_date",
            sa.Text(),
            nullable=True,
            comment="ISO date, of the law's text among the bill's versions.",
        ),
        sa.Column(
            "text_url",
            sa.Text(),
            nullable=True,
            comment="The law's text, as the list of the bill's versions gives it.",
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_laws_bill_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["law_id"], ["public_laws.id"], name=op.f("fk_bill_laws_law_id")),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_laws")),
        comment="Laws a bill became.",
    )
    op.create_index(op.f("ix_bill_laws_law_id"), "bill_laws", ["law_id"], unique=False)


def _create_public_law_history() -> None:
    op.create_table(
        "public_law_history",
        sa.Column("law_id", sa.Text(), nullable=False, comment="public_laws.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "heading", sa.Text(), nullable=True, comment="HOUSE REPORTS, CONGRESSIONAL RECORD, …"
        ),
        sa.Column(
            "subheading",
            sa.Text(),
            nullable=True,
            comment="Volume and year, where entries are parted by them.",
        ),
        sa.Column(
            "text", sa.Text(), nullable=False, comment="Oct. 9, considered and passed House."
        ),
        sa.ForeignKeyConstraint(
            ["law_id"],
            ["public_laws.id"],
            name=op.f("fk_public_law_history_law_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("law_id", "ord", name=op.f("pk_public_law_history")),
        comment="Legislative history, entry by entry, as printed at the end of a law.",
    )


def _create_public_law_sections() -> None:
    op.create_table(
        "public_law_sections",
        sa.Column("law_id", sa.Text(), nullable=False, comment="public_laws.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "num",
            sa.Text(),
            nullable=True,
            comment="As numbered: 101; NULL for the section without a number.",
        ),
        sa.Column("heading", sa.Text(), nullable=True, comment="As printed."),
        sa.Column(
            "identifier",
            sa.Text(),
            nullable=True,
            comment="GPO's own: /us/pl/119/21/s101; NULL before 2020 or so.",
        ),
        sa.Column(
            "page", sa.Text(), nullable=True, comment="Page of the Statutes at Large it begins on."
        ),
        sa.ForeignKeyConstraint(
            ["law_id"],
            ["public_laws.id"],
            name=op.f("fk_public_law_sections_law_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("law_id", "ord", name=op.f("pk_public_law_sections")),
        comment="Sections of a law; those it quotes to put them into other laws are left out.",
    )


def _create_public_law_usc_references() -> None:
    op.create_table(
        "public_law_usc_references",
        sa.Column("law_id", sa.Text(), nullable=False, comment="public_laws.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("href", sa.Text(), nullable=False, comment="/us/usc/t42/s1861."),
        sa.Column(
            "text", sa.Text(), nullable=False, comment="As printed in the margin: 42 USC 1861 note."
        ),
        sa.Column(
            "title",
            sa.Text(),
            nullable=True,
            comment="Title of the Code, its appendix with a letter: 5a.",
        ),
        sa.Column(
            "section",
            sa.Text(),
            nullable=True,
            comment="Section of the Code; NULL for a whole title.",
        ),
        sa.Column(
            "is_note", sa.Boolean(), nullable=False, comment="Classified as a note to that section."
        ),
        sa.ForeignKeyConstraint(
            ["law_id"],
            ["public_laws.id"],
            name=op.f("fk_public_law_usc_references_law_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("law_id", "ord", name=op.f("pk_public_law_usc_references")),
        comment="Where the Code holds parts of a law, as its sidenotes say.",
    )
    op.create_index(
        op.f("ix_public_law_usc_references_section"),
        "public_law_usc_references",
        ["section"],
        unique=False,
    )


def _create_statute_compilations() -> None:
    op.create_table(
        "statute_compilations",
        sa.Column("id", sa.Text(), nullable=False, comment="comps:COMPS-1088."),
        sa.Column(
            "file_id",
            sa.Integer(),
            nullable=False,
            comment="Number of the House Legislative Counsel.",
        ),
        sa.Column("title", sa.Text(), nullable=False, comment="Of the act, in its own spelling."),
        sa.Column(
            "citable_as",
            sa.Text(),
            nullable=True,
            comment="The law it compiles, as stated: Public Law 84–885, as amended.",
        ),
        sa.Column(
            "approved_date", sa.Text(), nullable=True, comment="Day the act became law, ISO 8601."
        ),
        sa.Column(
            "amended_date",
            sa.Text(),
            nullable=True,
            comment="Day the last amendment taken in became law, ISO 8601.",
        ),
        sa.Column(
            "processed_date",
            sa.Text(),
            nullable=True,
            comment="Day GPO converted the file, ISO 8601.",
        ),
        sa.Column("law_ref", sa.Text(), nullable=True, comment="plaw:84-885, which it compiles."),
        sa.Column("law_id", sa.Text(), nullable=True, comment="public_laws.id once it is loaded."),
        sa.Column(
            "through_law_ref",
            sa.Text(),
            nullable=True,
            comment="plaw:116-326, the last amendment taken in.",
        ),
        sa.Column(
            "through_law_id", sa.Text(), nullable=True, comment="public_laws.id once it is loaded."
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_statute_compilations_id")),
        sa.ForeignKeyConstraint(
            ["law_id"], ["public_laws.id"], name=op.f("fk_statute_compilations_law_id")
        ),
        sa.ForeignKeyConstraint(
            ["through_law_id"],
            ["public_laws.id"],
            name=op.f("fk_statute_compilations_through_law_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_statute_compilations")),
        comment="Statutes with all amendments taken in, as the House Legislative Counsel keeps them.",
    )
    op.create_index(
        op.f("ix_statute_compilations_law_id"), "statute_compilations", ["law_id"], unique=False
    )
    op.create_index(
        op.f("ix_statute_compilations_through_law_id"),
        "statute_compilations",
        ["through_law_id"],
        unique=False,
    )
