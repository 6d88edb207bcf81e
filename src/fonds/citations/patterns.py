"""Patterns of citations, and the parts they are built from.

Every repetition is bounded or possessive, so that matching takes linear time in any text.
"""

from __future__ import annotations

import re
from typing import Final

# Where citations may begin ----------------------------------------------------------------

# To look for one of many characters costs ten times what it costs to look for one. So a copy of the
# text is searched in which every character has its place, but all digits are `0`, all capitals that
# begin a name are `H`, all white space is a blank, and what has no place in a byte is `?`.
_LIKE: Final = {"0": "0123456789", "H": "HSPERIGCDLT", " ": "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0"}
_OUTLINE: Final = bytes(
    next((ord(one) for one, like in _LIKE.items() if chr(byte) in like), byte)
    for byte in range(256)
)


def outline(text: str) -> bytes:
    """A text as it is searched for places: one byte for each character."""
    return text.encode("latin-1", "replace").translate(_OUTLINE)


_BLANKS: Final = rb"[ ?>]{0,24}+"
NUMBER_CANDIDATES: Final = re.compile(
    rb"0(?<![0-9A-Za-z].)0{0,3}+A?+(?:" + _BLANKS + rb"of" + _BLANKS + rb"the)?+[ ?*_>,]{0,30}+"
    rb"(?:[Aa]pp(?:\.|endix)" + _BLANKS + rb")?+"
    rb"(?:[Uu][.nNHs ?]|[Hc][.FfotH ?]|F[.eEHS0 ?]|B[.H ?])"
)
NAME_CANDIDATES: Final = re.compile(
    rb"H(?<![0-9A-Za-z].)(?=[. ?>]{0,16}+[H0JO]|ouse|enate|ub[.l ?]|UB[.H]|x[.e ?]|XH|onn|istr|nter"
    rb"|reas|AO|[FNW]0)"
)
SMALL_LAWS: Final = re.compile(rb"ub(?:lic[ ?>]{1,16}law|\. ?l\.)")
SMALL_ORDERS: Final = re.compile(rb"xecutive[ ?>]{1,16}[Oo]rder")
SMALL_STATUTES: Final = re.compile(rb"general[ ?>]{1,16}[Hs]tatutes")
TITLES: Final = re.compile(rb"itle[ ?>]{1,3}0(?P<list>0?,?[ ?>]{1,3}(?:[Hp]art|[Hs]ec|\xa7))?")
LARGE_TITLES: Final = re.compile(rb"HHHHH[ ?>]{1,3}0")

# Pieces -----------------------------------------------------------------------------------

_SPACE: Final = r"(?>[^\S\n]{0,8}+(?:\n(?:[^\S\n]|>){0,12}+)?+)"
"""A gap that may hold one line break, never a blank line."""
GAP: Final = rf"(?>[*_]{{0,3}}+{_SPACE}[*_]{{0,3}}+)"
"""The same, where emphasis may begin or end."""
DASH: Final = "[-\u2010-\u2015\u2212]"
_END: Final = r"(?![0-9A-Za-z])"
_START: Final = r"(?<![0-9A-Za-z])"
_ORDINAL: Final = r"(?:st|nd|rd|th|d)"

_SIGN: Final = rf"(?:§(?:{_SPACE}§)?|&sect;|(?i:sections?|secs?\.?|ss?\.)(?![A-Za-z]))"
SUBSECTIONS: Final = (
    r"(?:\([*_]?(?:[0-9]{1,3}|[A-Za-z]{1,2}|[ivxlcdm]{1,7}|[IVXLCDM]{1,7})[*_]?\)){0,12}+"
)
# A space before subsections only where there are several: a single one may begin a list.
_PINPOINT: Final = (
    rf"(?P<pinpoint>(?:[ ](?=\([^()]{{1,7}}\)\())?{SUBSECTIONS}"
    rf"(?:(?<=\)){DASH}(?=\([^()]{{1,7}}\)){SUBSECTIONS}(?<=\)))?)"
)
_LETTERED: Final = r"[0-9]{1,5}(?:[A-Za-z]{1,5}+|\*[A-Za-z]{1,5}\*|_[A-Za-z]{1,5}_)?+"

