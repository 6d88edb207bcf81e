"""The nodes of a title, heard while its XML is read once.

By far the most of a title is inside its sections, where nothing is looked at but their numbers and
headings; the listener is deaf there and only counts how deep it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.uslm.vocabulary import CONTAINERS, NAMESPACES
from fonds.sources.families.xml_spans import portions
from fonds.sources.jurisdiction import FRONT, Span, TocNode
from fonds.sources.usc.numbers import clean_number, plan_number

LEAVES: Final = frozenset({"section", "courtRule"})
_LEVELS: Final = CONTAINERS | {"reorganizationPlan"}
_WRAPPERS: Final = frozenset({"uscDoc", "main"})
_HEADER: Final = frozenset({"num", "heading"})
_FOOTNOTES: Final = frozenset({"note", "footnote"})
_STATUSES: Final = frozenset(
    ["repealed", "omitted", "transferred", "renumbered", "reserved", "vacant", "abrogated"]
)


class _Open:
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
        """How deep the element stands in the file."""
        self.level = level
        """How deep its node stands in the tree."""
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


class Outline:
    """A listener that collects nodes in reading order; `take` gives those heard so far."""

    def __init__(self) -> None:
        self.meta: dict[str, str] = {}
        """What the file says of itself, by the names of its elements."""
        self._nodes: list[TocNode] = []
        self._open: list[_Open] = []
        self._nesting = 0
        self._deaf = 0
        """How deep the element stands that is not looked into; 0 for none."""
        self._header = 0
        """How deep the `num` or `heading` stands that is being read."""
        self._in_meta = False
        self._listens = True
        self._heard: list[str] | None = None
        self._footnote = -1
        self._front = -1
        self._front_end = -1
        self._has_words = False
        self._early: list[Span] = []
        self._unit: _Open | None = None

    def finish(self) -> None:
        """Raise for text that could be placed nowhere."""
        if self._early:
            raise MalformedError("text stands outside of any title")

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
            self._heard = []
        elif name in _HEADER and self._open and not self._open[-1].is_listed:
            self._start_header(name, attributes)
        elif self._open and self._open[-1].is_leaf:
            self._deaf = self._open[-1].nesting
            self._listens = False
        else:
            self._start_beside(name, attributes, offset)

    def end(self, name: str, offset: int) -> None:
        """An element ends."""
        nesting = self._nesting
        self._nesting = nesting - 1
        if self._deaf:
            if nesting == self._deaf:
                self._deaf = 0
                self._hear_again(offset)
        elif self._header:
            if nesting == self._header:
                self._header = 0
                self._heard = None
        elif self._in_meta:
            self.meta.setdefault(name, "".join(self._heard or ()).strip())
            self._heard = None
            self._in_meta = name != "meta"
        elif self._open and self._open[-1].nesting == nesting:
            self._close(offset)
        else:
            self._end_front()

    def text(self, data: str) -> None:
        """Some text; hardly any of it is listened to."""
        if not self._listens:
            return
        if self._heard is not None:
            self._heard.append(data)
        elif not data.isspace():
            if not self._deaf:
                where = self._open[-1].title() if self._open else "the root"
                raise MalformedError(f"text stands outside any element of {where}: {data[:60]!r}")
            self._has_words = any(map(str.isalnum, data))
            self._listens = not self._has_words

    # What it means ----------------------------------------------------------------------------

    def _start_header(self, name: str, attributes: Mapping[str, str]) -> None:
        top = self._open[-1]
        self._header = self._nesting
        self._heard = top.num if name == "num" else top.heading
        if name == "num":
            first, last = attributes.get("startValue"), attributes.get("endValue")
            top.value = f"{first} to {last}" if first and last else attributes.get("value", "")

    def _start_beside(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """What begins outside of sections and headings."""
        if self._nesting == 1:
            check_root(name, attributes)
        if self._open:
            self._list_level(self._open[-1])
        if name in LEAVES or name in _LEVELS:
            self._end_front()
            level = self._open[-1].level + 1 if self._open else self._level_of_first(name)
            entered = _Open(name, attributes, nesting=self._nesting, level=level, offset=offset)
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

    def _hear_again(self, offset: int) -> None:
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

    def _list_leaf(self, leaf: _Open, end: int) -> None:
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

    def _list_level(self, level: _Open) -> None:
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


def read_outline(stream: IO[bytes], outline: Outline) -> Iterator[TocNode]:
    """The nodes of a file, each as soon as it is complete."""
    for _ in portions(stream, outline):
        yield from outline.take()
    outline.finish()


def check_root(name: str, attributes: Mapping[str, str]) -> None:
    """Raise `WrongContentError` unless a file begins as a title or a section of the Code does."""
    if name.lower() == "html":
        raise WrongContentError("an HTML page instead of XML: the file may have moved")
    known = name == "uscDoc" or name in LEAVES
    if not known or not any(space in attributes.values() for space in NAMESPACES):
        raise WrongContentError(f"the root is <{name}>, and not a title of the Code in USLM")
