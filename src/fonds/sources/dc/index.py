"""The index of a title, read while it streams by."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from fonds.errors import MalformedError, WrongContentError
from fonds.sources.jurisdiction import FRONT, Span, TocNode

TITLE: Final = "title"
SECTION: Final = "section"

_SUBHEADING: Final = re.compile(
    r"([A-Z][a-z]+) ([IVXLC]+(?:-?[A-Za-z]{1,3})?|[A-Z](?:-[A-Za-z]{1,4})?|\d+[A-Z]?)"
    r"(?:\s*[.:—–]|$)"
)
# An exclamation mark would lead into an archive.
_NO_PATH: Final = re.compile(r"[?#!\\\0]|^/|^[A-Za-z][\w+.-]*:")
_NAMES: Final = frozenset({"prefix", "num", "heading"})
_UNREAD: Final = frozenset({"include", "toc"})
_STATUSES: Final = frozenset({"expired", "omitted", "repealed", "reserved", "transferred"})


def plain(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def plain_number(text: str) -> str:
    """A number without sign, white space and full stop."""
    return plain(text).strip("§. ")


def path_of(href: str | None, page: str) -> str:
    """The path of a page that another one includes; never one outside of the publisher's files."""
    plain_href = unquote(href or "")
    if not plain_href or _NO_PATH.search(plain_href):
        raise MalformedError(f"includes {href!r}, which is no path of a file")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), plain_href))
    if path.startswith("../"):
        raise MalformedError(f"includes {href!r}, which leads out of the publisher's files")
    return path


@dataclass(slots=True)
class _Level:
    """A container that is open."""

    depth: int
    names: dict[str, str] = field(default_factory=dict)
    is_listed: bool = False
    """Nothing more is going to be said of itself."""
    subheadings: list[str] = field(default_factory=list)
    """The kinds of those that are open in it, the outermost first."""
    is_bare: bool = False
    """Nothing has followed its last subheading yet."""

    @property
    def depth_below(self) -> int:
        return self.depth + len(self.subheadings) + 1

    @property
    def label(self) -> str:
        numbered = " ".join(filter(None, (self.names.get("prefix"), self.number)))
        return ". ".join(filter(None, (numbered, self.names.get("heading")))) or "container"

    @property
    def number(self) -> str:
        return plain_number(self.names.get("num", ""))

    @property
    def kind(self) -> str:
        return self.names.get("prefix", "").lower() or "container"


