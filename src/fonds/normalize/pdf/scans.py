"""Pages that are pictures, and pictures on pages: what is read of them, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from fonds.normalize.pdf.document import Pdf
from fonds.normalize.pdf.ocr import RENDER_SCALE, recognize
from fonds.normalize.pdf.ocr.engines import Recognizer, language_of
from fonds.normalize.pdf.ocr.page_images import find_pictures_with_text, read_pictures
from fonds.normalize.pdf.ocr.time_limit import TimeLimit
from fonds.normalize.pdf.page import PdfPage, guarded

OCR_ADVICE: Final = "to have it read, pip install 'fonds[ocr]' or install tesseract"
_TIME_ADVICE: Final = (
    "recognizing the pages before took the time that one file may take (setting read_seconds)"
)
_MAX_PIXELS: Final = 40_000_000


def read_scans(pdf: Pdf, pages: Sequence[PdfPage], recognizer: Recognizer | None) -> list[str]:
    """Read pages without a usable text layer, and pictures with text; the warnings about them."""
    earlier: set[tuple[int, ...]] = set()
    for page in pages:
        if page.scanned:
            page.pictures = []
        else:
            find_pictures_with_text(page, partial(pdf.render, page.number - 1), earlier)
    language = language_of(" ".join(page.run_text for page in pages), pdf.language)
    limit = TimeLimit()
    warnings = []
    for page in pages:
        if not page.scanned and not page.pictures:
            continue
        reason = "" if recognizer else OCR_ADVICE
        if recognizer and not limit.allows_a_page():
            reason = _TIME_ADVICE
        if recognizer and not reason:
            _recognize(pdf, page, recognizer, language)
        about = _about_scan if page.scanned else _about_pictures
        warnings += about(page, reason)
    return warnings


def _recognize(pdf: Pdf, page: PdfPage, recognizer: Recognizer, language: str | None) -> None:
    scale = float(min(RENDER_SCALE, (_MAX_PIXELS / (page.width * page.height)) ** 0.5))
    render: Callable[[float], Any] = partial(pdf.render, page.number - 1)
    read = recognize if page.scanned else read_pictures
    guarded(lambda: read(page, render, scale, recognizer, language))


def _about_pictures(page: PdfPage, reason: str) -> list[str]:
    if page.ocr:
        return [f"page {page.number}: the text of a picture was recognized"]
    if not page.pictures:
        return []
    several = len(page.pictures) > 1
    pictures = f"{len(page.pictures)} pictures" if several else "a picture"
    return [
        f"page {page.number}: {pictures} with text {'were' if several else 'was'} not read; "
        + (reason or "the recognizer failed")
    ]


def _about_scan(page: PdfPage, reason: str) -> list[str]:
    if reason:
        return [f"page {page.number} has no usable text layer; {reason}"]
    if page.ocr:
        how = "its text was recognized from the picture"
    elif page.refused_confidence is not None:
        how = (
            "its text was recognized with so little confidence "
            f"({page.refused_confidence:.2f}) that it is left out"
        )
    else:
        return [f"page {page.number} has no text layer, and no text was recognized in its picture"]
    return [f"page {page.number} has no usable text layer; {how}"]
