"""How a law and the compilation of a statute are cited.

A law follows the Bluebook's rule 12.4, with the year it was approved in: `Pub. L. No. 119-21
(2026).` The compilation of a statute as amended is cited as the act it compiles, with the law it
is current through: `Geothermal Steam Act of 1970, Pub. L. No. 91-581 (as amended through Pub. L.
No. 116-260, Dec. 27, 2020).`
"""

from __future__ import annotations

from datetime import date

from fonds.citations.dates import bluebook_date


def cite_public_laws(
    *, congress: int, number: int, approved: date | None, is_private: bool = False
) -> str:
    """`Pub. L. No. 119-21 (2026).`; without a date no year, as the Congress sat in two."""
    year = f" ({approved.year})" if approved else ""
    return f"{law_number(congress=congress, number=number, is_private=is_private)}{year}."


def cite_compilation(
    *, title: str, law: str | None, through: str | None, amended: date | None
) -> str:
    """The act, the law it was made by where that is stated, and how far amendments are taken in.

    `law` and `through` are numbers as `law_number` writes them.
    """
    named = f"{title}, {law}" if law else title
    if through in (None, law):
        return f"{named}."
    when = f", {bluebook_date(amended)}" if amended else ""
    return f"{named} (as amended through {through}{when})."


def law_number(*, congress: int, number: int, is_private: bool = False) -> str:
    """`Pub. L. No. 119-21`, or `Priv. L. No. 119-3`."""
    return f"{'Priv' if is_private else 'Pub'}. L. No. {congress}-{number}"