class TitleIndex:
    """Hears an index and keeps the nodes it lists until they are taken."""

    def __init__(self, page: str, number: str) -> None:
        self._page = page
        self._number = number
        self._nodes: list[TocNode] = []
        self._levels: list[_Level] = []
        self._element = ""
        """What is being read to its end: a name, a section, a text."""
        self._inside = 0
        self._start = 0
        self._pieces: list[str] = []
        self._names: dict[str, str] = {}
        """What a section that stands in the index itself is called."""
        self._front: tuple[int, int] | None = None

    def take(self) -> list[TocNode]:
        """The nodes heard of since the last time."""
        nodes, self._nodes = self._nodes, []
        return nodes

    # What is heard ------------------------------------------------------------------------

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """Enter a level, list what is included, or begin to read an element to its end."""
        if self._inside:
            if self._inside == 1 and self._element == SECTION:
                self._pieces.clear()
            self._inside += 1
        elif name == "container":
            self._levels.append(_Level(self._depth_below() if self._levels else 0))
        elif not self._levels:
            raise WrongContentError(f"the root element is <{name[:80]}>: this is no title's index")
        else:
            if name == "include":
                self._include(attributes.get("href"))
            self._element, self._inside, self._start = name, 1, offset
            self._pieces.clear()
            self._names.clear()

    def end(self, name: str, offset: int) -> None:
        """Leave a level, or place what an element said."""
        if not self._inside:
            self._list_levels()
            self._levels.pop()
            return
        self._inside -= 1
        if not self._inside:
            self._place(name, plain("".join(self._pieces)), offset)
        elif self._inside == 1 and self._element == SECTION:
            self._names.setdefault(name, plain("".join(self._pieces)))

    def text(self, data: str) -> None:
        """Keep what an element says; between elements nothing is said."""
        if self._inside:
            self._pieces.append(data)
        elif not data.isspace():
            raise MalformedError(f"{data.strip()[:40]!r} stands between the elements of an index")

    # Levels -------------------------------------------------------------------------------

    def _depth_below(self) -> int:
        """How deep the next thing stands, once all that is above or before it is listed."""
        self._list_levels()
        level = self._levels[-1]
        level.is_bare = False
        return level.depth_below

    def _list_levels(self) -> None:
        level = self._levels[-1]
        if not level.is_listed:
            level.is_listed = True
            self._list_container(level)
        if self._front:
            start, end = self._front
            self._front = None
            self._nodes.append(
                TocNode(
                    kind=FRONT,
                    label=level.label,
                    depth=level.depth_below,
                    is_leaf=True,
                    span=Span(start=start, length=end - start),
                )
            )

    def _list_container(self, level: _Level) -> None:
        if level.depth == 0 and (level.kind, level.number) != (TITLE, self._number):
            raise WrongContentError(
                f"this is the index of {level.label[:80]!r}, not of Title {self._number}"
            )
        self._nodes.append(
            TocNode(kind=level.kind, number=level.number, label=level.label, depth=level.depth)
        )

    def _subheading(self, text: str) -> None:
        match = _SUBHEADING.match(text)
        kind, number = (match[1].lower(), match[2]) if match else ("subheading", "")
        level = self._levels[-1]
        was_bare = level.is_bare
        self._list_levels()
        if kind in level.subheadings:
            del level.subheadings[level.subheadings.index(kind) :]
        elif level.subheadings and not was_bare:
            level.subheadings.pop()
        node = TocNode(kind=kind, number=number, label=text, depth=level.depth_below)
        self._nodes.append(node)
        level.subheadings.append(kind)
        level.is_bare = True

    # What stands in them ------------------------------------------------------------------

    def _include(self, href: str | None) -> None:
        page = path_of(href, self._page)
        number, dot, ending = page.rpartition("/")[2].rpartition(".")
        if not dot or ending != "xml" or number == "index":
            raise MalformedError(f"{self._levels[-1].label} includes {page}, which is no section")
        self._nodes.append(_section(number.replace("~", ":"), self._depth_below(), pages=(page,)))

    def _whole_section(self, end: int) -> None:
        # The schema allows it; the Council has never done it.
        number = plain_number(self._names.get("num", ""))
        if not number:
            raise MalformedError(f"{self._levels[-1].label} holds a section without a number")
        reason = self._names.get("reason", "").lower()
        self._nodes.append(
            _section(
                number,
                self._depth_below(),
                heading=self._names.get("heading", ""),
                status=reason if reason in _STATUSES else "",
                span=Span(start=self._start, length=end - self._start),
            )
        )

    def _place(self, name: str, text: str, end: int) -> None:
        level = self._levels[-1]
        if name in _NAMES and not level.is_listed and name not in level.names:
            level.names[name] = text
        elif name == "subheading":
            self._subheading(text)
        elif name == SECTION:
            self._whole_section(end)
        elif name not in _UNREAD and text:
            start = self._front[0] if self._front else self._start
            self._front = start, end
            level.is_bare = False


def _section(number: str, depth: int, *, heading: str = "", **known: Any) -> TocNode:
    return TocNode(
        kind=SECTION,
        number=number,
        label=". ".join(filter(None, (f"§ {number}", heading))),
        depth=depth,
        is_leaf=True,
        identifier=f"/us/dc/council/code/sections/{number}",
        **known,
    )
