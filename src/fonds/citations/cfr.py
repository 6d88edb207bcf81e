"""How the Code of Federal Regulations is cited.

The Bluebook's rule 14.2: title, section or part, and the year of the edition, `40 C.F.R. § 60.112b
(2025).` What is smaller than a part follows it, what has no part is cited by its chapter:
`40 C.F.R. pt. 60, app. A (2025).`, `40 C.F.R. ch. I, subch. C (2025).`
"""

from __future__ import annotations

import re
from typing import Final

_SEVERAL: Final = re.compile(r"[–—,]|\b(?:and|through|to)\b")
_LEVELS: Final = {
    "subtitle": ("subtit.", "subtits."),
    "chapter": ("ch.", "chs."),
    "subchapter": ("subch.", "subchs."),
    "part": ("pt.", "pts."),
    "subpart": ("subpt.", "subpts."),
    "section": ("§", "§§"),
    "appendix": ("app.", "apps."),
}
_ANNEXES: Final = {
    "table": "tbl.",
    "figure": "fig.",
    "exhibit": "ex.",
    "supplement": "supp.",
    "schedule": "sched.",
    "attachment": "attach.",
}


def cite_cfr(title: str, *where: str, year: int | None) -> str:
    """`40 C.F.R. pt. 60, app. A (2025).`; of an edition whose year is unknown, none is stated."""
    place = f"{title} C.F.R. {', '.join(where)}".rstrip()
    return f"{place} ({year})." if year else f"{place}."


def cite_level(kind: str, number: str, *, several: bool = False) -> str:
    """`§ 60.112b`, `pt. 60`, `subpt. Kb`, `app. A`; `§§` and `pts.` where the number is a range.

    `several` says that it is one where the number does not: `1.1-1.3` may be a single section's.
    """
    one, more = _LEVELS[kind]
    word = more if several or _SEVERAL.search(number) else one
    return f"{word} {number}".rstrip()


def cite_appendix(number: str) -> str:
    """`app. A` for `A`, `tbl. 1` for `Table 1`: not all that is appended is called an appendix."""
    word, _, rest = number.partition(" ")
    if short := _ANNEXES.get(word.lower()):
        return f"{short} {rest}".rstrip()
    return cite_level("appendix", number)
