"""How the Connecticut General Statutes are cited."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_SEVERAL: Final = re.compile(r"\s(?:to|and|or)\s|,")
_SHORT: Final = {"chapter": "ch.", "article": "art.", "part": "pt.", "subpart": "subpt."}


def cgs_sections(number: str) -> str:
    """`Conn. Gen. Stat. § 12-704e`, and `Conn. Gen. Stat. §§ 12-747 to 12-789` for several."""
    sign = "§§" if _SEVERAL.search(number) else "§"
    return f"Conn. Gen. Stat. {sign} {number}"


def cite_cgs(*, section: str, edition: str) -> str:
    """A section of an edition: `Conn. Gen. Stat. § 12-704e (2025)`, with a period behind it."""
    return f"{cgs_sections(section)} ({edition})."


def cite_cgs_notes(*, levels: Mapping[str, str], edition: str) -> str:
    """`Conn. Gen. Stat. ch. 952, pt. I (2025).`: what stands beside the sections of a level.

    Levels are names with their numbers, outermost first. Chapters are counted through all titles
    and cited without theirs; articles begin anew in the only title that has them.
    """
    named = [f"{_SHORT[kind]} {number}" for kind, number in levels.items() if kind in _SHORT]
    if "chapter" not in levels:
        named.insert(0, f"tit. {levels['title']}")
    return f"Conn. Gen. Stat. {', '.join(named)} ({edition})."
