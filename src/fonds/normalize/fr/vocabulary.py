"""The vocabulary of Federal Register XML: which elements there are, and how they are set."""

from __future__ import annotations

from typing import Any, Final

# Deeper than anything GPO sets (about fifteen), and well within Python's own limit.
DEEPEST: Final = 120

INLINE: Final = frozenset({"E", "SU", "FTREF", "FR", "PRTPAGE", "LI", "AC"})
TEXT: Final = frozenset(
    {"P", "FP", "HD", "AMDPAR", "ENT", "CHED", "TTITLE", "TDESC", "TNOTE", "SUBJECT", "SECTNO"}
)
# A heading in these introduces one sentence, not a section.
LEAD_IN: Final = frozenset({"AUTH", "SOURCE", "NOTE", "EFFDNOT", "EDNOTE", "EXAMPLE", "CROSSREF"})
BASE_LEVEL: Final = {"CHAPTER": 3, "PART": 3, "SUBPART": 4, "APPENDIX": 4, "SECTION": 5}
DEEPEST_HEADING: Final = 6
KNOWN: Final = (
    INLINE
    | TEXT
    | LEAD_IN
    | BASE_LEVEL.keys()
    | frozenset(
        """
        ACT ADD AGCY AGENCY AGY AIDS BILCOD BOXHD CAT CFR CITA CNTNTS CONTENTS DATE DATED DATES
        DEPDOC DETERM DOC DOCENT EAR EFFDATE EXECORD EXECORDR EXTRACT FILED FRDOC FRDOCBP FTNT
        FURINF GID GPH GPOTABLE LSTSUB MATH MEMO MID NAME NO PARTNO PGS PLACE PNOTICE PREAMB PREAMHD
        PRES PRESDOC PRIACT PRMEMO PRNOTICE PROC PROCLA PRORDER PSIG PTITLE PTS REGTEXT RESERVED
        RIN ROW SECHD SEE SEQUENCE SIG SJ SJDENT SJDOC STARS SUBAGY SUBJGRP SUM SUPLINF TITLE
        TITLE3 UNITNAME VOL RULE PRORULE NOTICE PRESDOCU CORRECT FEDREG NEWPART RULES PRORULES
        NOTICES PRESDOCS CORRECTS
        """.split()  # noqa: SIM905 — ninety quoted names on ninety lines read worse
    )
)

EMPHASIS: Final = {"02": "**", "03": "*", "04": "**"}
RAISED: Final = {
    **dict.fromkeys(("51", "53", "0731", "8051"), "sup"),
    **dict.fromkeys(("52", "54", "0732", "0735", "8052", "8145"), "sub"),
}
ACCENTS: Final = {
    "1": "\u0301",
    "2": "\u0300",
    "3": "\u0302",
    "4": "\u0308",
    "6": "\u0303",
    "7": "\u030a",
    "8": "\u0305",
    "9": "\u0327",
    "b": "\u0307",
}
"""Marks on the letter before `AC`, by its code: é è ê ë ñ å, a bar, ç, a dot.

GPO's guide to e-CFR XML lists the digits; it prints 8 as a tilde, but its own example, and every
use in print, is the bar of a mean. What 0 and 5 set, a stroke and a box, is no accent.
"""


def lost_its_spaces(root: Any) -> bool:
    """Whether the file is of the kind whose white space around inline elements was stripped.

    Until about 2015 federalregister.gov served `in the<E T="04">Federal Register</E>notice`.
    """
    kept = lost = 0
    for element in root.iter("E", "PRTPAGE", "FTREF"):
        tail = element.tail
        if not tail or element.get("T") in RAISED:
            continue
        if tail[0] == " ":
            kept += 1
        elif tail[0].isalnum():
            if element.tag == "PRTPAGE" and text_before(element)[-1:].isspace():
                kept += 1
            else:
                lost += 1
    return lost > kept


def text_before(element: Any) -> str:
    """The text node right before an element, among its siblings or in its parent."""
    previous = element.getprevious()
    if previous is not None:
        return previous.tail or ""
    parent = element.getparent()
    return "" if parent is None else parent.text or ""
