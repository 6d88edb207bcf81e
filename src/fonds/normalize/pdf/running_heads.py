"""Running heads and feet: taken out of the text, and read for the printed page number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fonds.normalize.pdf.forms import FILLED
from fonds.normalize.pdf.page import PdfLine

_MARGIN: Final = 0.13
_FAR_MARGIN: Final = 0.25
_OUTERMOST: Final = 3
_MAX_NUMBER_LENGTH: Final = 12
_REPEATED: Final = 3
_MAX_HEAD_LENGTH: Final = 160
_LONG_FOOT: Final = 600
_SHORT_HEAD: Final = 80
_FEW_INSIDE: Final = 4
_MAX_SIDE_LINES: Final = 8
_DIGITS: Final = re.compile(r"\d+")
_ENDS: Final = re.compile(r"^[ivxlc]{1,8}(?=\s)|(?<=\s)[ivxlc]{1,8}$")
_ROMAN: Final = re.compile(r"[ivxlc]{1,8}$", re.IGNORECASE)
_BARE: Final = re.compile(
    r"(?:page|seite|p\.|s\.)?\s*[-–—•|\[(]*\s*(\d{1,5}|[ivxlc]{1,8})\s*[-–—•|\])]*"
    r"(?:\s*(?:of|/|von|de)\s*\d{1,5})?",
    re.IGNORECASE,
)
_PAGE_NUMBER: Final = re.compile(r"(?<=page )\d{1,5}", re.IGNORECASE)
_EXPLICIT: Final = re.compile(r"page\s+\d{1,5}\s+of\s+\d{1,5}", re.IGNORECASE)
_PART: Final = re.compile(
    r"(?:part|section|article|chapter|title|schedule|annex|appendix)\s+(?:\d|[IVXLC]+\b|[A-Z]\b)",
    re.IGNORECASE,
)
_ROMAN_DIGITS: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True)
class Stripped:
    """A page without what is printed on it for the sake of the page alone."""

    lines: list[PdfLine]
    number: str | None
    """As the page prints it."""
    before: tuple[str, ...] = ()
    """The heads, feet and marks drawn before the text."""
    after: tuple[str, ...] = ()
    """Those drawn among and behind it."""
    left_out: tuple[tuple[str, str], ...] = ()
    """The text of each of them and its kind."""


def without_running_heads(
    pages: Sequence[list[PdfLine]], heights: Sequence[float]
) -> list[Stripped]:
    """The pages' lines without heads and feet, and the page number each one prints."""
    outer = [_margin(lines, height) for lines, height in zip(pages, heights, strict=True)]
    sides = [_sides(lines, height) for lines, height in zip(pages, heights, strict=True)]
    repeated = _repeated(outer) - _inner(pages, outer)
    everywhere = _everywhere(sides)
    titles = _first_titles(pages, outer)
    running = [
        {id(line) for line in margin if _shape(line) in repeated} - titles for margin in outer
    ]
    deeper = [
        _deeper(one, titles.union(two), everywhere) for one, two in zip(sides, running, strict=True)
    ]
    margins = [[*one, *more] for one, more in zip(outer, deeper, strict=True)]
    shifts = _shifts(margins, repeated)
    return [
        _stripped(
            index, lines, margins[index], running[index].union(map(id, deeper[index])), shifts
        )
        for index, lines in enumerate(pages)
    ]


def _everywhere(sides: Iterable[Sequence[Sequence[PdfLine]]]) -> frozenset[str]:
    """Texts in the margins of most pages, to the letter but for the number of the page."""
    pages = [{_numberless(line) for side in two for line in side} for two in sides]
    counts = Counter(text for texts in pages for text in texts)
    enough = max(_REPEATED, len(pages) / 2)
    return frozenset(text for text, count in counts.items() if count > enough)


def _numberless(line: PdfLine) -> str:
    return _PAGE_NUMBER.sub("#", line.text)


def _deeper(
    sides: Iterable[Sequence[PdfLine]], others: Container[int], everywhere: Container[str]
) -> list[PdfLine]:
    """Lines of a long head or foot, behind others of it, and page numbers that say so."""
    deeper: list[PdfLine] = []
    for side in sides:
        is_outer = True
        for number, line in enumerate(side):
            is_everywhere = _numberless(line) in everywhere
            is_outer &= number < _OUTERMOST or is_everywhere
            is_number = _EXPLICIT.fullmatch(line.text) is not None
            if id(line) not in others and (is_number or (is_outer and is_everywhere)):
                deeper.append(line)
    return deeper


