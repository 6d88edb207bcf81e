"""Whether a file is a PDF that opens, found out in a process that it cannot take with it."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from fonds.engine.local import LocalEngine
from fonds.errors import EngineError, WrongContentError

_HEAD = 1024


class Opener:
    """Opens PDFs one after another in a process of its own."""

    def __init__(self) -> None:
        self._engine = LocalEngine(workers=1, memory_mib=512, seconds=30.0)
        self._one_at_a_time = Lock()

    def check(self, file: Path) -> None:
        """Raise WrongContentError unless this is a PDF that opens, with or without a password."""
        with file.open("rb") as opened:
            refuse_others(opened.read(_HEAD))
        with self._one_at_a_time:
            outcome = next(iter(self._engine.run(open_pdf, [str(file)])))
        if isinstance(outcome.error, EngineError):
            raise WrongContentError(f"the file cannot be opened as a PDF: {outcome.error}")
        if outcome.error is not None:
            raise outcome.error
        if outcome.result is not None:
            raise WrongContentError(f"the file cannot be opened as a PDF: {outcome.result}")

    def close(self) -> None:
        """End the process."""
        self._engine.close()


def refuse_others(head: bytes) -> None:
    """Raise for what cannot be a PDF, and say what it looks like."""
    if not head:
        raise WrongContentError("the file is empty")
    if b"%PDF-" not in head:
        is_page = head.lstrip()[:1] == b"<"
        raise WrongContentError(
            "a web page was served instead of a PDF" if is_page else "the file is no PDF"
        )


def open_pdf(file: str) -> str | None:
    """Why a PDF does not open, or None if it does."""
    import pypdfium2 as pdfium  # noqa: PLC0415 — for the process that opens files, alone
    from pypdfium2 import raw  # noqa: PLC0415 — as above

    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
            return None
        return str(error)
    try:
        return None if len(document) else "it has no pages"
    finally:
        document.close()
