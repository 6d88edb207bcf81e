from __future__ import annotations

import pytest

from fonds.search.query import QueryWords, Stems, query_words, stem, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Rule’s 541.600(b)", ["the", "rule", "s", "541", "600", "b"]),
        ("snake_case", ["snake", "case"]),
        ("政治資金", ["政治", "治資", "資金"]),
        ("§ 433 BGB: Prüfung", ["433", "bgb", "prüfung"]),
        ("", []),
    ],
)
def test_text_is_cut_as_the_index_cuts_it(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_inflections_and_accents_share_a_stem() -> None:
    assert stem("regulations") == stem("regulated") == stem("regulation")
    assert stem("café") == stem("cafe")
    assert stem("prüfung") == stem("prufung")
    assert stem("541") == "541"


def test_stems_number_the_words_that_have_them() -> None:
    stems = Stems([stem("regulation"), stem("ties"), stem("café")])
    found = [stems[word] for word in ("regulated", "regular", "ties", "cafés", "water", "re")]
    assert found == [0, -1, 1, 2, -1, -1]


def test_pairs_stand_side_by_side_with_no_stop_word_between() -> None:
    asked = query_words("What must the lead service line operator do in the river?")
    assert asked.single == ("lead", "service", "line", "operator", "river")
    assert asked.pairs == (("lead", "service"), ("service", "line"), ("line", "operator"))


def test_question_of_stop_words_alone_keeps_them() -> None:
    assert query_words("to be or not") == QueryWords(single=("to", "be", "or", "not"), pairs=())
