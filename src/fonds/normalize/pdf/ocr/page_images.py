"""Pictures on pages that have a text of their own, and texts that are drawn without letters."""

from __future__ import annotations

from statistics import median
from typing import Final

import numpy as np

from fonds.model import OcrPage
from fonds.normalize.pdf.ocr import Render, confidence_of, marked
from fonds.normalize.pdf.ocr.engines import RecognizedText, Recognizer
from fonds.normalize.pdf.ocr.picture import Box, Grey, cut, grey_of
from fonds.normalize.pdf.ocr.text_lines import SCALE, count_lines
from fonds.normalize.pdf.page import PdfPage, Picture, TextRun

_MIN_CONFIDENCE: Final = 0.6
_MIN_LETTERS: Final = 3
_FEW_LETTERS: Final = 200
_MIN_LINES: Final = 5
_LETTERS_A_LINE: Final = 10
_PAPER: Final = 255


def find_pictures_with_text(page: PdfPage, render: Render, earlier: set[tuple[int, ...]]) -> None:
    """Drop the pictures of a page that were on others, or show nothing like a line of text."""
    pictures = [picture for picture in page.pictures if picture.key not in earlier]
    earlier.update(picture.key for picture in pictures)
    letters = sum(len(run.text) for row in page.rows for run in row)
    page.pictures = []
    if not pictures and letters >= _FEW_LETTERS:
        return
    bitmap = render(SCALE)
    if bitmap is None:
        return
    paper = _without_text(grey_of(bitmap), page)
    page.pictures = [
        picture for picture in pictures if count_lines(cut(paper, _box(picture, page, paper)))
    ]
    if letters < _FEW_LETTERS and not page.pictures:
        lines = count_lines(paper)
        page.scanned = lines >= _MIN_LINES and lines * _LETTERS_A_LINE > letters


def read_pictures(
    page: PdfPage, render: Render, scale: float, recognizer: Recognizer, language: str | None
) -> None:
    """Read what the pictures of a page say; their texts follow the page's own."""
    bitmap = render(scale)
    if bitmap is None:
        return
    paper = _without_text(grey_of(bitmap), page)
    texts: list[RecognizedText] = []
    runs: list[TextRun] = []
    size = median([run.size for row in page.rows for run in row] or [10.0])
    for picture in page.pictures:
        box = _box(picture, page, paper)
        for text in recognizer.read(np.ascontiguousarray(cut(paper, box)), [], language):
            if text.confidence >= _MIN_CONFIDENCE:
                texts.append(text)
                runs.append(_run(text, box, page, paper, size))
    page.pictures = []
    if sum(len(text.text) for text in texts) < _MIN_LETTERS:
        return
    page.rows += [[run] for run in runs]
    confidence, letters = confidence_of(texts)
    page.ocr = OcrPage(page=page.number, confidence=confidence, letters=letters)


def _box(picture: Picture, page: PdfPage, paper: Grey) -> Box:
    return _pixels(picture.box, page, paper)


def _pixels(box: tuple[float, float, float, float], page: PdfPage, paper: Grey) -> Box:
    x0, y0, x1, y1 = box
    scale = paper.shape[0] / page.height
    sides = (x0, page.height - y1, x1, page.height - y0)
    left, top, right, bottom = (max(round(side * scale), 0) for side in sides)
    return Box(left, top, right, bottom)


def _without_text(paper: Grey, page: PdfPage) -> Grey:
    """The page as drawn, without the letters that its text layer has."""
    for run in (run for row in page.rows for run in row):
        below = 0 if run.vertical or run.turned else 0.3 * run.size
        box = (run.x0 - 1, run.y0 - below, run.x1 + 1, run.y1 + 1)
        x0, y0, x1, y1 = _pixels(box, page, paper)
        paper[y0:y1, x0:x1] = _PAPER
    return paper


def _run(text: RecognizedText, around: Box, page: PdfPage, paper: Grey, size: float) -> TextRun:
    scale = page.height / paper.shape[0]
    x0, y1 = (around.x0 + text.box.x0) * scale, page.height - (around.y0 + text.box.y0) * scale
    x1, y0 = (around.x0 + text.box.x1) * scale, page.height - (around.y0 + text.box.y1) * scale
    top = y1 if text.vertical else y0 + size
    return TextRun(
        x0, y0, x1, top, size, bold=False, text=marked(text), turned=False, vertical=text.vertical
    )
