"""How the daily edition of the Congressional Record is cited."""

from __future__ import annotations

from datetime import date
from typing import Final

from fonds.citations.dates import bluebook_date

_TITLES: Final = {"H": "Rep.", "S": "Sen."}


def cite_congressional_record(
    *,
    volume: int | None,
    page: str | None,
    issued: date | None,
    speaker: str | None = None,
    chamber: str | None = None,
) -> str:
    """`171 Cong. Rec. H1234 (daily ed. Mar. 4, 2025) (statement of Rep. X).`, ready to paste.

    The speaker is given by surname, and the chamber by its letter, where one member alone spoke.
    What is unknown is left out.
    """
    cited = record_page(volume=volume, page=page)
    if issued:
        cited += f" (daily ed. {bluebook_date(issued)})"
    if speaker:
        title = _TITLES.get(chamber or "")
        cited += f" (statement of {f'{title} {speaker}' if title else speaker})"
    return f"{cited.removesuffix('.')}."


def record_page(*, volume: int | None, page: str | None) -> str:
    """The page as a citation names it: `171 Cong. Rec. H1234`."""
    return " ".join(part for part in (str(volume or ""), "Cong. Rec.", page) if part)
