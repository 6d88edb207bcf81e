"""Properties that the styles of a Word file give to paragraphs: headings, numbers, emphasis.

The numbers that Word writes before paragraphs are computed: the file does not contain them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fonds.normalize.docx.package import W

_HEADING: Final = re.compile(r"heading ([1-9])", re.IGNORECASE)
_NOT_A_HEADING: Final = 9
_MAX_HEADING_LEVEL: Final = 6
_MAX_CHAIN_LENGTH: Final = 20
_OFF: Final = frozenset({"0", "false", "off", "none"})


def value(element: Any, *path: str) -> str | None:
    """The `w:val` of a descendant; each step goes to the first child of that name."""
    for name in path:
        element = element.find(f"{W}{name}") if element is not None else None
    return None if element is None else str(element.get(f"{W}val", ""))


def is_on(properties: Any, name: str) -> bool:
    """Whether a property that is on or off is there and on."""
    flag = value(properties, name)
    return flag is not None and flag.lower() not in _OFF


def number(text: str | None) -> int | None:
    """A whole number of at most six digits."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 6 else None  # noqa: PLR2004 — no list or table of a document comes near a million


@dataclass(frozen=True, slots=True)
class Numbered:
    """To which list a paragraph belongs, and how deep in it."""

    list_id: str
    level: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _ResolvedStyle:
    """A style together with those it is based on."""

    heading: int | None
    list_id: str | None
    level: int | None
    emphasis: tuple[str, ...]


class Styles:
    """The styles of one file."""

    def __init__(self, root: Any) -> None:
        self._elements: dict[str, Any] = {}
        for style in () if root is None else root.iterchildren(f"{W}style"):
            self._elements.setdefault(style.get(f"{W}styleId", ""), style)
        self._resolved: dict[str, _ResolvedStyle] = {}

    def heading_level(self, paragraph: Any) -> int | None:
        """1 to 6 for a heading, by the paragraph's own word or that of its style."""
        own = value(paragraph, "pPr", "outlineLvl")
        if own is not None:
            return _level(own)
        return self._style(value(paragraph, "pPr", "pStyle")).heading

    def numbered(self, paragraph: Any) -> Numbered | None:
        """The list a paragraph belongs to, by its own word or that of its style."""
        own = paragraph.find(f"{W}pPr/{W}numPr")
        style = self._style(value(paragraph, "pPr", "pStyle"))
        list_id, level = value(own, "numId"), number(value(own, "ilvl"))
        if list_id is None:
            list_id = style.list_id
            level = style.level if level is None else level
        # Number 0 takes a paragraph out of the list of its style.
        return None if list_id in {None, "0"} else Numbered(str(list_id), level)

    def list_of(self, style_id: str) -> str | None:
        """The list that a style of lists refers to."""
        return self._style(style_id).list_id

    def emphasis(self, run: Any) -> tuple[str, ...]:
        """Which of `b` and `i` the style of a run switches on."""
        return self._style(value(run, "rPr", "rStyle")).emphasis

    def _style(self, style_id: str | None) -> _ResolvedStyle:
        style_id = style_id or ""
        if style_id not in self._resolved:
            self._resolved[style_id] = self._read(style_id)
        return self._resolved[style_id]

    def _read(self, style_id: str) -> _ResolvedStyle:
        chain = list(self._chain(style_id))
        listed = [one for one in chain if value(one, "pPr", "numPr", "numId") is not None]
        levels = [number(value(one, "pPr", "numPr", "ilvl")) for one in chain]
        runs = [one.find(f"{W}rPr") for one in chain]
        return _ResolvedStyle(
            heading=_heading(chain) if chain else _undefined_heading(style_id),
            list_id=value(listed[0], "pPr", "numPr", "numId") if listed else None,
            level=next((level for level in levels if level is not None), None),
            emphasis=tuple(name for name in ("b", "i") if any(is_on(one, name) for one in runs)),
        )

    def _chain(self, style_id: str) -> Iterator[Any]:
        # Styles of a broken file may be based on themselves.
        for _ in range(_MAX_CHAIN_LENGTH):
            style = self._elements.get(style_id)
            if style is None:
                return
            yield style
            style_id = value(style, "basedOn") or ""


def _heading(chain: list[Any]) -> int | None:
    for style in chain:
        name = value(style, "name") or ""
        if match := _HEADING.fullmatch(name):
            return min(int(match[1]), _MAX_HEADING_LEVEL)
        if name.lower() == "title":
            return 1
        outline = value(style, "pPr", "outlineLvl")
        if outline is not None:
            return _level(outline)
    return None


def _undefined_heading(style_id: str) -> int | None:
    # Files of some programs name styles that they never define.
    match = re.fullmatch(r"Heading([1-9])", style_id)
    return min(int(match[1]), _MAX_HEADING_LEVEL) if match else None


def _level(outline: str) -> int | None:
    level = number(outline)
    return None if level is None or level >= _NOT_A_HEADING else min(level + 1, _MAX_HEADING_LEVEL)


_PLACEHOLDER: Final = re.compile(r"%([1-9])")
_MAX_LIST_LEVEL: Final = 8
_MAX_LETTERS: Final = 30
_MAX_LINKS: Final = 10
_ALPHABET: Final = 26
_MAX_LABEL_LENGTH: Final = 60
_ROMAN: Final = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_TENTHS: Final = (str.maketrans("ivx", "xlc"), str.maketrans("ivx", "cdm"))
_ROMAN_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class _NumberingLevel:
    start: int
    kind: str
    text: str
    restarts: bool
    legal: bool
    """Whether the numbers of all levels are written as 1, 2, 3, whatever their kind."""
    style: str | None


