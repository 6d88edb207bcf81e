"""Numbers in kanji, and how provisions of Japanese laws are cited."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.sources.jp.outline import (
    arabic_numeral,
    cite_jp,
    other_forms,
    printed_number,
    with_digits,
)


def kanji_numeral(number: int) -> str:
    """A number below a hundred million in words: 709 is 七百九, and 10000 is 一万."""
    above, below = divmod(number, 10_000)
    words = f"{_below_a_myriad(above)}万" if above else ""
    return words + _below_a_myriad(below) or "〇"


def _below_a_myriad(number: int) -> str:
    words = ""
    for unit, value in (("千", 1000), ("百", 100), ("十", 10)):
        count, number = divmod(number, value)
        words += ("〇一二三四五六七八九"[count] if count > 1 else "") + (unit if count else "")
    return words + ("〇一二三四五六七八九"[number] if number else "")


@given(st.integers(min_value=0, max_value=99_999_999))
@settings(max_examples=200)
def test_a_number_comes_back_from_its_words(number: int) -> None:
    assert arabic_numeral(kanji_numeral(number)) == number


@given(st.integers(min_value=1, max_value=9_999_999))
@settings(max_examples=100)
def test_a_number_written_digit_by_digit_is_the_same_number(number: int) -> None:
    digits = "".join("〇一二三四五六七八九"[int(digit)] for digit in str(number))
    assert arabic_numeral(digits) == number


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "〇"),
        (10, "十"),
        (11, "十一"),
        (36, "三十六"),
        (100, "百"),
        (709, "七百九"),
        (1044, "千四十四"),
        (10_000, "一万"),
        (11_110_000, "千百十一万"),
    ],
)
def test_words_are_those_of_the_statute_book(number: int, words: str) -> None:
    assert arabic_numeral(words) == number


@pytest.mark.parametrize("words", ["", "条", "第一", "12"])
def test_what_is_no_number_in_kanji_is_refused(words: str) -> None:
    with pytest.raises(ValueError, match="not a number in kanji"):
        arabic_numeral(words)


@pytest.mark.parametrize(
    ("label", "number"),
    [
        ("第七百九条（不法行為による損害賠償）", "709"),
        ("第三十六条の二", "36-2"),
        ("第百四十二条の二の二", "142-2-2"),
        ("第十条ノ二", "10-2"),
        ("第三条之二", "3-2"),
        ("第四章の二　処分等の求め", "4-2"),
        ("第３６条", "36"),
        ("別表第一の二（第六条関係）", "1-2"),
        ("様式第三号", "3"),
        ("別表（第二条関係）", ""),
        ("附則", ""),
    ],
)
def test_the_number_is_read_from_a_printed_label(label: str, number: str) -> None:
    assert printed_number(label) == number


def test_every_number_of_a_title_is_written_in_digits() -> None:
    assert with_digits("第三十八条から第八十四条まで") == "第38条から第84条まで"


def test_a_provision_is_cited_without_its_caption() -> None:
    assert cite_jp(law="民法", provision="第七百九条（不法行為による損害賠償）") == "民法第七百九条"
    assert cite_jp(law="民法", provision="第三十六条の二") == "民法第三十六条の二"
    assert cite_jp(law="所得税法", provision="別表第二（第百八十五条関係）") == "所得税法別表第二"


def test_a_supplement_names_the_law_that_brought_it() -> None:
    assert cite_jp(law="民法", supplement="附則", provision="第一条") == "民法附則第一条"
    assert (
        cite_jp(
            law="民法",
            supplement="附則（平成一一年一二月八日法律第一五一号） 抄",
            amended_by="平成一一年一二月八日法律第一五一号",
            provision="第一条（施行期日）",
        )
        == "民法附則（平成一一年一二月八日法律第一五一号）第一条"
    )
    assert cite_jp(law="民法", supplement="附則 抄") == "民法附則"


def test_other_forms_use_digits_and_the_other_names_of_the_law() -> None:
    assert other_forms(
        law="民法",
        provision="第七百九条（不法行為による損害賠償）",
        law_number="明治二十九年法律第八十九号",
        law_id="129AC0000000089",
    ) == (
        "民法第709条",
        "民法709条",
        "明治二十九年法律第八十九号第七百九条",
        "明治29年法律第89号第709条",
        "129AC0000000089第709条",
    )


def test_a_law_without_numbered_provisions_is_known_by_its_names() -> None:
    forms = other_forms(law="布告", provision="", law_number="明治五年布告第一号")
    assert forms == ("明治五年布告第一号", "明治5年布告第1号")


def test_forms_do_not_repeat_the_citation_itself() -> None:
    assert other_forms(law="民法", provision="第7条") == ("民法7条",)
