"""Tables of the public_laws source; columns bear the names of USLM's elements."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.stores.columns import document_key, owned_by, position, reference, texts
from fonds.stores.tables import metadata

public_laws: Final = Table(
    "public_laws",
    metadata,
    document_key("plaw:119-21, or plaw:119-pvt-3 for a private law."),
    Column("package_id", Text, nullable=False, comment="At govinfo: PLAW-119publ21."),
    Column("congress", Integer, nullable=False, comment="That passed it."),
    Column("doc_number", Integer, nullable=False, comment="Its number among that Congress's."),
    Column("public_private", Text, nullable=False, comment="public or private."),
    *texts(
        doc_title="An Act, or Joint Resolution.",
        official_title="To …, as enacted.",
        short_title="By which it may be cited, where it says so.",
        approved_date="Day it became law, ISO 8601.",
        stat_citation="First page in the Statutes at Large: 139 Stat. 3.",
    ),
    Column("stat_volume", Integer, comment="Volume of the Statutes at Large."),
    Column("stat_page", Text, comment="First page there."),
    *reference("bill", "bills", "bill:119-hr-2102, of which it was made."),
    *texts(processed_date="Day GPO converted the file, ISO 8601."),
    Index("ix_public_laws_congress_doc_number", "congress", "doc_number"),
    Index("ix_public_laws_stat_volume_stat_page", "stat_volume", "stat_page"),
    comment="Public and private laws as enacted.",
)


def _child(name: str, *columns: Column[Any], comment: str) -> Table:
    owner = owned_by("public_laws", "law_id")
    return Table(name, metadata, owner, position(), *columns, comment=comment)


public_law_sections: Final = _child(
    "public_law_sections",
    *texts(
        num="As numbered: 101; NULL for the section without a number.",
        heading="As printed.",
        identifier="GPO's own: /us/pl/119/21/s101; NULL before 2020 or so.",
        page="Page of the Statutes at Large it begins on.",
    ),
    comment="Sections of a law; those it quotes to put them into other laws are left out.",
)

public_law_usc_references: Final = _child(
    "public_law_usc_references",
    Column("href", Text, nullable=False, comment="/us/usc/t42/s1861."),
    Column("text", Text, nullable=False, comment="As printed in the margin: 42 USC 1861 note."),
    Column("title", Text, comment="Title of the Code, its appendix with a letter: 5a."),
    Column("section", Text, index=True, comment="Section of the Code; NULL for a whole title."),
    Column("is_note", Boolean, nullable=False, comment="Classified as a note to that section."),
    comment="Where the Code holds parts of a law, as its sidenotes say.",
)

public_law_history: Final = _child(
    "public_law_history",
    Column("heading", Text, comment="HOUSE REPORTS, CONGRESSIONAL RECORD, …"),
    Column("subheading", Text, comment="Volume and year, where entries are parted by them."),
    Column("text", Text, nullable=False, comment="Oct. 9, considered and passed House."),
    comment="Legislative history, entry by entry, as printed at the end of a law.",
)

statute_compilations: Final = Table(
    "statute_compilations",
    metadata,
    document_key("comps:COMPS-1088."),
    Column("file_id", Integer, nullable=False, comment="Number of the House Legislative Counsel."),
    Column("title", Text, nullable=False, comment="Of the act, in its own spelling."),
    *texts(
        citable_as="The law it compiles, as stated: Public Law 84–885, as amended.",
        approved_date="Day the act became law, ISO 8601.",
        amended_date="Day the last amendment taken in became law, ISO 8601.",
        processed_date="Day GPO converted the file, ISO 8601.",
    ),
    *reference("law", "public_laws", "plaw:84-885, which it compiles."),
    *reference("through_law", "public_laws", "plaw:116-326, the last amendment taken in."),
    comment="Statutes with all amendments taken in, as the House Legislative Counsel keeps them.",
)

TABLES: Final = (
    public_laws,
    public_law_sections,
    public_law_usc_references,
    public_law_history,
    statute_compilations,
)
"""Parents before children."""
