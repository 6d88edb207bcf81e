"""Lines, words and letters as patches of ink within a part of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fonds.normalize.pdf.ocr.picture import INK, Box, Grey, cut

_EDGE: Final = 5
"""Remains of a line around a cell, in pixels at 300 dots an inch."""
_MIN_SIDE: Final = 7
_SCRATCH: Final = 6
_DOTS: Final = 4
_MIN_INK: Final = 12
_STROKE_GAP: Final = 16
_FLAT: Final = 0.6
_WIDE_GAP: Final = 0.75
_PIXEL_GAP: Final = 3
_SQUARE: Final = 1.5
_PITCHES: Final = (0.95, 1.6)
"""Of letters in a column, in widths of it."""

_Span = tuple[int, int]


class InkLine(NamedTuple):
    """A line of text."""

    box: Box
    vertical: bool = False
    """Its letters are one below the other."""


def lines_in(picture: Grey, cell: Box) -> list[InkLine]:
    """The lines of text in a cell, or the one column."""
    inner = _inner(cell)
    if inner.width < _MIN_SIDE or inner.height < _MIN_SIDE:
        return []
    ink = cut(picture, inner) < INK
    bands = _whole(_spans(ink.sum(axis=1)))
    boxes = [
        Box(inner.x0 + left, inner.y0 + top, inner.x0 + right, inner.y0 + bottom)
        for top, bottom in bands
        if bottom - top >= _MIN_SIDE and ink[top:bottom].sum() >= _MIN_INK
        for left, right in [_extent(ink[top:bottom].sum(axis=0))]
    ]
    if _is_column(boxes):
        return [InkLine(_around(boxes), vertical=True)]
    return [InkLine(box) for box in boxes]


def without_scratches(picture: Grey, cell: Box) -> None:
    """Erase the remains of dotted lines from a cell: they are as thin as l, but broken."""
    part = cut(picture, _inner(cell))
    if not part.size:
        return
    ink = part < INK
    for start, end in _runs(ink.sum(axis=0) > 0):
        if end - start <= _SCRATCH and len(_runs(ink[:, start:end].sum(axis=1) > 0)) >= _DOTS:
            part[:, start:end] = 255


def _inner(cell: Box) -> Box:
    return Box(cell.x0 + _EDGE, cell.y0 + _EDGE, cell.x1 - _EDGE, cell.y1 - _EDGE)


def words_in(picture: Grey, line: Box) -> list[Box]:
    """The parts of a line that wide gaps divide."""
    ink = cut(picture, line) < INK
    words: list[_Span] = []
    for start, end in _spans(ink.sum(axis=0)):
        if words and start - words[-1][1] <= _WIDE_GAP * line.height:
            words[-1] = (words[-1][0], end)
        else:
            words.append((start, end))
    return [
        Box(line.x0 + start, line.y0, line.x0 + end, line.y1)
        for start, end in words
        if ink[:, start:end].sum() >= _MIN_INK
    ]


def joined(letters: Sequence[Grey]) -> Grey:
    """Letters of one line close to each other."""
    height = letters[0].shape[0]
    gap = np.full((height, height // 5), 255, dtype=np.uint8)
    return np.hstack([part for letter in letters for part in (letter, gap)])


def side_by_side(column: Grey) -> Grey:
    """The letters of a column from left to right, as recognizers know lines."""
    ink = column < INK
    left, right = _extent(ink.sum(axis=0)) if ink.any() else (0, 0)
    if right - left < _MIN_SIDE:
        return column
    profile = ink.sum(axis=1)
    top, bottom = _extent(profile)
    pitch, first = _grid(profile[top:bottom], right - left)
    cuts = [top + first + step * pitch for step in range(-1, (bottom - top) // pitch + 2)]
    letters = []
    for start, end in pairwise(cuts):
        letter = np.full((pitch, right - left + pitch // 5), 255, dtype=np.uint8)
        inside = column[max(start, 0) : max(end, 0), left:right]
        if len(inside) and (inside < INK).any():
            letter[: len(inside), : right - left] = _as_in_lines(inside)
        letters.append(letter)
    return np.hstack(letters)


def _as_in_lines(letter: Grey) -> Grey:
    """The letter; a comma or full stop moved from the upper right corner to the lower left one."""
    ink = letter < INK
    top, bottom = _extent(ink.sum(axis=1))
    left, right = _extent(ink.sum(axis=0))
    height, width = letter.shape
    if 2 * bottom > height or 2 * left < width:
        return letter
    moved = np.full_like(letter, 255)
    mark = letter[top:bottom, left:right]
    moved[height - top - len(mark) : height - top, width - right : width - left] = mark
    return moved


def _grid(profile: NDArray[np.intp], width: int) -> tuple[int, int]:
    """The distance of letters set at equal ones, and the first cut, where cuts meet least ink."""
    best = (float("inf"), width, 0)
    for pitch in range(int(_PITCHES[0] * width), int(_PITCHES[1] * width) + 1):
        # Ink near a cut counts too, so that cuts lie in the middle of gaps.
        near = np.convolve(profile, np.ones(max(pitch // 6, 1)), mode="same")
        steps = -(-len(near) // pitch)
        cells = np.zeros(steps * pitch)
        cells[: len(near)] = near
        costs = cells.reshape(steps, pitch).sum(axis=0) * pitch / width
        first = int(np.argmin(costs))
        best = min(best, (float(costs[first]), pitch, first))
    return best[1], best[2]


def _is_column(lines: Sequence[Box]) -> bool:
    """True for single letters, as close below each other as in a word."""
    if len(lines) < 2 or any(line.width > _SQUARE * line.height for line in lines):  # noqa: PLR2004 — one letter has no direction
        return False
    width = max(line.width for line in lines)
    return all(below.y0 - above.y1 < width for above, below in pairwise(lines))


def _runs(values: NDArray[np.bool_]) -> list[_Span]:
    edges = np.flatnonzero(np.diff(values.astype(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _spans(counts: NDArray[np.intp]) -> list[_Span]:
    """Runs of rows or columns with ink, across small gaps."""
    spans: list[_Span] = []
    for start, end in _runs(counts > 0):
        if spans and start - spans[-1][1] <= _PIXEL_GAP:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _whole(bands: Sequence[_Span]) -> list[_Span]:
    """Bands of ink, the strokes above and below a letter with it: of i, 三 or =."""
    height = max((end - start for start, end in bands), default=0)
    whole: list[_Span] = []
    for start, end in bands:
        last = whole[-1] if whole else None
        if last and start - last[1] <= _STROKE_GAP and _are_strokes(last, (start, end), height):
            whole[-1] = (last[0], end)
        else:
            whole.append((start, end))
    return whole


def _are_strokes(above: _Span, below: _Span, height: int) -> bool:
    flat = min(above[1] - above[0], below[1] - below[0]) < _FLAT * height
    return flat or below[1] - above[0] <= height


def _extent(counts: NDArray[np.intp]) -> _Span:
    inked = np.flatnonzero(counts)
    return int(inked[0]), int(inked[-1]) + 1


def _around(boxes: Iterable[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return Box(min(x0), min(y0), max(x1), max(y1))