NOT_A_SECTION: Final = re.compile(
    rf"{GAP}(?:,?{GAP})(?i:u\.?{_SPACE}s\.?|c\.?f\.?r\b|f\.|fr\b|fed\.|stat\b|l\.{_SPACE}ed|b\.r\.|"
    r"united\b|code\b|s\.\s?ct|percent\b|%|per\b|cents?\b|days?\b|months?\b|years?\b|hours?\b|weeks?\b|"
    r"million\b|billion\b|thousand\b|other\b|others\b|more\b|new\b|additional\b|people\b|"
    r"employees\b|members\b|comments\b|times\b|cong\b|feet\b|miles\b|acres\b|mg\b|ppm\b|comp\b|"
    rf"am\b|a\.m\b|p\.m\b)|{_ORDINAL}\b|[0-9A-Za-z]|[.,:/][0-9]"
)
"""The text after a number that only looks like the next section of a list."""

SEPARATOR: Final = re.compile(
    rf"{GAP}(?:,{GAP}(?:and/or|and|or|&)?|;{GAP}(?:and|or)?|and/or|and|or|&|through|thru|to|{DASH})"
    rf"(?=[^A-Za-z]|[Pp]arts?\b|[Pp]ts?\.){GAP}(?:(?P<sign>{_SIGN}|[Pp]arts?\b|[Pp]ts?\.|PARTS?\b){GAP})?"
)
"""Between two sections, parts or numbers of one list."""

ASIDE: Final = re.compile(
    rf"[ ]\([A-Z][A-Za-z. ]{{1,30}}\)(?={GAP}(?:,|;|and\b|or\b){GAP}(?:and\b)?{GAP}[Pp]art)"
)
"""Whose the part is: `12 CFR part 3 (OCC), part 217 (Board)`."""

CLOSED: Final = re.compile(r"[,;.)\]]|\s*\Z|\s*\n")
"""The text after a number that counts nothing."""

COMPILATION: Final = re.compile(rf"(?:{DASH}[0-9]{{2,4}})?{GAP}(?i:comp)\b")
"""After a year: `3 CFR, 1954-1958 Comp.` is a volume."""

BARE_SUBSECTION: Final = re.compile(
    rf"(?:\([0-9A-Za-z]{{1,4}}\)){{1,6}}+{_END}(?=\s*(?:,|;|\.|\)|and|or|of|through|to|$))"
)

# Items of lists ---------------------------------------------------------------------------

