"""An opened PDF: pdfium reads its text, and pdf_oxide what pdfium cannot."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final

import pdf_oxide
import pypdfium2 as pdfium

from fonds.errors import EncryptedError, MalformedError, ParseError, WrongContentError
from fonds.normalize.pdf.native import NativeText
from fonds.normalize.pdf.page import (
    WORDS,
    Page,
    Run,
    cleaned,
    guarded,
    unmapped,
    unreadable,
)

pdf_oxide.disable_logging()

_HTML: Final = re.compile(rb"^\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_XFA: Final = (pdfium.raw.FORMTYPE_XFA_FULL, pdfium.raw.FORMTYPE_XFA_FOREGROUND)
_MAX_PAGES: Final = 50_000
_MAX_SIDE: Final = 200_000.0
_FEW_CHARACTERS: Final = 24
_GARBAGE: Final = 0.3
_MORE: Final = 1.05
_LANGUAGE_LENGTH: Final = 64
_DOUBTFUL: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Said:
    """A page's words as one reader gives them."""

    text: str
    unmapped: int
    """Letters in fonts that do not say which letters they are."""

    @property
    def letters(self) -> int:
        """How many are letters or digits."""
        return sum(map(len, WORDS.findall(self.text)))

    @property
    def few(self) -> bool:
        """Whether it may be no text at all, but numbers and names stamped on a picture."""
        return len("".join(self.text.split())) < _FEW_CHARACTERS or not WORDS.search(self.text)

    @property
    def trouble(self) -> float:
        """The share that is no readable letter."""
        if not self.text:
            return 0.0
        return (unreadable(self.text) + self.unmapped) / len(self.text)


class Pdf:
    """An opened file; every failure of either reader is an answer or a `ParseError`."""

    has_asked_the_other_reader = False
    """Whether any file of this process was given to it."""

    def __init__(self, data: bytes) -> None:
        _refuse(data)
        self._data = data
        self._pdfium, trouble = _open_pdfium(data)
        self._second: Any = None
        self._asked = False
        if isinstance(trouble, ParseError) and not self._readable():
            raise trouble
        pages = len(self._pdfium) if self._pdfium is not None else self._oxide_pages()
        if pages == 0:
            raise MalformedError(f"this PDF cannot be read: {trouble or 'it has no pages'}")
        if pages > _MAX_PAGES:
            raise MalformedError(f"this PDF claims {pages} pages; at most {_MAX_PAGES} are read")
        self.page_count = pages

    def close(self) -> None:
        """Give the readers' memory back."""
        if self._pdfium is not None:
            self._pdfium.close()

    def page(self, index: int) -> Page:
        """What stands on that page, counted from zero."""
        page = Page(number=index + 1)
        native = guarded(lambda: self._pdfium[index]) if self._pdfium is not None else None
        try:
            self._measure(page, native)
            self._read(page, native)
        finally:
            if native is not None:
                native.close()
        return page

    def render(self, index: int, scale: float) -> Any:
        """The page as a grey bitmap of pdfium, or None where it cannot be drawn."""
        if self._pdfium is None:
            return None
        return guarded(lambda: self._pdfium[index].render(scale=scale, grayscale=True))

    @property
    def language(self) -> str | None:
        """The language the file declares."""
        buffer = (ctypes.c_ushort * _LANGUAGE_LENGTH)()

        def read() -> int:
            length = _LANGUAGE_LENGTH * 2
            return int(pdfium.raw.FPDFCatalog_GetLanguage(self._pdfium, buffer, length))

        length = (guarded(read) or 0) if self._pdfium is not None else 0
        return bytes(buffer)[: max(length - 2, 0)].decode("utf-16-le", "replace") or None

    def remarks(self) -> list[str]:
        """What the file holds beside its pages, and is not read."""
        remarks = []
        if self._pdfium is not None:
            if attached := guarded(self._pdfium.count_attachments):
                remarks.append(f"{attached} attached files are not read")
            if guarded(self._pdfium.get_formtype) in _XFA:
                remarks.append("this PDF is an XFA form; only its fallback pages are read")
        return remarks

    @property
    def _oxide(self) -> Any:
        """The other reader, opened when first asked: most files need it for nothing."""
        if not self._asked:
            self._asked = Pdf.has_asked_the_other_reader = True
            self._second = guarded(lambda: pdf_oxide.PdfDocument.from_bytes(self._data))
        return self._second

    def _readable(self) -> bool:
        """Whether the other reader finds text: it knows ciphers that pdfium does not."""
        pages = min(self._oxide_pages(), 5)
        return any(guarded(partial(self._oxide.extract_spans, at)) for at in range(pages))

    def _oxide_pages(self) -> int:
        return guarded(lambda: int(self._oxide.page_count())) or 0

    def _measure(self, page: Page, native: Any) -> None:
        if native is not None:
            width, height = native.get_size()
            page.left, page.bottom = native.get_bbox()[:2]
            page.rotation = native.get_rotation()
            page.label = guarded(lambda: self._pdfium.get_page_label(page.number - 1)) or None
        else:
            box = guarded(lambda: self._oxide.page_media_box(page.number - 1)) or (0, 0, 0, 0)
            width, height = box[2] - box[0], box[3] - box[1]
        if 0 < width < _MAX_SIDE and 0 < height < _MAX_SIDE:
            page.width, page.height = width, height

    def _read(self, page: Page, native: Any) -> None:
        said = guarded(lambda: _native_said(page, native)) if native is not None else None
        if said is None or said.trouble > _DOUBTFUL or not WORDS.search(said.text):
            said = self._better(page, said or _Said("", 0))
        garbage = said.trouble > _GARBAGE
        page.scanned = garbage or (said.few and _has_image(native))
        # A few words on a picture may be its caption: they stay, unless more can be read.
        if garbage or not WORDS.search(said.text):
            page.rows = []
        page.drop_outside()

    def _better(self, page: Page, said: _Said) -> _Said:
        """The words of the other reader, where it can make more of the fonts than pdfium."""
        spans = guarded(lambda: self._oxide.extract_spans(page.number - 1)) or ()
        fonts: dict[str, list[str]] = {}
        for span in spans:
            fonts.setdefault(span.font_name, []).append(span.text)
        theirs = _Said(" ".join(span.text for span in spans), unmapped(fonts.values()))
        if theirs.letters <= _MORE * said.letters or theirs.trouble > said.trouble:
            return said
        page.rows = _span_rows(page, spans)
        return theirs


