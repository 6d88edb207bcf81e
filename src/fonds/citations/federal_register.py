"""How a Federal Register document is cited."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from fonds.citations.dates import bluebook_date

_YEAR: Final = re.compile(r"(?:[A-Z]\d+-)?((?:19|20)\d\d)-\d")


def cite_federal_register(
    *, number: str, volume: int | None, page: int | None, published: date | None
) -> str:
    """The citation as a brief would print it, `91 Fed. Reg. 12345 (Mar. 4, 2026).`, ready to paste.

    Without volume or page the document's own number stands for them, and without a date the
    year that number begins with: `FR Doc. 2016-12100 (2016).`
    """
    place = f"{volume} Fed. Reg. {page}" if volume and page else f"FR Doc. {number}"
    return f"{place} ({day})." if (day := _day(number, published)) else f"{place}."


def _day(number: str, published: date | None) -> str | None:
    if published is not None:
        return bluebook_date(published)
    match = _YEAR.match(number)
    return match[1] if match else None
