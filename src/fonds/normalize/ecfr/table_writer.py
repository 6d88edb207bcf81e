"""Tables of the Code of Federal Regulations as lines of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError
from fonds.normalize.ecfr.table import HtmlGrid
from fonds.normalize.gpotable import Grid
from fonds.normalize.markdown import MarkdownWriter

# Short rows are padded for the eye's sake, but not in a table made to exhaust the memory.
_ROOMIEST: Final = 200_000
_MOST_HEADS: Final = 300

_Cells = Sequence[tuple[Any, ...]]
_Row = tuple[tuple[Any, ...], _Cells]


class TableWriter:
    """Draws a grid; the cells' text is written by `flow`, page marks between rows by `page`."""

    def __init__(
        self, out: MarkdownWriter, flow: Callable[[Any], None], page: Callable[[Any], None]
    ) -> None:
        self._out = out
        self._flow = flow
        self._page = page

    def draw_gpo(self, table: Any, grid: Grid) -> None:
        """A typesetter's table; heads below heads are joined by a slash."""
        spans = any(len(path) > 1 for path in grid.heads)
        spans = spans or any(None in row.cells for row in grid.rows)
        rows = ((row.pages, _paths(row.cells)) for row in grid.rows)
        self._draw(grid.heads, rows, (len(grid.rows), grid.columns), table if spans else None)

    def draw_html(self, table: Any, grid: HtmlGrid, *, keep: bool) -> None:
        """A table like HTML's; lower rows of its head stay rows, which keeps their order.

        With `keep`, one that has spans is also kept as it was.
        """
        heads = _paths(grid.rows[0]) if grid.has_head else []
        rows = (((), _paths(row)) for row in grid.rows[1 if grid.has_head else 0 :])
        spanning = table if keep and grid.has_spans else None
        self._draw(heads, rows, (len(grid.rows), grid.columns), spanning)

    def _draw(
        self, heads: _Cells, rows: Iterator[_Row], size: tuple[int, int], spanning: Any
    ) -> None:
        height, columns = size
        self._out.begin()
        if spanning is not None:
            content = etree.tostring(spanning, encoding="unicode", with_tail=False)
            self._out.artifact("table", content)
        self._out.in_table = True
        self._out.row(heads, columns, self._flow)
        self._out.line()
        self._out.markup("|" + " --- |" * columns)
        width = columns if height * columns <= _ROOMIEST else 0
        for pages, cells in rows:
            for page in pages:
                self._page(page)
            self._out.line()
            self._out.row(cells, width, self._flow)
        self._out.in_table = False
        self._out.end()


def refuse_endless_heads(table: Any) -> None:
    """Each head may stand under all before it: thousands would take hours to join."""
    if sum(map(len, table.findall("BOXHD"))) > _MOST_HEADS:
        raise MalformedError(f"a table has more than {_MOST_HEADS} column heads")


def _paths(cells: Sequence[Any | None]) -> list[tuple[Any, ...]]:
    return [() if cell is None else (cell,) for cell in cells]