USC_SECTION: Final = re.compile(
    rf"(?P<section>{_LETTERED}(?:{DASH}[0-9]{{1,5}}+[A-Za-z]{{0,4}}+){{0,3}}+){_END}"
    rf"(?!\.[0-9]){_PINPOINT}(?P<note>[ ]notes?\b)?"
)
CFR_SECTION: Final = re.compile(
    rf"(?P<section>(?:[0-9]{{1,3}}{DASH}(?=[0-9]{{1,3}}\.[0-9]))?[0-9]{{1,4}}[A-Za-z]?\.[0-9]{{1,5}}+[A-Za-z]{{0,4}}+"
    rf"(?:(?:\([0-9A-Za-z]{{1,3}}\)){{0,3}}{DASH}[0-9]{{1,4}}+[A-Za-z]{{0,2}}+(?!\.[0-9])){{0,3}}){_END}"
    rf"{_PINPOINT}(?P<note>)"
)
CFR_PART: Final = re.compile(
    rf"(?P<section>[0-9]{{1,4}}+[A-Za-z]?(?:{DASH}[0-9]{{1,4}}+)?){_END}(?!\.[0-9])"
    rf"(?P<pinpoint>(?:,?{GAP}[Ss]ub(?:part|pt\.){GAP}[A-Z]{{1,6}}[a-z]?\b)?)(?P<note>)"
)
LAW_NUMBER: Final = re.compile(
    rf"(?P<congress>[0-9]{{1,3}}){_SPACE}{DASH}{_SPACE}(?P<number>[0-9]{{1,4}}){_END}(?!{DASH}[0-9])"
)
ORDER_NUMBER: Final = re.compile(
    rf"(?P<number>[0-9]{{1,2}},[0-9]{{3}}|[0-9]{{1,5}}){_END}(?![.,{DASH[1:-1]}][0-9])"
)
CONNECTICUT_SECTION: Final = re.compile(
    rf"(?P<section>[0-9]{{1,2}}[a-z]?{DASH}[0-9]{{1,4}}[a-z]{{0,3}}(?:{DASH}[0-9]{{1,4}}[a-z]?)?){_END}"
    rf"{_PINPOINT}(?P<note>)"
)
DC_SECTION: Final = re.compile(
    rf"(?P<section>[0-9]{{1,2}}[A-Z]?(?::[0-9A]{{1,3}})?{DASH}[0-9]{{1,5}}[A-Za-z]?(?:\.[0-9]{{1,3}}[a-z]?)?)"
    rf"{_END}(?!\.[0-9]){_PINPOINT}(?P<note>)"
)

# Citations that begin with a number -------------------------------------------------------

REPORTERS: Final = {
    "US": (
        rf"U\.{_SPACE}S\.(?:{_SPACE}\([0-9]{{1,2}}{_SPACE}[A-Z][a-z]{{2,7}}\.?\))?"
        r"|US(?=\s[0-9]{1,4}(?:,|\s\(|[;.)]|\s*\Z))"
    ),
    "S Ct": rf"S\.?{_SPACE}Ct\.?",
    "L Ed 2d": rf"L\.?{_SPACE}Ed\.?{_SPACE}2d",
    "L Ed": rf"L\.?{_SPACE}Ed\.",
    "F Supp 3d": rf"F\.?{_SPACE}Supp\.?{_SPACE}3d",
    "F Supp 2d": rf"F\.?{_SPACE}Supp\.?{_SPACE}2d",
    "F Supp": rf"F\.?{_SPACE}Supp\.?",
    "F Appx": rf"F\.{_SPACE}App(?:['’]x|x|\.)",
    "F4th": rf"F\.?{_SPACE}4th",
    "F3d": rf"F\.?{_SPACE}3d",
    "F2d": rf"F\.?{_SPACE}2d",
    "FRD": rf"F\.{_SPACE}R\.{_SPACE}D\.",
    "Fed Cl": rf"Fed\.{_SPACE}Cl\.",
    "BR": rf"B\.{_SPACE}R\.",
    "F": r"F\.(?!\s?[A-Za-z])",
}
"""Main reporters of federal cases, by the form they are compared in."""

REPORTER_FORMS: Final = tuple(
    (re.compile(f"(?:{pattern})"), form) for form, pattern in REPORTERS.items()
)
_REPORTER: Final = "|".join(REPORTERS.values())

_USC_NAME: Final = (
    rf"(?i:u\.?{_SPACE}s\.?{_SPACE}c(?:\.?[as]\.?|\.{_SPACE}[as]\.|ode|\.)?)(?![A-Za-z])"
)
_CFR_NAME: Final = rf"(?i:c\.?{_SPACE}f\.?{_SPACE}r\.?)(?![A-Za-z])"
_FR_NAME: Final = (
    rf"(?:F(?i:ed)\.?{_SPACE}R(?i:eg)\.?|Federal{_SPACE}Register|"
    rf"F\.{_SPACE}R\.(?!{_SPACE}D)|FR)(?![A-Za-z])"
)

_RECORD_NAME: Final = rf"C(?:ong\.?|ONG\.?|ongressional){_SPACE}R(?:ec\.?|EC\.?|ecord)(?![A-Za-z])"

