"""Telling text in pictures from photographs and drawings, without reading it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fonds.normalize.pdf.ocr.picture import Grey

SCALE: Final = 100 / 72
"""At a hundred dots an inch, letters are about ten pixels high."""

_CONTRAST: Final = 45
_NEARLY_WHITE: Final = 240
_MIN_AREA: Final = 100
_RADIUS: Final = 12
_MIN_CHANGES: Final = 12
_HEIGHTS: Final = range(4, 40)
_QUIET: Final = 0.3


def count_lines(picture: Grey) -> int:
    """About how many lines of text a picture at `SCALE` has, level or in columns."""
    picture = _without_margins(picture)
    if min(picture.shape) < _HEIGHTS.start:
        return 0
    values = picture.astype(np.float32)
    relative = values - _mean_around(_mean_around(values).T).T
    # Letters may be light on dark.
    inks = (relative < -_CONTRAST, relative > _CONTRAST)
    return max(_count(direction) for ink in inks for direction in (ink, ink.T))


def _without_margins(picture: Grey) -> Grey:
    """The part that is not of one grey: most of a page is paper."""
    if not picture.size:
        return picture
    varied = picture < _NEARLY_WHITE if picture[0, 0] >= _NEARLY_WHITE else picture > _NEARLY_WHITE
    rows, columns = np.flatnonzero(varied.any(axis=1)), np.flatnonzero(varied.any(axis=0))
    if len(rows) * len(columns) < _MIN_AREA:
        return picture[:0]
    return picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _count(ink: NDArray[np.bool_]) -> int:
    """Rows where ink and paper alternate often, between rows where they hardly do."""
    changes = np.abs(np.diff(ink.astype(np.int8), axis=1)).sum(axis=1)
    edges = np.flatnonzero(np.diff((changes >= _MIN_CHANGES).astype(np.int8), prepend=0, append=0))
    return sum(
        _is_line(changes, start, end)
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    )


def _is_line(changes: NDArray[np.intp], start: int, end: int) -> bool:
    if end - start not in _HEIGHTS:
        return False
    around = [int(changes[at]) for at in (start - 2, end + 1) if 0 <= at < len(changes)]
    return max(around, default=0) <= _QUIET * int(changes[start:end].max())


def _mean_around(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of each value and those in the rows above and below it."""
    padded = np.pad(values, ((_RADIUS + 1, _RADIUS), (0, 0)), mode="edge")
    sums = np.cumsum(padded, axis=0, dtype=np.float64)
    width = 2 * _RADIUS + 1
    return np.asarray((sums[width:] - sums[:-width]) / width, dtype=np.float32)
