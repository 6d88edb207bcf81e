"""A page as a picture: grey values, places in it, which way up it is, and how far it leans."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.uint8]
"""Rows from the top, 0 is black."""

INK: Final = 140
"""Grey values below this are ink."""

_MIN_LEAN: Final = 0.001
_MAX_LEAN: Final = 0.105
_STEP: Final = 0.001
_MAX_POINTS: Final = 60_000
_CLEARLY: Final = 1.1
_CLEARLY_VERTICAL: Final = 2.0
_STROKE: Final = 12


class Box(NamedTuple):
    """A place in a picture, in pixels from its upper left corner."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def width(self) -> int:
        """From its left edge to its right one."""
        return self.x1 - self.x0

    @property
    def height(self) -> int:
        """From its upper edge to its lower one."""
        return self.y1 - self.y0


def grey_of(bitmap: Any) -> Grey:
    """The pixels of a grey bitmap of pdfium, copied."""
    pixels = np.asarray(bitmap.to_numpy(), dtype=np.uint8)
    return np.array(pixels[:, :, 0] if pixels.ndim > 2 else pixels)  # noqa: PLR2004 — height and width


def cut(picture: Grey, box: Box) -> Grey:
    """The part of a picture at a place, as far as it is inside."""
    return picture[max(box.y0, 0) : max(box.y1, 0), max(box.x0, 0) : max(box.x1, 0)]


def turned(picture: Grey, degrees: int) -> Grey:
    """The picture turned clockwise by right angles."""
    return np.ascontiguousarray(np.rot90(picture, -degrees // 90))


def lean_of(picture: Grey) -> float:
    """How far lines of text fall from left to right, as the tangent of the angle.

    The rows of a picture alternate most between ink and paper where its lines lie level.
    """
    step = max(1, max(picture.shape) // 1200)
    y, x = np.nonzero(picture[::step, ::step] < INK)
    if len(y) > _MAX_POINTS:
        sampled = np.linspace(0, len(y) - 1, _MAX_POINTS).astype(np.intp)
        y, x = y[sampled], x[sampled]
    if not len(y):
        return 0.0
    x = x - picture.shape[1] // step / 2
    leans = np.arange(-_MAX_LEAN, _MAX_LEAN + _STEP, _STEP)
    contrasts = [_contrast(y - x * lean) for lean in leans]
    best = int(np.argmax(contrasts))
    # What has no lines, such as a photograph, leans nowhere.
    is_clear = contrasts[best] > _CLEARLY * _contrast(y - x * 0.0)
    if not is_clear or best in (0, len(leans) - 1):
        return 0.0
    return float(leans[best])


def _contrast(heights: NDArray[Any]) -> float:
    counts = np.bincount((heights - heights.min()).astype(np.intp))
    return float(np.square(np.diff(counts.astype(np.float64))).sum())


def is_vertical(picture: Grey) -> bool:
    """True if lines of text run from the top to the bottom: then columns alternate, not rows."""
    y, x = np.nonzero(picture < INK)
    return len(y) > 0 and _contrast(x / _STROKE) > _CLEARLY_VERTICAL * _contrast(y / _STROKE)


def straightened(picture: Grey, lean: float) -> Grey:
    """The picture with its lines level; by less than a line's width it is left as it is."""
    if abs(lean) < _MIN_LEAN:
        return picture
    height, width = picture.shape
    length = (1 + lean * lean) ** 0.5
    cosine, sine = 1 / length, lean / length
    x = np.arange(width) - width / 2
    level = np.full_like(picture, 255)
    for row in range(height):
        y = row - height / 2
        from_x = np.rint(x * cosine - y * sine + width / 2).astype(np.intp)
        from_y = np.rint(x * sine + y * cosine + height / 2).astype(np.intp)
        inside = (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
        level[row, inside] = picture[from_y[inside], from_x[inside]]
    return level