NUMBERED: Final = re.compile(
    # A pattern that begins with a set of characters is searched for several times faster than one
    # that begins by reading the text before it.
    r"(?P<volume>[0-9](?<![0-9A-Za-z].)(?=[0-9]{0,3}+[A,\s*_UuCcSFLB])(?<![0-9][.,].)"
    r"[0-9]{0,3}+)A?+"
    rf"(?P<comma>,|{_SPACE}of{_SPACE}the)?{GAP}(?=[UuCcSFLBAa])(?:"
    rf"(?P<appendix_usc>[Aa]pp(?:\.|endix){_SPACE}{_USC_NAME},?)|"
    rf"(?P<usc>{_USC_NAME},?)"
    rf"|(?P<cfr>{_CFR_NAME},?)"
    r"|(?P<stat>S(?:tat|TAT)\.?(?![A-Za-z]))"
    rf"|(?P<fr>{_FR_NAME})"
    rf"|(?P<record>{_RECORD_NAME})"
    rf"|(?P<case>{_REPORTER})"
    rf"|(?P<spelled_usc>U(?i:nited{_SPACE}states{_SPACE}code),?)(?={GAP}{_SIGN})"
    rf"|(?P<spelled_cfr>C(?i:ode{_SPACE}of{_SPACE}federal{_SPACE}regulations),?)"
    rf"(?={GAP}(?:{_SIGN}|[Pp]arts?\b|[Pp]ts?\.|[0-9]{{1,4}}\.[0-9]))"
    r")"
)

SIGN: Final = re.compile(rf"{GAP}(?:(?P<sign>{_SIGN}){GAP})?")
PART_SIGN: Final = re.compile(rf"{GAP}(?P<sign>(?i:parts?|pts?\.)){GAP}(?=[0-9])")
CHAPTER: Final = re.compile(
    rf"{GAP}(?i:chapters?|chs?\.){GAP}(?P<section>[0-9]{{1,3}}[A-Z]?){_END}(?!\.[0-9])"
)
APPENDIX: Final = re.compile(rf"{GAP}[Aa]pp(?:\.|endix\b)")
PAGE: Final = re.compile(
    rf",?{GAP}(?:pp?\.{GAP}|pages?{GAP}|(?P<at>at){GAP})?(?P<page>[0-9]{{1,3}}(?:,[0-9]{{3}})++|[0-9]{{1,6}}+)"
    rf"(?P<suffix>[A-Z](?:{DASH}[0-9]{{1,5}})?)?{_END}(?![.,:/][0-9])"
)
RECORD_PAGE: Final = re.compile(
    rf",?{GAP}(?:pp?\.{GAP}|pages?{GAP}|at{GAP})?"
    rf"(?P<page>[HSED]{DASH}?[0-9]{{1,5}}+|[0-9]{{1,3}},[0-9]{{3}}(?!,)|[0-9]{{1,6}}+){_END}(?![.,:/][0-9])"
)
"""A page of the Congressional Record: the House's, the Senate's, an extension, or the Digest's."""
PINCITE: Final = re.compile(
    rf",{GAP}(?:at{GAP})?(?P<pinpoint>(?P<first>[0-9]{{1,3}}(?:,[0-9]{{3}})++|[0-9]{{1,6}}+)"
    rf"(?:{DASH}[0-9,]{{1,7}}(?<!,))?(?:{_SPACE}(?:&{_SPACE})?nn?\.{_SPACE}[0-9]{{1,4}})?)"
    rf"{_END}(?![.,:/][0-9])(?!{GAP}(?:[A-Z]|[0-9]|days|percent|%))"
)

# Citations that begin with a name ---------------------------------------------------------

