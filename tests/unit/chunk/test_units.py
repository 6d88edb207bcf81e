from __future__ import annotations

import pytest

from fonds.chunk import boundaries
from fonds.chunk.headings import read_outline


def cut(split: boundaries.Split, text: str) -> list[str]:
    return [text[start:end] for start, end in split(text, 0, len(text))]


def blocks(text: str) -> list[tuple[str, bool]]:
    found = boundaries.blocks(read_outline(text), 0, len(text))
    return [(text[block.start : block.end], block.rows) for block in found]


def test_blank_lines_part_blocks() -> None:
    assert blocks("a\nb\n\n c \n \t\n\f\nd") == [("a\nb", False), ("c", False), ("d", False)]


def test_carriage_returns_part_blocks() -> None:
    assert blocks("a\r\n\r\nb\r\rc") == [("a", False), ("b", False), ("c", False)]


def test_fence_is_one_block_with_its_blank_lines() -> None:
    assert blocks("a\n```\nx\n\ny\n```\nb") == [
        ("a", False),
        ("```\nx\n\ny\n```", True),
        ("b", False),
    ]


def test_indented_fence_at_the_start_of_a_section_is_seen() -> None:
    text = "  ```\nx\n\ny\n  ```"
    found = boundaries.blocks(read_outline(text), 2, len(text))
    assert list(found) == [boundaries.MarkdownBlock(2, len(text), rows=True)]


def test_table_begins_at_its_header_row() -> None:
    text = "Table 1\na | b\n--- | ---:\n1 | 2\n\nc"
    assert blocks(text) == [("Table 1", False), ("a | b\n--- | ---:\n1 | 2", True), ("c", False)]


def test_items_keep_their_continuation_lines() -> None:
    text = "Intro:\n- one\n  goes on\n* two\n  1. three\n  2) four\n-five"
    assert cut(boundaries.items, text) == [
        "Intro:",
        "- one\n  goes on",
        "* two",
        "1. three",
        "2) four\n-five",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "yes." She left.', ['He said "yes."', "She left."]),
        ("One.\nTwo.", ["One.", "Two."]),
        ("See Sec. 5 and No. 3 of it.", ["See Sec. 5 and No. 3 of it."]),
        ("The U.S. Code and J. Smith v. Jones.", ["The U.S. Code and J. Smith v. Jones."]),
        ("at 3.5 percent. However", ["at 3.5 percent.", "However"]),
        ("approx. five", ["approx. five"]),
        ("1. First item. 2. Second", ["1. First item.", "2. Second"]),
        ("第一条。第二条！「第三条。」完", ["第一条。", "第二条！", "「第三条。」", "完"]),
        ("Wait… And go", ["Wait…", "And go"]),
        (". . . dots", [". . . dots"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert cut(boundaries.sentences, text) == expected


def test_dot_leaders_take_linear_time() -> None:
    text = "Contents" + "." * 300_000 + "5"
    assert cut(boundaries.sentences, text) == [text]


def test_lines_leave_out_blank_ones() -> None:
    assert cut(boundaries.lines, " a\n\n b \nc") == ["a", "b", "c"]


def test_words_are_parted_by_any_white_space() -> None:
    assert cut(boundaries.words, "a\u00a0b\t\fc") == ["a", "b", "c"]


def pieces(text: str, size: int) -> list[str]:
    return [text[start:end] for start, end in boundaries.characters(text, 0, len(text), size)]


def test_characters_are_cut_to_size() -> None:
    assert pieces("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert pieces("abcd", 4) == ["abcd"]


def test_accents_and_joined_emoji_are_not_torn() -> None:
    family = "\U0001f469\u200d\U0001f467"
    assert pieces(f"xe\u0301ab{family}", 4) == ["xe\u0301a", f"b{family}"]
    assert pieces(f"ab{family}z", 4) == ["ab", f"{family}z"]
    assert pieces("abc\U0001f44d\U0001f3fd", 4) == ["abc", "\U0001f44d\U0001f3fd"]


def test_endless_accents_are_cut_all_the_same() -> None:
    assert pieces("a" + "\u0301" * 9, 4) == ["a" + "\u0301" * 3, "\u0301" * 4, "\u0301" * 2]
