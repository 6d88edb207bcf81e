"""Lines, words and letters as patches of ink within a part of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fonds.normalize.pdf.ocr.picture import INK, Box, Grey, cut

_EDGE: Final = 5
"""Remains of a line around a cell, in pixels at 300 dots an inch."""
_MIN_SIDE: Final = 7
_SCRATCH: Final = 3
_MIN_INK: Final = 12
_STROKE_GAP: Final = 16
_FLAT: Final = 0.6
_WIDE_GAP: Final = 0.75
_PIXEL_GAP: Final = 3
_SQUARE: Final = 1.5

_Span = tuple[int, int]


def lines_in(picture: Grey, cell: Box) -> list[Box]:
    """The lines of text in a cell; letters one below the other are one tall line."""
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
    return [_around(boxes)] if _is_column(boxes) else boxes


def without_scratches(picture: Grey, cell: Box) -> None:
    """Erase from a cell what is thinner than any letter: what is left of dotted lines."""
    part = cut(picture, _inner(cell))
    counts = (part < INK).sum(axis=0) if part.size else np.zeros(0, dtype=np.intp)
    edges = np.flatnonzero(np.diff((counts > 0).astype(np.int8), prepend=0, append=0))
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if end - start <= _SCRATCH:
            part[:, start:end] = 255


def _inner(cell: Box) -> Box:
    return Box(cell.x0 + _EDGE, cell.y0 + _EDGE, cell.x1 - _EDGE, cell.y1 - _EDGE)


def words_in(picture: Grey, line: Box) -> list[Box]:
    """The parts of a line that wide gaps divide."""
    if line.height > _SQUARE * line.width:
        return [line]
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
    pitch = column.shape[1]
    letters = _letters(_spans(ink.sum(axis=1)), pitch)
    height = max((end - start for start, end in letters), default=0)
    letters_in_line = []
    for start, end in letters:
        letter = np.full((max(height, pitch), pitch), 255, dtype=np.uint8)
        top = (len(letter) - (end - start)) // 2
        letter[top : top + end - start] = column[start:end]
        letters_in_line.append(letter)
    return np.hstack(letters_in_line) if letters_in_line else column


def _letters(spans: Sequence[_Span], pitch: int) -> list[_Span]:
    """Strokes of one letter together: letters of a column are about as high as it is wide."""
    letters: list[_Span] = []
    for start, end in spans:
        if letters and end - letters[-1][0] <= pitch and start - letters[-1][1] < pitch // 4:
            letters[-1] = (letters[-1][0], end)
        else:
            letters.append((start, end))
    return letters


def _is_column(lines: Sequence[Box]) -> bool:
    """True for single letters, as close below each other as in a word."""
    if len(lines) < 2 or any(line.width > _SQUARE * line.height for line in lines):  # noqa: PLR2004 — one letter has no direction
        return False
    width = max(line.width for line in lines)
    return all(below.y0 - above.y1 < width for above, below in pairwise(lines))


def _spans(counts: NDArray[np.intp]) -> list[_Span]:
    """Runs of rows or columns with ink, across small gaps."""
    edges = np.flatnonzero(np.diff((counts > 0).astype(np.int8), prepend=0, append=0))
    spans: list[_Span] = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
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