_NUMBER_WORD: Final = rf"(?:(?i:nos?|numbers?|numbered)\b[.:]?{_SPACE})?"
_REPORT: Final = (
    rf"(?:(?P<report_chamber>H\.?{_SPACE}(?:R\.?{_SPACE})?|S\.?{_SPACE}|House{_SPACE}|Senate{_SPACE})"
    rf"(?P<executive>Ex(?:ec)?\.{_SPACE}|Executive{_SPACE})?(?:Conf\.?{_SPACE}|Conference{_SPACE})?"
    rf"(?:Rep(?:orts?|ts?|s)?|REPT)\b\.?{_SPACE}{_NUMBER_WORD})"
)
_BILL: Final = (
    rf"(?:(?P<chamber>[HS])\.?{_SPACE}(?:R\.?{_SPACE})?(?:(?P<joined>J|C(?:on|ON))\.?{_SPACE})?"
    rf"(?P<resolution>R(?:es|ES))\.?|(?P<house>H\.?{_SPACE}R\.?)"
    r"|(?P<senate>S\.|S(?=[ ]?[0-9]))"
    rf"|(?P<long_chamber>House|Senate){_SPACE}"
    rf"(?:(?P<long_bill>[Bb]ill)|(?:(?P<long_joined>Joint|Concurrent){_SPACE})?Resolution))"
    rf"{_SPACE}(?:Nos?\.?{_SPACE})?(?P<bill_number>[0-9]{{1,5}}+){_END}"
    rf"(?!\.[0-9]|,[0-9]|{DASH}[0-9])"
)
_LAW: Final = (
    rf"(?:[Pp]ub(?:lic)?\.?{_SPACE}[Ll](?:aws?|s)?\.?|PUB(?:LIC|\.){_SPACE}L(?:AWS?|\.)|P\.?{_SPACE}L\.?)"
    rf"(?:{_SPACE}\((?:Pub\.?{_SPACE}L\.?|P\.?L\.?)\))?{_SPACE}{_NUMBER_WORD}"
)
_ORDER: Final = (
    rf"(?:(?P<order_name>[Ee]xecutive{_SPACE}[Oo]rders?|EXECUTIVE{_SPACE}ORDERS?|"
    rf"Ex(?:ec)?\.?{_SPACE}Ord(?:ers?|s?\.))|E\.{_SPACE}O\.?s?|EOs?)"
    rf"(?:{_SPACE}\((?:E\.?{_SPACE}O\.?|EO)s?\))?{_SPACE}{_NUMBER_WORD}"
)
_CONNECTICUT: Final = (
    rf"(?:Conn(?:ecticut|\.)?{_SPACE}Gen(?:eral|\.)?{_SPACE}Stat(?:utes|s?\.)?"
    rf"(?:{_SPACE}Ann(?:otated|\.))?|C\.?G\.?S\.?(?={_SPACE}§))"
)
_DC: Final = (
    rf"(?:D\.?{_SPACE}C\.?|District{_SPACE}of{_SPACE}Columbia){_SPACE}(?i:official{_SPACE})?"
    rf"C(?i:ode)(?:{_SPACE}Ann(?:otated|\.))?"
)
_CRS: Final = (
    r"(?<![-#])(?:R[45][0-9]{4}|RL3[0-9]{4}|RS2[0-9]{4}|(?:I[FNG]|TE|HW|LSB)1[0-9]{4})"
    rf"{_END}(?!{DASH}[0-9A-Z])"
)
_GAO: Final = (
    rf"GAO(?:/(?:T{DASH})?[A-Z]{{2,6}}{DASH}|{DASH}|[ ])"
    rf"[0-9]{{2}}{DASH}[0-9]{{1,6}}[A-Z]{{0,3}}{_END}"
)
_REVENUE: Final = (
    rf"(?:I\.{_SPACE}R\.{_SPACE}C\.|IRC|Internal{_SPACE}Revenue{_SPACE}Code"
    rf"(?:{_SPACE}of{_SPACE}1986)?),?(?={_SPACE}{_SIGN})"
)

