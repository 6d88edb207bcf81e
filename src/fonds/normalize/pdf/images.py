"""The pictures that a page shows, with their places."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Final

from pypdfium2 import raw

from fonds.normalize.pdf.page import Picture

_MAX_OBJECTS: Final = 30_000
_MAX_PICTURES: Final = 50
_MAX_DEPTH: Final = 3
_MIN_WIDTH: Final = 40.0
_MIN_HEIGHT: Final = 10.0

_Box = tuple[float, float, float, float]
_Matrix = tuple[float, float, float, float, float, float]


def pictures_of(native: Any, box_on_page: Callable[..., _Box]) -> list[Picture]:
    """The pictures of a page of pdfium that are large enough for words."""
    pictures = []
    count = raw.FPDFPage_CountObjects(native.raw)
    objects = (raw.FPDFPage_GetObject(native.raw, at) for at in range(min(count, _MAX_OBJECTS)))
    for drawn, matrix in _images(objects, (1, 0, 0, 1, 0, 0), 0):
        box = box_on_page(*_extent(matrix))
        if box[2] - box[0] >= _MIN_WIDTH and box[3] - box[1] >= _MIN_HEIGHT:
            pictures.append(Picture(box, _key(drawn)))
    return pictures[:_MAX_PICTURES]


def _images(objects: Iterator[Any], outer: _Matrix, depth: int) -> Iterator[tuple[Any, _Matrix]]:
    for drawn in objects:
        kind = raw.FPDFPageObj_GetType(drawn)
        if kind == raw.FPDF_PAGEOBJ_IMAGE:
            yield drawn, _product(_matrix(drawn), outer)
        elif kind == raw.FPDF_PAGEOBJ_FORM and depth < _MAX_DEPTH:
            count = min(raw.FPDFFormObj_CountObjects(drawn), _MAX_OBJECTS)
            inner = (raw.FPDFFormObj_GetObject(drawn, at) for at in range(count))
            yield from _images(inner, _product(_matrix(drawn), outer), depth + 1)


def _matrix(drawn: Any) -> _Matrix:
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(drawn, matrix)
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _product(inner: _Matrix, outer: _Matrix) -> _Matrix:
    a, b, c, d, e, f = inner
    p, q, r, s, t, u = outer
    return (
        a * p + b * r,
        a * q + b * s,
        c * p + d * r,
        c * q + d * s,
        e * p + f * r + t,
        e * q + f * s + u,
    )


def _extent(matrix: _Matrix) -> _Box:
    """The box around a picture, which is a square of side one before its matrix is applied."""
    a, b, c, d, e, f = matrix
    xs, ys = (e, e + a, e + c, e + a + c), (f, f + b, f + d, f + b + d)
    return min(xs), min(ys), max(xs), max(ys)


def _key(drawn: Any) -> tuple[int, ...]:
    """Numbers that are equal for a picture that is shown again, such as a logo."""
    width, height = ctypes.c_uint(), ctypes.c_uint()
    raw.FPDFImageObj_GetImagePixelSize(drawn, width, height)
    return width.value, height.value, int(raw.FPDFImageObj_GetImageDataRaw(drawn, None, 0))
