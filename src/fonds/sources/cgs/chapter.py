"""A chapter's page: its items and their positions, found in one pass over its bytes.

Also section numbers: their forms, their order, and the range that each covers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from html import unescape
from itertools import takewhile
from typing import Final

from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.normalize.encodings import decode, without_controls
from fonds.sources.jurisdiction import FRONT, Span

_SILENT: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_INLINE: Final = re.compile(r"</?(?:a|b|em|font|i|span|strong|sub|sup|u)\b[^<>]*>", re.IGNORECASE)
_TAG: Final = re.compile(r"<[A-Za-z/!?][^<>]*>")

# An element that is never closed reaches to the end of the page, as in a browser: looking for the
# end of every one of them again and again would take a hostile page's length squared.
_A: Final = rb"[^<>]{0,500}?"
"""Attributes of a tag."""

TOKEN: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)"
    rb"|<(?P<silent>script|style)\b.*?(?:</(?P=silent)\s*>|\Z)"
    rb"|(?P<nav><table\b" + _A + rb"\bnav_tbl\b.*?(?:</table\s*>|\Z))"
    rb"|(?P<toc_head><h[1-6]\b" + _A + rb"\bchap_toc_hd\b[^<>]*>)"
    rb"|(?P<toc><p\b" + _A + rb"\btoc_catchln\b[^<>]*>)(?P<entry>.*?)(?=</p|<p\b|<hr\b|\Z)"
    rb"|(?P<bar><hr\b" + _A + rb"\bchaps_pg_bar\b[^<>]*>)"
    rb"|<h[1-6]\b" + _A + rb"\b(?P<level>chap|part|subpart)-(?P<field>no|name)\b[^<>]*>"
    rb"(?P<heading>.*?)(?:</h[1-6]\s*>|\Z)"
    rb"|<span\b(?P<catchln>" + _A + rb"\bcatchln\b[^<>]*)>"
    rb"(?P<line>.*?)(?:</span\s*>|(?=</p)|\Z)"
    rb"|(?P<end></body\b|</html\b)",
    re.DOTALL | re.IGNORECASE,
)
"""Everything that bounds a section, in one pass over a page."""

ANCHOR: Final = re.compile(rb"<a\b" + _A + rb"""\bhref\s*=\s*["']?#([^\s"'<>]+)""", re.IGNORECASE)
PARAGRAPH: Final = re.compile(rb"<(/?)p\b[^<>]*>", re.IGNORECASE)
FILE: Final = re.compile(
    rb"<div\b" + _A + rb"""\bid\s*=\s*["']?((?:chap|art)_\w+\.html?)""", re.IGNORECASE
)
TITLE_LINK: Final = re.compile(
    rb"""\bhref\s*=\s*["']?[^"'<>\s]{0,300}?\btitle_0*([0-9]+[a-z]*)\.html?""", re.IGNORECASE
)
_ID_ATTRIBUTE: Final = re.compile(rb"""\bid\s*=\s*["']?([^\s"'<>]+)""", re.IGNORECASE)


def visible_text(data: bytes) -> str:
    """The text of a piece of a page, on one line."""
    text = _SILENT.sub(" ", decode(data).text)
    text = unescape(_TAG.sub(" ", _INLINE.sub("", text)))
    return " ".join(without_controls(text)[0].split())


def identifier(attributes: bytes) -> str:
    """The id among an element's attributes, or nothing."""
    match = _ID_ATTRIBUTE.search(attributes)
    return unescape(match[1].decode("utf-8", "replace")) if match else ""


Key = tuple[tuple[int, int, str], ...]
"""By which numbers are compared: `12-704` before `12-704z` before `12-704aa` before `12-705`."""

_NUMBER: Final = r"[0-9]+[A-Za-z]*(?:-[0-9]+[A-Za-z]*)+"
_ONE: Final = re.compile(_NUMBER)
_JOINTS: Final = frozenset({"to", "and", "or"})
_ID: Final = re.compile(r"secs?_(.+)")
_PRINTED: Final = re.compile(rf"Secs?\.\s*({_NUMBER}(?:(?:,\s*|\s+(?:to|and|or)\s+){_NUMBER})*)")
_NUMBER_PART: Final = re.compile(r"([0-9]+)([A-Za-z]*)")

_DEAD: Final = r"(?P<status>repealed|transferred|obsolete|expired)"
_LIST: Final = rf"{_NUMBER}(?:(?:,\s*|,?\s+(?:to|and|or)\s+){_NUMBER})*(?:,\s+inclusive,?)?"
_STATUS_SENTENCE: Final = re.compile(
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

    The id is read first: in print the letter l is set in italics, so that it is not read as a one.
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
    matches = (
        _NUMBER_PART.match(match) for match in number.partition(" ")[0].rstrip(",").split("-")
    )
    parts = [(int(match[1]), len(match[2]), match[2].lower()) for match in matches if match]
    return tuple(parts)


def covers(number: str, other: str) -> bool:
    """Whether all that `other` names is named by `number`, or is within its range."""
    ends = [key_of(member) for member in members(number)]
    keys = [key_of(member) for member in members(other)]
    if " to " in number:
        return all(ends[0] <= key <= ends[-1] for key in keys)
    return all(key in ends for key in keys) and " to " not in other


def title_of(number: str) -> str:
    """The title a section belongs to: `12` of `12-704e`."""
    return number.partition("-")[0]


def heading_of(catchline: str) -> str:
    """The status that a catchline states after its number."""
    return catchline[match.end() :] if (match := _PRINTED.match(catchline)) else catchline


def status_of(catchline: str, text: str) -> str:
    """`repealed`, `reserved`, … if its heading or the beginning of its text says so."""
    if dead := _HEADING.fullmatch(heading_of(catchline)):
        return dead[1].lower()
    if match := _STATUS_SENTENCE.match(text):
        return next(word for word in match.groupdict().values() if word).lower()
    return ""


STATUTES: Final = "current/pub"
"""The path of the statutes below the publisher's base; supplements are in `2026/sup`."""
SECTION: Final = "section"
PARTS: Final = ("part", "subpart")
_CHAPTER: Final = re.compile(rb"<[a-z][^<>]{0,500}?\b(?:chap-no|catchln)\b[^<>]*>", re.IGNORECASE)
_NUMBERED: Final = re.compile(
    r"\W*(chapter|article|part|subpart)?\s*([\w.-]*\w)?\W*", re.IGNORECASE
)
_TITLE: Final = re.compile(rb"<title[^<>]*>([^<]*)</title", re.IGNORECASE)
_SUPPLEMENT: Final = re.compile(
    rb"\bThis\s+([0-9]{4})\s+Supplement\s+is\s+intended\b", re.IGNORECASE
)
_SUPPLEMENTED: Final = re.compile(rb"\brefer\s+to\s+the\s+([0-9]{4})\s+Supplement\b", re.IGNORECASE)
_SUPPLEMENT_PATH: Final = re.compile(r"(?:^|/)(?:([0-9]{4})/)?sup/")
_FIRST: Final = re.compile(rb"""\bid\s*=\s*["']?secs?_([0-9]+[a-z]*-[0-9]+)""", re.IGNORECASE)
_MAX_LISTED: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class ChapterItem:
    """A heading, a section or a note of a chapter, in the page's order."""

    kind: str
    number: str
    label: str
    page: str = ""
    span: Span | None = None
    """None for a heading."""
    fragment: str = ""
    status: str = ""
    address: str = ""
    """Of what has a text: its path below the publisher's base."""
    text: str = ""
    """Of a note: what it says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """The head of a page: its chapter, its label, its year."""

    kind: str
    """`chapter`, or `article` in the title that has no chapters."""
    number: str
    label: str
    file: str
    """Its name at the publisher's."""
    supplement: str | None
    """The year of the supplement it is from, empty if unknown; None for the statutes themselves."""
    items: tuple[ChapterItem, ...]


def is_chapter(data: bytes) -> bool:
    """Whether the bytes are a chapter's page."""
    return _CHAPTER.search(data) is not None


def title_number(name: str, data: bytes) -> str:
    """The title a chapter's page belongs to; the page says it only in its links."""
    if link := TITLE_LINK.search(data):
        return link[1].decode().lower()
    if section := _FIRST.search(data):
        return title_of(section[1].decode())
    raise MalformedError(f"{name} does not say which title it belongs to")


def revised_to(name: str, data: bytes) -> str:
    """The year a page is revised to, as far as it tells; nothing otherwise."""
    if supplement := supplement_year(name, data):
        return supplement
    # A supplement brings the revision of the year before it up to date.
    match = _SUPPLEMENTED.search(data)
    return str(int(match[1]) - 1) if match else ""


def supplement_year(name: str, data: bytes) -> str | None:
    """The year of the supplement a page is from, empty if unknown; None for the statutes."""
    if match := _SUPPLEMENT.search(data):
        return match[1].decode()
    path = _SUPPLEMENT_PATH.search(name)
    return path[1] or "" if path else None


def address_of(supplement: str | None, file: str) -> str:
    """The path of a page below the publisher's base."""
    return f"{supplement}/sup/{file}" if supplement else f"{STATUTES}/{file}"


def read_chapter(name: str, data: bytes) -> Chapter:
    """All there is on a chapter's page; raises where it is cut off or contradicts itself."""
    if not is_chapter(data):
        raise WrongContentError(f"{name} is not a chapter of the statutes: no heading, no section")
    tokens = list(TOKEN.finditer(data))
    ends = [token.start() for token in tokens if token["end"]]
    if not ends:
        raise MalformedError(f"{name} is cut off: its last tag is missing; fetch it again")
    tokens = [token for token in tokens if token.start() < ends[0]]
    chapter = _described(name, data, tokens)
    page = _ChapterPage(name, data, address_of(chapter.supplement, chapter.file), ends[0])
    items = page.items(tokens, chapter.label)
    _check_contents(name, tokens, items)
    return replace(chapter, items=tuple(items))


# The head ---------------------------------------------------------------------------------


def _described(name: str, data: bytes, tokens: list[re.Match[bytes]]) -> Chapter:
    printed = {field: _heading(tokens, "chap", field) for field in ("no", "name")}
    title = _TITLE.search(data)
    called = visible_text(title[1]) if title else ""
    kind, number = _numbered(printed["no"] or called.partition(" - ")[0], "chapter")
    if not number:
        raise MalformedError(f"{name} does not say which chapter it is")
    file = FILE.search(data)
    return Chapter(
        kind=kind,
        number=number,
        label=_label(printed["no"], printed["name"], called),
        file=file[1].decode() if file else file_name(kind, number),
        supplement=supplement_year(name, data),
        items=(),
    )


def file_name(kind: str, number: str) -> str:
    """`chap_014.htm`: what the publisher calls the page of a chapter."""
    digits = "".join(takewhile(str.isdigit, number))
    short = "art" if kind == "article" else "chap"
    return f"{short}_{digits.zfill(3)}{number[len(digits) :].lower()}.htm"


def _heading(tokens: list[re.Match[bytes]], level: str, field: str) -> str:
    headings = (token for token in tokens if _is_heading(token, level, field))
    return next((_unmarked(visible_text(token["heading"])) for token in headings), "")


def _is_heading(token: re.Match[bytes], level: str, field: str) -> bool:
    return (token["level"], token["field"]) == (level.encode(), field.encode())


def _unmarked(heading: str) -> str:
    # An asterisk leads to the notes below the heading.
    return heading.rstrip("* ")


def _numbered(printed: str, kind: str) -> tuple[str, str]:
    match = _NUMBERED.match(printed)
    assert match is not None
    return (match[1] or kind).lower(), match[2] or ""


def _label(number: str, name: str, called: str) -> str:
    """As the page calls itself, in readable letters, if that is what it prints in capitals."""
    printed = " - ".join(filter(None, (number, name)))
    same = "".join(filter(str.isalnum, printed)).lower() == (
        "".join(filter(str.isalnum, called)).lower()
    )
    return called if same or not printed else printed


# The body ---------------------------------------------------------------------------------


class _ChapterPage:
    """The items of one page."""

    def __init__(self, name: str, data: bytes, address: str, end: int) -> None:
        self._name, self._data, self._address, self._end = name, data, address, end
        self._items: list[ChapterItem] = []
        self._open: ChapterItem | None = None
        self._since = 0
        self._above = ""

    def items(self, tokens: list[re.Match[bytes]], label: str) -> list[ChapterItem]:
        """Notes, headings and sections in the order in which they are read."""
        self._above = label
        head = [
            token.end()
            for token in takewhile(lambda token: token["catchln"] is None, tokens)
            if token["level"] == b"chap"
        ]
        contents = [token for token in tokens if token["toc_head"] or token["toc"] or token["bar"]]
        self._since = head[-1] if head else self._data.lower().find(b"<body")
        if contents:
            self._close(contents[0].start())
            self._since = contents[-1].end()
        for token in tokens:
            if token.start() >= self._since:
                self._take(token)
        self._close(self._end)
        return self._items

    def _take(self, token: re.Match[bytes]) -> None:
        if token["catchln"] is not None:
            start = self._paragraph(token.start())
            self._close(start)
            self._open, self._since = self._section(token), start
        elif token["nav"]:
            self._close(token.start())
            self._since = token.end()
        elif token["level"]:
            self._close(token.start())
            self._since = token.end()
            self._divide(token)

    def _close(self, position: int) -> None:
        content = self._data[self._since : position]
        span = Span(start=self._since, length=len(content.rstrip()))
        opened, self._open = self._open, None
        if opened is not None:
            self._items.append(replace(opened, span=span))
        elif any(map(str.isalnum, text := visible_text(content))):
            front = ChapterItem(kind=FRONT, number="", label=f"Notes to {self._above}", text=text)
            front = replace(front, page=self._name, span=span, address=self._address)
            self._items.append(front)

    def _paragraph(self, position: int) -> int:
        """The start of the paragraph that contains a catchline."""
        before = list(PARAGRAPH.finditer(self._data, self._since, position))
        return before[-1].start() if before and not before[-1][1] else position

    def _section(self, token: re.Match[bytes]) -> ChapterItem:
        fragment, line = identifier(token["catchln"]), visible_text(token["line"])
        number = number_of(fragment, line)
        if number is None:
            raise MalformedError(f"{self._name}: {(line or fragment)[:80]!r} has no section number")
        closing = PARAGRAPH.search(self._data, token.end(), self._end)
        first = visible_text(self._data[token.end() : closing.start() if closing else self._end])
        status = status_of(line, first)
        bare = status and not any(map(str.isalnum, heading_of(line)))
        return ChapterItem(
            kind=SECTION,
            number=number,
            label=f"{line} {status.capitalize()}" if bare else line,
            page=self._name,
            fragment=fragment,
            status=status,
            address=f"{self._address}#{fragment}" if fragment else self._address,
        )

    def _divide(self, token: re.Match[bytes]) -> None:
        """A heading between sections: its number opens a level, and its name completes it."""
        level, text = token["level"].decode(), _unmarked(visible_text(token["heading"]))
        if level not in PARTS:
            raise MalformedError(f"{self._name} holds two chapters: {text[:80]!r} is the second")
        last = self._items[-1] if self._items else None
        if token["field"] == b"name" and last and last.kind == level and last.label == self._above:
            self._above = f"{last.label} - {text}"
            self._items[-1] = replace(last, label=self._above)
            return
        number = _numbered(text, level)[1] if token["field"] == b"no" else ""
        self._above = text
        self._items.append(ChapterItem(kind=level, number=number, label=text))


def _check_contents(name: str, tokens: list[re.Match[bytes]], items: list[ChapterItem]) -> None:
    """The table of contents and the sections must be the same list: pages come cut and mixed."""
    anchors = (ANCHOR.search(token["entry"]) for token in tokens if token["toc"])
    listed = Counter(unescape(label[1].decode("utf-8", "replace")) for label in anchors if label)
    counts = Counter(item.fragment or item.label for item in items if item.kind == SECTION)
    if not listed and not any(item.span for item in items):
        raise SuspiciousYieldError(f"{name} holds no section and no note")
    for more, less, what in ((listed, counts, "only listed"), (counts, listed, "not listed")):
        if missing := sorted((more - less).elements(), key=_order):
            names = ", ".join(missing[:_MAX_LISTED]) + (", …" if len(missing) > _MAX_LISTED else "")
            raise SuspiciousYieldError(
                f"{name}: table of contents and text differ; {len(missing)} {what}: {names}"
            )


def _order(fragment: str) -> tuple[object, str]:
    return key_of(number_of(fragment, "") or ""), fragment