NAME_CITATION: Final = re.compile(
    rf"{_START}(?:"
    rf"(?P<report>{_REPORT})(?=[0-9])"
    rf"|(?P<bill>{_BILL})"
    rf"|(?P<law>{_LAW})(?=[0-9])"
    rf"|(?P<order>{_ORDER})(?=[0-9])"
    rf"|(?P<crs>{_CRS})"
    rf"|(?P<gao>{_GAO})"
    rf"|(?P<connecticut>{_CONNECTICUT},?)"
    rf"|(?P<dc>{_DC},?)"
    rf"|(?P<revenue>{_REVENUE})"
    rf"|(?P<treasury>Treas\.{_SPACE}Reg\.)"
    r")"
)

REPORT_NUMBER: Final = re.compile(
    rf"(?:(?P<congress>[0-9]{{1,3}}){DASH}(?P<number>[0-9]{{1,4}}){_END}"
    rf"|(?P<old_number>[0-9]{{1,4}}),{GAP}(?P<old_congress>[0-9]{{1,3}}){_ORDINAL}{_SPACE}Cong(?:\.|ress))"
    rf"(?:,?{GAP}(?P<pinpoint>(?i:pt\.?|part){_SPACE}(?:[0-9]{{1,2}}|[IVX]{{1,4}}){_END}))?"
)
CONGRESS: Final = re.compile(
    rf"(?:,?{_SPACE}\((?P<enclosed>[0-9]{{1,3}}){_ORDINAL}(?:{_SPACE}Cong(?:\.|ress))?\)"
    rf"|(?:,{_SPACE}|{_SPACE}(?:of|in|from|during){_SPACE}the{_SPACE}|{_SPACE})"
    rf"(?P<open>[0-9]{{1,3}}){_ORDINAL}{_SPACE}Cong(?:\.|ress\b))"
)
CONGRESS_BEFORE: Final = re.compile(
    rf"{_START}(?<![.,])(?P<congress>[0-9]{{2,3}})(?P<said>{_ORDINAL}\s(?:Cong\.|Congress),?)?\s\Z"
)
OLD_LAW: Final = re.compile(
    rf"(?P<number>[0-9]{{1,4}})(?:,{_SPACE}|{_SPACE}of{_SPACE}the{_SPACE})"
    rf"(?P<congress>[0-9]{{1,3}}){_ORDINAL}{_SPACE}Cong(?:\.|ress\b)"
)
BEARING_OR_ADDRESS: Final = re.compile(
    rf"{_SPACE}(?:degrees|deg\b|[°º]|minutes|feet|ft\b|miles|Street|St\b|Avenue|Ave\b|Ct\.|[EWNS]\b)"
)
PAGE_MARKS: Final = re.compile(r"<!--[^>]{0,400}+(?<=--)>")
"""Comments of normalizers with running heads and page numbers, where a document names itself."""
TITLE_BEFORE: Final = re.compile(r"\b[Tt]itle\s\Z")
NOT_BEFORE_A_VOLUME: Final = re.compile(
    r"(?i:\b(?:routes?|rte\.?|highways?|hwy\.?|interstate|exit|lots?|blocks?|units?|rooms?|suite))\s\Z"
)
OFFICE: Final = re.compile(
    rf"{_SPACE}(?:conference|summit|training|course|class|workshop|seminar|survey|staff|team|"
    r"managers?|departments?|policy|policies|professionals?|employees|trends|budget|basics|jobs)\b"
)
"""The text after `HR` and a number that is not a bill's."""
NOT_BEFORE_A_BILL: Final = re.compile(r"(?:[A-Z]\.\s?|[0-9]\s|Rec\.\s|Ct\.\s|§\s?)\Z")

# Citations that end with their title ------------------------------------------------------