def _first_titles(
    pages: Sequence[Sequence[PdfLine]], margins: Sequence[Sequence[PdfLine]]
) -> frozenset[int]:
    """Heads that are the title of a part where they are printed for the first time."""
    titles: set[int] = set()
    before: set[str] = set()
    for lines, margin in zip(pages, margins, strict=True):
        texts = Counter(line.text for line in lines)
        middle = max((line.y for line in lines), default=0.0) / 2
        titles.update(
            id(line)
            for line in margin
            if line.bold
            and line.y > middle
            and _PART.match(line.text)
            and line.text not in before
            and texts[line.text] == 1
        )
        before = set(texts)
    return frozenset(titles)


def _stripped(
    index: int,
    lines: Sequence[PdfLine],
    margin: Sequence[PdfLine],
    running: Iterable[int],
    shifts: frozenset[int],
) -> Stripped:
    removed = set(running)
    numbers = [
        (line, number)
        for line in margin
        for number in _numbers(line, bare=id(line) not in removed)
        if _fits(number, index, shifts)
    ]
    removed |= {id(line) for line, number in numbers if _BARE.fullmatch(line.text)}
    # The head of a short chapter stays for a page or two, but it has the page's number in it.
    heights = [line.y for line in lines]
    for line in margin:
        if line.y in (max(heights), min(heights)) and len(line.text) <= _SHORT_HEAD:
            page_numbers = [n for n in _numbers(line, bare=False) if _fits(n, index, shifts)]
            numbers += [(line, number) for number in page_numbers]
            removed |= {id(line) for _ in page_numbers}
    # Most are drawn before or behind all text; what is drawn among it goes to the nearer end.
    rest = [at for at, line in enumerate(lines) if id(line) not in removed]
    middle = rest[len(rest) // 2] if rest else len(lines)
    return Stripped(
        lines=[line for line in lines if id(line) not in removed],
        number=next((number for line, number in numbers if id(line) in removed), None),
        before=tuple(line.text for line in lines[:middle] if id(line) in removed),
        after=tuple(line.text for line in lines[middle:] if id(line) in removed),
        left_out=tuple((line.text, _kind(line, lines)) for line in lines if id(line) in removed),
    )


def _kind(line: PdfLine, lines: Sequence[PdfLine]) -> str:
    if _BARE.fullmatch(line.text):
        return "page number"
    above = sum(other.y > line.y for other in lines)
    return "running head" if 2 * above < len(lines) else "running foot"


def _fits(number: str, index: int, shifts: frozenset[int]) -> bool:
    value = _value(number)
    return value is not None and value - index in shifts


def _margin(lines: Sequence[PdfLine], height: float) -> list[PdfLine]:
    """The outermost lines at the head and the foot of a page."""
    lines = [line for line in lines if not FILLED.search(line.text)]
    top, bottom = _sides(lines, height)
    # A page number may hang right below a text that leaves a wide margin.
    ends = sorted(lines, key=lambda x: x.y)
    numbers = [
        line
        for line in (*ends[:1], *ends[1:][-1:])
        if _BARE.fullmatch(line.text) and not _FAR_MARGIN < line.y / height < 1 - _FAR_MARGIN
    ]
    outer = top[:_OUTERMOST] + bottom[:_OUTERMOST]
    return outer + [line for line in numbers if line not in outer]


def _sides(lines: Iterable[PdfLine], height: float) -> tuple[list[PdfLine], list[PdfLine]]:
    """The lines at the head and at the foot of a page, from its edge."""
    # What people filled in is theirs, also where it is the same on all pages.
    lines = [line for line in lines if not FILLED.search(line.text) and not line.table]
    top = sorted((x for x in lines if x.y > (1 - _MARGIN) * height), key=lambda x: -x.y)
    bottom = sorted((x for x in lines if x.y < _MARGIN * height), key=lambda x: x.y)
    return top[:_MAX_SIDE_LINES], bottom[:_MAX_SIDE_LINES]


def _shape(line: PdfLine) -> tuple[str, int]:
    """Properties that are the same on all pages: the words, and their rough position."""
    return _ENDS.sub("#", _DIGITS.sub("#", line.text)), round(line.y / 8)


def _repeated(margins: Sequence[Sequence[PdfLine]]) -> frozenset[tuple[str, int]]:
    shapes = Counter(shape for margin in margins for shape in {_shape(line) for line in margin})
    return frozenset(
        shape
        for shape, count in shapes.items()
        if len(shape[0]) <= _MAX_HEAD_LENGTH and (count >= _REPEATED and 6 * count >= len(margins))
    ) | frozenset(
        shape
        for shape, count in shapes.items()
        # Heads that name the chapter stay for some pages only.
        if len(shape[0]) <= (_LONG_FOOT if 2 * count > len(margins) else _MAX_HEAD_LENGTH)
        and count > _REPEATED
    )


def _inner(
    pages: Sequence[Sequence[PdfLine]], margins: Sequence[Sequence[PdfLine]]
) -> frozenset[tuple[str, int]]:
    """Shapes of the margins whose words are inside pages too: a form's, not a head's.

    A title or a list of contents may have the words of a head once or twice.
    """
    outer = [{id(line) for line in margin} for margin in margins]
    inside = Counter(
        text
        for lines, ids in zip(pages, outer, strict=True)
        for text in {_DIGITS.sub("#", line.text) for line in lines if id(line) not in ids}
    )
    outside = Counter(shape[0] for margin in margins for shape in {_shape(line) for line in margin})
    return frozenset(
        shape
        for shape in {_shape(line) for margin in margins for line in margin}
        if _FEW_INSIDE * inside[shape[0]] >= outside[shape[0]]
        and len(shape[0]) > _MAX_NUMBER_LENGTH
    )


def _numbers(line: PdfLine, *, bare: bool) -> list[str]:
    """Numbers that may be the page's: alone on the line, or at either end of a running one."""
    if match := _BARE.fullmatch(line.text):
        return [match[1]]
    if bare:
        return []
    words = line.text.split()
    ends = {word.strip(".-–—|[]()") for word in (words[0], words[-1])} if words else set()
    inside = re.findall(r"page\s+(\d{1,5})", line.text, re.IGNORECASE)
    return inside + [word for word in sorted(ends) if word.isdecimal() and len(word) < 6]  # noqa: PLR2004 — five digits are the longest page number


def _value(number: str) -> int | None:
    if number.isdecimal():
        return int(number)
    if not _ROMAN.match(number):
        return None
    digits = [_ROMAN_DIGITS[letter] for letter in number.lower()]
    following = [*digits[1:], 0]
    return sum(-d if d < after else d for d, after in zip(digits, following, strict=True))


def _shifts(
    margins: Sequence[Sequence[PdfLine]], repeated: frozenset[tuple[str, int]]
) -> frozenset[int]:
    """How far the printed numbers are from counting pages: a file may leave blank pages out."""
    shifts: Counter[int] = Counter()
    for index, margin in enumerate(margins):
        values = {
            value - index
            for line in margin
            for number in _numbers(line, bare=_shape(line) not in repeated)
            if (value := _value(number)) is not None
        }
        shifts.update(values)
    if len(margins) < _REPEATED:
        return frozenset({1} & shifts.keys())
    enough = max(2, min(3, len(margins) // 3))
    return frozenset(shift for shift, count in shifts.items() if count >= enough)


def page_labels(printed: Sequence[str | None], declared: Sequence[str | None]) -> list[str | None]:
    """The name of each page: the number it prints, else the label the file gives it.

    Pages without either that are between numbered ones are counted with them. Where a file names
    none of its pages, they are numbered from 1.
    """
    counted = [str(number) for number in range(1, len(printed) + 1)]
    # Many writers label every page with its number in the file, whatever is printed on it.
    labels = [None] * len(counted) if list(declared) == counted else declared
    names = [number or label or None for number, label in zip(printed, labels, strict=True)]
    if not any(names):
        return list(counted)
    positions = [at for at, name in enumerate(names) if name]
    for start, end in pairwise(positions):
        first, last = names[start] or "", names[end] or ""
        if first.isdecimal() and last.isdecimal() and int(last) - int(first) == end - start:
            names[start:end] = [str(int(first) + step) for step in range(end - start)]
    return names
