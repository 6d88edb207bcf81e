"""Section numbers: how they are printed, in which order they stand, and what a range covers."""

from __future__ import annotations

import re
from typing import Final

Key = tuple[tuple[int, int, str], ...]
"""By which numbers are compared: `12-704` before `12-704z` before `12-704aa` before `12-705`."""

_NUMBER: Final = r"[0-9]+[A-Za-z]*(?:-[0-9]+[A-Za-z]*)+"
_ONE: Final = re.compile(_NUMBER)
_JOINTS: Final = frozenset({"to", "and", "or"})
_ID: Final = re.compile(r"secs?_(.+)")
_PRINTED: Final = re.compile(rf"Secs?\.\s*({_NUMBER}(?:(?:,\s*|\s+(?:to|and|or)\s+){_NUMBER})*)")
_PIECE: Final = re.compile(r"([0-9]+)([A-Za-z]*)")

_DEAD: Final = r"(?P<status>repealed|transferred|obsolete|expired)"
_LIST: Final = rf"{_NUMBER}(?:(?:,\s*|,?\s+(?:to|and|or)\s+){_NUMBER})*(?:,\s+inclusive,?)?"
_BODY: Final = re.compile(
    rf"(?:Sections?|Secs?\.)\s+{_LIST}"
    rf"(?:,?\s+(?:of|as|revised)\s[^.;:]{{0,120}}?)?\s+(?:is|are)\s+{_DEAD}\b"
    r"|(?P<reserved>Reserved)(?:\s+for\s+future\s+use|\W*$)"
    r"|(?P<transferred>Transferred)\s+to\s+(?:Sec|Chap|Title|Art)"
    r"|(?P<word>Repealed|Obsolete|Transferred|Expired)(?:\W*$|[.,;])",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(
    r"\W*(repealed|reserved|transferred|obsolete|expired)(?: for future use)?\W*", re.IGNORECASE
)


def number_of(identifier: str, catchline: str) -> str | None:
    """`12-747 to 12-789` of `secs_12-747_to_12-789`; of the printed line if the id says nothing.

    The id is asked first: in print the letter l is set in italics, lest it be read as a one.
    """
    if (match := _ID.fullmatch(identifier)) and (number := _joined(match[1].split("_"))):
        return number
    printed = _PRINTED.match(catchline)
    return " ".join(printed[1].split()) if printed else None


def _joined(words: list[str]) -> str | None:
    number = ""
    for word in words:
        if not _ONE.fullmatch(word) and (word not in _JOINTS or not number):
            return None
        after_number = number and number.rpartition(" ")[2] not in _JOINTS and word not in _JOINTS
        number += f", {word}" if after_number else f" {word}"
    return number.strip() or None


def members(number: str) -> list[str]:
    """The numbers that are named: the ends of a range, all of a list."""
    return _ONE.findall(number)


def key_of(number: str) -> Key:
    """The place of a number, or of the first one that is named."""
    pieces = (_PIECE.match(piece) for piece in number.partition(" ")[0].rstrip(",").split("-"))
    found = [(int(piece[1]), len(piece[2]), piece[2].lower()) for piece in pieces if piece]
    return tuple(found)


def covers(number: str, other: str) -> bool:
    """Whether all that `other` names is named by `number`, or stands within its range."""
    ends = [key_of(member) for member in members(number)]
    named = [key_of(member) for member in members(other)]
    if " to " in number:
        return all(ends[0] <= one <= ends[-1] for one in named)
    return all(one in ends for one in named) and " to " not in other


def title_of(number: str) -> str:
    """The title a section belongs to: `12` of `12-704e`."""
    return number.partition("-")[0]


def heading_of(catchline: str) -> str:
    """What a catchline says behind its number."""
    return catchline[match.end() :] if (match := _PRINTED.match(catchline)) else catchline


def status_of(catchline: str, text: str) -> str:
    """`repealed`, `reserved`, … if its heading or the beginning of its text says so."""
    if dead := _HEADING.fullmatch(heading_of(catchline)):
        return dead[1].lower()
    if body := _BODY.match(text):
        return next(word for word in body.groupdict().values() if word).lower()
    return ""
