"""What one page of a PDF says: placed runs of text, from two readers that check each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Final

import pdf_oxide
import pypdfium2 as pdfium

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.normalize.pdf.table import Table, sound_tables

pdf_oxide.disable_logging()

_HTML: Final = re.compile(rb"^\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_WORDS: Final = re.compile(r"[^\W_]+")
_CHARACTERS: Final = str.maketrans(
    {"\xad": "-", "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
# What neither reader could map.
_UNREADABLE: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]")
_RIGHT_TO_LEFT: Final = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LATIN: Final = re.compile(r"[A-Za-zÀ-ÿ]")
_VOWELS: Final = re.compile(r"[AEIOUYaeiouyÀ-ÆÈ-ÏÒ-ÖÙ-Ýà-æè-ïò-öù-ýÿ]")
_MIN_LETTERS: Final = 60
_FEWEST_VOWELS: Final = 0.2
_XFA: Final = (pdfium.raw.FORMTYPE_XFA_FULL, pdfium.raw.FORMTYPE_XFA_FOREGROUND)
_MAX_PAGES: Final = 50_000
_MAX_SIDE: Final = 200_000.0
_FEW_CHARACTERS: Final = 24
_AGREEMENT: Final = 0.96
_GARBAGE: Final = 0.3
_TABLE_ROWS: Final = 3


@dataclass(frozen=True, slots=True)
class Run:
    """Text in one font at one place; a sound table takes the place of the runs it holds."""

    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    bold: bool
    text: str
    table: Table | None = None


@dataclass(slots=True)
class Page:
    """One page as read, before anything is put in order."""

    number: int
    """Counted from one."""
    label: str | None = None
    """As the file itself names the page."""
    width: float = 612.0
    height: float = 792.0
    left: float = 0.0
    bottom: float = 0.0
    """Where the visible page begins: printers leave marks outside it."""
    runs: list[Run] = field(default_factory=list)
    turned: list[Run] = field(default_factory=list)
    """Runs set at an angle: margins, stamps, watermarks."""
    text: str = ""
    """Plain lines, where their places are unknown: another reader's, or recognized ones."""
    scanned: bool = False
    """No usable text, but something is drawn."""
    unmapped: int = 0
    """Letters of fonts that say nothing of which letters they are."""
    removed: int = 0
    """Control characters left out."""


class Pdf:
    """An opened file; every failure of either reader is an answer or a `ParseError`."""

    def __init__(self, data: bytes) -> None:
        _refuse(data)
        self._pdfium, trouble = _open_pdfium(data)
        self._oxide = guarded(lambda: pdf_oxide.PdfDocument.from_bytes(data))
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

    def _readable(self) -> bool:
        """Whether the other reader finds text: it knows ciphers that pdfium does not."""
        pages = min(guarded(lambda: int(self._oxide.page_count)) or 0, 5)
        return any(guarded(partial(self._oxide.extract_spans, at)) for at in range(pages))

    def remarks(self) -> list[str]:
        """What the file holds beside its pages, and is not read."""
        remarks = []
        if self._pdfium is not None:
            if attached := guarded(self._pdfium.count_attachments):
                remarks.append(f"{attached} attached files are not read")
            if guarded(self._pdfium.get_formtype) in _XFA:
                remarks.append("this PDF is an XFA form; only its fallback pages are read")
        return remarks

    def _oxide_pages(self) -> int:
        return guarded(lambda: int(self._oxide.page_count)) or 0

    def _read(self, page: Page, native: Any) -> None:
        self._measure(page, native)
        spans = self._spans(page)
        text = _pdfium_text(native)
        if _prefer_plain(page, spans, text):
            page.text, page.runs, page.turned = text, [], []
            page.unmapped = _unmapped(text)
        said = page.text or "".join(run.text for run in (*page.runs, *page.turned))
        page.scanned = _unusable(said, native) or page.unmapped > _GARBAGE * len(said)
        if page.scanned or not _WORDS.search(said):
            page.runs, page.turned, page.text = [], [], ""
        elif _tabular(page.runs):
            self._tables(page)

    def _spans(self, page: Page) -> str:
        spans = guarded(lambda: self._oxide.extract_spans(page.number - 1))
        said = []
        fonts: dict[str, list[str]] = {}
        for span in spans or ():
            text = span.text.translate(_CHARACTERS)
            page.removed += len(_CONTROL.findall(text))
            text = _CONTROL.sub("", text)
            x, y, width, height = span.bbox
            x, y = x - page.left, y - page.bottom
            size = span.font_size or height
            run = Run(x, y, x + width, y + height, size, span.is_bold, text)
            (page.turned if span.page_bbox != span.bbox else page.runs).append(run)
            said.append(text)
            fonts.setdefault(span.font_name, []).append(text)
        page.unmapped = sum(_unmapped("".join(texts)) for texts in fonts.values())
        return " ".join(said)

    def _measure(self, page: Page, native: Any) -> None:
        if native is not None:
            width, height = native.get_size()
            page.left, page.bottom = native.get_bbox()[:2]
            page.label = guarded(lambda: self._pdfium.get_page_label(page.number - 1)) or None
        else:
            box = guarded(lambda: self._oxide.page_media_box(page.number - 1)) or (0, 0, 0, 0)
            width, height = box[2] - box[0], box[3] - box[1]
        if 0 < width < _MAX_SIDE and 0 < height < _MAX_SIDE:
            page.width, page.height = width, height

    def _tables(self, page: Page) -> None:
        found = guarded(lambda: self._oxide.extract_tables(page.number - 1)) or ()
        boxes = [(r.x0, r.y0, r.x1, r.y1, r.text) for r in page.runs]
        for table in sound_tables(found, boxes, (page.left, page.bottom)):
            page.runs = [
                run for run in page.runs if not table.holds(run.x0, run.y0, run.x1, run.y1)
            ]
            page.runs.append(
                Run(table.x0, table.y0, table.x1, table.y1, 0.0, bold=False, text="", table=table)
            )


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff\u200b\ufeff]")


