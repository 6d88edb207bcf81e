"""PDF files as Markdown: columns in reading order, heads and feet as page marks."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fonds.errors import WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.pdf.blocks import Block, Joiner, blocks_of, note_names
from fonds.normalize.pdf.furniture import without_furniture
from fonds.normalize.pdf.layout import NOTE_CLOSE, NOTE_OPEN, lines_of
from fonds.normalize.pdf.ocr import RENDER_SCALE, Recognizer, installed_recognizer
from fonds.normalize.pdf.page import Page, Pdf, guarded
from fonds.normalize.pdf.table import Table

_NOTE: Final = re.compile(f"{NOTE_OPEN}(.+?){NOTE_CLOSE}")
_NOTE_LABEL: Final = re.compile(rf"(?:{NOTE_OPEN})?(?:\d{{1,3}}|[*†‡])(?:{NOTE_CLOSE})?\s*[.)]?\s*")
_MAX_PIXELS: Final = 40_000_000
# pdfium keeps state of its own for the whole process.
_ONE_AT_A_TIME: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class PdfNormalizer:
    """The normalizer `pdf_v1`."""

    name: str = "pdf_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "pdf"
    recognizer: Recognizer | None = field(default_factory=installed_recognizer)
    """Reads pages without text; None leaves them out, with a warning each."""

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:  # noqa: ARG002 — a PDF is one document
        """The whole file as Markdown, or a `ParseError` that names the cause."""
        with _ONE_AT_A_TIME:
            pages, warnings = _read(data, self.recognizer)
        lines, printed = without_furniture(
            [lines_of(page) for page in pages], [page.height for page in pages]
        )
        labels = [
            name or page.label or str(page.number)
            for name, page in zip(printed, pages, strict=True)
        ]
        blocks = blocks_of(lines)
        writer = _BodyWriter(Joiner(lines), labels, note_names(blocks))
        for block in blocks:
            writer.write(block)
        return writer.finish(warnings)


def _read(data: bytes, recognizer: Recognizer | None) -> tuple[list[Page], tuple[str, ...]]:
    pdf = Pdf(data)
    warnings: list[str] = []
    try:
        pages = [pdf.page(index) for index in range(pdf.page_count)]
        warnings.extend(pdf.remarks())
        for page in pages:
            if page.scanned:
                page.text = _recognized(pdf, page, recognizer)
                warnings.append(_about_scan(page, recognizer))
    finally:
        pdf.close()
    if removed := sum(page.removed for page in pages):
        warnings.append(f"{removed} control characters removed")
    if not any(page.runs or page.turned or page.text for page in pages):
        raise WrongContentError(_about_nothing(pages, recognizer))
    return pages, tuple(warnings)


def _recognized(pdf: Pdf, page: Page, recognizer: Recognizer | None) -> str:
    if recognizer is None:
        return ""
    scale = min(RENDER_SCALE, (_MAX_PIXELS / (page.width * page.height)) ** 0.5)
    bitmap = pdf.render(page.number - 1, scale)
    return (guarded(lambda: recognizer.read(bitmap)) or "").strip() if bitmap else ""


def _about_scan(page: Page, recognizer: Recognizer | None) -> str:
    if page.text:
        return (
            f"page {page.number} has no usable text layer; its text was recognized from the picture"
        )
    if recognizer is None:
        return f"page {page.number} has no text layer; install fonds[ocr]"
    return f"page {page.number} has no text layer, and no text was recognized in its picture"


def _about_nothing(pages: Sequence[Page], recognizer: Recognizer | None) -> str:
    scanned = sum(page.scanned for page in pages)
    if not scanned:
        return f"this PDF holds no text: all of its pages ({len(pages)}) are blank or unreadable"
    advice = "install fonds[ocr]" if recognizer is None else "no text was recognized in them"
    return (
        f"this PDF holds no usable text: {scanned} of its {len(pages)} pages are pictures, or "
        f"their fonts do not say which letters they are; {advice}"
    )


class _BodyWriter:
    """Writes blocks, and a page mark wherever the page changes."""

    def __init__(
        self, joiner: Joiner, labels: Sequence[str], notes: Mapping[tuple[int, str], str]
    ) -> None:
        self._writer = MarkdownWriter()
        self._joiner = joiner
        self._labels = labels
        self._page = -1
        self._notes = notes

    def finish(self, warnings: tuple[str, ...]) -> NormalizedBody:
        self._turn_to(len(self._labels) - 1)
        return self._writer.finish(warnings)

    def write(self, block: Block) -> None:
        page, line = block.lines[0]
        if line.table:
            self._turn_to(page)
            self._table(line.table)
            return
        self._writer.begin(level=block.level, section=block.section)
        if block.note:
            self._turn_to(page)
            self._writer.markup(f"[^{self._notes[page, block.note]}]: ")
        self._lines(block)
        self._writer.end()

    def _lines(self, block: Block) -> None:
        texts = [line.text for _, line in block.lines]
        if block.note:
            texts[0] = _NOTE_LABEL.sub("", texts[0], count=1)
        pending = ""
        for (page, _), text, after in zip(block.lines, texts, [*texts[1:], ""], strict=True):
            self._turn_to(page)
            end, between = self._joiner.joined(text, after)
            self._text(pending + end)
            pending = between
        self._writer.no_space()

    def _text(self, text: str) -> None:
        parts = _NOTE.split(text)
        for at, part in enumerate(parts):
            if at % 2:
                self._reference(part)
            else:
                self._writer.text(part)

    def _reference(self, number: str) -> None:
        # A note may begin on the page after its reference, where the foot is full.
        note = self._notes.get((self._page, number)) or self._notes.get((self._page + 1, number))
        if note:
            self._writer.markup(f"[^{note}]")
        else:
            self._writer.text(number)

    def _turn_to(self, page: int) -> None:
        while self._page < page:
            self._page += 1
            self._writer.page(self._labels[self._page])

    def _table(self, table: Table) -> None:
        self._writer.begin()
        self._writer.in_table = True
        for at, row in enumerate(table.rows):
            if at:
                self._writer.line()
            self._row(row)
            if not at:
                self._writer.line()
                self._writer.markup("|" + " --- |" * len(row))
        self._writer.in_table = False
        self._writer.end()

    def _row(self, row: Sequence[str]) -> None:
        self._writer.markup("|")
        for cell in row:
            self._writer.cell()
            self._writer.markup(" ")
            self._writer.text(cell)
            self._writer.markup(" |" if cell else "|")
