"""How a recorded vote of the House or the Senate is cited."""

from __future__ import annotations

from datetime import date
from typing import Final

from fonds.citations.dates import bluebook_date

_TEENS: Final = frozenset({11, 12, 13})
# The Bluebook writes 2d and 3d where the chambers themselves write 2nd and 3rd.
_ENDINGS: Final = {1: "st", 2: "d", 3: "d"}


def cite_roll_call_votes(
    *, chamber: str, congress: int, session: int, number: int, day: date | None
) -> str:
    """The vote ready to cite.

    `Roll Call Vote No. 362 (House), 119th Cong., 1st Sess. (Mar. 4, 2025).`; without a day the
    parentheses at the end are left out.
    """
    place = f"{_ordinal(congress)} Cong., {_ordinal(session)} Sess."
    cited = f"Roll Call Vote No. {number} ({chamber.capitalize()}), {place}"
    # The period of `Sess.` is the citation's own where no day follows.
    return f"{cited} ({bluebook_date(day)})." if day else cited


def _ordinal(number: int) -> str:
    if number % 100 in _TEENS:
        return f"{number}th"
    return f"{number}{_ENDINGS.get(number % 10, 'th')}"
