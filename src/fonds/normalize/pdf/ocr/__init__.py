"""Reading pages that are only pictures: their texts and tables, with places on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from fonds.model import OcrPage
from fonds.normalize.pdf.marks import uncertain
from fonds.normalize.pdf.ocr.cells import RuledTable, ruled_tables
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
from fonds.normalize.pdf.page import PdfPage, PictureTable, TextRun
from fonds.normalize.pdf.table_model import table_of

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
    tables: list[RuledTable]


def recognize(
    page: PdfPage, render: Render, scale: float, recognizer: Recognizer, language: str | None
) -> None:
    """Read the page from its picture; a page that lies on its side is turned."""
    bitmap = render(scale)
    if bitmap is None:
        return
    reading = _read(grey_of(bitmap), recognizer, language)
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


def _read(picture: Grey, recognizer: Recognizer, language: str | None) -> _RecognizedPicture:
    picture = turned(picture, recognizer.rotation(picture, language))
    picture = straightened(picture, lean_of(picture))
    tables = ruled_tables(*rules_of(picture))
    cells = [cell.box for table in tables for cell in table.cells]
    erased = without_rules(picture, (rule for table in tables for rule in table.rules))
    texts = recognizer.read(erased, cells, language)
    height, width = picture.shape
    return _RecognizedPicture(height, width, texts, tables)


def _set_runs(page: PdfPage, reading: _RecognizedPicture) -> None:
    """Give the page its runs and tables, in points from its lower left corner."""
    scale = page.width / reading.width
    size = _prevailing_size(reading.texts) * scale
    page.tables = [_picture_table(table, reading, scale, size) for table in reading.tables]
    tables = [table.box for table in reading.tables]
    aside = [text for text in reading.texts if not any(_is_in(text.box, box) for box in tables)]
    page.rows = [[_run(text, reading, scale, size)] for text in aside]


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


def _picture_table(
    table: RuledTable, reading: _RecognizedPicture, scale: float, size: float
) -> PictureTable:
    cells = {(cell.row, cell.column): cell.box for cell in table.cells}
    grid = [
        [_lines_in(cells.get((row, column)), reading.texts) for column in range(table.columns)]
        for row in range(table.rows)
    ]
    x0, y0, x1, _ = table.box
    top = (reading.height - y0) * scale
    return PictureTable(x0 * scale, x1 * scale, top, size, table_of(grid))


def _lines_in(cell: Box | None, texts: Sequence[RecognizedText]) -> tuple[str, ...]:
    """The lines of a cell; a text that begins with a space goes on with the one before it."""
    lines: list[str] = []
    for text in texts if cell else ():
        if cell and _is_in(text.box, cell):
            if lines and text.text.startswith(" "):
                lines[-1] += marked(text)
            else:
                lines.append(marked(text).strip())
    return tuple(lines)


def _is_in(box: Box, around: Box) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return around.x0 <= x <= around.x1 and around.y0 <= y <= around.y1
