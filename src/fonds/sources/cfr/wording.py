"""What headings of the CFR say: the number in them, and whether the thing is in force."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

KINDS: Final = {
    "TITLE": "title",
    "SUBTITLE": "subtitle",
    "CHAPTER": "chapter",
    "SUBCHAP": "subchapter",
    "PART": "part",
    "SUBPART": "subpart",
    "SUBJGRP": "subject-group",
    "SECTION": "section",
    "APPENDIX": "appendix",
}
"""The names of levels by those of the publisher, from the outermost to the innermost."""
LEAVES: Final = frozenset({"section", "appendix"})

_SIGN: Final = re.compile(r"(?:§+|(?:Secs?\.|Sections?)(?=\s))\s*", re.IGNORECASE)
_SECTION: Final = re.compile(r"\d\S*(?:(?:,?\s*(?:and|through|to|[-–—])\s+|,\s*)\d\S*)*")
_LEVEL_WORD: Final = re.compile(r"\s*(?:sub)?(?:title|chapter|part)s?\s+", re.IGNORECASE)
# `PARTS 400–446` and `Subparts AA-ZZ` are ranges, `PART 1-POSTAL POLICY` has a hyphen for a dash.
_DIGITS: Final = r"\d+[A-Za-z]{0,2}(?:[-–.]\d+[A-Za-z]?)*"
_LETTERS: Final = (
    r"[A-Z]+[a-z]?(?![a-z])(?:[-–](?:\d+|(?P<one>[A-Z])(?P=one)*|[IVXLC]+)(?![A-Za-z]))?"
)
_NUMBER: Final = re.compile(
    rf"(?:{_DIGITS}|{_LETTERS})(?:(?:,?\s+(?:and|through|to)\s+|,\s*)(?:{_DIGITS}|[A-Z]+(?![a-z])))*"
)
_DESIGNATION: Final = re.compile(
    r"(?P<word>[A-Z][A-Za-z]+)(?:\s+(?P<no>(?:No\.?|Nos\.?)\s+)?"
    r"(?P<number>(?:[A-Z]{1,4}|\d+|[IVXL]+)(?![a-z])[\w.()-]*"
    r"(?:(?:,?\s+(?:and|through)\s+|,\s+|\s*[–]\s*)[A-Z0-9][\w.()-]{0,6}(?=[\s,—–\[]|$))*))?"
)
_APPENDIX: Final = re.compile(r"appendi(?:x|xes|ces)", re.IGNORECASE)
_BRACKETED: Final = re.compile(r"\[\s*([^\[\]]*)\]?[\s.*]*$")
_STATUSES: Final = ("reserved", "removed", "redesignated", "suspended", "vacated", "expired")
_VOLUME: Final = re.compile(r"\s*--\s*Volume\s+\S+\s*$", re.IGNORECASE)


def folded(text: str) -> str:
    """On one line, every white space a plain one."""
    return " ".join(text.split())


def stated_number(attribute: str | None) -> str:
    """The number in `N`, without sign or the level's name; the API escapes some of them twice."""
    number = folded(unescape(unescape(attribute or "")))
    return _LEVEL_WORD.sub("", _SIGN.sub("", number, count=1), count=1).rstrip(".,; ")


def section_number(heading: str) -> str:
    """`60.112b` of `§ 60.112b Rules.`, `1.1-1.3` of `§§ 1.1-1.3 [Reserved]`."""
    sign = _SIGN.match(heading)
    match = _SECTION.match(heading, sign.end() if sign else 0)
    return match[0].rstrip(".,;:") if match else ""


def printed_number(text: str) -> str:
    """All of an element that holds nothing but a section's number."""
    return folded(_SIGN.sub("", text.strip(), count=1)).partition("[")[0].rstrip(".,;: ")


def level_number(heading: str) -> str:
    """`60` of `PART 60—STANDARDS`, `400–446` of `PARTS 400–446 [RESERVED]`."""
    word = _LEVEL_WORD.match(heading)
    match = _NUMBER.match(heading, word.end()) if word else None
    return match[0] if match else ""


def appendix_number(heading: str) -> str:
    """`A` of `Appendix A to Part 60—Methods`; other annexes keep their name: `Table 1`."""
    match = _DESIGNATION.match(heading)
    if match is None or match["number"] is None:
        return ""
    if _APPENDIX.fullmatch(match["word"]):
        return match["number"].rstrip(".,")
    return folded(match[0]).rstrip(".,")


def status_of(heading: str) -> str:
    """`reserved` for what ends with `[Reserved]`, and the like; empty for what is in force."""
    match = _BRACKETED.search(heading)
    said = match[1].lower() if match else ""
    return next((status for status in _STATUSES if status in said), "")


def without_volume(heading: str) -> str:
    """A title's heading without the volume that bulk files add to it."""
    return _VOLUME.sub("", heading)
