"""Three hundred sentences with the odd forms, and with what only looks like a citation."""

from __future__ import annotations

import json
from pathlib import Path

from fonds.citations.extract import extract

SENTENCES = [
    json.loads(line)
    for line in (Path(__file__).parent / "sentences.jsonl").read_text("utf-8").splitlines()
]
PRECISION = 0.99
RECALL = 0.97


def _expected(sentence: dict[str, list[list[str]]]) -> list[tuple[str, ...]]:
    return [tuple(citation) for citation in sentence["citations"]]


def _found(text: str) -> list[tuple[str, ...]]:
    return [(found.raw, found.kind, found.target) for found in extract(text)]


def test_set_is_large_and_has_many_negatives() -> None:
    assert len(SENTENCES) >= 300
    assert sum(not sentence["citations"] for sentence in SENTENCES) >= 80
    kinds = {kind for sentence in SENTENCES for _, kind, _ in _expected(sentence)}
    assert len(kinds) == 13


def test_precision_and_recall_over_all_sentences() -> None:
    right = surplus = missed = 0
    for sentence in SENTENCES:
        found, expected = _found(sentence["text"]), _expected(sentence)
        wrong = [each for each in found if each not in expected]
        lost = [each for each in expected if each not in found]
        right += len(expected) - len(lost)
        surplus += len(wrong)
        missed += len(lost)
        if wrong or lost:
            print(f"{sentence['text']!r}\n  surplus {wrong}\n  missed {lost}")  # noqa: T201 — shown when it fails
    assert right / (right + surplus) >= PRECISION
    assert right / (right + missed) >= RECALL
