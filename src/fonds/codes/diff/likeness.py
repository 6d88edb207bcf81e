"""How alike two sections are, whatever number and heading they stand under."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from heapq import nsmallest
from itertools import islice
from typing import Final, Generic, TypeVar
from zlib import crc32

from fonds.codes.diff.words import essence

Key = TypeVar("Key", bound=Hashable)

_HEADING: Final = re.compile(r"\s*#{1,6} [^\n]*(?:\n|\Z)")
_NUMBER: Final = re.compile(
    r"\s*(?:§+|Sec(?:tion|\.)|Art(?:icle|\.))?\s*\d[\w.:–-]*", re.IGNORECASE
)
# Some publishers print on every page how current it is; that changes with each edition.
_STAMP: Final = re.compile(
    r"^[^\w\n]*(?:this (?:code|title|section|page|document|edition|version) is )?"
    r"(?:current|up to date|updated|revised|reprinted|consolidated) (?:through|as of|as at|to)\b"
    r"[^\n]{0,120}\d[^\n]{0,40}(?:\n|\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_WORD: Final = re.compile(r"\w+")
_MIX: Final = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)
_SAMPLE: Final = 64
"""Shingles by which a section is looked for."""
_COMMON: Final = 8
"""A shingle that stands in more sections than these is boilerplate and finds nothing."""
_NEAREST: Final = 3


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is remembered of a text that was read: some hundred bytes, however long it is."""

    core: bytes
    """Hash of its words without heading, number and stamp."""
    words: int
    sample: tuple[int, ...]
    """Its lowest shingles: those of two like texts are mostly the same."""


def without_stamps(text: str) -> str:
    """The text without lines that only say how current the edition is."""
    return _STAMP.sub("", text)


def sketch(text: str) -> Sketch:
    """What is needed to find a text again under another number."""
    core = essence(without_stamps(_without_heading(text)))
    digest = sha256(core.encode("utf-8", "surrogatepass")).digest()
    return Sketch(digest, core.count(" ") + 1, tuple(nsmallest(_SAMPLE, shingles(text))))


def shingles(text: str) -> frozenset[int]:
    """Every three words in a row below the heading, each as a number that is always the same."""
    words = _WORD.findall(without_stamps(_without_heading(text)).casefold())
    numbers = [crc32(word.encode("utf-8", "surrogatepass")) for word in words]
    first, second, third = _MIX
    return frozenset(
        (a * first + b * second + c * third) & 0xFFFFFFFF
        for a, b, c in zip(
            numbers, islice(numbers, 1, None), islice(numbers, 2, None), strict=False
        )
    )


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """The share of their shingles that two texts have in common, from 0 to 1."""
    both = len(one) + len(other)
    return 2 * len(one & other) / both if both else 0.0


class Nearest(Generic[Key]):
    """Finds the sections that share most of a sample, in time that does not grow with them."""

    def __init__(self, sketches: Mapping[Key, Sketch]) -> None:
        self._places: dict[int, list[Key]] = {}
        for key, known in sketches.items():
            for shingle in known.sample:
                self._places.setdefault(shingle, []).append(key)

    def to(self, sought: Sketch) -> list[Key]:
        """The few nearest, best first."""
        found = Counter(key for shingle in sought.sample for key in self._rare(shingle))
        return [key for key, _ in found.most_common(_NEAREST)]

    def _rare(self, shingle: int) -> Iterable[Key]:
        places = self._places.get(shingle, [])
        return places if len(places) <= _COMMON else ()


def _without_heading(text: str) -> str:
    heading = _HEADING.match(text) or _NUMBER.match(text)
    return text[heading.end() :] if heading else text
