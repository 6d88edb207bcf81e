"""Numbers of titles, levels and sections, as they are printed and as they are ordered."""

from __future__ import annotations

import re
from typing import Final

_SIGNS: Final = str.maketrans(
    {
        **dict.fromkeys("§¶[]*", " "),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
    }
)
_PLAIN: Final = re.compile(r"§\s([0-9A-Za-z]+)\.")
_TRAILING: Final = " .,:;-\u2014"
_WORD: Final = re.compile(
    r"(?:(?:sub)?(?:title|division|part|chapter|article)s?|sections?|secs?\.?|rules?)\s+(?=\S)",
    re.IGNORECASE,
)
_THROUGH: Final = re.compile(r"\s+(?:through|thru)\s+", re.IGNORECASE)
_PLAN: Final = re.compile(r"\bPLAN\s+NO\.?\s*(\w+)\s+OF\s+(\d{4})\b", re.IGNORECASE)
_TITLE: Final = re.compile(r"0*([1-9]\d*)\s*-?([a-z]?)", re.IGNORECASE)
_RUNS: Final = re.compile(r"(\d+)|([^\W\d_]+)")


def clean_number(printed: str) -> str:
    """`[§§ 202 to 204.` gives `202 to 204`, `CHAPTER 7—` gives `7`, `SUBCHAPTER I–A—` `I-A`."""
    if (found := _PLAIN.fullmatch(printed)) is not None:
        return found[1]
    text = " ".join(printed.translate(_SIGNS).split()).rstrip(_TRAILING)
    return _THROUGH.sub(" to ", _WORD.sub("", text, count=1) if _WORD.match(text) else text)


def plan_number(heading: str) -> str:
    """`1 of 1939` of a reorganization plan, which has its number in its heading only."""
    found = _PLAN.search(heading)
    return f"{found[1]} of {found[2]}" if found else ""


def title_number(stated: str) -> str:
    """`42` of `42`, `5a` of `05A`; empty for what is no number of a title."""
    found = _TITLE.fullmatch(stated.strip())
    return found[1] + found[2].lower() if found else ""


def natural_order(number: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts as the Code does: 300, 300-1, 300a, 300a-1, 300b, 300aa, 301."""
    return tuple(
        (0, int(digits), "") if digits else (1, len(letters), letters)
        for digits, letters in _RUNS.findall(number)
    )
