"""Strokes and thin or shaded boxes of a page, as rules."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pypdfium2 import raw

from fonds.normalize.pdf.grid import Rule, RuledGrid, grids_of

_THIN: Final = 3.0
_STRAIGHT: Final = 0.6
_MAX_OBJECTS: Final = 30_000
_MAX_SEGMENTS: Final = 8_000
_MAX_DEPTH: Final = 3
_MAX_CORNERS: Final = 12
_LETTER: Final = 9.0
"""Filled shapes smaller than that are letters and ornaments."""
_WHITE: Final = 250
_BAND: Final = 24.0
_BEYOND: Final = 0.5
_MIN_CELLS: Final = 4

Box = tuple[float, float, float, float]
_Matrix = tuple[float, float, float, float, float, float]


class _PaintMode(NamedTuple):
    is_stroked: bool
    color: int | None
    """Of what is filled and not white."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Strokes and shades of a page, as a viewer shows them."""

    strokes: list[Rule]
    shades: list[tuple[int, Box]]
    """Color and extent of each shaded box."""

    def rules_and_grids(self) -> tuple[list[Rule], list[RuledGrid]]:
        """All rules, and the grids they make; within cells of strokes, shades have no sides."""
        grids = grids_of(self.strokes)
        if not self.shades:
            return self.strokes, grids
        drawn = [grid for grid in grids if len(grid.cells) >= _MIN_CELLS]
        outside = [
            (color, box)
            for color, box in self.shades
            if not any(_is_part(box, one) for one in drawn)
        ]
        rules = self.strokes + [Rule(*side) for side in _outlines(outside)]
        return rules, grids_of(rules) if outside else grids


def _is_part(box: Box, grid: RuledGrid) -> bool:
    """A shade within a table that does not begin and end with its columns."""
    x0, y0, x1, y1 = box
    if not _is_in(((x0 + x1) / 2, (y0 + y1) / 2), grid.box):
        return False
    return not all(any(abs(x - left) <= _THIN for left in grid.lefts) for x in (x0, x1))


def drawing_of(native: Any, box_on_page: Callable[[float, float, float, float], Box]) -> Drawing:
    """The straight strokes of a page, and its shaded boxes."""
    paths = _Paths(native)
    strokes = [Rule(*box_on_page(*box)) for box in paths.boxes()]
    return Drawing(strokes, [(color, box_on_page(*box)) for color, box in paths.shades])


