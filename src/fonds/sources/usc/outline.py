"""The nodes of a title, collected while its XML is read once; release points; numbers.

By far the most of a title is inside its sections, where only their numbers and headings are read;
of everything else there, the handler only counts the depth.

Files of a folder that contain titles or sections of the Code are recognised by their bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename, dirname
from typing import IO, Final
from urllib.parse import urljoin

from fonds.errors import MalformedError, NotFoundError, ParseError, UsageError, WrongContentError
from fonds.normalize.uslm.vocabulary import CONTAINERS, NAMESPACES
from fonds.sources.formats.xml import portions
from fonds.sources.jurisdiction import FRONT, Origin, Page, Span, TocNode

_SIGNS: Final = str.maketrans(
    {
        **dict.fromkeys("§¶[]*", " "),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
    }
)
_SECTION_SIGN: Final = re.compile(r"§\s([0-9A-Za-z]+)\.")
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
    if (match := _SECTION_SIGN.fullmatch(printed)) is not None:
        return match[1]
    text = " ".join(printed.translate(_SIGNS).split()).rstrip(_TRAILING)
    return _THROUGH.sub(" to ", _WORD.sub("", text, count=1) if _WORD.match(text) else text)


def plan_number(heading: str) -> str:
    """`1 of 1939` of a reorganization plan, which has its number in its heading only."""
    match = _PLAN.search(heading)
    return f"{match[1]} of {match[2]}" if match else ""


def title_number(stated: str) -> str:
    """`42` of `42`, `5a` of `05A`; empty if it is not the number of a title."""
    match = _TITLE.fullmatch(stated.strip())
    return match[1] + match[2].lower() if match else ""


def natural_order(number: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts as the Code does: 300, 300-1, 300a, 300a-1, 300b, 300aa, 301."""
    return tuple(
        (0, int(digits), "") if digits else (1, len(letters), letters)
        for digits, letters in _RUNS.findall(number)
    )


LEAVES: Final = frozenset({"section", "courtRule"})
_LEVELS: Final = CONTAINERS | {"reorganizationPlan"}
_WRAPPERS: Final = frozenset({"uscDoc", "main"})
_HEADER: Final = frozenset({"num", "heading"})
_FOOTNOTES: Final = frozenset({"note", "footnote"})
_STATUSES: Final = frozenset(
    ["repealed", "omitted", "transferred", "renumbered", "reserved", "vacant", "abrogated"]
)