def guarded(read: Callable[[], Any]) -> Any:
    """What a reader says, or None where it gives up: on broken files both raise anything."""
    try:
        return read()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:  # noqa: BLE001 — a panic of pdf_oxide is no Exception
        return None


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
            return None, ParseError(
                "this PDF is encrypted and opens only with a password; ask its publisher for an "
                "open copy"
            )
        return None, "neither reader finds a document in it; it is damaged or cut off"
    return document, ""


def _pdfium_text(native: Any) -> str:
    if native is None:
        return ""

    def read() -> str:
        textpage = native.get_textpage()
        try:
            return str(textpage.get_text_bounded())
        finally:
            textpage.close()

    # Where a line ends in a hyphen, pdfium writes a non-character and goes on.
    text = (guarded(read) or "").replace("\ufffe", "-\n").replace("\x02", "-\n")
    return _CONTROL.sub("", text.replace("\r\n", "\n").translate(_CHARACTERS))


def _prefer_plain(page: Page, spans: str, text: str) -> bool:
    """Whether pdfium's words are the better ones: the other reader missed or garbled many."""
    theirs, ours = _letters(text), _letters(spans)
    if not theirs or len(_UNREADABLE.findall(text)) > len(_UNREADABLE.findall(spans)):
        return False
    turned = sum(len(run.text) for run in page.turned)
    if turned > sum(len(run.text) for run in page.runs):
        return True
    if _right_to_left(text):
        return True
    shared = sum((theirs & ours).values())
    return shared < _AGREEMENT * sum(theirs.values())


def _unmapped(text: str) -> int:
    """How many letters are glyph numbers in disguise: hardly a vowel among them."""
    letters = len(_LATIN.findall(text))
    if letters < _MIN_LETTERS or len(_VOWELS.findall(text)) >= _FEWEST_VOWELS * letters:
        return 0
    return letters


def _right_to_left(text: str) -> bool:
    """Whether most letters are of a script that only pdfium puts into logical order."""
    return 2 * len(_RIGHT_TO_LEFT.findall(text)) > sum(map(str.isalpha, text))


def _letters(text: str) -> Counter[str]:
    return Counter("".join(_WORDS.findall(text)))


def _tabular(runs: list[Run]) -> bool:
    """Cheap sign of a table: rows with a gap of several characters between words."""
    rows: dict[int, list[Run]] = {}
    for run in runs:
        if run.text.strip():
            rows.setdefault(round(run.y0 / 2), []).append(run)
    gapped = 0
    for row in rows.values():
        row.sort(key=lambda run: run.x0)
        gapped += any(b.x0 - a.x1 > b.size for a, b in pairwise(row))
    return gapped >= _TABLE_ROWS


def _unusable(text: str, native: Any) -> bool:
    characters = "".join(text.split())
    if characters and len(_UNREADABLE.findall(characters)) > _GARBAGE * len(characters):
        return True
    if len(_WORDS.findall(text)) and len(characters) >= _FEW_CHARACTERS:
        return False
    return native is not None and bool(guarded(lambda: _has_image(native)))


def _has_image(native: Any) -> bool:
    kind = pdfium.raw.FPDF_PAGEOBJ_IMAGE
    return next(iter(native.get_objects(filter=[kind], max_depth=3)), None) is not None
