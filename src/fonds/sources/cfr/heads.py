"""The head of a file of the CFR, before its text: shape, title, edition, place.

The CFR is published in two vocabularies: GPO's, which is eCFR's too, and USLM. Their headings hold
the number of a level, and whether it is in force.
"""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from html import unescape
from typing import ClassVar, Final, Literal

from fonds.errors import MalformedError, WrongContentError
from fonds.sources.formats.days import printed_day
from fonds.sources.formats.xml import portions

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


def single_line(text: str) -> str:
    """On one line, every white space a plain one."""
    return " ".join(text.split())


def stated_number(attribute: str | None) -> str:
    """The number in `N`, without sign or the level's name; the API escapes some of them twice."""
    number = single_line(unescape(unescape(attribute or "")))
    return _LEVEL_WORD.sub("", _SIGN.sub("", number, count=1), count=1).rstrip(".,; ")


def section_number(heading: str) -> str:
    """`60.112b` of `§ 60.112b Rules.`, `1.1-1.3` of `§§ 1.1-1.3 [Reserved]`."""
    sign = _SIGN.match(heading)
    match = _SECTION.match(heading, sign.end() if sign else 0)
    return match[0].rstrip(".,;:") if match else ""


def printed_number(text: str) -> str:
    """All of an element that holds nothing but a section's number."""
    return single_line(_SIGN.sub("", text.strip(), count=1)).partition("[")[0].rstrip(".,;: ")


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
    return single_line(match[0]).rstrip(".,")


def status_of(heading: str) -> str:
    """`reserved` for what ends with `[Reserved]`, and the like; empty for what is in force."""
    match = _BRACKETED.search(heading)
    word = match[1].lower() if match else ""
    return next((status for status in _STATUSES if status in word), "")


def without_volume(heading: str) -> str:
    """A title's heading without the volume that bulk files add to it."""
    return _VOLUME.sub("", heading)


_ENCODING: Final = re.compile(rb"""<\?xml[^>]*\sencoding\s*=\s*["']([^"']+)""")
_READABLE: Final = frozenset({"utf-8", "us-ascii", "ascii"})
MAX_HEAD_LENGTH: Final = 1 << 20
"""Bytes; the matter before the text of an annual volume takes a tenth of it."""
_TITLE_NAME: Final = re.compile(r"title[-_ ]?(\d{1,2})(?!\d)", re.IGNORECASE)
_VOLUME_NAME: Final = re.compile(r"vol(?:ume)?[-_ ]?(\d+)", re.IGNORECASE)
_PACKAGE: Final = re.compile(r"CFR-(\d{4})-title\d", re.IGNORECASE)
_DAY: Final = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_LONG_DAY: Final = re.compile(r"([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2}),\s+(\d{4})")
_FIRST_NUMBER: Final = re.compile(r"\d+")


class TitleShape(IntEnum):
    """How much of a title a file holds; the larger makes the smaller superfluous."""

    PART = 1
    """A part or a section: of eCFR's API, or a granule of the annual edition."""
    VOLUME = 2
    """A volume of the annual edition."""
    WHOLE = 3
    """All of it, by eCFR."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileHead:
    """A file, as far as it speaks of itself."""

    shape: TitleShape
    is_uslm: bool
    title: str
    volume: int
    first: int
    """The number it begins with, for files of the same volume."""
    edition: str
    """The publisher's label: a year of the annual edition, a day of eCFR; empty if not stated."""
    published_at: str | None
    label: str
    """The title's name, if it comes before the text."""
    ancestors: tuple[tuple[str, str], ...]
    """The levels above a granule, below its title: `CHAPTER II`, and all of its heading."""


def look(start: bytes, name: str) -> FileHead:
    """The head in the first `MAX_HEAD_LENGTH` bytes of a file; raises if it is not of the CFR."""
    _refuse(start)
    handler = _HeadHandler()
    for _ in portions(io.BytesIO(start), handler):
        if handler.is_done or (handler.root and not _is_cfr(handler.root)):
            break
    if not _is_cfr(handler.root):
        root = handler.root[:40]
        raise WrongContentError(f"the root element is <{root}>, which is not a file of the CFR")
    return _head(handler, name)


def title_of_name(name: str) -> str:
    """The title that the name of a file says it is of; empty if it does not."""
    match = _TITLE_NAME.search(name)
    return str(int(match[1])) if match else ""


def edition_of_name(name: str) -> str:
    """The edition that the path of a file says it is of; empty if it does not."""
    package = _PACKAGE.search(name)
    days = [day for day in _DAY.findall(name) if _day(day)]
    return package[1] if package else days[-1] if days else ""


def _refuse(start: bytes) -> None:
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not text:
        raise MalformedError("the file is empty")
    if re.match(rb"<(?:!doctype html|html|head|body|div)\b", text, re.IGNORECASE):
        raise WrongContentError("an HTML page instead of XML")
    if not text.startswith(b"<"):
        raise WrongContentError("not XML: the file does not begin with a tag")
    encoding = _ENCODING.match(text)
    # Sections are read by themselves, without the declaration.
    if encoding and encoding[1].decode("latin-1").lower() not in _READABLE:
        raise MalformedError(f"it is in {encoding[1].decode('latin-1')!r}, not in UTF-8")