def _native_said(page: Page, native: Any) -> _Said:
    text = NativeText(native, page)
    try:
        page.rows = text.rows()
    finally:
        text.close()
    return _Said(text.text, unmapped(text.fonts.values()))


def _span_rows(page: Page, spans: Any) -> list[list[Run]]:
    rows = []
    ordered = sorted(spans, key=lambda span: span.sequence)
    for _, line in groupby(ordered, key=lambda span: round(span.bbox[1])):
        rows.append([run for span in line if (run := _span_run(page, span)).text])
    return [row for row in rows if row]


def _span_run(page: Page, span: Any) -> Run:
    x, y, width, height = span.bbox
    x, y = x - page.left, y - page.bottom
    text, _ = cleaned(span.text)
    turned = span.page_bbox != span.bbox
    size = span.font_size or height
    return Run(x, y, x + width, y + height, size, span.is_bold, text, turned=turned)


def _refuse(data: bytes) -> None:
    if not data.strip(b"\0 \r\n\t"):
        raise MalformedError("this PDF is empty; fetch it again")
    if _HTML.match(data[:1024]):
        raise WrongContentError("this is a web page, not a PDF; look at what the address answers")
    if b"%PDF" not in data[:4096] and b" obj" not in data[:65536]:
        raise WrongContentError("this is not a PDF: it does not begin with %PDF")


def _open_pdfium(data: bytes) -> tuple[Any, str | ParseError]:
    try:
        document = pdfium.PdfDocument(data)
        len(document)
    except pdfium.PdfiumError as error:
        reason = str(error)
        if "password" in reason.lower():
            return None, EncryptedError(
                "this PDF is encrypted and opens only with a password; ask its publisher for an "
                "open copy"
            )
        return None, "neither reader finds a document in it; it is damaged or cut off"
    return document, ""


def _has_image(native: Any) -> bool:
    kind = pdfium.raw.FPDF_PAGEOBJ_IMAGE

    def image() -> Any:
        return next(iter(native.get_objects(filter=[kind], max_depth=3)), None)

    return native is not None and guarded(image) is not None