_ITEM: Final = (
    rf"(?>[0-9]{{1,5}}+[A-Za-z]{{0,5}}+(?:(?:{DASH}|[.:])[0-9]{{1,5}}+[A-Za-z]{{0,4}}+){{0,4}}+"
    rf"{SUBSECTIONS}(?:{DASH}[0-9]{{1,3}}(?=\b){SUBSECTIONS})?)"
)
_JOIN: Final = (
    rf"(?>{GAP}(?:,{GAP}(?:and/or|and|or)?|and/or|and|or|through|to|{DASH})(?![A-Za-z]){GAP}"
    rf"(?:{_SIGN}{GAP}|[Pp]arts?{GAP}|[Cc]hapters?{GAP})?)"
)
_TITLE_TAIL: Final = (
    rf"(?:,{_SPACE}|{_SPACE}of{_SPACE})(?:[Tt]itle|TITLE){_SPACE}(?P<title>[0-9]{{1,2}}){_END}(?!\.[0-9])"
    rf"(?P<code>(?:,|{_SPACE}of{_SPACE}the)?{_SPACE}(?:"
    rf"(?P<of_usc>U(?i:nited{_SPACE}states{_SPACE}code)|U\.?{_SPACE}S\.?{_SPACE}C(?:\.|ode)?{_END})"
    rf"|(?P<of_cfr>C(?i:ode{_SPACE}of{_SPACE}federal{_SPACE}regulations?)|C\.?F\.?R\.?{_END})))?"
)
LIST_BEGINS: Final = re.compile(
    "(?:§|Sec|sec|SEC|Part|part|PART|Chapter|chapter)(?=[^0-9]{0,9}[0-9])"
)
MAX_LIST_LENGTH: Final = 600

TRAILING: Final = re.compile(
    rf"{_START}(?P<head>§(?:{_SPACE}§)?|[Ss]ec(?:tions?\b|s?\.)|S(?i:ections?)\b|[Pp]arts?\b|[Cc]hapters?\b)"
    rf"{GAP}(?P<list>{_ITEM}(?>{_JOIN}(?:{_ITEM}|{SUBSECTIONS}(?<=\)))){{0,40}}+)"
    rf"(?:{_TITLE_TAIL}"
    rf"|{_SPACE}of{_SPACE}the{_SPACE}(?:"
    rf"(?P<revenue>Internal{_SPACE}Revenue{_SPACE}Code(?:{_SPACE}of{_SPACE}(?P<year>[0-9]{{4}}))?)"
    rf"|(?P<connecticut>Connecticut{_SPACE}[Gg]eneral{_SPACE}[Ss]tatutes|general{_SPACE}statutes)"
    rf"|(?P<dc>{_DC})))"
)
LED: Final = re.compile(
    rf"{_START}[Tt]itle{_SPACE}(?P<title>[0-9]{{1,2}}),?{_SPACE}"
    rf"(?P<head>§(?:{_SPACE}§)?|[Ss]ec(?:tions?\b|s?\.)|[Pp]arts?\b){GAP}"
    rf"(?P<list>{_ITEM}(?>{_JOIN}{_ITEM}){{0,40}}+)(?:,|{_SPACE}of{_SPACE}the){_SPACE}(?:"
    rf"(?P<of_usc>United{_SPACE}States{_SPACE}Code|U\.?{_SPACE}S\.?{_SPACE}C(?:\.|ode)?{_END})"
    rf"|(?P<of_cfr>Code{_SPACE}of{_SPACE}Federal{_SPACE}Regulations|C\.?F\.?R\.?{_END}))"
)
"""A list between its title and its code: `Title 40, Part 60 of the Code of Federal Regulations`."""
ITEM: Final = re.compile(_ITEM)
ANOTHER_TITLE: Final = re.compile(
    rf"{_SPACE}of{_SPACE}(?:the|this|that|such|said|an?|its)\b"
    rf"|,?{_SPACE}(?:of{_SPACE}the{_SPACE})?(?:[A-Z][\w.&']*\s){{0,5}}"
    r"(?:(?:Revised\s|General\s)?Statutes|Code\b|Stat\.|Administrative|Laws\b)"
)
"""After `title 5`: a title of some Act, or of the code of a state."""