_SHAPES: Final = {
    "ECFR": TitleShape.WHOLE,
    "DLPSTEXTCLASS": TitleShape.WHOLE,
    "CFRDOC": TitleShape.VOLUME,
    "cfrDoc": TitleShape.VOLUME,
    "CFRGRANULE": TitleShape.PART,
}
_LEVELS_BELOW: Final = re.compile(
    r"DIV[2-9]|SUBTITLE|CHAPTER|SUBCHAP|PART|SUBPART|SECTION|APPENDIX|chapter|part|section"
)
_TITLES: Final = ("CFRTITLE", "IDNO", "TITLENUM", "docNumber")
_READ_ELEMENTS: Final = frozenset(
    {*_TITLES, "AMDDATE", "REVISED", "VOL", "DATE", "ORIGINALDATE", "GRANULENUM"}
    | {"PARTS", "docReleasePoint", "startingProvision"}
)
_FIRSTS: Final = ("GRANULENUM", "startingProvision", "PARTS")
_SKIPPED_ELEMENTS: Final = frozenset({"FDSYS", "FMTR", "HEADER", "preface"})


@dataclass(slots=True)
class _HeadHandler:
    """Listens until the text begins."""

    values: dict[str, str] = field(default_factory=dict)
    ancestors: list[tuple[str, str]] = field(default_factory=list)
    amended: list[str] = field(default_factory=list)
    root: str = ""
    title: str = ""
    first: str = ""
    is_done: bool = False
    _chunks: list[str] = field(default_factory=list)
    _heading: str = ""
    _is_skipped: bool = False

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """An element begins."""
        del offset
        self._chunks = []
        if self.is_done:
            return
        self.root = self.root or name
        if name in _SKIPPED_ELEMENTS:
            self._is_skipped = True
        if name == "PARENT":
            self._heading = attributes.get("HEADING", "")
        if name == "VOLUME":
            self.amended.append(attributes.get("AMDDATE", ""))
        if not self._is_skipped and name.startswith("DIV"):
            self._division(name, attributes)
        if not self._is_skipped and _LEVELS_BELOW.fullmatch(name):
            self.is_done = True
            self.first = self.first or attributes.get("N", "")

    def end(self, name: str, offset: int) -> None:
        """An element ends."""
        del offset
        text = single_line("".join(self._chunks))
        self._chunks = []
        if self.is_done:
            return
        if name in _SKIPPED_ELEMENTS:
            self._is_skipped = False
        if name == "PARENT":
            heading = single_line(self._heading)
            self.ancestors.append((heading, f"{heading}—{text}" if text else heading))
        elif name in _READ_ELEMENTS and text:
            self.values.setdefault(name, text)

    def text(self, data: str) -> None:
        """Some text."""
        if not self.is_done:
            self._chunks.append(data)

    def _division(self, name: str, attributes: Mapping[str, str]) -> None:
        node = attributes.get("NODE", "").partition(":")[0]
        path = re.search(r"/title-(\d+)", unescape(unescape(_metadata(attributes))))
        if name == "DIV1" and not node:
            node = attributes.get("N", "")
        self.title = self.title or node or (path[1] if path else "")


def _is_cfr(root: str) -> bool:
    return root in _SHAPES or re.fullmatch("DIV[1-9]", root) is not None


def _metadata(attributes: Mapping[str, str]) -> str:
    return attributes.get("hierarchy_metadata", "")


def _head(handler: _HeadHandler, name: str) -> FileHead:
    root, values = handler.root, handler.values
    is_ecfr = root in {"ECFR", "DLPSTEXTCLASS"} or root.startswith("DIV")
    shape = TitleShape.WHOLE if root == "DIV1" else _SHAPES.get(root, TitleShape.PART)
    title = _number(_one_of(_TITLES, values) or handler.title) or int(title_of_name(name) or 0)
    if not title:
        raise WrongContentError("it does not say which title it is of; name it title-40.xml or so")
    revised = _day(_one_of(("ORIGINALDATE", "REVISED", "docReleasePoint"), values))
    amended = max([*filter(None, map(_day, handler.amended)), _day(values.get("AMDDATE")) or ""])
    volume = _VOLUME_NAME.search(name)
    return FileHead(
        shape=shape,
        is_uslm=root == "cfrDoc",
        title=str(title),
        volume=_number(values.get("VOL")) or (int(volume[1]) if volume else 0),
        first=_number(_one_of(_FIRSTS, values) or handler.first),
        edition=_edition(name, {} if is_ecfr else values),
        published_at=(amended if is_ecfr else revised) or None,
        label=handler.ancestors[0][1] if handler.ancestors else f"Title {title}",
        ancestors=tuple(handler.ancestors[1:]),
    )


def _edition(name: str, values: Mapping[str, str]) -> str:
    # A volume that has not changed is printed again in a new cover; inside it is of an older year.
    if edition := edition_of_name(name):
        return edition
    day = _day(_one_of(("DATE", "REVISED", "docReleasePoint"), values))
    return day[:4] if day else ""


