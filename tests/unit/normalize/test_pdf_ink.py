from __future__ import annotations

import numpy as np
import pytest

from fonds.normalize.pdf.kanji import common_forms, other_forms
from fonds.normalize.pdf.ocr.ink import lines_in, side_by_side, without_scratches, words_in
from fonds.normalize.pdf.ocr.picture import Box, Grey, is_vertical, lean_of, straightened
from fonds.normalize.pdf.ocr.rules import rules_of, without_rules


def paper(width: int = 600, height: int = 400) -> Grey:
    return np.full((height, width), 255, dtype=np.uint8)


def draw(picture: Grey, *boxes: tuple[int, int, int, int], grey: int = 0) -> Grey:
    for x0, y0, x1, y1 in boxes:
        picture[y0:y1, x0:x1] = grey
    return picture


def text_lines(width: int = 1200, height: int = 900) -> Grey:
    """Twenty lines of boxes as high as letters."""
    picture = paper(width, height)
    return draw(
        picture,
        *((x, y, x + 14, y + 20) for y in range(40, height - 40, 40) for x in range(60, 1100, 20)),
    )


def test_long_dark_runs_are_rules_and_letters_are_not() -> None:
    picture = draw(paper(), (50, 100, 550, 103), (50, 100, 54, 350), (60, 200, 90, 240))
    flat, upright = rules_of(picture)
    assert flat == [Box(50, 100, 550, 103)]
    assert upright == [Box(50, 100, 54, 350)]


def test_a_thin_grey_rule_with_holes_is_one() -> None:
    picture = draw(paper(), (50, 100, 550, 102), grey=200)
    draw(picture, (200, 100, 203, 102), (400, 100, 403, 102), grey=255)
    assert rules_of(picture)[0] == [Box(50, 100, 550, 102)]


def test_a_rule_that_leans_is_one() -> None:
    picture = draw(paper(), *((50 + 125 * n, 100 + n, 175 + 125 * n, 103 + n) for n in range(4)))
    assert rules_of(picture)[0] == [Box(50, 100, 550, 106)]


@pytest.mark.parametrize("box", [(50, 100, 120, 103), (50, 100, 550, 140)])
def test_short_and_thick_marks_are_no_rules(box: tuple[int, int, int, int]) -> None:
    assert rules_of(draw(paper(), box))[0] == []


def test_words_with_small_gaps_are_no_rule() -> None:
    letters = [(50 + 20 * n, 100, 65 + 20 * n, 103) for n in range(20)]
    assert rules_of(draw(paper(), *letters))[0] == []


def test_rules_are_erased_and_letters_stay() -> None:
    picture = draw(paper(), (50, 100, 550, 103), (60, 110, 90, 140))
    erased = without_rules(picture, [Box(50, 100, 550, 103)])
    assert erased[101].min() == 255
    assert erased[120].min() == 0


def test_lines_and_words_of_a_cell_are_parted_by_gaps() -> None:
    picture = draw(
        paper(), (30, 30, 60, 60), (66, 30, 90, 60), (150, 30, 180, 60), (30, 100, 90, 130)
    )
    first, second = lines_in(picture, Box(0, 0, 300, 200))
    assert first.box == Box(30, 30, 180, 60)
    assert words_in(picture, first.box) == [Box(30, 30, 90, 60), Box(150, 30, 180, 60)]
    assert second.box == Box(30, 100, 90, 130)


def test_strokes_above_each_other_are_one_letter() -> None:
    picture = draw(paper(), (30, 30, 70, 36), (30, 46, 70, 52), (90, 30, 130, 70))
    (line,) = lines_in(picture, Box(0, 0, 300, 200))
    assert line.box == Box(30, 30, 130, 70)


def test_letters_below_each_other_are_a_column() -> None:
    picture = draw(paper(), *((30, 30 + 50 * n, 70, 70 + 50 * n) for n in range(4)))
    (line,) = lines_in(picture, Box(0, 0, 100, 300))
    assert line.vertical
    assert line.box == Box(30, 30, 70, 220)


def test_the_letters_of_a_column_are_laid_side_by_side() -> None:
    column = draw(paper(40, 200), *((0, 50 * n + 5, 40, 50 * n + 45) for n in range(4)))
    line = side_by_side(column)
    inked = (line < 140).any(axis=0)
    assert np.count_nonzero(np.diff(inked.astype(int)) == -1) == 4
    assert line.shape[1] > 3 * line.shape[0]


def test_a_comma_of_a_column_moves_to_where_it_is_in_a_line() -> None:
    column = draw(paper(40, 150), (0, 5, 40, 45), (28, 54, 38, 64), (0, 105, 40, 145))
    line = side_by_side(column)
    rows, columns = np.nonzero(line[:, 50:95] < 140)
    assert rows.min() > len(line) / 2
    assert columns.max() < 25


def test_remains_of_dotted_lines_are_erased_and_thin_letters_stay() -> None:
    dots = [(50, 20 + 14 * n, 53, 27 + 14 * n) for n in range(6)]
    picture = draw(paper(), *dots, (100, 40, 104, 80))
    without_scratches(picture, Box(0, 0, 200, 120))
    assert picture[:, 50:53].min() == 255
    assert picture[60, 101] == 0


@pytest.mark.parametrize("lean", [-0.03, 0.02])
def test_a_picture_that_leans_is_levelled(lean: float) -> None:
    leaning = straightened(text_lines(), -lean)
    assert lean_of(leaning) == pytest.approx(lean, abs=0.002)
    assert abs(lean_of(straightened(leaning, lean_of(leaning)))) < 0.003


def test_a_level_picture_and_an_empty_one_lean_nowhere() -> None:
    assert lean_of(text_lines()) == pytest.approx(0, abs=0.001)
    assert lean_of(paper()) == 0


def test_lines_from_top_to_bottom_are_told_from_level_ones() -> None:
    assert not is_vertical(text_lines())
    assert is_vertical(np.ascontiguousarray(text_lines().T))
    assert not is_vertical(paper())


def test_recognized_kanji_have_the_forms_of_japanese_print() -> None:
    assert common_forms("三田 優德、稅理士") == "三田 優徳、税理士"
    assert common_forms("渡邊 澤 Ab 12") == "渡邊 澤 Ab 12"


def test_other_forms_are_named_in_japanese_and_not_in_chinese() -> None:
    assert other_forms("優德は稅を、稅と") == "德稅"
    assert other_forms("道德經") == ""
