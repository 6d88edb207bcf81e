"""Opening a PDF in a reader process, which a damaged file may take down."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fonds.engine.readers import ReaderPool
from fonds.errors import EngineError, StoreError, WrongContentError

_HEAD_SIZE: Final = 1024


def check_pdf(file: bytes | Path, readers: ReaderPool) -> None:
    """Raise WrongContentError unless this is a PDF that opens, with or without a password."""
    _require_pdf_header(file[:_HEAD_SIZE] if isinstance(file, bytes) else _head(file))
    try:
        reason = readers.read_now(open_pdf, file)
    except EngineError as error:
        reason = error
    if reason:
        raise WrongContentError(f"the file cannot be opened as a PDF: {reason}")


def open_pdf(file: bytes | Path) -> str | None:
    """Why a PDF does not open, or None if it does."""
    import pypdfium2 as pdfium  # noqa: PLC0415 — for the process that opens files, alone

    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.raw.FPDF_ERR_PASSWORD:
            return None
        return str(error)
    try:
        return None if len(document) else "it has no pages"
    finally:
        document.close()


def _head(file: Path) -> bytes:
    try:
        with file.open("rb", buffering=0) as opened:
            return opened.read(_HEAD_SIZE)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from error


def _require_pdf_header(head: bytes) -> None:
    if not head:
        raise WrongContentError("the file is empty")
    if b"%PDF-" not in head:
        is_page = head.lstrip()[:1] == b"<"
        raise WrongContentError(
            "a web page was served instead of a PDF" if is_page else "the file is not a PDF"
        )
