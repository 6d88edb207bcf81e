from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fonds.search.query import query_words
from fonds.search.rank import Candidate, Score, WeightedQuery

FREQUENCIES = {"lead": 40, "service": 300, "lines": 200, "lead service": 10}


def question(text: str = "lead service lines") -> WeightedQuery:
    return WeightedQuery(query_words(text), FREQUENCIES, 1000)


def candidate(row: int, text: str, **more: str | float) -> Candidate:
    return Candidate(**{"row": row, "title": "", "headings": "", "text": text, **more})  # type: ignore[arg-type]


def order(*candidates: Candidate, text: str = "lead service lines") -> list[int]:
    return [score.row for score in question(text).rank(candidates)]


def test_rare_words_tell_more_than_frequent_ones() -> None:
    assert order(candidate(1, "the service there"), candidate(2, "the lead there")) == [2, 1]


def test_words_side_by_side_count_more_than_apart() -> None:
    apart = candidate(1, "service of water with lead")
    together = candidate(2, "water with lead service of")
    assert order(apart, together) == [2, 1]


def test_long_passage_is_marked_down() -> None:
    assert order(candidate(1, "lead " + "and more " * 200), candidate(2, "lead and more")) == [2, 1]


def test_headings_count_and_title_counts_for_the_document_only() -> None:
    plain = candidate(1, "lead")
    headed = candidate(2, "lead", headings="Service lines")
    titled = candidate(3, "lead", title="Lead service lines")
    scores = {score.row: score for score in question().rank([plain, headed, titled])}
    assert scores[3].document > scores[2].document > scores[1].document
    assert scores[3].passage == scores[1].passage < scores[2].passage


def test_cosine_is_added_to_words() -> None:
    assert order(candidate(1, "lead", cosine=0.1), candidate(2, "lead", cosine=0.9)) == [2, 1]
    assert order(candidate(1, "other", cosine=0.9), candidate(2, "lead")) == [2, 1]


def test_equal_passages_stand_in_the_order_of_their_rows() -> None:
    assert order(candidate(9, "lead"), candidate(2, "lead"), candidate(5, "lead")) == [2, 5, 9]


def test_word_that_stands_nowhere_neither_helps_nor_harms() -> None:
    with_unknown = question("lead xyzzy").rank([candidate(1, "lead pipe")])
    without = question("lead").rank([candidate(1, "lead pipe")])
    assert with_unknown == without


def test_question_without_known_words_ranks_by_meaning_alone() -> None:
    assert order(candidate(1, "a", cosine=0.2), candidate(2, "b", cosine=0.3), text="xyzzy") == [
        2,
        1,
    ]


@given(st.lists(st.text(max_size=60), max_size=5))
def test_words_alone_never_leave_their_bounds(texts: list[str]) -> None:
    candidates = [candidate(row, text, headings=text, title=text) for row, text in enumerate(texts)]
    for score in question().rank(candidates):
        assert isinstance(score, Score)
        assert 0 <= score.passage <= score.document <= 3


def test_words_of_all_passages_of_a_document_weigh_little_inside_it() -> None:
    # Rare in the library, but the subject of this document.
    candidates = [candidate(row, "lead service and lines") for row in range(1, 9)]
    candidates += [candidate(9, "lead lead lead"), candidate(10, "a service for the river")]
    query = WeightedQuery(query_words("lead river"), {"lead": 4, "river": 500}, 1000)
    assert query.rank(candidates)[0].row == 9
    assert query.among(candidates).rank(candidates)[0].row == 10


def test_few_passages_of_a_document_are_weighed_as_the_library_is() -> None:
    query = question()
    assert query.among([candidate(1, "lead"), candidate(2, "service")]) is query