def _outlines(shades: Iterable[tuple[int, Box]]) -> Iterator[Box]:
    """The sides of shaded boxes, but for those between two of one color.

    Word processors shade each line of a cell, and the cell again.
    """
    by_color: dict[int, set[Box]] = {}
    for color, box in shades:
        by_color.setdefault(color, set()).add(box)
    for boxes in by_color.values():
        bands: dict[int, list[Box]] = {}
        for box in boxes:
            for band in range(int(box[1] // _BAND), int(box[3] // _BAND) + 1):
                bands.setdefault(band, []).append(box)
        for x0, y0, x1, y1 in boxes:
            x, y = (x0 + x1) / 2, (y0 + y1) / 2
            for side, beyond in (
                ((x0, y0, x1, y0), (x, y0 - _BEYOND)),
                ((x0, y1, x1, y1), (x, y1 + _BEYOND)),
                ((x0, y0, x0, y1), (x0 - _BEYOND, y)),
                ((x1, y0, x1, y1), (x1 + _BEYOND, y)),
            ):
                band = int(beyond[1] // _BAND)
                if not any(_is_in(beyond, other) for other in bands.get(band, [])):
                    yield side


def _is_in(point: tuple[float, float], box: Box) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


class _Paths:
    """Reads the objects of one page, as deep as forms are nested."""

    def __init__(self, native: Any) -> None:
        self._page = native.raw
        self._numbers = [ctypes.c_float() for _ in range(4)]
        self._references = [ctypes.byref(number) for number in self._numbers]
        self._mode = ctypes.c_int()
        self._stroke = ctypes.c_int()
        self._colors = [ctypes.c_uint() for _ in range(4)]
        self.shades: list[tuple[int, Box]] = []
        """Color and extent of each shaded box, once all strokes are read."""
        self._objects = _MAX_OBJECTS
        self._segments = _MAX_SEGMENTS

    def boxes(self) -> Iterator[Box]:
        """The extents of all strokes."""
        for at in range(raw.FPDFPage_CountObjects(self._page)):
            yield from self._boxes(raw.FPDFPage_GetObject(self._page, at), (), _MAX_DEPTH)

    def _boxes(self, drawn: Any, matrices: tuple[_Matrix, ...], depth: int) -> Iterator[Box]:
        self._objects -= 1
        if self._objects < 0:
            return
        kind = raw.FPDFPageObj_GetType(drawn)
        if kind == raw.FPDF_PAGEOBJ_PATH:
            yield from self._path(drawn, matrices)
        elif kind == raw.FPDF_PAGEOBJ_IMAGE:
            box = self._bounds(drawn, matrices)
            if box and _is_thin(*box):
                yield box
        elif kind == raw.FPDF_PAGEOBJ_FORM and depth:
            inner = (_matrix(drawn), *matrices)
            for at in range(raw.FPDFFormObj_CountObjects(drawn)):
                yield from self._boxes(raw.FPDFFormObj_GetObject(drawn, at), inner, depth - 1)

    def _path(self, drawn: Any, matrices: tuple[_Matrix, ...]) -> Iterator[Box]:
        style = self._style(drawn)
        if not style.is_stroked and style.color is None:
            return
        box = self._bounds(drawn, matrices)
        if box is None:
            return
        if _is_thin(*box):
            yield box
            return
        if not style.is_stroked and max(box[2] - box[0], box[3] - box[1]) < _LETTER:
            return
        count = raw.FPDFPath_CountSegments(drawn)
        if not style.is_stroked and count > _MAX_CORNERS:
            return
        self._segments -= count
        if self._segments >= 0:
            yield from self._sides(drawn, count, (_matrix(drawn), *matrices), style)

    def _style(self, drawn: Any) -> _PaintMode:
        raw.FPDFPath_GetDrawMode(drawn, self._mode, self._stroke)
        color = self._color(drawn) if self._mode.value else None
        return _PaintMode(bool(self._stroke.value), color)

    def _color(self, drawn: Any) -> int | None:
        if not raw.FPDFPageObj_GetFillColor(drawn, *self._colors):
            return 0
        red, green, blue, alpha = (part.value for part in self._colors)
        if not alpha or min(red, green, blue) >= _WHITE:
            return None
        return int(red << 16 | green << 8 | blue)

    def _bounds(self, drawn: Any, matrices: tuple[_Matrix, ...]) -> Box | None:
        if not raw.FPDFPageObj_GetBounds(drawn, *self._references):
            return None
        x0, y0, x1, y1 = (number.value for number in self._numbers)
        if not matrices:
            return x0, y0, x1, y1
        return _box(_transformed(x0, y0, matrices), _transformed(x1, y1, matrices))

    def _sides(
        self, drawn: Any, count: int, matrices: tuple[_Matrix, ...], style: _PaintMode
    ) -> Iterator[Box]:
        """The straight sides of all shapes of a path; of a thin shape its whole extent."""
        for shape in self._shapes(drawn, count, matrices):
            sides = [_box(*side) for side in pairwise(shape)]
            xs, ys = zip(*shape, strict=True)
            extent = min(xs), min(ys), max(xs), max(ys)
            if len(sides) > 1 and _is_thin(*extent):
                yield extent
            elif style.is_stroked:
                yield from filter(_is_straight, sides)
            elif style.color is not None and all(map(_is_straight, sides)):
                self.shades.append((style.color, extent))

    def _shapes(
        self, drawn: Any, count: int, matrices: tuple[_Matrix, ...]
    ) -> Iterator[list[tuple[float, float]]]:
        """The corners of each shape; curves end one."""
        x, y = self._numbers[:2]
        corners: list[tuple[float, float]] = []
        for at in range(count):
            segment = raw.FPDFPath_GetPathSegment(drawn, at)
            kind = raw.FPDFPathSegment_GetType(segment)
            raw.FPDFPathSegment_GetPoint(segment, x, y)
            corner = _transformed(x.value, y.value, matrices)
            if kind != raw.FPDF_SEGMENT_LINETO:
                if len(corners) > 1:
                    yield corners
                corners = []
            corners.append(corner)
            if raw.FPDFPathSegment_GetClose(segment) and len(corners) > 1:
                corners.append(corners[0])
        if len(corners) > 1:
            yield corners


def _matrix(drawn: Any) -> _Matrix:
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(drawn, matrix):
        return 1.0, 0.0, 0.0, 1.0, 0.0, 0.0
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _transformed(x: float, y: float, matrices: tuple[_Matrix, ...]) -> tuple[float, float]:
    for a, b, c, d, e, f in matrices:
        x, y = a * x + c * y + e, b * x + d * y + f
    return x, y


def _box(one: tuple[float, float], other: tuple[float, float]) -> Box:
    (x0, y0), (x1, y1) = one, other
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _is_thin(x0: float, y0: float, x1: float, y1: float) -> bool:
    return min(x1 - x0, y1 - y0) <= _THIN


def _is_straight(side: Box) -> bool:
    x0, y0, x1, y1 = side
    return min(x1 - x0, y1 - y0) <= _STRAIGHT
