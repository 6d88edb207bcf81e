"""Watermarks: words across the text of most pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from fonds.normalize.pdf.page import PdfPage, TextRun

_MIN_PAGES: Final = 3
_GRID: Final = 8
"""The same text in the same square of so many points is the same mark."""
_LARGE: Final = 1.5
_MIN_SIZE: Final = 12.0


def remove_watermarks(pages: Sequence[PdfPage]) -> None:
    """Move words that are turned, or set large across other lines, out of the rows of pages."""
    if len(pages) < _MIN_PAGES:
        return
    candidates: defaultdict[tuple[str, int, int], list[tuple[PdfPage, list[TextRun]]]]
    candidates = defaultdict(list)
    for page in pages:
        for row in page.rows:
            if row[0].turned or row[0].size > _MIN_SIZE:
                text = " ".join("".join(run.text for run in row).split())
                key = text, round(row[0].x0 / _GRID), round(row[0].y0 / _GRID)
                candidates[key].append((page, row))
    for (text, *_), rows in candidates.items():
        if len(rows) < _MIN_PAGES or 2 * len(rows) <= len(pages):
            continue
        crossing = sum(_crosses(row, page) for page, row in rows)
        if rows[0][1][0].turned or 2 * crossing > len(rows):
            for page, row in rows:
                page.rows = [other for other in page.rows if other is not row]
                page.watermarks.append(text)


def _crosses(mark: Sequence[TextRun], page: PdfPage) -> bool:
    """True if smaller lines are drawn where a row is."""
    x0, x1 = min(run.x0 for run in mark), max(run.x1 for run in mark)
    size, base = mark[0].size, mark[0].y0
    return any(
        0 < _LARGE * run.size < size
        and base <= run.y0 + run.size / 2 <= base + size
        and min(x1, run.x1) > max(x0, run.x0)
        for row in page.rows
        for run in row
    )