def _one_of(names: Iterable[str], values: Mapping[str, str]) -> str:
    return next((values[name] for name in names if name in values), "")


def _number(text: str | None) -> int:
    match = _FIRST_NUMBER.search(text or "")
    return int(match[0]) if match else 0


def _day(text: str | None) -> str | None:
    """The day in `2022-12-29`, `Dec. 29, 2022(fm)` and `Revised as of July 1, 2018`."""
    if match := _DAY.search(text or ""):
        printed, form = match[1], "%Y-%m-%d"
    elif match := _LONG_DAY.search(text or ""):
        printed, form = " ".join(match.groups()), "%b %d %Y"
    else:
        return None
    day = printed_day(printed, form)
    return day.isoformat() if day else None


Part = Literal["number", "heading"]

_DIVISION: Final = re.compile(r"DIV([1-9])")
_BY_LEVEL: Final = dict(enumerate(KINDS.values(), start=1))
_RANKS: Final = {kind: rank for rank, kind in _BY_LEVEL.items()}


class Dialect(ABC):
    """Which elements are levels, which are their headings, and which hold no text of the code."""

    wrappers: ClassVar[frozenset[str]]
    """Elements around the outermost level."""
    unread: ClassVar[frozenset[str]]
    """Tables of contents and running heads: all they say is said elsewhere."""
    inner_heads: ClassVar[frozenset[str]] = frozenset()
    """Headings within a table of contents."""
    pictures: ClassVar[frozenset[str]]
    """Elements that are something to see without holding a word."""

    @abstractmethod
    def kind(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """The name of the level that an element is, if it is one."""

    @abstractmethod
    def head(self, name: str, attributes: Mapping[str, str]) -> Part | None:
        """The part of its level's heading that an element is, if it can be one."""

    @abstractmethod
    def identifier(self, attributes: Mapping[str, str], around: str) -> str:
        """The publisher's own name of a level, or of its parent, with a slash at its end."""

    def within(self, title: str) -> str:
        """The parent of all of a title, in such names."""
        del title
        return ""


class Gpo(Dialect):
    """eCFR's numbered divisions, and the annual edition's, which have names."""

    wrappers = frozenset(
        {"ECFR", "DLPSTEXTCLASS", "TEXT", "BODY", "ECFRBRWS", "CFRDOC", "CFRGRANULE"}
    )
    unread = frozenset({"CFRTOC", "CFRTITLE", "CONTENTS", "EAR", "LRH", "RRH", "TOC"})
    inner_heads = frozenset({"TITLEHD", "TOCHD"})
    pictures = frozenset({"img", "IMG", "GPH", "MATH"})

    def kind(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """By `TYPE` where there is one; its values are those of the annual edition's elements."""
        numbered = _DIVISION.fullmatch(name)
        if numbered is None:
            return KINDS.get(name)
        stated = attributes.get("TYPE", "").strip()
        return KINDS.get(stated.upper()) or stated.lower() or _BY_LEVEL[int(numbered[1])]

    def head(self, name: str, attributes: Mapping[str, str]) -> Part | None:
        """`HEAD` in eCFR; in the annual edition a section's heading is in two elements."""
        if name == "SECTNO":
            return "number"
        is_head = name in {"HEAD", "SUBJECT", "RESERVED"}
        return "heading" if is_head or (name, attributes.get("SOURCE")) == ("HD", "HED") else None

    def identifier(self, attributes: Mapping[str, str], around: str) -> str:
        """Only bulk files have one, which tells the place in the file: `40:7.0.1.1.1`."""
        del around
        return attributes.get("NODE", "")


class UslmVolume(Dialect):
    """Volumes in United States Legislative Markup."""

    wrappers = frozenset({"cfrDoc", "main"})
    unread = frozenset({"toc", "ear", "leftRunningHead", "rightRunningHead"})
    pictures = frozenset({"img", "figure"})
    _KINDS: ClassVar[dict[str, str]] = {kind: kind for kind in KINDS.values()}

    def kind(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """By the element, but subject groups are a kind of `level`."""
        if name == "level":
            is_group = "SUBJGRP" in attributes.get("style", "")
            return "subject-group" if is_group else "level"
        return self._KINDS.get(name)

    def head(self, name: str, attributes: Mapping[str, str]) -> Part | None:
        """Number and heading are elements of their own everywhere."""
        del attributes
        return "number" if name == "num" else "heading" if name == "heading" else None

    def identifier(self, attributes: Mapping[str, str], around: str) -> str:
        """`/us/cfr/t27/s447.1`, and `/us/cfr/t27/p447/` for a group in part 447."""
        return attributes.get("identifier") or f"{around.rstrip('/')}/"

    def within(self, title: str) -> str:
        """`/us/cfr/t27`."""
        return f"/us/cfr/t{title}"


def rank(kind: str) -> int:
    """The depth of a level: 1 for a title, 5 for a part; None where it is unknown."""
    return _RANKS.get(kind, 0)
