from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.search.query import LONGEST_WORD, MOST_TERMS, STOP_WORDS, query_terms


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("overtime salary threshold", ["overtime", "salary", "threshold"]),
        ("How much lead may the water contain?", ["much", "lead", "water", "contain"]),
        ('"lead in water" pipes', ["lead in water", "pipes"]),
        ('pipes "  lead,  in water! "', ["lead in water", "pipes"]),
        ("The And of", ["The", "And", "of"]),
        ('"of the"', ["of the"]),
        ('"" the ""', ["the"]),
        ("lead lead Lead", ["lead", "Lead"]),
        ('an unclosed "quotation mark', ["unclosed", "quotation", "mark"]),
        ("29 CFR 541.600", ["29", "CFR", "541.600"]),
        ("fr:2026-00101", ["fr", "2026-00101"]),
        ("O'Brien’s well-being", ["O'Brien’s", "well-being"]),
        ("snake_case", ["snake", "case"]),
        ("政治資金 報告書", ["政治資金", "報告書"]),
        ("café naïve", ["café", "naïve"]),
        ("salary 💰 water", ["salary", "water"]),
        ("sal\0ary", ["sal", "ary"]),
        ("lead AND NOT (water OR NEAR(pipe)) *", ["lead", "water", "NEAR", "pipe"]),
        ("'; DROP TABLE documents; --", ["DROP", "TABLE", "documents"]),
    ],
)
def test_query_becomes_phrases_and_telling_words(query: str, terms: list[str]) -> None:
    assert query_terms(query) == terms


@pytest.mark.parametrize("query", ["", "   ", "?!… — *", '""""', "💰🙈", "\0", "_ __", "()"])
def test_query_without_a_word_has_no_terms(query: str) -> None:
    assert query_terms(query) == []


def test_long_query_is_cut_and_keeps_its_beginning() -> None:
    terms = query_terms(" ".join(f"word{number}" for number in range(10_000)))
    assert terms == [f"word{number}" for number in range(MOST_TERMS)]


def test_long_words_and_phrases_are_cut_too() -> None:
    (word,) = query_terms("政治" * 1000)
    assert word == "政治" * (LONGEST_WORD // 2)
    (phrase,) = query_terms(f'"{"lead pipe " * 1000}"')
    assert phrase == " ".join(["lead pipe"] * (MOST_TERMS // 2))


@settings(max_examples=100)
@given(st.text(max_size=80))
def test_terms_are_few_distinct_and_hold_no_syntax(query: str) -> None:
    terms = query_terms(query)
    assert len(terms) == len(set(terms)) <= MOST_TERMS
    assert all(term.strip() and not set(term) & set('"*()\0:^+') for term in terms)


def test_stop_words_are_lower_case_words() -> None:
    assert "the" in STOP_WORDS
    assert all(word.isalpha() and word.islower() for word in STOP_WORDS)
