"""Grids of cells, from rules alone."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from fonds.normalize.pdf.grid import GridCell, Rule, RuledGrid, grids_of


def level(y: float, x0: float, x1: float) -> Rule:
    return Rule(x0, y, x1, y)


def upright(x: float, y0: float, y1: float) -> Rule:
    return Rule(x, y0, x, y1)


def box(x0: float, y0: float, x1: float, y1: float) -> list[Rule]:
    return [level(y0, x0, x1), level(y1, x0, x1), upright(x0, y0, y1), upright(x1, y0, y1)]


def only(rules: Iterable[Rule]) -> RuledGrid:
    (grid,) = grids_of(rules)
    return grid


def test_rules_make_cells() -> None:
    grid = only([*box(0, 0, 100, 60), level(30, 0, 100), upright(40, 0, 60)])
    cells = [GridCell(0, 0), GridCell(0, 1), GridCell(1, 0), GridCell(1, 1)]
    assert list(grid.cells) == cells
    assert tuple(map(int, grid.box)) == (0, 0, 100, 60)
    assert tuple(map(int, grid.box_of(GridCell(1, 0)))) == (0, 0, 40, 30)


def test_a_cell_reaches_as_far_as_no_wall_stands() -> None:
    grid = only([*box(0, 0, 90, 60), level(30, 30, 90), upright(30, 0, 60), upright(60, 0, 30)])
    assert list(grid.cells) == [
        GridCell(0, 0, rows=2),
        GridCell(0, 1, columns=2),
        GridCell(1, 1),
        GridCell(1, 2),
    ]


def test_places_that_make_no_rectangle_are_cells_of_their_rows() -> None:
    # a label over two columns; the first column goes on below it, without a rule between
    rules = [*box(0, 0, 100, 60), upright(50, 0, 60), level(40, 10, 100), upright(10, 0, 40)]
    rules.append(level(20, 10, 100))
    assert GridCell(0, 0, columns=2) in only(rules).cells
    assert GridCell(1, 0, rows=2) in only(rules).cells


def test_dashes_are_a_rule() -> None:
    dashes = [Rule(50, y, 50.4, y + 1.5) for y in range(0, 60, 4)]
    assert len(only([*box(0, 0, 100, 60), *dashes]).cells) == 2


def test_double_rules_are_one() -> None:
    inner = [level(30, 0, 100), level(32, 0, 100), upright(50, 0, 60)]
    assert len(only([*box(0, 0, 100, 60), *inner]).tops) == 3


def test_boxes_side_by_side_are_one_grid() -> None:
    boxes = [side for at in range(7) for side in box(12 * at, 0, 12 * at + 11, 14)]
    assert len(only(boxes).cells) == 7


def test_a_table_without_sides_is_closed_by_the_ends_of_its_rules() -> None:
    rules = [level(y, 0, 100) for y in (0, 20, 40)] + [upright(50, 0, 40)]
    assert len(only(rules).cells) == 4


def test_places_outside_of_all_walls_are_in_no_cell() -> None:
    # a total below the last two columns
    rules = [*box(0, 20, 90, 60), level(40, 0, 90), upright(30, 20, 60), upright(60, 20, 60)]
    rules += [level(0, 30, 60), upright(30, 0, 20), upright(60, 0, 20)]
    cells = only(rules).cells
    assert GridCell(2, 1) in cells
    assert [cell.column for cell in cells if cell.row == 2] == [1]


def test_a_frame_is_no_grid_and_grids_that_do_not_touch_are_several() -> None:
    frame = box(0, 0, 200, 200)
    inner = [*box(20, 20, 80, 60), upright(50, 20, 60)]
    other = [*box(20, 100, 80, 160), upright(50, 100, 160)]
    assert [grid.box for grid in grids_of([*frame, *inner, *other])] == [
        (20, 100, 80, 160),
        (20, 20, 80, 60),
    ]


@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(0, 200), st.integers(0, 90), st.booleans()),
        max_size=40,
    )
)
def test_cells_of_any_rules_do_not_overlap(strokes: list[tuple[int, int, int, bool]]) -> None:
    rules = [level(y, x, x + n) if flat else upright(x, y, y + n) for x, y, n, flat in strokes]
    for grid in grids_of(rules):
        places = [
            (row, column)
            for cell in grid.cells
            for row in range(cell.row, cell.row + cell.rows)
            for column in range(cell.column, cell.column + cell.columns)
        ]
        assert len(places) == len(set(places))
        assert max(row for row, _ in places) < len(grid.tops) - 1
        assert max(column for _, column in places) < len(grid.lefts) - 1
