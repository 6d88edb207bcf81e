"""Whether a file is a PDF that opens, found out in a process that it cannot take with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock

from fonds.engine.local import LocalEngine
from fonds.errors import EngineError, FondsError, StoreError, WrongContentError
from fonds.sites.plain import is_plain_pdf
from fonds.stores.blobs import Data

_HEAD = 1024


class Opener:
    """Opens PDFs: the plain ones here, all others one after another in a process of their own."""

    def __init__(self) -> None:
        self._engine = LocalEngine(workers=1, memory_mib=512, seconds=30.0)
        self._one_at_a_time = Lock()

    def check(self, file: Path) -> None:
        """Raise WrongContentError unless this is a PDF that opens, with or without a password."""
        for trouble in self.troubles([file]):
            if trouble is not None:
                raise trouble

    def troubles(self, files: Sequence[Data]) -> list[FondsError | None]:
        """Of each file, why it is no PDF that opens, or None if it is one."""
        found = [_foreign(file) for file in files]
        unsure = [at for at, file in enumerate(files) if not found[at] and not is_plain_pdf(file)]
        with self._one_at_a_time, ExitStack() as written:
            opened = self._opened([written.enter_context(_in_file(files[at])) for at in unsure])
        for at, trouble in zip(unsure, opened, strict=True):
            found[at] = trouble
        return found

    def _opened(self, files: list[str]) -> list[FondsError | None]:
        """All at once; if one of them takes the process with it, each alone."""
        if len(files) > 1:
            outcome = next(iter(self._engine.run(open_pdfs, [files])))
            if outcome.error is None:
                return [_unopened(reason) for reason in outcome.result or ()]
        return [self._alone(file) for file in files]

    def _alone(self, file: str) -> FondsError | None:
        outcome = next(iter(self._engine.run(open_pdf, [file])))
        if outcome.error is not None and not isinstance(outcome.error, EngineError):
            return outcome.error
        return _unopened(outcome.error or outcome.result)

    def close(self) -> None:
        """End the process, when it has answered."""
        with self._one_at_a_time:
            self._engine.close()


@contextmanager
def _in_file(data: Data) -> Iterator[str]:
    if isinstance(data, Path):
        yield str(data)
        return
    with NamedTemporaryFile(suffix=".pdf") as file:
        file.write(data)
        file.flush()
        yield file.name


def _foreign(file: Data) -> FondsError | None:
    try:
        refuse_others(file[:_HEAD] if isinstance(file, bytes) else _head(file))
    except (WrongContentError, StoreError) as error:
        return error
    return None


def _head(file: Path) -> bytes:
    try:
        with file.open("rb", buffering=0) as opened:
            return opened.read(_HEAD)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from error


def _unopened(reason: object) -> WrongContentError | None:
    told = f"the file cannot be opened as a PDF: {reason}"
    return None if reason is None else WrongContentError(told)


def refuse_others(head: bytes) -> None:
    """Raise for what cannot be a PDF, and say what it looks like."""
    if not head:
        raise WrongContentError("the file is empty")
    if b"%PDF-" not in head:
        is_page = head.lstrip()[:1] == b"<"
        raise WrongContentError(
            "a web page was served instead of a PDF" if is_page else "the file is no PDF"
        )


def open_pdfs(files: Sequence[str]) -> list[str | None]:
    """The same as `open_pdf` says, of several."""
    return [open_pdf(file) for file in files]


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
