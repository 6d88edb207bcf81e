"""How the District of Columbia Official Code is cited.

A section follows the Bluebook's table T1: `D.C. Code § 47-1801.04 (2016).` A text that stands
under a chapter and belongs to no section is cited by the levels above it: `D.C. Code tit. 9,
ch. 10 (2016).`
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_YEAR: Final = re.compile(r"\d{4}(?!\d)")
_ABBREVIATIONS: Final = {
    "title": "tit.",
    "subtitle": "subtit.",
    "chapter": "ch.",
    "subchapter": "subch.",
    "part": "pt.",
    "subpart": "subpt.",
    "article": "art.",
    "division": "div.",
}


def cite_dc(*, number: str, version: str) -> str:
    """`D.C. Code § 28:9-101 (2016).`, by the year that the edition's stamp begins with."""
    return f"D.C. Code § {number}{_dated(version)}."


def cite_dc_part(*, levels: Iterable[tuple[str, str]], version: str) -> str:
    """`D.C. Code tit. 9, ch. 10 (2016).`: the levels (kind, number) from the title on."""
    named = ", ".join(
        f"{_ABBREVIATIONS.get(kind, kind)} {number}" for kind, number in levels if number
    )
    return f"D.C. Code {named}{_dated(version)}."


def dc_forms(number: str) -> tuple[str, ...]:
    """The other ways to write a section's citation, without the year."""
    return (f"D.C. Code § {number}", f"DC Code {number}", f"D.C. Official Code § {number}")


def _dated(version: str) -> str:
    year = _YEAR.match(version)
    return f" ({year[0] if year else version})" if version else ""
