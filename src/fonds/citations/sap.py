"""How a Statement of Administration Policy is cited."""

from __future__ import annotations

from datetime import date
from typing import Final

from fonds.citations.dates import bluebook_date

_NAME: Final = "Statement of Administration Policy"


def cite_sap(*, bill: str | None, title: str, issued: date | None) -> str:
    """The citation, `Statement of Administration Policy on H.R. 1234 (Jan. 22, 2025).`, to paste.

    A statement on no bill is known by its title, and one without a date does without.
    """
    day = f" ({bluebook_date(issued)})" if issued else ""
    if bill:
        return f"{_NAME} on {bill}{day}."
    named = title if title.startswith(_NAME) else f"{_NAME}, {title}"
    return f"{named.rstrip('.')}{day}."
