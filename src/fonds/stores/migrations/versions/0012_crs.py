"""Tables of the crs source."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Json, Timestamp

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_crs_reports()
    _create_crs_topics()
    _create_crs_versions()


def _create_crs_reports() -> None:
    op.create_table(
        "crs_reports",
        *_crs_reports_columns_1(),
        *_crs_reports_columns_2(),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_crs_reports_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crs_reports")),
        comment="Reports and other products of the Congressional Research Service.",
    )
    op.create_index("ix_crs_reports_number", "crs_reports", ["number"], unique=False)


def _crs_reports_columns_1() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.Text(), nullable=False, comment="crs:R48481, documents.id."),
        sa.Column(
            "number", sa.Text(), nullable=False, comment="R48481, 98-807: what CRS calls it."
        ),
        sa.Column("title", sa.Text(), nullable=False, comment="Of the newest version."),
        sa.Column(
            "type",
            sa.Text(),
            nullable=True,
            comment="`CRS Report`, `CRS Insight`, …, as EveryCRSReport.com words it.",
        ),
        sa.Column(
            "type_id",
            sa.Text(),
            nullable=True,
            comment="`REPORTS`, `INSIGHTS`, …: the same as a code.",
        ),
        sa.Column(
            "source",
            sa.Text(),
            nullable=True,
            comment="Where EveryCRSReport.com has it from; several are joined by commas.",
        ),
        sa.Column(
            "content_type",
            sa.Text(),
            nullable=True,
            comment="`Reports`, `In Focus`, …, as congress.gov words it.",
        ),
        sa.Column(
            "status",
            sa.Text(),
            nullable=True,
            comment="`Active` or `Archived`, as congress.gov has it.",
        ),
        sa.Column(
            "active",
            sa.Boolean(),
            nullable=True,
            comment="Whether CRS still maintained it when it was last seen.",
        ),
        sa.Column(
            "version",
            sa.Integer(),
            nullable=True,
            comment="Number of the newest version, as CRS counts them.",
        ),
    ]


def _crs_reports_columns_2() -> list[sa.Column[Any]]:
    return [
        sa.Column(
            "latest_pub_date",
            sa.Text(),
            nullable=True,
            comment="ISO day of the newest version: its cover date.",
        ),
        sa.Column(
            "publication_date",
            sa.Text(),
            nullable=True,
            comment="ISO day of the first version, from SearchResults.csv.",
        ),
        sa.Column(
            "publish_date", Timestamp(), nullable=True, comment="publishDate of congress.gov."
        ),
        sa.Column(
            "update_date",
            Timestamp(),
            nullable=True,
            comment="updateDate of congress.gov: of its record.",
        ),
        sa.Column(
            "summary", sa.Text(), nullable=True, comment="Of the newest version, as plain text."
        ),
        sa.Column(
            "latest_html",
            sa.Text(),
            nullable=True,
            comment="Path or address of the newest version's HTML.",
        ),
        sa.Column(
            "latest_pdf",
            sa.Text(),
            nullable=True,
            comment="Path or address of the newest version's PDF.",
        ),
        sa.Column(
            "sha1",
            sa.Text(),
            nullable=True,
            comment="Of the metadata file, as the list of EveryCRSReport.com has it.",
        ),
        sa.Column(
            "authors",
            Json,
            nullable=True,
            comment="Names, from congress.gov; EveryCRSReport.com strikes them.",
        ),
        sa.Column(
            "related_materials",
            Json,
            nullable=True,
            comment="Bills and laws it is about, from congress.gov: title, congress, type, number.",
        ),
    ]


def _create_crs_topics() -> None:
    op.create_table(
        "crs_topics",
        sa.Column("report_id", sa.Text(), nullable=False, comment="crs_reports.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="The topic."),
        sa.Column(
            "source",
            sa.Text(),
            nullable=True,
            comment="Whose topic it is: IBCList, CongOpsList, EveryCRSReport.com, congress.gov, …",
        ),
        sa.Column("topic_id", sa.Text(), nullable=True, comment="Its id in that list."),
        sa.ForeignKeyConstraint(
            ["report_id"],
            ["crs_reports.id"],
            name=op.f("fk_crs_topics_report_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("report_id", "ord", name=op.f("pk_crs_topics")),
        comment="What the newest version of a report is about.",
    )


def _create_crs_versions() -> None:
    op.create_table(
        "crs_versions",
        sa.Column("report_id", sa.Text(), nullable=False, comment="crs_reports.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list, the newest first.",
        ),
        sa.Column("title", sa.Text(), nullable=False, comment="As this version has it."),
        sa.Column(
            "version_id", sa.Text(), nullable=True, comment="The version's own id, or its number."
        ),
        sa.Column("date", sa.Text(), nullable=True, comment="ISO day on its cover."),
        sa.Column(
            "retrieved",
            sa.Text(),
            nullable=True,
            comment="ISO moment at which EveryCRSReport.com found it; no zone is stated.",
        ),
        sa.Column(
            "source", sa.Text(), nullable=True, comment="Where EveryCRSReport.com has it from."
        ),
        sa.Column("source_link", sa.Text(), nullable=True, comment="Its page there."),
        sa.Column("summary", sa.Text(), nullable=True, comment="As plain text."),
        sa.Column("html", sa.Text(), nullable=True, comment="Path or address of its HTML."),
        sa.Column("pdf", sa.Text(), nullable=True, comment="Path or address of its PDF."),
        sa.Column(
            "html_sha1", sa.Text(), nullable=True, comment="SHA-1 of the HTML as CRS served it."
        ),
        sa.Column(
            "pdf_sha1", sa.Text(), nullable=True, comment="SHA-1 of the PDF as CRS served it."
        ),
        sa.ForeignKeyConstraint(
            ["report_id"],
            ["crs_reports.id"],
            name=op.f("fk_crs_versions_report_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("report_id", "ord", name=op.f("pk_crs_versions")),
        comment="Every version of a report that is known.",
    )