class _OpenLevel:
    """A level or a section that has begun and not ended."""

    __slots__ = (
        "attributes",
        "footnotes",
        "has_front",
        "heading",
        "is_leaf",
        "is_listed",
        "label",
        "level",
        "name",
        "nesting",
        "num",
        "offset",
        "value",
    )

    def __init__(
        self, name: str, attributes: Mapping[str, str], *, nesting: int, level: int, offset: int
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.nesting = nesting
        """The depth of the element in the file."""
        self.level = level
        """The depth of its node in the tree."""
        self.offset = offset
        self.is_leaf = name in LEAVES
        self.num: list[str] = []
        self.heading: list[str] = []
        self.value = ""
        """The number as attributes say it, for where none is printed."""
        self.label = ""
        self.is_listed = False
        self.has_front = False
        self.footnotes: list[Span] = []
        """Those in its number and heading, which its label leaves out."""

    def number(self) -> str:
        number = clean_number("".join(self.num)) or clean_number(self.value)
        if not number and self.name == "reorganizationPlan":
            return plan_number("".join(self.heading))
        return number

    def title(self) -> str:
        number, heading = " ".join("".join(self.num).split()), "".join(self.heading)
        between = "" if number.endswith("—") else " "
        return " ".join(f"{number}{between}{heading}".split())

    def status(self) -> str:
        if stated := self.attributes.get("status"):
            return "" if stated == "operational" else stated.lower()
        heading = "".join(self.heading).lstrip()
        if heading.startswith("[") or "".join(self.num).lstrip().startswith("["):
            word = heading.lstrip("[( ").partition(" ")[0].rstrip(".,;])").lower()
            return word if word in _STATUSES else ""
        return ""


class UscOutline:
    """A listener that collects nodes in reading order; `take` gives those heard so far."""

    def __init__(self) -> None:
        self.meta: dict[str, str] = {}
        """The metadata of the file, by the names of its elements."""
        self._nodes: list[TocNode] = []
        self._open: list[_OpenLevel] = []
        self._nesting = 0
        self._deaf = 0
        """The depth of the element that is skipped; 0 for none."""
        self._header = 0
        """The depth of the `num` or `heading` that is being read."""
        self._in_meta = False
        self._listens = True
        self._text: list[str] | None = None
        self._footnote = -1
        self._front = -1
        self._front_end = -1
        self._has_words = False
        self._early: list[Span] = []
        self._unit: _OpenLevel | None = None

    def finish(self) -> None:
        """Raise for text that could be placed nowhere."""
        if self._early:
            raise MalformedError("text is outside of any title")

    def take(self) -> list[TocNode]:
        """The nodes that are complete and were not taken yet."""
        nodes, self._nodes = self._nodes, []
        return nodes

    # What expat tells -------------------------------------------------------------------------

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """An element begins."""
        self._nesting += 1
        if self._deaf:
            return
        if self._header:
            if name in _FOOTNOTES or attributes.get("class") == "footnoteRef":
                self._footnote = offset if name in _FOOTNOTES else -1
                self._stop_listening()
        elif self._in_meta:
            self._text = []
        elif name in _HEADER and self._open and not self._open[-1].is_listed:
            self._start_header(name, attributes)
        elif self._open and self._open[-1].is_leaf:
            self._deaf = self._open[-1].nesting
            self._listens = False
        else:
            self._start_other(name, attributes, offset)

    def end(self, name: str, offset: int) -> None:
        """An element ends."""
        nesting = self._nesting
        self._nesting = nesting - 1
        if self._deaf:
            if nesting == self._deaf:
                self._deaf = 0
                self._resume_text(offset)
        elif self._header:
            if nesting == self._header:
                self._header = 0
                self._text = None
        elif self._in_meta:
            self.meta.setdefault(name, "".join(self._text or ()).strip())
            self._text = None
            self._in_meta = name != "meta"
        elif self._open and self._open[-1].nesting == nesting:
            self._close(offset)
        else:
            self._end_front()

    def text(self, data: str) -> None:
        """Some text; hardly any of it is listened to."""
        if not self._listens:
            return
        if self._text is not None:
            self._text.append(data)
        elif not data.isspace():
            if not self._deaf:
                where = self._open[-1].title() if self._open else "the root"
                raise MalformedError(f"text is outside any element of {where}: {data[:60]!r}")
            self._has_words = any(map(str.isalnum, data))
            self._listens = not self._has_words

    # What it means ----------------------------------------------------------------------------

    def _start_header(self, name: str, attributes: Mapping[str, str]) -> None:
        top = self._open[-1]
        self._header = self._nesting
        self._text = top.num if name == "num" else top.heading
        if name == "num":
            first, last = attributes.get("startValue"), attributes.get("endValue")
            top.value = f"{first} to {last}" if first and last else attributes.get("value", "")

    def _start_other(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """Start an element outside of sections and headings."""
        if self._nesting == 1:
            check_root(name, attributes)
        if self._open:
            self._list_level(self._open[-1])
        if name in LEAVES or name in _LEVELS:
            self._end_front()
            level = self._open[-1].level + 1 if self._open else self._level_of_first(name)
            entered = _OpenLevel(
                name, attributes, nesting=self._nesting, level=level, offset=offset
            )
            self._open.append(entered)
        elif name == "meta":
            self._in_meta = True
        elif name == "toc":
            self._end_front()
            self._stop_listening()
        elif name in _WRAPPERS:
            self._end_front()
        else:
            self._start_front(offset)

    def _level_of_first(self, name: str) -> int:
        return 1 if self._unit or name in LEAVES else 0

    def _start_front(self, offset: int) -> None:
        self._deaf = self._nesting
        if self._front < 0:
            self._front, self._has_words = offset, False
        self._listens = not self._has_words

    def _stop_listening(self) -> None:
        self._deaf = self._nesting
        self._listens = False

    def _resume_text(self, offset: int) -> None:
        self._listens = True
        if self._header:
            if self._footnote >= 0:
                span = Span(start=self._footnote, length=offset - self._footnote)
                self._open[-1].footnotes.append(span)
        elif self._open and self._open[-1].is_leaf:
            self._close(offset)
        elif self._front >= 0:
            self._front_end = offset

    def _close(self, offset: int) -> None:
        top = self._open[-1]
        if top.is_leaf:
            self._open.pop()
            self._list_leaf(top, offset)
        else:
            self._list_level(top)
            self._end_front()
            self._open.pop()

    def _end_front(self) -> None:
        if self._front >= 0 and self._has_words:
            span = Span(start=self._front, length=self._front_end - self._front)
            self._list_front(span)
        self._front, self._has_words = -1, False

    # What is listed ---------------------------------------------------------------------------

    def _list_leaf(self, leaf: _OpenLevel, end: int) -> None:
        self._nodes.append(
            TocNode(
                kind=leaf.name.lower(),
                label=leaf.title(),
                number=leaf.number(),
                depth=leaf.level,
                is_leaf=True,
                span=Span(start=leaf.offset, length=end - leaf.offset),
                identifier=leaf.attributes.get("identifier", ""),
                status=leaf.status(),
            )
        )

    def _list_level(self, level: _OpenLevel) -> None:
        if level.is_listed:
            return
        level.is_listed = True
        level.label = level.title()
        if self._unit is None:
            self._unit = level
        self._nodes.append(
            TocNode(
                kind="title" if level is self._unit else level.name.lower(),
                label=level.label,
                number=level.number(),
                depth=level.level,
                identifier=level.attributes.get("identifier", ""),
                published_at=self._published_at() if level is self._unit else None,
            )
        )
        early, self._early = self._early, []
        for span in (*early, *level.footnotes):
            self._list_front(span)

    def _list_front(self, span: Span) -> None:
        under = self._open[-1] if self._open else self._unit
        if under is None:
            self._early.append(span)
            return
        identifier = "" if under.has_front else under.attributes.get("identifier", "")
        under.has_front = True
        self._nodes.append(
            TocNode(
                kind=FRONT,
                label=under.label,
                depth=under.level + 1,
                is_leaf=True,
                span=span,
                identifier=identifier,
            )
        )

    def _published_at(self) -> str | None:
        return self.meta.get("created", "")[:10] or None


def read_outline(stream: IO[bytes], outline: UscOutline) -> Iterator[TocNode]:
    """The nodes of a file, each as soon as it is complete."""
    for _ in portions(stream, outline):
        yield from outline.take()
    outline.finish()


def check_root(name: str, attributes: Mapping[str, str]) -> None:
    """Raise `WrongContentError` unless a file begins as a title or a section of the Code does."""
    if name.lower() == "html":
        raise WrongContentError("an HTML page instead of XML: the file may have moved")
    is_supported = name == "uscDoc" or name in LEAVES
    if not is_supported or not any(space in attributes.values() for space in NAMESPACES):
        raise WrongContentError(f"the root is <{name}>, and not a title of the Code in USLM")


CURRENT: Final = "download.shtml"
RELEASE_POINT: Final = re.compile(r"(\d+)-(\d+(?:not\d+)*(?:u\d+)?)")
"""`119-36`; `119-102not101` is without a law that is not classified yet, `118-22u1` an update."""

_LINK: Final = re.compile(
    r"""href\s*=\s*["']([^"']*?xml_usc(\w+)@([\w-]+)\.zip)["']""", re.IGNORECASE
)
# The one title that Congress has left free is linked as well, and leads to an apology.
_RESERVED: Final = re.compile(r"Title\s+(\d+)[^<>\d]{0,40}\breserved\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class TitleFile:
    """The archive of one title at one release point."""

    title: str
    release_point: str
    page: str
    """The XML in it, as a path below the publisher's address."""


def past_page(version: str) -> str | None:
    """The page that lists the files of a release point of the past; None for other stamps."""
    match = RELEASE_POINT.fullmatch(version)
    if match is None:
        return None
    return f"releasepoints/us/pl/{match[1]}/{match[2]}/usc-rp@{version}.htm"


def linked_files(html: str, page: str, base: str) -> list[TitleFile]:
    """The titles whose XML a page links to, each once, in the order of the Code."""
    reserved = {match[1] for match in _RESERVED.finditer(html)}
    files: dict[tuple[str, str], TitleFile] = {}
    for href, printed, version in _LINK.findall(html):
        title, address = title_number(printed), urljoin(base + page, href)
        if title and title not in reserved and address.startswith(base):
            member = f"usc{printed}.xml" if printed.isdigit() else "*.xml"
            match = TitleFile(
                title=title, release_point=version, page=f"{address[len(base) :]}!{member}"
            )
            files.setdefault((version, title), match)
    return sorted(files.values(), key=lambda file: natural_order(file.title))


def newest(files: list[TitleFile]) -> str:
    """The release point of the latest law among files; empty if there are none."""
    stamps = {file.release_point for file in files}
    return max(stamps, key=natural_order, default="")


_EXPECTED: Final = (
    "expected titles of the United States Code in USLM (usc42.xml, or xml_usc42@119-36.zip as "
    "downloaded; unpack xml_uscAll), or folders of single sections (42/1396a.xml)"
)
_TITLE_FILE: Final = re.compile(r"(?:xml_)?usc(\d+[a-z]?)(?:@[\w-]+)?\.(?:xml|zip)", re.IGNORECASE)
_SECTION_FILE: Final = re.compile(r"(\d[^\W_]*(?:-[^\W_]+)*)(?:_(\d+))?\.xml", re.IGNORECASE)
"""`300aa-34.xml`; mirrors save the second section of the same number as `3598_2.xml`."""
_IN_IDENTIFIER: Final = re.compile(r"/us/usc/t(\d+[a-z]?)(?=/|$)", re.IGNORECASE)
_TEXT: Final = frozenset({"main", "appendix"})


@dataclass(frozen=True, kw_only=True, slots=True)
class UscTitle:
    """A title that was found."""

    title: str
    page: str
    release_point: str = ""
    sections: tuple[str, ...] = ()
    """The files of its sections, if it has one for each; the page is the first of them."""


class HeadHandler:
    """A listener for what a file says of itself before its text begins."""

    def __init__(self) -> None:
        self.root = ""
        self.identifier = ""
        self.meta: dict[str, str] = {}
        self.is_complete = False
        self._text: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """The root, or an element of the metadata."""
        del offset
        self._text.clear()
        if not self.root:
            check_root(name, attributes)
            self.root, self.identifier = name, attributes.get("identifier", "")
        self.is_complete = self.is_complete or self.root in LEAVES or name in _TEXT

    def end(self, name: str, offset: int) -> None:
        """An element of the metadata, or all of it."""
        del offset
        self.meta.setdefault(name, "".join(self._text).strip())
        self.is_complete = self.is_complete or name == "meta"

    def text(self, data: str) -> None:
        """Kept until the element ends."""
        self._text.append(data)


def read_head(page: Page) -> HeadHandler:
    """The kind of a file, from its first bytes; raises `ParseError` if it is not of the Code."""
    head = HeadHandler()
    with page.open() as stream:
        for _ in portions(stream, head):
            if head.is_complete:
                break
    return head


async def units_in(origin: Origin, files: Sequence[str]) -> list[UscTitle]:
    """The titles that files hold, in the order of the Code; at least one, and none twice."""
    units: dict[str, UscTitle] = {}
    for unit in await _units(origin, files):
        other = units.setdefault(unit.title, unit)
        # A downloaded archive may also be unpacked in the same folder.
        if other is not unit and "!" not in unit.page:
            raise UsageError(
                f"title {unit.title} is in {other.page} and again in {unit.page}; give a "
                "folder that holds one edition only"
            )
    if not units:
        raise WrongContentError(f"nothing here is part of the Code: {_EXPECTED}")
    return sorted(units.values(), key=lambda unit: natural_order(unit.title))


async def _units(origin: Origin, files: Sequence[str]) -> list[UscTitle]:
    """Files of titles first, then folders of sections, then archives."""
    titles: list[UscTitle] = []
    folders: dict[str, UscTitle] = {}
    for page in _candidates(files):
        folder = dirname(page)
        if folder in folders and _SECTION_FILE.fullmatch(basename(page)):
            continue
        if (unit := await _looked_at(origin, page)) is None:
            continue
        if unit.sections:
            folders[folder] = unit
        else:
            titles.append(unit)
    siblings: dict[str, list[str]] = {folder: [] for folder in folders}
    for name in files:
        if (folder := dirname(name)) in siblings:
            siblings[folder].append(name)
    of_sections = [_with_sections(unit, siblings[folder]) for folder, unit in folders.items()]
    return sorted([*titles, *of_sections], key=lambda unit: "!" in unit.page)


def _with_sections(unit: UscTitle, siblings: Sequence[str]) -> UscTitle:
    pages = sorted(filter(section_in, siblings), key=section_in) or [unit.page]
    return replace(unit, page=pages[0], sections=tuple(pages))


def section_in(name: str) -> tuple[object, ...]:
    """The sort key of a file of one section; empty for other files."""
    match = _SECTION_FILE.fullmatch(basename(name))
    return (natural_order(match[1]), int(match[2] or 1)) if match else ()


def _candidates(files: Sequence[str]) -> list[str]:
    """The pages that may be XML; of a single file, whatever its name is."""
    if len(files) == 1 and not files[0].lower().endswith(".zip"):
        return list(files)
    archives = [f"{name}!*.xml" for name in files if name.lower().endswith(".zip")]
    return [name for name in files if name.lower().endswith(".xml")] + archives


async def _looked_at(origin: Origin, page: str) -> UscTitle | None:
    name = basename(page.partition("!")[0])
    match = _TITLE_FILE.fullmatch(name)
    number = title_number(match[1]) if match else ""
    try:
        head = read_head(await origin.read(page))
    except (NotFoundError, ParseError):
        # A file with the name of a title is one that is damaged; the walk will say how.
        return UscTitle(title=number, page=page) if number else None
    if head.root in LEAVES:
        title = _title_in(head.identifier) or title_number(basename(dirname(page)))
        return UscTitle(title=title, page=page, sections=(page,)) if title else None
    stated = title_number(head.meta.get("docNumber", "")) or _title_in(head.identifier)
    title = stated or number
    return (
        UscTitle(title=title, page=page, release_point=_release_point(head, name))
        if title
        else None
    )


def _title_in(identifier: str) -> str:
    match = _IN_IDENTIFIER.match(identifier)
    return title_number(match[1]) if match else ""


def _release_point(head: HeadHandler, name: str) -> str:
    """The release point, which USLM 2 leaves out of the metadata."""
    for stated in (
        head.meta.get("docPublicationName", ""),
        head.meta.get("docReleasePoint", ""),
        name,
    ):
        if match := RELEASE_POINT.search(stated.rpartition("@")[2]):
            return match[0]
    return ""
