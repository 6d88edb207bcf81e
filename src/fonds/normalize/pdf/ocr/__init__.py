"""Reading pages that are only pictures: their texts and tables, with places on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from fonds.model import OcrPage
from fonds.normalize.pdf.grid import Rule, RuledGrid, grids_of
from fonds.normalize.pdf.marks import uncertain
from fonds.normalize.pdf.ocr.engines import RecognizedText, Recognizer
from fonds.normalize.pdf.ocr.picture import (
    Box,
    Grey,
    grey_of,
    lean_of,
    straightened,
    turned,
)
from fonds.normalize.pdf.ocr.rules import rules_of, without_rules
from fonds.normalize.pdf.page import PdfPage, TextRun

RENDER_SCALE: Final = 300 / 72
"""Three hundred dots an inch, which recognizers are trained on."""

Render = Callable[[float], Any]
"""Gives a page as a grey bitmap of pdfium at a scale, or None."""

FLOOR: Final = 0.75
"""Texts that are recognized with less confidence are marked."""

_REFUSED: Final = 0.45
"""Of a whole page: what is recognized with less makes no sense."""

_TYPE: Final = 0.9
"""The size of type in heights of a line's ink."""
_OTHER_SIZE: Final = 1.35


@dataclass(frozen=True, slots=True)
class _RecognizedPicture:
    """A picture as it was recognized, level and the right way up."""

    height: int
    width: int
    texts: list[RecognizedText]
    rules: list[Rule]
    grids: list[RuledGrid]


def recognize(
    page: PdfPage, render: Render, scale: float, recognizer: Recognizer, language: str | None
) -> None:
    """Read the page from its picture; a page that lies on its side is turned."""
    bitmap = render(scale)
    if bitmap is None:
        return
    reading = _read(grey_of(bitmap), scale, recognizer, language)
    confidence, letters = confidence_of(reading.texts)
    if not letters:
        return
    if confidence < _REFUSED:
        page.refused_confidence = confidence
        return
    if (reading.width > reading.height) != (page.width > page.height):
        page.width, page.height = page.height, page.width
    _set_runs(page, reading)
    page.ocr = OcrPage(page=page.number, confidence=confidence, letters=letters)


def confidence_of(texts: Iterable[RecognizedText]) -> tuple[float, int]:
    """The mean over all letters, and how many there are."""
    lengths = [(text.confidence, len(text.text.strip())) for text in texts]
    letters = sum(length for _, length in lengths)
    total = sum(confidence * length for confidence, length in lengths)
    return round(total / letters, 4) if letters else 0.0, letters


def _read(
    picture: Grey, scale: float, recognizer: Recognizer, language: str | None
) -> _RecognizedPicture:
    picture = turned(picture, recognizer.rotation(picture, language))
    picture = straightened(picture, lean_of(picture))
    height, width = picture.shape
    flat, upright = rules_of(picture)
    middles = [*map(_middle_of_flat, flat), *map(_middle_of_upright, upright)]
    rules = [_rule(box, height, scale) for box in middles]
    grids = grids_of(rules)
    cells = [_pixels(grid.box_of(cell), height, scale) for grid in grids for cell in grid.cells]
    tables = [_pixels(grid.box, height, scale) for grid in grids]
    erased = without_rules(
        picture, (box for box in (*flat, *upright) if any(_is_in(box, one) for one in tables))
    )
    texts = recognizer.read(erased, cells, language)
    return _RecognizedPicture(height, width, texts, rules, grids)


def _middle_of_flat(box: Box) -> Box:
    """The line without its thickness, which is that of a scanner, or of a lean."""
    middle = (box.y0 + box.y1) // 2
    return Box(box.x0, middle, box.x1, middle + 1)


def _middle_of_upright(box: Box) -> Box:
    middle = (box.x0 + box.x1) // 2
    return Box(middle, box.y0, middle + 1, box.y1)


def _rule(box: Box, height: int, scale: float) -> Rule:
    """A line of a picture in points from the lower left corner."""
    return Rule(
        box.x0 / scale, (height - box.y1) / scale, box.x1 / scale, (height - box.y0) / scale
    )


def _pixels(box: tuple[float, float, float, float], height: int, scale: float) -> Box:
    x0, y0, x1, y1 = box
    return Box(
        round(x0 * scale), round(height - y1 * scale), round(x1 * scale), round(height - y0 * scale)
    )


def _set_runs(page: PdfPage, reading: _RecognizedPicture) -> None:
    """Give the page its runs and rules, in points from its lower left corner."""
    scale = page.width / reading.width
    size = _prevailing_size(reading.texts) * scale
    page.rules, page.grids, page.rows = reading.rules, reading.grids, []
    for text in reading.texts:
        run = _run(text, reading, scale, size)
        if text.text.startswith(" ") and page.rows:
            page.rows[-1].append(run)
        else:
            page.rows.append([run])


def _prevailing_size(texts: Sequence[RecognizedText]) -> float:
    """The size of most letters, in pixels: what is recognized varies from line to line."""
    sizes = [_size(text) for text in texts for _ in text.text]
    return median(sizes) if sizes else 0.0


def _size(text: RecognizedText) -> float:
    return _TYPE * (text.box.width if text.vertical else text.box.height)


def _run(
    text: RecognizedText, reading: _RecognizedPicture, scale: float, prevailing: float
) -> TextRun:
    x0, y0, x1, y1 = text.box
    size = _size(text) * scale
    if prevailing / _OTHER_SIZE < size < prevailing * _OTHER_SIZE:
        size = prevailing
    base = (reading.height - y1) * scale
    top = (reading.height - y0) * scale if text.vertical else base + size
    return TextRun(
        x0 * scale,
        base,
        x1 * scale,
        top,
        size,
        bold=False,
        text=marked(text),
        vertical=text.vertical,
    )


def marked(text: RecognizedText) -> str:
    """The text, between marks where it is uncertain."""
    return text.text if text.confidence >= FLOOR else uncertain(text.text, text.confidence)


def _is_in(box: Box, around: Box) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return around.x0 <= x <= around.x1 and around.y0 <= y <= around.y1
