from __future__ import annotations

import pytest

from fonds.chunk.headings import text_only


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("Background", "Background"),
        ("*Background*", "Background"),
        ("**II. Background** and _more_", "II. Background and more"),
        ("***both***", "both"),
        ("**bold *inner* bold**", "bold inner bold"),
        ("~~struck~~ stays", "struck stays"),
        ("`code` and ``a ` b``", "code and a ` b"),
        (r"A\*B \# \_c\_ \\", "A*B # _c_ \\"),
        ("AT&amp;T &sect;&nbsp;5 &#167;", "AT&T §\u00a05 §"),
        ("[Text](https://example.org/a) here", "Text here"),
        ('![Seal](seal.png "The seal") here', "Seal here"),
        ("[Docket No. 5] (RIN 2060)", "[Docket No. 5] (RIN 2060)"),
        (r"\[Reserved](x)", "[Reserved](x)"),
    ],
)
def test_markup_is_removed(markdown: str, plain: str) -> None:
    assert text_only(markdown) == plain


@pytest.mark.parametrize(
    "text",
    ["5 * 3 * 2", "Note*", "body_raw_path", "_open", "a ` tick", "~ 5 tons", "R & D; more", "* *"],
)
def test_marks_that_are_not_markup_stay(text: str) -> None:
    assert text_only(text) == text


def test_text_of_absurd_length_is_left_alone() -> None:
    text = "*a" * 100_000
    assert text_only(text) == text
