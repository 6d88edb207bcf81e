"""The labels that paragraphs of statutes begin with, and what they may count."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

from fonds.chunk.headings import Span

STEP: Final = 100
"""From one value to the next; `1a` and `b-1`, put in later, lie between."""

_NUMERAL: Final = r"\d{1,3}[a-z]{0,2}|[a-z]{1,5}|[A-Z]{1,5}"
_KANJI: Final = "一二三四五六七八九十百"
_IROHA: Final = "イロハニホヘトチリヌルヲワカヨタレソツネナラム"
_LABEL: Final = re.compile(
    r"(?:"
    rf"(?P<round>[(（](?:{_NUMERAL})(?:[-–]\d{{1,2}})?[)）])"
    # The fifth and sixth level of federal regulations repeat the second and third in italics.
    rf"|(?P<italic>\(\*(?:{_NUMERAL})\*\))"
    r"|(?P<half>(?:\d{1,3}|[a-z]{1,4})\))(?=\s)"
    r"|(?P<dot>(?:\d{1,3}[a-z]?|[A-Za-z]|[ivx]{2,5}|[IVX]{2,5})\\?\.)(?=[\s*(]|\Z)"
    r"|(?P<degree>\d{1,3}°)(?=\s)"
    # `Section 6(o) of the Act is amended` begins a sentence and labels nothing.
    r"|(?P<word>(?:Article|Artikel|Art\.|Section|Sec\.|Rule|§)\s\d{1,4}[a-z]?)"
    r"(?=[.:—*\u2003](?!\d)|\s*\Z)"
    rf"|(?P<article>第[{_KANJI}〇千\d]{{1,6}}[条項号])(?=[\s　の])"
    rf"|(?P<bare>[{_KANJI}]{{1,4}}|[{_IROHA}]|[０-９]{{1,3}})(?=[\s　])"
    r")(?:\*\*?|__?)?[ \t\u2003　]?"
)
_OPENING: Final = re.compile(
    r"(?P<quote>(?:[ \t]*>)*)[ \t\u2003]*(?:[-+*•][ \t]+)?[ \t\u2003]*[“”‘\"\[]{0,2}(?:\*\*?|__?)?"
)
# `(b) *Transfer*—(1) *Definition.* (i) …`: a list often begins behind its own heading.
_RUN_IN: Final = re.compile(r"(\*\*?)[^*\n]{1,200}\1[ \t]?[.:—–-]{0,3}[ \t]?")
_ROMAN: Final = re.compile(r"(?=.)(?:c?x[cl]|l?x{0,3})(?:i[xv]|v?i{0,3})")
_ROMAN_DIGITS: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_LETTERS: Final = 26
_UNMARKED: Final = str.maketrans("", "", "\\*")


class Reading(NamedTuple):
    """One thing a label may mean: the second of some kind of numbers."""

    kind: str
    value: int


class Label(NamedTuple):
    """A label as it is written."""

    text: str
    readings: tuple[Reading, ...]
    sure: bool
    """Whether only labels look like it; `A.` may be an initial and `1.` the end of a date."""


class Labelled(NamedTuple):
    """The labels a paragraph begins with, outermost first."""

    quote: int
    """In how many block quotes it stands."""
    labels: tuple[Label, ...]
    spans: tuple[Span, ...]
    """The words after each label, up to the next one."""
    behind_heading: bool = False
    """Whether a heading without a label of its own, such as a defined term, comes first."""


UNLABELLED: Final = Labelled(0, (), ())
"""What a paragraph of plain words begins with."""


def read_labels(text: str, start: int, end: int) -> Labelled:
    """The labels at the start of a paragraph; none is an empty tuple."""
    quote, position, behind = 0, start, None
    if text[start] != "(" and not text[start].isalnum():
        opening = _OPENING.match(text, start, end)
        assert opening is not None
        behind = _behind_heading(text, start, end) if text[start] == "*" else None
        quote, position = opening["quote"].count(">"), behind or opening.end()
    labels: list[Label] = []
    spans: list[Span] = []
    begun = position
    while found := _LABEL.match(text, position, end):
        style = found.lastgroup or ""
        label = _label(found[style], style)
        if not label.readings:
            break
        if labels:
            spans.append((begun, position))
        labels.append(label)
        begun = position = found.end()
        if text.startswith("*", position):
            position = _behind_heading(text, position, end) or position
    if labels:
        return Labelled(quote, tuple(labels), (*spans, (begun, end)), behind is not None)
    return Labelled(quote, (), ()) if quote else UNLABELLED


def _behind_heading(text: str, position: int, end: int) -> int | None:
    """Where a list begins that follows a heading in the same paragraph."""
    heading = _RUN_IN.match(text, position, end)
    found = _LABEL.match(text, heading.end(), end) if heading else None
    if heading is None or found is None or not found["round"]:
        return None
    readings = _label(found["round"], "round").readings
    return heading.end() if any(reading.value == STEP for reading in readings) else None


@lru_cache(maxsize=4096)
def _label(written: str, style: str) -> Label:
    text = written.translate(_UNMARKED)
    plain = unicodedata.normalize("NFKC", text).strip("().°第条項号")
    readings = tuple(
        Reading(f"{style} {reading.kind}", reading.value)
        for reading in _readings(plain.split()[-1] if style == "word" else plain)
    )
    return Label(text, readings, style not in {"dot", "half", "bare"})


def _readings(plain: str) -> list[Reading]:
    base, _, inserted = plain.replace("–", "-").partition("-")
    between = int(inserted) if inserted else 0
    if base[:1].isdigit():
        digits = base.rstrip("abcdefghijklmnopqrstuvwxyz")
        return [Reading("1", int(digits) * STEP + between + _letter(base[len(digits) :]))]
    if base[:1] in _KANJI:
        return [Reading("一", _kanji(base) * STEP)]
    if base in _IROHA:
        return [Reading("イ", (_IROHA.index(base) + 1) * STEP)]
    case = "a" if base.islower() else "A"
    values = [(case, _letter(base.lower())), (f"{case} roman", _roman(base.lower()))]
    return [Reading(kind, value * STEP + between) for kind, value in values if value]


def _letter(letters: str) -> int:
    """`a` is 1, `aa` 27, `bb` 28; anything else is no letter."""
    if not letters or len(set(letters)) > 1:
        return 0
    return (len(letters) - 1) * _LETTERS + ord(letters[0]) - ord("a") + 1


def _roman(letters: str) -> int:
    if not _ROMAN.fullmatch(letters):
        return 0
    digits = [_ROMAN_DIGITS[letter] for letter in letters]
    pairs = zip(digits, [*digits[1:], 0], strict=True)
    return sum(-digit if digit < following else digit for digit, following in pairs)


def _kanji(numerals: str) -> int:
    """`二十一` is 21."""
    total = current = 0
    for numeral in numerals:
        if numeral in "十百":
            total += max(current, 1) * (10 if numeral == "十" else 100)
            current = 0
        else:
            current = "一二三四五六七八九".find(numeral) + 1
    return total + current