@dataclass(slots=True)
class _List:
    levels: dict[int, _NumberingLevel]
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParagraphLabel:
    """The label before a paragraph."""

    text: str
    """Empty for a bullet."""
    level: int


class ParagraphNumbering:
    """Counts the paragraphs of one document, in their order."""

    def __init__(self, root: Any, styles: Styles) -> None:
        self._styles = styles
        self._abstract: dict[str, Any] = {}
        self._lists: dict[str, _List] = {}
        self._instances: dict[str, Any] = {}
        self._started: set[str] = set()
        if root is not None:
            for one in root.iterchildren(f"{W}abstractNum"):
                self._abstract.setdefault(one.get(f"{W}abstractNumId", ""), one)
            for one in root.iterchildren(f"{W}num"):
                self._instances.setdefault(one.get(f"{W}numId", ""), one)

    def label(self, paragraph: Any) -> ParagraphLabel | None:
        """Count a paragraph; None for one that belongs to no list."""
        numbered = self._styles.numbered(paragraph)
        instance = self._instances.get(numbered.list_id) if numbered else None
        if numbered is None or instance is None:
            return None
        counted = self._list(instance)
        if counted is None:
            return None
        depth = _depth(counted, numbered, value(paragraph, "pPr", "pStyle"))
        self._override(numbered.list_id, instance, counted)
        level = counted.levels.get(depth)
        if level is None:
            return None
        _count(counted, depth, level)
        return ParagraphLabel(_text(counted, level), depth)

    def _list(self, instance: Any) -> _List | None:
        """The list an instance counts in: several instances may continue one list."""
        for _ in range(_MAX_LINKS):
            name = value(instance, "abstractNumId") or ""
            abstract = self._abstract.get(name)
            if abstract is None:
                return None
            linked = value(abstract, "numStyleLink")
            if linked is None:
                if name not in self._lists:
                    self._lists[name] = _List(_levels(abstract))
                return self._lists[name]
            instance = self._instances.get(self._styles.list_of(linked) or "")
            if instance is None:
                return None
        return None

    def _override(self, list_id: str, instance: Any, counted: _List) -> None:
        """Apply the changes of an instance at its first use: the numbers at which levels start."""
        if list_id in self._started:
            return
        self._started.add(list_id)
        for one in instance.iterchildren(f"{W}lvlOverride"):
            depth = number(one.get(f"{W}ilvl"))
            start = number(value(one, "startOverride"))
            if depth is None or depth > _MAX_LIST_LEVEL:
                continue
            own = one.find(f"{W}lvl")
            if own is not None:
                counted.levels[depth] = _list_level(own)
            if start is not None:
                counted.counts[depth] = start - 1


def _depth(counted: _List, numbered: Numbered, style_id: str | None) -> int:
    if numbered.level is not None:
        return min(numbered.level, _MAX_LIST_LEVEL)
    # A style names its list, and the list states which of its levels the style is.
    own = (depth for depth, level in counted.levels.items() if style_id and level.style == style_id)
    return next(own, 0)


def _levels(abstract: Any) -> dict[int, _NumberingLevel]:
    levels: dict[int, _NumberingLevel] = {}
    for one in abstract.iterchildren(f"{W}lvl"):
        levels.setdefault(min(number(one.get(f"{W}ilvl")) or 0, _MAX_LIST_LEVEL), _list_level(one))
    return levels


def _list_level(element: Any) -> _NumberingLevel:
    start = number(value(element, "start"))
    return _NumberingLevel(
        start=1 if start is None else start,
        kind=value(element, "numFmt") or "decimal",
        text=(value(element, "lvlText") or "")[:_MAX_LABEL_LENGTH],
        restarts=value(element, "lvlRestart") != "0",
        legal=value(element, "isLgl") is not None,
        style=value(element, "pStyle"),
    )


def _count(counted: _List, depth: int, level: _NumberingLevel) -> None:
    counted.counts[depth] = counted.counts.get(depth, level.start - 1) + 1
    for below in [other for other in counted.counts if other > depth]:
        if below not in counted.levels or counted.levels[below].restarts:
            del counted.counts[below]


def _text(counted: _List, level: _NumberingLevel) -> str:
    if level.kind == "bullet":
        return ""

    def number_at(match: re.Match[str]) -> str:
        other = int(match[1]) - 1
        own = counted.levels.get(other, level)
        kind = "decimal" if level.legal else own.kind
        return _formatted(counted.counts.get(other, own.start), kind)

    return _PLACEHOLDER.sub(number_at, level.text)[:_MAX_LABEL_LENGTH].strip()


def _formatted(count: int, kind: str) -> str:
    text = str(count)
    if kind == "none" or count < 1:
        return "" if kind == "none" else text
    if kind.endswith("Letter"):
        # Behind z, Word goes on with aa, bb, cc.
        times, letter = divmod(count - 1, _ALPHABET)
        text = chr(ord("a") + letter) * (times + 1) if times < _MAX_LETTERS else text
    elif kind.endswith("Roman") and count < _ROMAN_LIMIT:
        text = _roman(count)
    elif kind == "decimalZero":
        text = f"{count:02}"
    return text.upper() if kind.startswith("upper") else text


def _roman(count: int) -> str:
    hundreds, tens, ones = count // 100, count // 10 % 10, count % 10
    to_tens, to_hundreds = _TENTHS
    return _ROMAN[hundreds].translate(to_hundreds) + _ROMAN[tens].translate(to_tens) + _ROMAN[ones]
