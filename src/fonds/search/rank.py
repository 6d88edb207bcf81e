"""The formula that ranks passages, whether they match by words or by vectors.

    score = (text + PAIR_WEIGHT · pairs + HEADINGS_WEIGHT · headings + TITLE_WEIGHT · title) / all
            + COSINE_WEIGHT · cosine

`text` is BM25 over the stems of the query; `pairs` counts two neighbours as one rare word;
headings and titles count without regard to length. `all` is the maximum that words can reach, so
that the sum lies between 0 and about 1 and can be added to a cosine as it is. The constants were
chosen on the development questions of ObliQA (`bench/retrieval.py`), the title's by hand, since
those passages have none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fonds.search.query import QueryWords, Stems, stem, words_of

BM25_K1: Final = 0.6
"""How soon a repeated word adds nothing more."""
BM25_B: Final = 0.75
"""How much the score of a long passage is reduced."""
PAIR_WEIGHT: Final = 0.5
HEADINGS_WEIGHT: Final = 0.2
TITLE_WEIGHT: Final = 0.5
COSINE_WEIGHT: Final = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A passage to rank."""

    row: int
    title: str
    headings: str
    text: str
    cosine: float | None = None
    """None without a vector."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The score of a passage."""

    row: int
    document: float
    """The score with the title of its document."""
    passage: float
    """The score without the title, which all passages of a document share."""


MIN_CANDIDATES: Final = 5
"""The fewest passages of a document that show which words are rare in it."""


class WeightedQuery:
    """The words of a query, weighted by their rarity in the library, or in one document.

    A pair without a frequency is taken to be as rare as both words make it.
    """

    def __init__(self, words: QueryWords, frequencies: Mapping[str, int], passages: int) -> None:
        """`frequencies` are the numbers of passages with each word, and with some of the pairs."""
        having = {stem(word): frequencies.get(word, 0) for word in words.single}
        weights = {each: _weight(count, passages) for each, count in having.items() if count}
        self._words = words
        self._all = sum(weights.values()) or 1.0
        self._stems = list(weights)
        self._weights = list(weights.values())
        number = {each: index for index, each in enumerate(self._stems)}
        self._pairs: dict[tuple[int, int], float] = {}
        for one, two in words.pairs:
            first, second = number.get(stem(one)), number.get(stem(two))
            if first is None or second is None or first == second:
                continue
            count = frequencies.get(f"{one} {two}")
            by_itself = self._weights[first] + self._weights[second]
            weight = by_itself if count is None else _weight(count, passages)
            self._pairs[first, second] = weight

    def among(self, candidates: Sequence[Candidate]) -> WeightedQuery:
        """The same words, weighted by their rarity in some passages of one document.

        What all passages speak of, such as the insurer in a policy, tells none from another.
        """
        if len(candidates) < MIN_CANDIDATES:
            return self
        stems = Stems(self._stems)
        having = Counter(
            number
            for each in candidates
            for number in {stems[word] for word in words_of(f"{each.headings} {each.text}")}
        )
        having.pop(-1, None)
        frequencies = {word: having[stems[word]] for word in self._words.single}
        return WeightedQuery(self._words, frequencies, len(candidates))

    def rank(self, candidates: Sequence[Candidate]) -> list[Score]:
        """The scores of all candidates, best first; equal ones in the order of their rows."""
        stems = Stems(self._stems)
        texts = [[stems[word] for word in words_of(each.text)] for each in candidates]
        average = sum(map(len, texts)) / max(len(texts), 1) or 1.0
        scores = [
            self._score(each, numbers, stems, average)
            for each, numbers in zip(candidates, texts, strict=True)
        ]
        return sorted(scores, key=lambda score: (-score.document, score.row))

    def _score(
        self, candidate: Candidate, numbers: list[int], stems: Stems, average: float
    ) -> Score:
        norm = BM25_K1 * (1 - BM25_B + BM25_B * len(numbers) / average)
        passage = self._sum(numbers, norm) + PAIR_WEIGHT * self._sum_pairs(numbers, norm)
        above = [stems[word] for word in words_of(candidate.headings)]
        passage += HEADINGS_WEIGHT * self._sum(above, BM25_K1)
        in_title = [stems[word] for word in words_of(candidate.title)]
        title = TITLE_WEIGHT * self._sum(in_title, BM25_K1) / self._all
        by_itself = passage / self._all + COSINE_WEIGHT * (candidate.cosine or 0.0)
        return Score(row=candidate.row, document=by_itself + title, passage=by_itself)

    def _sum(self, numbers: Iterable[int], norm: float) -> float:
        counts = Counter(numbers)
        counts.pop(-1, None)
        return sum(
            self._weights[number] * _saturated(count, norm) for number, count in counts.items()
        )

    def _sum_pairs(self, numbers: list[int], norm: float) -> float:
        if not self._pairs:
            return 0.0
        counts = Counter(pair for pair in pairwise(numbers) if pair in self._pairs)
        return sum(self._pairs[pair] * _saturated(count, norm) for pair, count in counts.items())


def _weight(having: int, passages: int) -> float:
    return math.log(1 + (max(passages, having) - having + 0.5) / (having + 0.5))


def _saturated(count: int, norm: float) -> float:
    return count / (count + norm)
