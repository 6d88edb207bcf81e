"""How the United States Code is cited, by the Bluebook's rules 12.3 and 12.9.

A section is `42 U.S.C. § 1396a (2024).`; one of an appendix `5 U.S.C. app. § 3 (2024).`, but the
federal rules of procedure and evidence that stand in appendices have names of their own:
`Fed. R. Crim. P. 11 (2024).` What stands directly under a chapter is cited as the chapter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_YEAR: Final = re.compile(r"(?:17|18|19|20|21)\d\d(?!\d)")
_SEPARATOR: Final = re.compile(r",\s*(?:and\s+)?|\s+and\s+|\s*;\s*")
_RANGE: Final = re.compile(r"\s+to\s+")
_APPENDIX: Final = re.compile(r"(\d+)a", re.IGNORECASE)

_RULES: Final = (
    ("criminal procedure", "Fed. R. Crim. P."),
    ("civil procedure", "Fed. R. Civ. P."),
    ("appellate procedure", "Fed. R. App. P."),
    ("bankruptcy procedure", "Fed. R. Bankr. P."),
    ("evidence", "Fed. R. Evid."),
)
_LEVELS: Final = {
    "title": "tit.",
    "subtitle": "subtit.",
    "division": "div.",
    "subdivision": "subdiv.",
    "part": "pt.",
    "subpart": "subpt.",
    "chapter": "ch.",
    "subchapter": "subch.",
    "article": "art.",
    "reorganizationplan": "Reorg. Plan No.",
}


def cite_usc(
    *,
    title: str,
    year: str,
    number: str = "",
    levels: Iterable[tuple[str, str]] = (),
    rules: str = "",
    is_rule: bool = False,
) -> str:
    """The citation of a section or rule by its number, or of a level by the way down to it.

    `title` may be an appendix (`18a`); `levels` are pairs of kind and number below the title;
    `rules` is the name that `rules_named` gives; a rule without it is known by its appendix.
    """
    if not number:
        named = [_marked(_LEVELS[kind], at) for kind, at in levels if at and kind in _LEVELS]
        below = ", ".join(named)
    elif rules:
        below = _numbers(number)
    else:
        below = _marked("r." if is_rule else "§", number)
    return f"{' '.join(filter(None, [rules or _cited_title(title), below]))} ({year})."


def edition_year(version: str, published_at: str | None) -> str:
    """The year an edition is cited by, or the edition's own stamp where nothing tells a year."""
    for stated in (version, published_at or ""):
        if found := _YEAR.match(stated):
            return found[0]
    return version


def rules_named(headings: Iterable[str]) -> str:
    """`Fed. R. Crim. P.` for what FEDERAL RULES OF CRIMINAL PROCEDURE stands over; else nothing."""
    for heading in headings:
        folded = heading.casefold()
        if folded.startswith("federal rules of "):
            return next((short for name, short in _RULES if folded[17:].startswith(name)), "")
    return ""


def named_sections(number: str) -> Sequence[str]:
    """The sections that a printed number names: all of a list, the first and last of a range."""
    return [one for part in _parts(number) for one in part]


def _parts(number: str) -> list[list[str]]:
    return [_RANGE.split(part.strip()) for part in _SEPARATOR.split(number) if part.strip()]


def _cited_title(title: str) -> str:
    appendix = _APPENDIX.fullmatch(title)
    return f"{appendix[1]} U.S.C. app." if appendix else f"{title} U.S.C."


def _marked(mark: str, number: str) -> str:
    if len(named_sections(number)) > 1:
        mark = f"{mark[:-1]}s." if mark.endswith(".") else mark * 2
    return f"{mark} {_numbers(number)}"


def _numbers(number: str) -> str:
    return ", ".join(map(_range, _parts(number)))


def _range(part: list[str]) -> str:
    # A dash between numbers that have hyphens of their own would be misread.
    return (" to " if any("-" in one for one in part) else "–").join(part)
