"""How German federal law is cited: the provision, then the act's abbreviation.

The abbreviation is the one by which the documentation office tells acts apart (`UWG 2004`), since
the official one (`UWG`) may stand for several.
"""

from __future__ import annotations

import re
from typing import Final

_SIGNS: Final = {"section": "§", "article": "Art.", "annex": "Anlage"}
_SEVERAL: Final = re.compile(r"\s(?:bis|und|u\.)\s|,")


def provision(*, kind: str, number: str, article: str = "") -> str:
    """`§ 433`, `§§ 92 bis 98`, `Art. 229 § 34`, `Anlage 1`, `Eingangsformel`, without the act.

    `article` is the one that a section is part of, in acts whose articles have sections.
    """
    sign = _SIGNS.get(kind, kind.capitalize())
    if kind == "section" and _SEVERAL.search(number):
        sign = "§§"
    within = f"Art. {article} " if article and kind == "section" else ""
    return f"{within}{sign} {number}".rstrip()


def cite_provision(*, kind: str, number: str, act: str, article: str = "") -> str:
    """`§ 433 BGB`, `Art. 229 § 34 BGBEG`, `Anlage 1 BImSchV 1 2010`."""
    return f"{provision(kind=kind, number=number, article=article)} {act}"
