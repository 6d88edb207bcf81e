from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.search.query import (
    FIELDS,
    MAX_LENGTH,
    MAX_TERMS,
    MAX_WORD_LENGTH,
    STOP_WORDS,
    Query,
    read_query,
)


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("overtime salary threshold", ["overtime", "salary", "threshold"]),
        ("How much lead may the water contain?", ["much", "lead", "water", "contain"]),
        ("The And of", ["The", "And", "of"]),
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
        ("half \ud800 character", ["half", "character"]),
        ("lead AND NOT (water OR NEAR(pipe)) *", ["lead", "water", "NEAR", "pipe"]),
        ("'; DROP TABLE documents; --", ["DROP", "TABLE", "documents"]),
        ("a dash - and more -- of them", ["dash", "more", "them"]),
    ],
)
def test_plain_words_rank_without_those_that_say_nothing(typed: str, terms: list[str]) -> None:
    assert read_query(typed) == Query(text=read_query(typed).text, terms=tuple(terms))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (
            '"lead in water" pipes',
            Query(text="lead in water pipes", phrases=("lead in water",), terms=("pipes",)),
        ),
        (
            'pipes "  lead,  in water! "',
            Query(text="pipes lead,  in water!", phrases=("lead in water",), terms=("pipes",)),
        ),
        ('"of the"', Query(text="of the", phrases=("of the",))),
        ("lead -copper", Query(text="lead", terms=("lead",), excluded=("copper",))),
        ('lead -"old pipes"', Query(text="lead", terms=("lead",), excluded=("old pipes",))),
        ("-lead", Query(excluded=("lead",))),
        (
            'Source:usc kind:"Proposed Rule" lead',
            Query(
                text="lead", terms=("lead",), fields=(("source", "usc"), ("kind", "Proposed Rule"))
            ),
        ),
        ("source: lead", Query(text="source: lead", terms=("source", "lead"))),
        ("resource:lead", Query(text="resource:lead", terms=("resource", "lead"))),
    ],
)
def test_phrases_exclusions_and_fields_are_told_from_words(typed: str, expected: Query) -> None:
    assert read_query(typed) == expected


@pytest.mark.parametrize("typed", ["", "   ", "?!… — *", '""""', "💰🙈", "\0", "_ __", "()"])
def test_query_without_a_word_wants_nothing(typed: str) -> None:
    assert read_query(typed).search_terms == ()


def test_long_query_is_cut_and_keeps_its_beginning() -> None:
    query = read_query(" ".join(f"word{number}" for number in range(10_000)))
    assert query.terms == tuple(f"word{number}" for number in range(MAX_TERMS))
    assert len(query.text) <= MAX_LENGTH


def test_long_words_and_phrases_are_cut_too() -> None:
    assert read_query("政治" * 1000).terms == ("政治" * (MAX_WORD_LENGTH // 2),)
    (phrase,) = read_query(f'"{"lead pipe " * 900}"').phrases
    assert phrase == " ".join(["lead pipe"] * (MAX_TERMS // 2))


@settings(max_examples=150)
@given(st.text(st.characters() | st.sampled_from('"-: sourcekind'), max_size=80))
def test_parts_are_few_distinct_and_hold_no_syntax(typed: str) -> None:
    query = read_query(typed)
    for terms in (query.terms, query.phrases, query.excluded):
        assert len(terms) == len(set(terms)) <= MAX_TERMS
        assert all(term.strip() and not set(term) & set('"*()\0:^+') for term in terms)
    assert all(name in FIELDS and value for name, value in query.fields)


def test_stop_words_are_lower_case_words() -> None:
    assert "the" in STOP_WORDS
    assert all(word.isalpha() and word.islower() for word in STOP_WORDS)
